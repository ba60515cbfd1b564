"""The verifier's rules of group 10: how a program ends. It halts once, at its end. Every row of an output or a state is written exactly
once, and no input or constant is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tpucc.diagnostics import counted
from tpucc.isa.verify.events import END, READ, WRITE, Events
from tpucc.isa.verify.memories import by_rows
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.machine.parts import Contents, Memory

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
    Rule("V1006", "states", "Every row of a state is written once, after its last read: the next step begins with it."),
)


def halts(context: Context) -> Iterator[Violation]:
    """V1001: an end without `halt`, and each `halt` before the end."""
    machine = context.program.machine
    halt = np.flatnonzero(context.program.instructions["opcode"] == machine.halt)
    last = len(context.program.instructions) - 1
    if not len(halt) or halt[-1] != last:
        yield Violation("V1001", f"the program doesn't end in {machine.halt.name.lower()}", last)
    yield from context.each("V1001", halt[halt != last], "stands before the end of the program")


def inputs_kept(context: Context) -> Iterator[Violation]:
    """V1004: instructions that write to an input or a constant."""
    names = [f"{held.name}, which is the {held.kind} of the program" for held in context.host]
    for walks in context.effects.holding(Contents.BUFFERS):
        kept = walks.writes & context.in_buffers(walks.low, lambda held: held.kind in ("input", "constant"))
        yield from context.each("V1004", kept, partial(lambda of, i: f"writes rows of {names[of[i]]}", context.buffer_of(walks.low)))


def outputs(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """V1002 and V1003: rows of outputs that nothing writes, and those that are written twice."""
    writes = events.kind == WRITE
    before = events.last_instruction(writes)
    unwritten = (events.kind == END) & (before < 0) & context.in_buffers(events.row, lambda held: held.kind == "output")
    missing = events.row[unwritten][:MAX_REPORTED]
    for row, buffer in zip(missing.tolist(), context.buffer_of(missing).tolist(), strict=True):
        held = context.host[buffer]
        yield Violation("V1002", f"row {row - held.start:,} of the output {held.name} is never written", about=("host", held.name))
    twice = writes & (before >= 0) & context.in_buffers(events.row, lambda held: held.kind == "output")
    message = "writes {row}, an output's, again after {other}"
    yield from by_rows(context, memory, events, twice, "V1003", message, before)


def states(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """V1006: rows of states that nothing writes, that are written twice, or that are read after they were written."""
    if all(buffer.kind != "state" for buffer in context.host):
        return
    writes, state = events.kind == WRITE, context.in_buffers(events.row, lambda held: held.kind == "state")
    before = events.last_instruction(writes)
    missing = events.row[state & (events.kind == END) & (before < 0)][:MAX_REPORTED]
    for row, buffer in zip(missing.tolist(), context.buffer_of(missing).tolist(), strict=True):
        yield Violation("V1006", f"nothing writes {context.row(memory, row)}, a state's", about=("host", context.host[buffer].name))
    again = state & writes & (before >= 0)
    yield from by_rows(context, memory, events, again, "V1006", "writes {row}, a state's, again after {other}", before)
    late = state & (events.kind == READ) & (before >= 0)
    yield from by_rows(context, memory, events, late, "V1006", "reads {row}, a state's, after {other} has replaced it", before)


def interrupts(context: Context) -> Iterator[Violation]:
    """V1005: interrupts out of order, and writes after the last. Machines without a host have neither."""
    found, steps = np.flatnonzero(context.effects.interrupts), len(context.program.host_steps)
    number = context.program.instructions["index"]
    wrong = found[number[found] != np.arange(len(found))]
    yield from context.each(
        "V1005", wrong, lambda i: f"has the number of another step: the interrupt of step {np.searchsorted(found, i):,} must be here"
    )
    yield from context.each("V1005", found[steps + 1 :], f"has no step: the program has {counted(steps, 'host step')}")
    if len(found) < steps:
        yield Violation("V1005", f"the program ends before host step {len(found):,} of {steps:,}", len(number) - 1)
    if len(found) > steps:
        for walks in context.effects.holding(Contents.BUFFERS):
            late = np.flatnonzero(walks.writes)
            yield from context.each("V1005", late[late > found[steps]], "writes for the host after the last interrupt")
