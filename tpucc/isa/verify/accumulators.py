"""Group 5: sums in the accumulators are begun, completed and used in this order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.verify.events import READ, WRITE, Events
from tpucc.isa.verify.memories import by_rows
from tpucc.isa.verify.rules import Context, Rule, Violation

RULES = (
    Rule(
        "V0501",
        "complete sums",
        "Nothing is added to accumulators after they were activated: the first tile of the next sum overwrites them.",
    ),
    Rule("V0502", "needed sums", "A sum is not overwritten before it was activated."),
    Rule("V0503", "used sums", "Every sum is activated in the end."),
)


def check(context: Context, events: Events) -> Iterator[Violation]:
    """The violations of group 5."""
    writes, reads = events.kind == WRITE, events.kind == READ
    before = events.last(writes | reads)
    other = np.where(before >= 0, events.instruction[before], -1)
    adds = writes & context.effects.acc_reads[events.instruction]
    late = adds & (before >= 0) & reads[before]
    yield from by_rows(context, events, late, "V0501", "adds to accumulator row {row} after {other} activated it", other)
    lost = writes & ~adds & (before >= 0) & writes[before]
    yield from by_rows(
        context, events, lost, "V0502", "overwrites accumulator row {row}, whose sum from {other} was never activated", other
    )
    idle = writes & events.ends_segment
    yield from by_rows(context, events, idle, "V0503", "leaves a sum in accumulator row {row} that nothing activates")
