"""Fails `one network`: the last chunk has as many rows as the others, though fewer are left."""

ROWS = 16


def lower_fc(layer):
    (size,) = layer.shape
    group = 0
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        for first in range(0, size, ROWS):
            yield f".groups [{ROWS}]"
            more = ""
            for level in layer.levels:
                source = f"{level.buffer}+{level.start + first} ub_stride={level.steps[0]}"
                yield f"convolve ub={source} acc=g{group} inner={ROWS} tile={level.tiles[n]}, switch{more}"
                more = ", accumulate"
            yield f"activate acc=g{group} ub={result}+{layer.start + first} ub_stride={layer.steps[0]} inner={ROWS}"
            group += 1
