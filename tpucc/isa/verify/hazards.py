"""Group 8: accesses of different engines to the same rows are ordered by synchronisation.

Execution is in program order, but the machine's engines run at the same time. Two accesses to a row, one of them a write, must happen in
program order whatever the timing: the later instruction's clock (see `clocks`) must cover the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.isa.instructions import UNITS
from tpucc.isa.verify.events import READ, WRITE, Events
from tpucc.isa.verify.memories import by_rows
from tpucc.isa.verify.rules import Context, Rule, Violation
from tpucc.numerics import Int64

RULES = (
    Rule("V0801", "read after write", "An instruction that reads a row waits for the other engine's write of it."),
    Rule("V0802", "write after read", "An instruction that overwrites a row waits for the other engine's reads of it."),
    Rule("V0803", "write after write", "An instruction that overwrites a row waits for the other engine's write of it."),
)


def check(context: Context, events: Events, known: Int64, memory: str) -> Iterator[Violation]:
    """The violations of group 8 in one memory; `known` are the `clocks` of all instructions."""
    reads, writes = events.kind == READ, events.kind == WRITE
    engine = context.effects.engine[events.instruction]
    for earlier, later, code, what in (
        (writes, reads, "V0801", f"reads {memory} row {{row}}, but doesn't wait for {{other}}, which writes it"),
        (reads, writes, "V0802", f"overwrites {memory} row {{row}}, but doesn't wait for {{other}}, which reads it"),
        (writes, writes, "V0803", f"overwrites {memory} row {{row}}, but doesn't wait for {{other}}, which writes it too"),
    ):
        for unit in UNITS:
            own = earlier & (engine == unit)
            if own.any():
                last = events.last_instruction(own)
                racing = later & (engine != unit) & (last > known[events.instruction, unit])
                yield from by_rows(context, events, racing, code, what, last)
