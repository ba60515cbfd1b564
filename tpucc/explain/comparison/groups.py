"""What can explain the cycles of each row of the accounting: numbers of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tpucc.explain.comparison.pairs import Sides
from tpucc.explain.critical import LIMITS, Limit
from tpucc.explain.roofs import finishing_work
from tpucc.explain.segments import matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import Bools, effects
from tpucc.machines.v1 import Engine, Opcode
from tpucc.numerics import Int64


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
    """A row of the accounting, and the numbers that can explain it. `words` say what its cycles are spent on."""

    words: str
    limit: Limit
    numbers: tuple[Number, ...] = ()


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


def _fetches(runtime: Timed) -> int:
    return int(runtime.stats["tile_fetches"])


def _transfers(runtime: Timed) -> int:
    """How often rows cross the link to the host, in or out."""
    return int(np.isin(runtime.program.instructions["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)).sum())


def _latency(runtime: Timed) -> float:
    """The cycles of a transfer besides those of its bytes."""
    target = runtime.program.target
    return target.host_latency_seconds * target.clock_hz


BYTES = Number(
    "bytes across the link",
    lambda runtime: sum(runtime.stats["host_bytes"].values()),
    lambda runtime: runtime.program.target.clock_hz / runtime.program.target.host_bandwidth,
    lambda runtime: f"{runtime.program.target.host_bandwidth / 1e9:,.1f} GB/s",
)

GROUPS = (
    Group("multiplying", Limit.MATRIX_UNIT, (Number("rows multiplied", rows_of(Engine.MATRIX)),)),
    Group(
        "waiting for weight memory",
        Limit.WEIGHT_MEMORY,
        (
            Number(
                "tiles fetched",
                _fetches,
                lambda runtime: runtime.program.target.tile_fetch_cycles,
                lambda runtime: f"{runtime.program.target.tile_fetch_cycles:,} cycles each",
            ),
        ),
    ),
    Group(
        "waiting for the weight shift",
        Limit.WEIGHT_SHIFT,
        (Number("tiles shifted in", _fetches, lambda runtime: runtime.program.target.tile_shift_cycles),),
    ),
    Group(
        "waiting for the activation unit",
        Limit.ACTIVATION,
        (Number("cycles of that unit's work", _work, rate=_rate, detail=Number("of them for depthwise convolutions", _depthwise)),),
    ),
    Group(
        "waiting for host work", Limit.HOST_WORK, (Number("cycles of host steps", lambda runtime: int(runtime.stats["host_step_cycles"])),)
    ),
    Group(
        "waiting for the host link",
        Limit.HOST_LINK,
        (
            BYTES,
            Number("transfers", _transfers, _latency, lambda runtime: f"{_latency(runtime):,.0f} cycles of latency each", beyond=BYTES),
        ),
    ),
    Group("waiting for sums to come out", Limit.DEPENDENCIES),
)
"""One for each row of the accounting."""


COUNTS: Mapping[str, Callable[[Timed], int]] = {
    "multiply-accumulates of the device": lambda side: side.stats["macs"],
    "multiply-accumulates of the host": lambda side: side.stats["host_macs"],
    "rows multiplied": rows_of(Engine.MATRIX),
    "rows through the activation unit": rows_of(Engine.ACTIVATION),
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
    """The edges of stretches of time, and of each stretch whether the matrix unit spends it on what the group has."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    return np.append(segments.start[:1], segments.end), segments.root == LIMITS.index(group.limit)
