"""Group 7: what lies in the unified buffer at the same time lies apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.effects import Bools, Walks
from tpucc.isa.verify.events import BEGIN, END, READ, WRITE, Events
from tpucc.isa.verify.memories import by_rows
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.machine.parts import Contents, Memory
from tpucc.numerics import AnyArray

RULES = (
    Rule(
        "V0701",
        "disjoint stays",
        "Stays of buffers that share rows don't share time. They may meet in a vector instruction that works in place: the old "
        "one ends and the new one begins with it.",
    ),
    Rule("V0702", "mapped rows", "Where a program has a memory map, every row that is read or written belongs to a stay of that time."),
    Rule(
        "V0703",
        "source and destination",
        "An instruction doesn't write rows that it reads, unless it is a vector instruction that walks both alike: then each row is read "
        "before it is written.",
    ),
)


def stays(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0701 and V0702."""
    if not context.program.residents:
        return
    begins, ends = events.kind == BEGIN, events.kind == END
    change = begins.astype(np.int64) - ends
    count = events.count(change)
    alike = in_place(context)[events.instruction]
    crowded = (begins & (count > 1) & ~alike) | (events.ends_instruction & (count > 1) & _since(events, begins)) | (begins & (count > 2))
    yield from by_rows(context, memory, events, crowded, "V0701", "begins a stay of row {number} while another one lasts")
    outside = ((events.kind == READ) | (events.kind == WRITE)) & (count < 1)
    yield from by_rows(context, memory, events, outside, "V0702", "touches row {number}, which belongs to no stay at this time")


def _since(events: Events, begins: Bools) -> Bools:
    """Whether the event's own instruction began a stay, up to the event itself."""
    since: Bools = begins | (events.last_instruction(begins) == events.instruction)
    return since


def overlaps(context: Context) -> Iterator[Violation]:
    """The violations of V0703."""
    for source, target in _pairs(context):
        near = source.used & target.used & (source.low < target.high) & (target.low < source.high)
        apart = near & ~_alike(context, source, target)
        found = 0
        for index in np.flatnonzero(apart).tolist():
            if found < MAX_REPORTED and _share(source, target, index):
                found += 1
                yield context.violation("V0703", index, "writes rows that it also reads, and not in the same order")


def _pairs(context: Context) -> list[tuple[Walks, Walks]]:
    """Each operand through which rows of the memory of values are read, with each one through which they are written."""
    walks = context.effects.holding(Contents.VALUES)
    return [(source, target) for source in walks if not source.writes.any() for target in walks if target.writes.any()]


def in_place(context: Context) -> Bools:
    """Which instructions read and write the same walk, row by row."""
    found = [target.used & source.used & _alike(context, source, target) for source, target in _pairs(context)]
    return np.logical_or.reduce(found) if found else np.zeros(len(context.effects), np.bool_)


def _alike(context: Context, source: Walks, target: Walks) -> Bools:
    records = context.program.instructions
    outer, inner = records["outer"], records["inner"]
    pitch, stride = (a == b for a, b in zip(_steps(source), _steps(target), strict=True))
    start = ~(source.windows | source.kernels) & (records[source.field] == records[target.field])
    alike: Bools = start & ((outer <= 1) | pitch) & ((inner <= 1) | stride)
    return alike


def _steps(walks: Walks) -> tuple[AnyArray, AnyArray]:
    """The pitch and the stride of each walk; of an operand without steps, those of rows that follow each other."""
    records, names = walks.records, (f"{walks.field}_pitch", f"{walks.field}_stride")
    pitch, stride = (records[name] if name in (records.dtype.names or ()) else None for name in names)
    return (records["inner"], np.ones_like(records["inner"])) if pitch is None or stride is None else (pitch, stride)


def _share(source: Walks, target: Walks, index: int) -> bool:
    if source.dense[index] and target.dense[index]:
        return True
    return bool(np.isin(source.rows(index), target.rows(index), assume_unique=True).any())
