"""Fails `hidden: edges`: there may be more rows than accumulators."""


def lower_fc(layer):
    (rows,) = layer.shape
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        yield f".groups [{rows}]"
        more = ""
        for level in layer.levels:
            source = f"{level.buffer}+{level.start} ub_stride={level.steps[0]}"
            yield f"convolve ub={source} acc=g{n} inner={rows} tile={level.tiles[n]}, switch{more}"
            more = ", accumulate"
        yield f"activate acc=g{n} ub={result}+{layer.start} ub_stride={layer.steps[0]} inner={rows}"
