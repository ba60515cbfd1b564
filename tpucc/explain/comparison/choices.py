"""What two machines, or two compiles, decided alike or not, where the rows of the accounting don't tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from tpucc.diagnostics import counted, listed
from tpucc.explain.comparison.layers import LayerDifference
from tpucc.explain.comparison.pairs import Pair, Sides, together
from tpucc.explain.critical import Limit
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects

SHOWN = 4
"""So many numbers of two machines that differ are named."""


def machines(sides: Sides) -> Iterator[str]:
    """The numbers in which the machines differ, as `--set` calls them: `The machines differ in weight_fifo_tiles (1 instead of 4).`"""
    a, b = sides.each(lambda side: msgspec.structs.asdict(side.program.target))
    other = [
        f"{field} ({_number(b[field])} instead of {_number(value)})"
        for field, value in a.items()
        if not isinstance(value, str) and value != b[field]
    ]
    if other:
        more = [counted(len(other) - SHOWN, "other number")] if len(other) > SHOWN else []
        yield f"The machines differ in {listed([*other[:SHOWN], *more])}."


def _number(value: float) -> str:
    """A size, or a rate: `4`, `98,304`, `3.4e+10`."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def by_vector_unit(sides: Sides, moved: Pair) -> Iterator[str]:
    """How many depthwise convolutions the vector unit computes, where that differs, or the machines do and it could. `moved` are the cycles
    of the layers that another unit computes."""
    counts = sides.pair(lambda side: len(_by_vector_unit(side)))
    if counts.difference:
        b, a = (f"{number:,}" if number else "none" for number in (counts.b, counts.a))
        cycles = f": those that move take {moved.b:,} cycles instead of {moved.a:,}" if moved.difference else ""
        yield f"The activation unit computes {b} of the depthwise convolutions in {sides.said[1]}, {a} in {sides.said[0]}{cycles}."
    elif counts.b and sides.a.program.target != sides.b.program.target:
        yield f"In both the activation unit computes {counted(counts.b, 'depthwise convolution')}."


def moved_cycles(sides: Sides, layers: Sequence[LayerDifference]) -> Pair:
    """The cycles of the layers of both sides that the vector unit computes on one of them alone."""
    a, b = sides.each(_by_vector_unit)
    return together(layer.cycles for layer in layers if not layer.only and (layer.names[0] in a) != (layer.names[1] in b))


def _by_vector_unit(side: Timed) -> frozenset[str]:
    program = side.program
    numbers = np.unique(program.layer_of[effects(program.instructions).weighs]).tolist()
    return frozenset(program.layers[number].name for number in numbers)


def fetches(sides: Sides, rows: Mapping[Limit, Pair], reasons: Sequence[str]) -> Iterator[str]:
    """What a tile of another weight memory takes, unless one of the `reasons` says it; and whether the matrix unit waits for none."""
    each = sides.pair(lambda side: side.program.target.tile_fetch_cycles)
    if not each.difference or not all(side.stats["tile_fetches"] for side in sides):
        return
    waits = together(rows[limit] for limit in (Limit.WEIGHT_MEMORY, Limit.WEIGHT_SHIFT))
    words = f"A tile is fetched in {each.b:,} cycles instead of {each.a:,}"
    if not waits.a and not waits.b:
        yield f"{words}; the matrix unit waits for none in either."
    elif not any(f"{each.b:,} cycles each instead of {each.a:,} cycles each" in reason for reason in reasons):
        yield f"{words}."


def other_peak(sides: Sides) -> Iterator[str]:
    """How far the buffers reach, where that differs: it is what allocators differ in."""
    peak = sides.pair(lambda side: side.stats["ub_peak_bytes"])
    if peak.difference:
        yield f"The buffers of {sides.said[1]} reach up to {peak.b:,} bytes of the unified buffer, those of {sides.said[0]} to {peak.a:,}."
