"""The accesses of a program to each of its memories, as the rules of groups 4, 5, 7, 8 and 10 look at them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.isa.verify.events import BEGIN, END, READ, WRITE, Accesses, Events, events, walk_accesses
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Violation
from tpucc.numerics import Int64


def unified_buffer_events(context: Context) -> Iterator[Events]:
    """Reads and writes of unified-buffer rows, and the beginnings and ends of stays."""
    effects, residents = context.effects, context.program.residents
    columns = np.array([(r.first, r.last, r.start, r.end) for r in residents], np.int64).reshape(-1, 4)
    first, last, low, high = columns.T
    yield from events(
        [
            *walk_accesses(effects.source, READ),
            *walk_accesses(effects.source2, READ),
            *walk_accesses(effects.target, WRITE),
            Accesses.of(first, low, high, BEGIN),
            Accesses.of(last, low, high, END),
        ]
    )


def accumulator_events(context: Context) -> Iterator[Events]:
    """Activations as reads and multiplies, accumulating or not, as writes."""
    effects = context.effects
    start, end = effects.acc_start, effects.acc_end
    yield from events([_accesses(start, end, ~effects.acc_writes, READ), _accesses(start, end, effects.acc_writes, WRITE)])


def host_events(context: Context) -> Iterator[Events]:
    """The accesses of transfers and host steps, and at the program's end an `END` for every row of an output."""
    effects = context.effects
    start, end = effects.host_start, effects.host_end
    outputs = [(b.start, b.end) for b in context.program.host if b.kind == "output"]
    low, high = np.array(outputs, np.int64).reshape(-1, 2).T
    ends = Accesses.of(np.full(len(low), len(effects)), low, high, END)
    transfers = _accesses(start, end, effects.host_reads, READ), _accesses(start, end, effects.host_writes, WRITE)
    yield from events([*transfers, *_step_accesses(context), ends])


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


def by_rows(context: Context, events: Events, wrong: Bools, code: str, message: str, others: Int64 | None = None) -> Iterator[Violation]:
    """A violation for each of the first instructions with a wrong event, in program order.

    In `message`, `{row}` stands for the first of the rows, `{host}` for its name in host memory, and `{other}` for the instruction that
    `others` gives for the event.
    """
    positions = np.flatnonzero(wrong)
    instructions, first = np.unique(events.instruction[positions], return_index=True)
    for instruction, position in zip(instructions[:MAX_REPORTED].tolist(), positions[first].tolist(), strict=False):
        other = -1 if others is None else int(others[position])
        row = int(events.row[position])
        words = message.replace("{row}", f"{row:,}").replace("{host}", context.host_row(row))
        yield context.violation(code, instruction, words, other)


def _accesses(start: Int64, end: Int64, among: Bools, kind: int) -> Accesses:
    return Accesses.of(np.flatnonzero(among), start[among], end[among], kind)
