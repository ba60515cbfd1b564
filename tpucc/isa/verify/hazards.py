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

_AFTER_WRITE = (
    (READ, "V0801", "reads {memory} row {{row}}, but doesn't wait for {{other}}, which writes it"),
    (WRITE, "V0803", "overwrites {memory} row {{row}}, but doesn't wait for {{other}}, which writes it too"),
)
_AFTER_READ = ((WRITE, "V0802", "overwrites {memory} row {{row}}, but doesn't wait for {{other}}, which reads it"),)


def check(context: Context, events: Events, known: Int64, memory: str) -> Iterator[Violation]:
    """The violations of group 8 in one memory; `known` are the `clocks` of all instructions."""
    reads, writes = events.kind == READ, events.kind == WRITE
    engine = context.effects.engine[events.instruction]
    for unit in UNITS:
        own, finished = engine == unit, known[:, unit][events.instruction]
        for earlier, rules in ((writes, _AFTER_WRITE), (reads, _AFTER_READ)):
            if not (own & earlier).any():
                continue
            last = events.last_instruction(own & earlier)
            racing = (last > finished) & ~own
            for kind, code, what in rules if racing.any() else ():
                yield from by_rows(context, events, racing & (events.kind == kind), code, what.format(memory=memory), last)
