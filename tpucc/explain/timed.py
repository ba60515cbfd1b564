"""A compiled model with the numbers of its program's time: what takes it, and what waits for what."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tpucc.diagnostics import counted
from tpucc.explain.counts import count_cycles, counts_summary
from tpucc.explain.host_numbers import edges_of, with_host
from tpucc.explain.retiming import Retimed, faster, retimed
from tpucc.explain.stats import stats
from tpucc.explain.waiting import Waiting, waiting
from tpucc.runtime.runtime import Runtime
from tpucc.sim.durations import Edges, duration
from tpucc.target import ASSUMED, number_text


@dataclass(frozen=True)
class Timed(Runtime):
    """A runtime whose timeline is explained, too."""

    @cached_property
    def waiting(self) -> Waiting:
        """Why each unit stands still, and what ends it."""
        return waiting(self.program, self.timeline)

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The contents of `stats.json`, but for `what_if`."""
        host = self.host if self.has_host_part else None
        return with_host(stats(self.program, self.timeline, self.edges), self.program, host)

    @cached_property
    def edges(self) -> Edges:
        """The measure of the host's work before the device starts and after it has finished."""
        return edges_of(self.host if self.has_host_part else None)

    @cached_property
    def faster(self) -> list[Retimed]:
        """The numbers of the machine that make a batch faster, each twice as good: `what_if` of `stats.json`."""
        return faster(self.program, self.edges, self.stats["end_to_end"]["seconds"])

    @property
    def summary(self) -> str:
        """The time from end to end, the device's cycles and the bottleneck in a line."""
        whole = self.stats["end_to_end"]
        cycles = counted(self.stats["cycles"], "cycle")
        return f"{duration(whole['seconds'])} end to end, {cycles} on the device, {whole['bottleneck']} bound"

    @cached_property
    def counts(self) -> dict[str, Any]:
        """The cycles counted in four ways, in all and by layer: see `tpucc.explain.counts`."""
        return counts_summary(self.program, count_cycles(self.program, self.timeline))


FACTORS = (0.5, 2.0)
"""By which each assumption is varied."""


@dataclass(frozen=True)
class Assumption:
    """A number of the target that is assumed, and the seconds of a batch from end to end: as it is, with half and with twice of it."""

    field: str
    value: float
    seconds: float
    halved: float
    doubled: float

    @property
    def moves(self) -> float:
        """The larger change, in seconds."""
        return max(abs(self.halved - self.seconds), abs(self.doubled - self.seconds))


def assumptions(runtime: Timed) -> list[Assumption]:
    """All of them, that one first which moves the most. A number that no machine may have half or twice of is left out."""
    found: list[Assumption] = []
    for field in ASSUMED:
        if getattr(runtime.program.target, field):
            with suppress(ValueError):
                found.append(_varied(runtime, field))
    return sorted(found, key=lambda each: -each.moves)


def assumption_words(runtime: Timed) -> str:
    """The one that moves the most, in a sentence; empty where none moves anything."""
    most = next(iter(assumptions(runtime)), None)
    if most is None or not most.moves:
        return ""
    times = f"{duration(most.seconds)}; half of it: {duration(most.halved)}, twice: {duration(most.doubled)}"
    return f"the assumption that moves this most is {most.field}={number_text(most.value)}: end to end {times}, with the same program"


def _varied(runtime: Timed, field: str) -> Assumption:
    halved, doubled = (retimed(runtime.program, runtime.edges, field, factor).seconds for factor in FACTORS)
    return Assumption(field, getattr(runtime.program.target, field), runtime.stats["end_to_end"]["seconds"], halved, doubled)
