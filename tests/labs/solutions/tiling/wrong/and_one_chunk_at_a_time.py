"""Fails `cycles`: fetches every tile again for each chunk of rows."""


def bunches(layer):
    """The rows of the result in bunches as large as the accumulators allow, each in chunks (place, rows)."""
    total = math.prod(layer.shape)
    deep = max(sum(level.tiles[n] is not None for level in layer.levels) for n in range(len(layer.results)))
    if deep == 1:
        return [list(chunks(layer.shape, 0, total))]
    return [[chunk] for chunk in chunks(layer.shape, 0, total)]
