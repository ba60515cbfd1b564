"""Rows of the accounting that wait for the same, and the numbers of a program that can explain their cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tpucc.explain.comparison.pairs import Sides
from tpucc.explain.roofs import finishing_work
from tpucc.explain.segments import Cause, matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import Bools, effects
from tpucc.machines.v1 import Engine, Opcode
from tpucc.numerics import Int64

OF_THEM = "of them"
"""A part of what has just been counted."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a program that can explain cycles: how many `unit` there are."""

    unit: str
    count: Callable[[Timed], int]
    each: Callable[[Timed], float] = lambda _: 1.0
    """The cycles that each of these takes on the machine; 1 where it is the same on every machine."""
    rate: Callable[[Timed], str] = lambda _: ""
    """That in words, or nothing."""
    beyond: Number | None = None
    """Named only where its change costs more cycles than that of this other number."""
    detail: Number | None = None
    """Some of these, named behind them."""
    words: str = ""
    """Said before the number."""

    def change(self, sides: Sides) -> float:
        """How many cycles more all of them take in b."""
        a, b = sides.each(lambda side: self.count(side) * self.each(side))
        return b - a

    def is_named(self, sides: Sides) -> bool:
        """Whether it has the larger part of a change that it shares with another number."""
        return self.beyond is None or abs(self.change(sides)) > abs(self.beyond.change(sides))


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of the accounting with one reason, and the numbers that can explain them. `words` say what their cycles are spent on."""

    words: str
    unit: Engine
    """Whose work the matrix unit does, or waits for."""
    rows: tuple[Cause, ...]
    numbers: tuple[Number, ...]
    apart: tuple[Cause, ...] = ()
    """Those of the rows that aren't waits for the unit's work."""


def rows_of(engine: Engine) -> Callable[[Timed], int]:
    def count(runtime: Timed) -> int:
        touched = effects(runtime.program.instructions)
        own = touched.multiplies if engine == Engine.MATRIX else touched.engine == engine
        return int((touched.rows * touched.bytes_per_value)[own].sum())

    return count


def _work(runtime: Timed) -> int:
    return finishing_work(runtime.program, runtime.timeline)


def _depthwise(runtime: Timed) -> int:
    """The cycles in which the activation unit multiplies windows by weights."""
    times = runtime.timeline
    return int((times.end - times.start)[effects(runtime.program.instructions).weighs].sum())


def _rate(runtime: Timed) -> str:
    """The activation unit's cycles for a row of bytes."""
    rows = rows_of(Engine.ACTIVATION)(runtime)
    return f"{f'{_work(runtime) / rows:,.1f}'.removesuffix('.0')} a row" if rows else ""


def _waits_itself(reason: Engine, runtime: Timed) -> int:
    """Cycles in which the matrix unit waits for the activation unit, and that one for something else."""
    segments, waits = matrix_segments(runtime.program, runtime.timeline), runtime.waiting
    own = np.flatnonzero((waits.unit == Engine.ACTIVATION) & (waits.reason == reason))
    if not len(own):
        return 0
    times = np.stack([waits.start[own], waits.end[own]], axis=1).reshape(-1)
    lengths = np.cumsum(np.diff(times, prepend=times[0]) * (np.arange(len(times)) % 2))
    raw = segments.cause == Cause.RAW_STALL
    return int(sum(np.interp(segments.end[raw], times, lengths) - np.interp(segments.start[raw], times, lengths)))


