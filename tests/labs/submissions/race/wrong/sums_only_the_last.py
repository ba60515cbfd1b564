"""Fails `one network`: each tile begins the sum again."""

ROWS = 8


def lower_fc(layer):
    (size,) = layer.shape
    group = 0
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        for first in range(0, size, ROWS):
            rows = min(ROWS, size - first)
            yield f".groups [{rows}]"
            for level in layer.levels:
                source = f"{level.buffer}+{level.start + first} ub_stride={level.steps[0]}"
                yield f"convolve ub={source} acc=g{group} inner={rows} tile={level.tiles[n]}, switch"
            yield f"activate acc=g{group} ub={result}+{layer.start + first} ub_stride={layer.steps[0]} inner={rows}"
            group += 1
