"""Groups 4 and 5: everything is written before it is read, and sums in the accumulators are begun, completed and used in this order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.verify.events import BEGIN, READ, WRITE, Events
from tpucc.isa.verify.memories import adding, by_rows
from tpucc.isa.verify.rules import Context, Rule, Violation
from tpucc.machine.parts import Memory

RULES = (
    Rule(
        "V0401",
        "rows of buffers written",
        "A row of a buffer is written before it is read; with a memory map, since its present stay began.",
    ),
    Rule("V0402", "accumulators written", "An accumulator row is written before it is added to or activated."),
    Rule("V0403", "configuration", "activate, vector (but for copy) and pool have a parameter block that was chosen before."),
    Rule(
        "V0404",
        "host rows written",
        "A row of a scratch or output host buffer is written before it is read, by an instruction or by a host step; a row of an input "
        "that a host step fills is read only after that step's interrupt.",
    ),
    Rule(
        "V0501",
        "complete sums",
        "Nothing is added to accumulators after they were activated: the first tile of the next sum overwrites them.",
    ),
    Rule("V0502", "needed sums", "A sum is not overwritten before it was activated."),
    Rule("V0503", "used sums", "Every sum is activated in the end."),
)


def configuration(context: Context) -> Iterator[Violation]:
    """The violations of V0403."""
    effects = context.effects
    chosen = np.maximum.accumulate(effects.configures) if len(effects) else effects.configures
    register = context.program.machine.register
    chooser = " or ".join(context.program.machine.mnemonics(writing=register.place)) if register else ""
    yield from context.each("V0403", effects.configured & ~chosen, f"needs a parameter block, and no {chooser} stands before it")


def values(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0401."""
    # lab 8 begin (the grader asks it): find reads of rows that nothing has written
    reads, writes = events.kind == READ, events.kind == WRITE
    before = events.last(writes | (events.kind == BEGIN))
    undefined = reads & ((before < 0) | ~writes[before])
    yield from by_rows(context, memory, events, undefined, "V0401", "reads {row}, which nothing has written")
    # lab 8 end


def begun(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0402."""
    reads = context.effects.reading(memory)[events.instruction]
    undefined = reads & (events.last(events.kind == WRITE) < 0)
    yield from by_rows(context, memory, events, undefined, "V0402", "needs {row}, which nothing has written")


def buffers(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0404."""
    program = context.program
    filled = {program.host[block].name for _, ports in program.step_ports for port in ports for block in port.blocks}
    empty = context.in_buffers(events.row, lambda held: held.name in filled or held.kind in ("scratch", "output"))
    adds = np.append(adding(context, memory), False)[events.instruction]  # the last is after the program's end
    undefined = ((events.kind == READ) | adds) & empty & (events.last(events.kind == WRITE) < 0)
    yield from by_rows(context, memory, events, undefined, "V0404", "reads {row}, which nothing has written")


def sums(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of group 5: V0501, V0502 and V0503."""
    # lab 8 begin (the grader asks it): find sums that are added to late, lost, or left
    writes, reads = events.kind == WRITE, events.kind == READ
    before = events.last(writes | reads)
    other = np.where(before >= 0, events.instruction[before], -1)
    adds = writes & context.effects.reading(memory)[events.instruction]
    late = adds & (before >= 0) & reads[before]
    yield from by_rows(context, memory, events, late, "V0501", "adds to {row} after {other} activated it", other)
    lost = writes & ~adds & (before >= 0) & writes[before]
    yield from by_rows(context, memory, events, lost, "V0502", "overwrites {row}, whose sum from {other} was never activated", other)
    idle = writes & events.ends_segment
    yield from by_rows(context, memory, events, idle, "V0503", "leaves a sum in {row} that nothing activates")
    # lab 8 end
