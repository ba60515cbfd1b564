"""A compiled model with the numbers of its program's time: what takes it, and what waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tpucc.diagnostics import counted
from tpucc.explain.counts import count_cycles, counts_summary
from tpucc.explain.host_numbers import edges_of, with_host
from tpucc.explain.retiming import Retimed, faster
from tpucc.explain.stats import stats
from tpucc.explain.waiting import Waiting, waiting
from tpucc.runtime.runtime import Runtime
from tpucc.sim.durations import Edges, duration


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
