"""Lab 4, a solution: bunches of chunks whose sums fit the accumulators, in which each tile is used for all chunks."""

import math

MOST = {{most}}
COLUMNS_STEP = {{columns_step}}
LEVELS_STEP = {{levels_step}}
HALVES = {{halves}}


def lower_fc(layer):
    """The `.tile` lines of one layer."""
    wide = ", wide" if layer.wide else ""
    group = 0
    complete = []
    for chunks in bunches(layer):
        for n in list(range(len(layer.results)))[::COLUMNS_STEP]:
            levels = [level for level in layer.levels if level.tiles[n] is not None][::LEVELS_STEP]
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
                        target = f"{layer.results[n]}+{row(layer, place)}"
                        complete.append(f"set_configuration block={layer.blocks[n]}")
                        complete.append(f"activate acc=g{acc} ub={target} ub_stride={layer.steps[-1]} inner={rows}{wide}")
                    if not HALVES:
                        yield from complete
                        complete.clear()
            yield from complete
            complete.clear()
            group += len(chunks)


lower_conv = lower_fc


def row(where, place):
    """The row that holds a place of the result's leading sizes."""
    return where.start + sum(i * step for i, step in zip(place, where.steps, strict=True))


def bunches(layer):
    """The rows of the result in bunches as large as the accumulators allow, each in chunks (place, rows)."""
    total = math.prod(layer.shape)
    deep = max(sum(level.tiles[n] is not None for level in layer.levels) for n in range(len(layer.results)))
    if deep == 1 and not HALVES:
        return [list(chunks(layer.shape, 0, total))]
    room = layer.target.accumulator_rows
    sizes = (room // 2,) if HALVES else (room, room // 2)
    return min((cut(layer.shape, total, size) for size in sizes), key=lambda found: cost(layer, found))


def cut(shape, total, room):
    """Bunches of about the same size, of at most `room` rows."""
    size = -(-total // -(-total // room))
    return [list(chunks(shape, first, min(size, total - first))) for first in range(0, total, size)]


def chunks(shape, first, count):
    """Rows that one instruction walks: at most MOST, of one line."""
    while count:
        *outer, line = shape
        lines, inner = divmod(first, line)
        place = [inner]
        for size in reversed(outer):
            lines, index = divmod(lines, size)
            place.insert(0, index)
        rows = min(count, MOST, line - inner)
        yield tuple(place), rows
        first, count = first + rows, count - rows


def cost(layer, found):
    """Cycles, about: a tile takes as long as its rows, or as its fetch; a bunch that fills the accumulators waits for activate."""
    total = 0
    for chunks in found:
        rows = sum(count for _, count in chunks)
        step = max(rows, layer.target.tile_fetch_cycles)
        stall = 0 if 2 * rows <= layer.target.accumulator_rows else layer.target.pipeline_cycles
        total += len(layer.results) * (len(layer.levels) * step + stall)
    return total