def _transfers(runtime: Timed) -> int:
    """How often rows cross the link to the host, in or out."""
    return int(np.isin(runtime.program.instructions["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)).sum())


def _latency(runtime: Timed) -> float:
    """The cycles of a transfer besides those of its bytes."""
    target = runtime.program.target
    return target.host_latency_seconds * target.clock_hz


def cycles_for_host(runtime: Timed) -> int:
    """Cycles of waiting for the activation unit that are counted with what waits for the host."""
    return _waits_itself(Engine.HOST, runtime)


def cycles_for_sums(runtime: Timed) -> int:
    """Cycles of waiting for the activation unit while that one waits for the array's sums."""
    return _waits_itself(Engine.MATRIX, runtime)


BYTES = Number(
    "bytes across the link",
    lambda runtime: sum(runtime.stats["host_bytes"].values()),
    lambda runtime: runtime.program.target.clock_hz / runtime.program.target.host_bandwidth,
    lambda runtime: f"{runtime.program.target.host_bandwidth / 1e9:,.1f} GB/s",
)

GROUPS = (
    Group("multiplying", Engine.MATRIX, (Cause.ACTIVE,), (Number("rows multiplied", rows_of(Engine.MATRIX)),)),
    Group(
        "waiting for weight tiles",
        Engine.WEIGHTS,
        (Cause.WEIGHT_STALL, Cause.WEIGHT_SHIFT),
        (
            Number(
                "tiles fetched",
                lambda runtime: int(runtime.stats["tile_fetches"]),
                lambda runtime: runtime.program.target.tile_fetch_cycles,
                lambda runtime: f"{runtime.program.target.tile_fetch_cycles:,} cycles each",
            ),
        ),
        apart=(Cause.WEIGHT_SHIFT,),  # the tile is there
    ),
    Group(
        "waiting for the activation unit",
        Engine.ACTIVATION,
        (Cause.RAW_STALL, Cause.ACTIVATION),
        (
            Number("cycles of that unit's work", _work, rate=_rate, detail=Number("of them for depthwise convolutions", _depthwise)),
            Number(OF_THEM, cycles_for_sums, words="that unit itself waits for the array's sums in "),
        ),
    ),
    Group(
        "waiting for the host",
        Engine.HOST,
        (Cause.INPUT_STALL, Cause.HOST_STEP, Cause.OUTPUT, Cause.INPUT),
        (
            BYTES,
            Number("transfers", _transfers, _latency, lambda runtime: f"{_latency(runtime):,.0f} cycles of latency each", beyond=BYTES),
            Number("cycles of host steps", lambda runtime: int(runtime.stats["host_step_cycles"])),
        ),
    ),
    Group("with nothing to do, while the array fills or drains", Engine.MATRIX, (Cause.IDLE,), ()),
)
"""Each row of the accounting is in one of them."""


COUNTS: Mapping[str, Callable[[Timed], int]] = {
    "multiply-accumulates of the device": lambda side: side.stats["macs"],
    "multiply-accumulates of the host": lambda side: side.stats["host_macs"],
    "rows multiplied": rows_of(Engine.MATRIX),
    "rows through the activation unit": rows_of(Engine.ACTIVATION),
    "activation unit waits for host, cycles": cycles_for_host,
    "activation unit waits for sums, cycles": cycles_for_sums,
    "weight tiles": lambda side: side.stats["tiles"],
    "tiles fetched": lambda side: side.stats["tile_fetches"],
    "bytes from the host": lambda side: side.stats["host_bytes"]["in"],
    "bytes to the host": lambda side: side.stats["host_bytes"]["out"],
    "host steps": lambda side: side.stats["host_steps"],
    "unified buffer, bytes at most": lambda side: side.stats["ub_peak_bytes"],
    "instructions": lambda side: side.stats["instructions"],
}
"""The numbers of a program that a table of a comparison has, by their names there."""


def stretches(runtime: Timed, group: Group) -> tuple[Int64, Bools]:
    """The edges of stretches of time, and of each stretch whether the matrix unit spends it on what the group has.

    Where it waits for the activation unit, and that one for the host, it waits for the host.
    """
    segments, waits = matrix_segments(runtime.program, runtime.timeline), runtime.waiting
    own = (waits.unit == Engine.ACTIVATION) & (waits.reason == Engine.HOST)
    edges = np.unique(np.concatenate([segments.start[:1], segments.end, waits.start[own], waits.end[own]]))
    begun, done = (np.searchsorted(np.sort(times[own]), edges[:-1], side="right") for times in (waits.start, waits.end))
    causes = segments.cause[np.searchsorted(segments.end, edges[:-1], side="right").clip(max=len(segments.cause) - 1)]
    by_way = (causes == Cause.RAW_STALL) & (begun > done)
    return edges, np.where(by_way, group.unit == Engine.HOST, np.isin(causes, group.rows))
