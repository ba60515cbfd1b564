"""Group 10: the program ends once, and what it was asked for is there then."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tpucc.diagnostics import counted
from tpucc.isa.verify.events import END, WRITE, Events
from tpucc.isa.verify.memories import by_rows
from tpucc.isa.verify.ranges import buffer_of
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.machine.memory import Contents, Memory

RULES = (
    Rule("V1001", "halt", "The last instruction is halt, and no other is."),
    Rule("V1002", "outputs complete", "Every row of every output is written."),
    Rule("V1003", "outputs once", "No row of an output is written twice."),
    Rule("V1004", "inputs kept", "No instruction writes a row of an input or of a constant."),
    Rule(
        "V1005",
        "interrupts",
        "Interrupts come in the order of the host's steps, one for each. One more, the last, may say that all outputs are there: nothing "
        "is written for the host after it.",
    ),
)


def halts(context: Context) -> Iterator[Violation]:
    """The violations of V1001."""
    machine = context.program.machine
    halt = np.flatnonzero(context.program.instructions["opcode"] == machine.halt)
    last = len(context.program.instructions) - 1
    if not len(halt) or halt[-1] != last:
        yield Violation("V1001", f"the program doesn't end in {machine.halt.name.lower()}", last)
    yield from context.each("V1001", halt[halt != last], "stands before the end of the program")


def written(context: Context) -> Iterator[Violation]:
    """The violations of V1004."""
    host = sorted(context.program.host, key=lambda b: b.start)
    kept = np.array([b.kind in ("input", "constant") for b in host] + [False], np.bool_)
    name = [f"{held.name}, which is the {held.kind} of the program" for held in host]
    for walks in context.effects.holding(Contents.BUFFERS):
        buffer = buffer_of(context, walks.low)
        yield from context.each("V1004", walks.writes & kept[buffer], partial(lambda of, i: f"writes rows of {name[of[i]]}", buffer))


def outputs(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V1002 and V1003."""
    writes = events.kind == WRITE
    before = events.last_instruction(writes)
    host = sorted(context.program.host, key=lambda b: b.start)
    buffer = buffer_of(context, events.row)
    for position in np.flatnonzero((events.kind == END) & (before < 0))[:MAX_REPORTED]:
        name, row = host[buffer[position]].name, events.row[position] - host[buffer[position]].start
        yield Violation("V1002", f"row {row:,} of the output {name} is never written", about=("host", name))
    is_output = np.array([b.kind == "output" for b in host] + [False], np.bool_)
    twice = writes & (before >= 0) & is_output[buffer]
    message = "writes {row}, an output's, again after {other}"
    yield from by_rows(context, memory, events, twice, "V1003", message, before)


def interrupts(context: Context) -> Iterator[Violation]:
    """The violations of V1005."""
    found, steps = np.flatnonzero(context.effects.interrupts), len(context.program.host_steps)
    number = context.program.instructions["index"]
    wrong = found[number[found] != np.arange(len(found))]
    yield from context.each("V1005", wrong, lambda i: f"stands where that of step {np.searchsorted(found, i):,} must stand")
    yield from context.each("V1005", found[steps + 1 :], f"has no step: the program has {counted(steps, 'host step')}")
    if len(found) < steps:
        yield Violation("V1005", f"the program ends before host step {len(found):,} of {steps:,}", len(number) - 1)
    if len(found) > steps:
        for walks in context.effects.holding(Contents.BUFFERS):
            late = np.flatnonzero(walks.writes)
            yield from context.each("V1005", late[late > found[steps]], "writes for the host after the last interrupt")
