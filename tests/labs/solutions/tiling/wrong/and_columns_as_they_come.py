"""Fails `several tiles`: takes levels and column blocks in an order that is not the term's."""


def lower_fc(layer):
    """The `.tile` lines of one layer."""
    wide = ", wide" if layer.wide else ""
    group = 0
    for chunks in bunches(layer):
        for n in list(range(len(layer.results)))[::-COLUMNS_STEP]:
            levels = [level for level in layer.levels if level.tiles[n] is not None][::-LEVELS_STEP]
            yield f".groups [{' '.join(str(rows) for _, rows in chunks)}]"
            for depth, level in enumerate(levels):
                for index, (place, rows) in enumerate(chunks):
                    acc = group + index
                    switch = f" tile={level.tiles[n]}, switch" if index == 0 else ""
                    accumulate = ", accumulate" if depth > 0 else ""
                    flags = f"{switch}{accumulate}{wide}"
                    start = row(level, place)
                    yield f"convolve ub={level.buffer}+{start} ub_stride={level.steps[-1]} acc=g{acc} inner={rows}{flags}"
                    if depth == len(levels) - 1:
                        yield f"set_configuration block={layer.blocks[n]}"
                        target = f"{layer.results[n]}+{row(layer, place)}"
                        yield f"activate acc=g{acc} ub={target} ub_stride={layer.steps[-1]} inner={rows}{wide}"
            group += len(chunks)
