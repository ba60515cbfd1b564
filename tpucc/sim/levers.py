"""*Levers*: settings that make a program faster. For each kind of bottleneck there is one that works on this program.

A larger batch is the first choice. It doesn't work if the batch is computed in parts already, or if the unified buffer has no room for
more. Then the lever is a number of the machine. A lever is always about the bottleneck itself: if that is the host link, a larger batch is
one only for what transfers take to begin.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tpucc.isa.effects import Effects
from tpucc.isa.instructions import Opcode
from tpucc.isa.program import Program
from tpucc.sim.critical import Limit, Part
from tpucc.target import number_text
from tpucc.values import dataclass

LEAST = 1.5
"""A larger batch is a lever only if the batch can grow by this factor."""
MEASURED = " (tpucc sweep -D batch=… measures it)"
WHOLE = 10
"""From here on factors are whole numbers; below, tenths, if the batch has so many items."""


@dataclass(frozen=True, slots=True)
class Lever:
    """A setting, as it is given on the command line, and what it does."""

    option: Literal["batch", "cores", "set"]
    """A parameter with which the batch grows (-D), `--cores`, or `--set`."""
    field: str
    """Of the target; nothing for the batch and for cores."""
    value: float
    """How many times as large the batch is; how many cores; the field's value."""
    effect: str
    """`would fetch tiles in half the time`."""
    most: bool = False
    """Whether the value is the largest batch that may have room. An estimate: of a larger batch an item can need more rows, or fewer."""

    @property
    def words(self) -> str:
        match self.option:
            case "batch" if self.most:
                room = "as far as the unified buffer's peak shows"
                return f"a batch up to about {self.value:,.12g} times as large, {room}, {self.effect}"
            case "batch":
                return f"a batch {self.value:,.12g} times as large {self.effect}"
            case "cores":
                return f"--cores {self.value:.0f} {self.effect}"
            case "set":
                value = self.value if isinstance(self.value, int) else float(f"{self.value:.3g}")
                return f"--set {self.field}={number_text(value)} {self.effect}"


@dataclass(frozen=True, slots=True)
class Work:
    """What levers are chosen by."""

    program: Program
    touched: Effects
    path: list[Part]
    """The critical path."""
    rows: int
    """Those that a fetched tile is used for."""

    def seconds(self, *limits: Limit) -> float:
        """The parts of the critical path that are of these limits."""
        return sum(part.cycles for part in self.path if part.limit in limits) / self.program.target.clock_hz


def weight_memory(work: Work) -> Lever:
    batch = _more_rows(work, work.program.target.tile_fetch_cycles, "its fetch")
    return batch or _twice(work.program, "weight_bandwidth", "would fetch tiles in half the time")


def weight_shift(work: Work) -> Lever:
    return _more_rows(work, work.program.target.tile_shift_cycles, "its shift") or _room(work.program)


def _more_rows(work: Work, enough: int, what: str) -> Lever | None:
    """A batch with which a tile is used for as many rows as hide it. Whether the batch then stays in one piece isn't known here."""
    hidden = f"would use such a tile for the {enough:,} rows that hide {what}, if it stays in one piece{MEASURED}"
    return _batch(work.program, enough / max(work.rows, 1), hidden, f"would use each tile for more rows{MEASURED}")


def shared(work: Work) -> Lever:
    """For what each core has of its own. Whether items need each other isn't known here, unless cores share them already."""
    program = work.program
    cores, sizes = 2 * program.cores, {port.shape[0] for port in program.prologue_ports if port.shape}
    alone = "" if program.cores > 1 else ", if no item needs another"
    odd = any(size % 2 for size in sizes)
    batch = _batch(program, 2.0, larger := f"could be shared by --cores {cores}{alone}", larger)
    if odd and batch and not batch.most:
        return batch
    batch_words = "an even batch" if odd else "the batch" if len(sizes) > 1 else f"the batch, {max(sizes, default=0) // 2:,} items each"
    return Lever("cores", "", cores, f"would share {batch_words}{alone}")


def host_work(work: Work) -> Lever:
    program, target = work.program, work.program.target
    computing = sum(step.elements for step in program.host_steps) / target.host_elements_per_second
    if computing > len(program.host_steps) * target.host_step_seconds:
        return _twice(program, "host_elements_per_second", "would compute the values in half the time")
    batch = _batch(program, 4.0, steps := "would have fewer host steps for each item", steps)
    return batch or Lever("set", "host_step_seconds", target.host_step_seconds / 2, "would answer in half the time")


def host_link(work: Work) -> Lever:
    """A larger batch has fewer transfers to begin for each item; twice the bandwidth halves what the rows take to cross."""
    program, target = work.program, work.program.target
    transfers = [part.instruction for part in work.path if part.limit is Limit.HOST_LINK]
    latency = len(transfers) * target.host_latency_seconds
    crossing = work.seconds(Limit.HOST_LINK) - latency
    batch = _batch(program, 4.0, fewer := "would have fewer transfers for each item", fewer)
    if batch and latency * (1 - 1 / batch.value) >= crossing / 2:
        return batch
    if latency < crossing:
        return _twice(program, "host_bandwidth", "would move the rows in half the time")
    return Lever("set", "host_latency_seconds", target.host_latency_seconds / 2, "would begin them in half the time")


def data_dependencies(work: Work) -> Lever:
    batch = _batch(work.program, 4.0, fewer := "would fill and drain the array less often for each item", fewer)
    return batch or _room(work.program)


def _batch(program: Program, wanted: float, enough: str, less: str) -> Lever | None:
    """A larger batch: `wanted` times as large, or as large as has room if an item needs as many rows then. None where that is hardly
    larger, and where the batch is computed in parts."""
    parts = max((len(port.splits) for port in (*program.inputs, *program.outputs)), default=1)
    stepping = bool((program.instructions["opcode"] == Opcode.INTERRUPT_HOST).sum() > 1)
    room = program.target.unified_buffer_rows / max(1, program.peak_rows)
    factor = min(wanted, room)
    rounding, items = np.ceil if factor == wanted else np.floor, _items(program)
    step = 1 if factor >= WHOLE else 10 if items >= WHOLE else items if factor < 2 else 1
    rounded = float(rounding(factor * step) / step)
    if min(factor, rounded) < LEAST or (parts > 1 and not stepping):
        return None
    return Lever("batch", "", rounded, enough) if factor == wanted else Lever("batch", "", rounded, less, most=True)


def _items(program: Program) -> int:
    """Those of the smallest batch of an input."""
    return min((port.shape[0] for port in program.prologue_ports if port.shape), default=1)


def _twice(program: Program, field: str, effect: str) -> Lever:
    return Lever("set", field, 2 * getattr(program.target, field), effect)


def _room(program: Program) -> Lever:
    """For a batch that is computed in parts, each in the room that the unified buffer has."""
    return Lever("set", "unified_buffer_rows", 4 * program.target.unified_buffer_rows, "would compute the batch in larger parts")
