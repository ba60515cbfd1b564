"""What the registers of the hardware hold in each cycle, beside the parts of the machine: read from what `tpucc rtl run --vcd` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np

from tpucc.diagnostics import Diagnostic, UsageError, counted
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.machines.v1 import UNITS
from tpucc.sim.timing import Timeline

_VARIABLE = re.compile(r"^\$var wire (\d{1,5}) (\S+) \S+ \$end$", re.MULTILINE)
_CHANGE = re.compile(r"^(?:#(\d{1,12})|b([01]+) (\S+)|([01])(\S+))$", re.MULTILINE)
MOST_CYCLES = 1_000_000
"""Cycles that a trace may have: the view has a value of each register for each cycle."""
WRITES = "tpucc rtl run MODEL.tpu --vcd FILE.vcd writes one, with the options of this command"
CYCLE = 10
"""Units of time of a cycle, in a VCD of PyRTL's."""
REGISTERS: Mapping[str, Mapping[str, str]] = {
    "host": {"rows moved": "host_row", "cycle of the row": "host_cycle"},
    "memory": {"cycle of the fetch": "fetch_cycle"},
    "fifo": {"tiles fetched": "fifo_fetched", "tiles shifted": "fifo_shifted", "row of the shift": "shift_step"},
    "matrix": {"row": "matrix_ub_offset", "shadow full": "shadow_full"},
    "accumulators": {},
    "activation": {"block": "block", "row": "activation_acc_offset"},
    "buffer": {},
}
"""Registers of the hardware for each part of the machine, by what they hold."""
WORKERS = {"host": "host", "memory": "weights", "matrix": "matrix", "activation": "activation"}
"""The units of the hardware: each has registers `NAME_running` and `NAME_finished`, and works in the cycle with `NAME_starts`, too."""
ROWS: Mapping[str, Mapping[str, str]] = {
    "host": {"writes host": "host_writes_host"},
    "buffer": {"host writes": "host_writes_buffer", "activation writes": "activation_writes"},
}
"""The rows of bytes that a part takes: `NAME` is 1 in cycles in which the row `NAME_row` gets `NAME_data`."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The values of signals in each cycle of a program, from the first in which instructions may start. `name` is the file's."""

    name: str
    bits: Mapping[str, int]
    values: Mapping[str, Sequence[int]]

    @property
    def cycles(self) -> int:
        """The cycles until everything had finished."""
        return len(self.values["finished"]) - 1


def read_trace(text: str, name: str, program: Program) -> Trace:
    """The cycles of a VCD file of the program. Raises `UsageError` E0965 for a text that isn't one."""
    bits = {found[2]: int(found[1]) for found in _VARIABLE.finditer(text)}
    missing = [signal for signal in ("finished", *_used(program.target.mxu)) if signal not in bits]
    if missing:
        raise _refused(name, f"it has no signal {missing[0]}")
    for signal, size in _words_of(program.target.mxu):
        if not bits[signal] or bits[signal] % size:
            raise _refused(name, f"{signal} has {counted(bits[signal], 'bit')}, and a value has {size}")
    changes, end = _changed(text, name, {signal: bits[signal] for signal in ("finished", *_used(program.target.mxu))})
    before = len(program.instructions)
    if end <= before:
        raise _refused(name, f"it ends before {counted(before, 'instruction')} are decoded")
    values = {signal: _in_cycles(own, end)[before:] for signal, own in changes.items()}
    for unit, own in _executed(program):
        if (found := sum(values[f"{unit}_starts"])) != own:
            raise _refused(name, f"the {unit} unit starts {counted(found, 'instruction')}, and the program has {own:,} for it")
    return Trace(name, bits, values)


def _changed(text: str, name: str, bits: Mapping[str, int]) -> tuple[dict[str, list[tuple[int, int]]], int]:
    """For each signal the cycles in which it changes, with its value from there on; and the last cycle."""
    now, changes = 0, {signal: [(0, 0)] for signal in bits}
    for time, word, of_word, bit, of_bit in _CHANGE.findall(text):
        if time:
            now, earlier = int(time) // CYCLE, now
            if not earlier <= now <= MOST_CYCLES:
                raise _refused(name, f"cycle {now:,} follows cycle {earlier:,}; at most there are {MOST_CYCLES:,}")
        elif (signal := of_word or of_bit) in changes:
            if len(word) > bits[signal]:
                raise _refused(name, f"{signal} has a value of {len(word):,} bits")
            changes[signal].append((now, int(word or bit, 2)))
    return changes, now


