"""The plain lowering of a product layer: right, short, and with much left to win. Labs 6 and 9 begin with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from tpucc.stages.products import ProductLayer


def plain_lines(layer: ProductLayer, chunk: int) -> Iterator[str]:
    """The `.tile` lines of a layer: one column block after the other, one chunk of at most `chunk` rows after the other. Each chunk has an
    accumulator group of its own, switches to every tile of the column block again, and is activated when its sum is done."""
    *outer, size = layer.shape
    chunks = [(*place, first) for place in itertools.product(*map(range, outer)) for first in range(0, size, chunk)]
    groups = itertools.count()
    for n, result in enumerate(layer.results):
        yield f"set_configuration block={layer.blocks[n]}"
        for place in chunks:
            group, rows = next(groups), min(chunk, size - place[-1])
            yield f".groups [{rows}]"
            more = ""
            for level in layer.levels:
                if level.tiles[n] is not None:
                    source = f"{level.buffer}+{_row(level.start, level.steps, place)} ub_stride={level.steps[-1]}"
                    yield f"convolve ub={source} acc=g{group} inner={rows} tile={level.tiles[n]}, switch{more}"
                    more = ", accumulate"
            yield f"activate acc=g{group} ub={result}+{_row(layer.start, layer.steps, place)} ub_stride={layer.steps[-1]} inner={rows}"


def _row(start: int, steps: Sequence[int], index: Sequence[int]) -> int:
    """The row of a buffer that holds an index of the result's leading sizes."""
    return start + sum(i * step for i, step in zip(index, steps, strict=True))
