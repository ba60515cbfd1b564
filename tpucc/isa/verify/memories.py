"""The accesses of a program to each of its memories, as the rules of groups 4, 5, 7, 8 and 10 look at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.isa.verify.events import BEGIN, END, READ, WRITE, Accesses, Events, Pattern, events, walk_accesses
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Violation
from tpucc.machine.parts import Contents, Memory
from tpucc.numerics import Int64


def memory_events(context: Context, memory: Memory) -> Iterator[Events]:
    """Reads and writes of the rows of a memory, and what else happens to them: beginnings and ends of stays, what the host does, and at the
    program's end an `END` for every row of an output or a state.

    An instruction that reads and writes the same rows adds to them: it counts as a write.
    """
    parts: list[Accesses | Pattern] = []
    for walks in context.effects.of(memory):
        parts += [*walk_accesses(walks, READ), *walk_accesses(walks, WRITE)]
    match memory.contents:
        case Contents.VALUES:
            parts += _stays(context)
        case Contents.BUFFERS:
            parts += [*_step_accesses(context), _outputs(context)]
        case Contents.SUMS:
            pass
        case _:
            assert_never(memory.contents)
    yield from events(parts, whole_reads=memory.contents is Contents.SUMS)


def _stays(context: Context) -> tuple[Accesses, Accesses]:
    """The beginnings and the ends of stays."""
    columns = np.array([(r.first, r.last, r.start, r.end) for r in context.program.residents], np.int64).reshape(-1, 4)
    first, last, low, high = columns.T
    return Accesses.of(first, low, high, BEGIN), Accesses.of(last, low, high, END)


def _outputs(context: Context) -> Accesses:
    """The rows of all outputs and states, after the last instruction."""
    outputs = [(b.start, b.end) for b in context.program.host if b.kind in ("output", "state")]
    low, high = np.array(outputs, np.int64).reshape(-1, 2).T
    return Accesses.of(np.full(len(low), len(context.effects)), low, high, END)


def _step_accesses(context: Context) -> Iterator[Accesses]:
    """The host rows of the output ports that each host step reads and of the input ports that it fills, at its interrupt."""
    program = context.program
    interrupts, number = np.flatnonzero(context.effects.interrupts), program.instructions["index"]
    rows: dict[int, list[tuple[int, int, int]]] = {READ: [], WRITE: []}
    for index in interrupts[number[interrupts] < len(program.host_steps)].tolist():
        for kind, ports in zip(rows, program.step_ports[number[index]], strict=True):
            buffers = [program.host[block] for port in ports for block in port.blocks]
            rows[kind] += [(index, buffer.start, buffer.end) for buffer in buffers]
    for kind, found in rows.items():
        instruction, low, high = np.array(found, np.int64).reshape(-1, 3).T
        yield Accesses.of(instruction, low, high, kind)


def adding(context: Context, memory: Memory) -> Bools:
    """Which instructions read the rows that they write."""
    found: Bools = np.logical_or.reduce([walks.reads & walks.writes for walks in context.effects.of(memory)])
    return found


def by_rows(
    context: Context, memory: Memory, events: Events, wrong: Bools, code: str, message: str, others: Int64 | None = None
) -> Iterator[Violation]:
    """A violation for each of the first instructions with a wrong event in a memory, in program order.

    In `message`, `{number}` stands for the first of the rows, `{row}` for its name, and `{other}` for the instruction that `others` gives
    for the event. Of an instruction's events, the first is told, or the first of those with the latest other instruction.
    """
    positions = np.flatnonzero(wrong)
    if others is not None:
        positions = positions[np.argsort(-others[positions], kind="stable")]
    instructions, first = np.unique(events.instruction[positions], return_index=True)
    for instruction, position in zip(instructions[:MAX_REPORTED].tolist(), positions[first].tolist(), strict=False):
        other = -1 if others is None else int(others[position])
        row = int(events.row[position])
        words = message.replace("{number}", f"{row:,}").replace("{row}", context.row(memory, row))
        yield context.violation(code, instruction, words, other)