def _executed(program: Program) -> Iterator[tuple[IntEnum, int]]:
    """How many instructions the hardware executes in each unit. The last interrupt is none of them."""
    touched = effects(program.instructions)
    for unit in UNITS:
        own = touched.engine == unit
        yield unit, int(own.sum()) - int(own[np.flatnonzero(touched.interrupts)[-1:]].sum())


def _words_of(lanes: int) -> Iterator[tuple[str, int]]:
    """The signals of rows of values, and the bits of a value."""
    yield from ((f"{signal}_data", 8) for own in ROWS.values() for signal in own.values())
    yield from ((f"accumulators_{column}_data", 32) for column in range(lanes))


def _refused(name: str, why: str) -> UsageError:
    return UsageError(Diagnostic("E0965", f"{name} is no trace of this program: {why}", help=(WRITES,)))


def _used(lanes: int) -> Iterator[str]:
    yield from (f"{unit}_{name}" for unit in WORKERS.values() for name in ("running", "starts", "finished"))
    yield from (signal for own in REGISTERS.values() for signal in own.values())
    for signal in (*(signal for own in ROWS.values() for signal in own.values()), *(f"accumulators_{column}" for column in range(lanes))):
        yield from (signal, f"{signal}_row", f"{signal}_data")


def _in_cycles(changes: Sequence[tuple[int, int]], end: int) -> list[int]:
    """The value in each cycle before the end, from the changes in the order of time."""
    found = list[int]()
    for (at, value), (until, _) in pairwise([*changes, (end, 0)]):
        found += [value] * (until - at)
    return found


def hardware_payload(trace: Trace, program: Program, touched: Effects, timeline: Timeline) -> dict[str, Any]:
    """For each part of the machine its signals by name, each as the cycles in which it changes and what it has from there on in words."""
    parts = {
        part: {**_work(trace, WORKERS.get(part, "")), **{name: list(map(str, trace.values[signal])) for name, signal in own.items()}}
        for part, own in REGISTERS.items()
    }
    for part, own in ROWS.items():
        parts[part] |= {name: _rows(trace, signal, 8) for name, signal in own.items()}
    for column in range(program.target.mxu):
        parts["accumulators"][f"column {column}"] = _rows(trace, f"accumulators_{column}", 32)
    return {
        "words": _words(trace, touched, timeline),
        "parts": {part: {name: _changes(texts) for name, texts in own.items()} for part, own in parts.items()},
    }


def _work(trace: Trace, unit: str) -> dict[str, list[str]]:
    """Whether a unit works, and how many instructions it has finished."""
    if not unit:
        return {}
    running, starts, finished = (trace.values[f"{unit}_{name}"] for name in ("running", "starts", "finished"))
    return {"works": [str(one | other) for one, other in zip(running, starts, strict=True)], "finished": list(map(str, finished))}


def _rows(trace: Trace, signal: str, bits: int) -> list[str]:
    """In each cycle the row that is written and its values, of so many bits each."""
    enabled, rows, data = (trace.values[name] for name in (signal, f"{signal}_row", f"{signal}_data"))
    lanes = trace.bits[f"{signal}_data"] // bits
    return [f"row {row}: {_lanes(word, lanes, bits)}" if on else "–" for on, row, word in zip(enabled, rows, data, strict=True)]


def _lanes(word: int, lanes: int, bits: int) -> str:
    values = np.frombuffer(word.to_bytes(lanes * bits // 8, "little"), f"<i{bits // 8}")
    return " ".join(map(str, values)).replace("-", "−")


def _changes(texts: Sequence[str]) -> list[list[Any]]:
    starts = [cycle for cycle, text in enumerate(texts) if not cycle or text != texts[cycle - 1]]
    return [starts, [texts[cycle] for cycle in starts]]


def _words(trace: Trace, touched: Effects, timeline: Timeline) -> str:
    """What the view says of the trace: whether the hardware starts its instructions in the cycles of the clock. The last interrupt is no
    instruction of the hardware's."""
    count = later = 0
    for unit in UNITS:
        found = [cycle for cycle, on in enumerate(trace.values[f"{unit}_starts"]) if on]
        count += len(found)
        later += sum(one != other for one, other in zip(found, timeline.start[touched.engine == unit].tolist(), strict=False))
    same = "each in the cycle in which the clock starts it" if not later else f"{later:,} of them in another cycle than by the clock"
    cycles = f"{counted(trace.cycles, 'cycle')}, {timeline.makespan:,} by the clock"
    return f"In dotted frames: registers of the hardware, from {trace.name}. {cycles}; {counted(count, 'instruction')} started, {same}."
