"""A student's lowering of fc layers: one column block after the other, one tile after the other.

    tpucc judge MODEL.tpu --replace lower_fc=docs/stages/plain_fc.py

Each chunk of rows has a group of accumulators, into which the products of all levels are summed. Then it is activated.
"""

import itertools


def lower_fc(layer):
    """The `.tile` lines of one layer."""
    *outer, size = layer.shape
    most = layer.target.accumulator_rows
    places = list(itertools.product(*map(range, outer)))  # one place, (), where the rows are one walk
    chunks = [(*place, first) for place in places for first in range(0, size, most)]
    wide = ", wide" if layer.wide else ""
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        for chunk in chunks:
            group = n * len(chunks) + chunks.index(chunk)
            rows = min(most, size - chunk[-1])
            yield f".groups [{rows}]"
            flag = ""
            for level in layer.levels:
                if level.tiles[n] is not None:
                    start = row(level, chunk)
                    yield (
                        f"convolve ub={level.buffer}+{start} ub_stride={level.steps[-1]} acc=g{group} inner={rows} "
                        f"tile={level.tiles[n]}, switch{flag}{wide}"
                    )
                    flag = ", accumulate"
            yield f"activate acc=g{group} ub={result}+{row(layer, chunk)} ub_stride={layer.steps[-1]} inner={rows}{wide}"


def row(where, index):
    """The row that holds an index of the result's leading sizes."""
    return where.start + sum(i * step for i, step in zip(index, where.steps, strict=True))
