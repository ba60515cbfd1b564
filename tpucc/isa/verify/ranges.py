"""Group 3: every range lies inside its memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import assert_never

import numpy as np

from tpucc.diagnostics import counted, printable
from tpucc.isa.effects import Bools, Walks
from tpucc.isa.program import stretch_ends
from tpucc.isa.verify import floats
from tpucc.isa.verify.rules import Context, Rule, Violation
from tpucc.machine.instruction import Records
from tpucc.machine.parts import Contents, Memory
from tpucc.numerics import Int64

RULES = (
    Rule("V0301", "rows of buffers", "Every row of every walk lies in its memory: on TPU v1 the unified buffer, on TPU v2 vector memory."),
    Rule("V0302", "accumulator rows", "Every accumulator row lies in the accumulators."),
    Rule("V0303", "host rows", "A transfer stays inside one host buffer, or host buffers of one kind that follow each other."),
    Rule("V0304", "tiles", "read_weights names a tile of the program, and write_weights one that has no weights of its own."),
    Rule("V0305", "parameter blocks", "set_configuration names a parameter block of the program."),
    Rule("V0306", "counts", "Counts of rows and of windows are at least 1."),
    Rule("V0307", "repeated rows", "An instruction writes no row twice, and a pooling window holds no row twice."),
)


def check(context: Context) -> Iterator[Violation]:
    """The violations of group 3; when there are none, every address is good and no walk is longer than its memory."""
    yield from _counts(context)
    for memory in context.program.machine.memories:
        for walks in context.effects.of(memory):
            yield from _rows(context, memory, walks)
    yield from _indices(context)
    yield from _repeated(context)
    yield from floats.expressions(context)
    yield from floats.blocks(context)


def _counts(context: Context) -> Iterator[Violation]:
    none = np.logical_or.reduce([(walks.reads | walks.writes) & ~walks.used for _, walks in context.effects.touches])
    yield from context.each("V0306", none, "has a count of 0")


def _rows(context: Context, memory: Memory, walks: Walks) -> Iterator[Violation]:
    """The violations of V0301, V0302 and V0303, by what a memory holds."""
    match memory.contents:
        case Contents.VALUES:
            rows, does = memory.size(context.program.target), "writes" if walks.writes.any() else "reads"
            what = f"; the {memory.title} has {rows:,} rows"
            yield from context.each("V0301", walks.high > rows, lambda i: f"{does} up to row {walks.high[i] - 1:,}{what}")
        case Contents.SUMS:
            rows, what = memory.size(context.program.target), f"uses {memory.title} up to row"
            yield from context.each("V0302", walks.high > rows, lambda i: f"{what} {walks.high[i] - 1:,} of {rows:,}")
        case Contents.BUFFERS:
            outside = walks.high > np.maximum(walks.low, stretch_ends(context.program.host, walks.low))
            yield from context.each("V0303", outside, partial(_outside, context, memory, walks))
        case _:
            assert_never(memory.contents)


def _outside(context: Context, memory: Memory, walks: Walks, index: int) -> str:
    """What an instruction does with rows that aren't all in buffers of one kind."""
    first = int(walks.low[index])
    begun = next((buffer for buffer in context.program.host if buffer.start <= first < buffer.end), None)
    held = f": {printable(begun.name)} has {counted(begun.rows, 'row')}" if begun else ""
    rows = f"the {memory.name}'s rows {first:,} to {walks.high[index] - 1:,}"
    return f"moves {rows}, which are not all in host buffers of one kind{held}"


def _indices(context: Context) -> Iterator[Violation]:
    index, effects, program = context.program.instructions["index"], context.effects, context.program
    fixed, tiles, blocks = len(program.tiles), program.tile_count, len(program.blocks)
    yield from context.each("V0304", effects.asks & (index >= tiles), lambda i: f"asks for tile {_of(index[i], tiles)}")
    kept = effects.stores & ((index < fixed) | (index >= tiles))
    yield from context.each("V0304", kept, lambda i: f"writes tile {index[i]:,}; tiles {fixed:,} to {tiles - 1:,} can be written")
    deep = effects.stores & (effects.rows > program.target.mxu)
    yield from context.each("V0304", deep, lambda i: f"writes {effects.rows[i]:,} rows of a tile of {program.target.mxu:,}")
    yield from context.each("V0305", effects.configures & (index >= blocks), lambda i: f"chooses block {_of(index[i], blocks)}")


def _of(number: int, count: int) -> str:
    """A number that is too large, and how many there are."""
    return f"{number:,} of {count:,}" if count else f"{number:,}, and the program has none"


def _repeated(context: Context) -> Iterator[Violation]:
    records, effects = context.program.instructions, context.effects
    memory = context.program.machine.holding(Contents.VALUES)
    size = memory.size(context.program.target) if memory is not None else 0
    for target in effects.holding(Contents.VALUES):
        steps = ("outer", "inner", f"{target.field}_pitch", f"{target.field}_stride")
        walked = target.used & target.writes & target.walked
        twice = walked & ~_distinct(records, steps, target.size) if walked.any() else walked
        for index in np.flatnonzero(twice).tolist():
            if not _visits_all(target, index, int(effects.rows[index] * target.size[index]), size):
                yield context.violation("V0307", index, "writes a row twice")
    window = _distinct(records, ("window_outer", "window_inner", "ub2_pitch", "ub2_stride"), effects.bytes_per_value)
    yield from context.each("V0307", (effects.window > 1) & ~window, "has a window whose rows are not in ascending order")


def _distinct(records: Records, walk: Sequence[str], width: Int64) -> Bools:
    """Whether a walk visits each row once, one way or the other: outer steps beyond the inner ones, or inner beyond outer.

    `walk` are the fields with its outer and inner counts, its pitch and its stride.
    """
    o, i, p, s, w = (column.astype(np.float64) for column in (*(records[field] for field in walk), width))
    along, across = np.maximum(i - 1, 0) * s, np.maximum(o - 1, 0) * p
    good: Bools = ((i <= 1) | (s >= w)) & ((o <= 1) | (p >= w)) & ((o <= 1) | (i <= 1) | (p >= along + w) | (s >= across + w))
    return good


def _visits_all(walks: Walks, index: int, rows: int, size: int) -> bool:
    """Whether a walk inside a memory of `size` rows visits as many rows as it has steps."""
    if walks.high[index] > size:
        return True
    return rows <= int(walks.high[index] - walks.low[index]) and len(walks.rows(index)) == rows
