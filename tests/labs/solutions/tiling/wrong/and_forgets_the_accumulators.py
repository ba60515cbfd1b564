"""Fails `many rows`: one bunch of all rows, more than there are accumulators."""


def bunches(layer):
    """The rows of the result in bunches as large as the accumulators allow, each in chunks (place, rows)."""
    total = math.prod(layer.shape)
    deep = max(sum(level.tiles[n] is not None for level in layer.levels) for n in range(len(layer.results)))
    if deep > 0:
        return [list(chunks(layer.shape, 0, total))]
    room = layer.target.accumulator_rows
    return min((cut(layer.shape, total, size) for size in (room, room // 2)), key=lambda found: cost(layer, found))
