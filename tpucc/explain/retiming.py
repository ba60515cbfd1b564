"""What if the machine had another number: the same program, timed again.

The program stays as it is, so the answer is exact for this program. A compiler that knew the number might make another program. The report
does the same in the browser (`retiming.js`), with the same cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tpucc.explain.critical import critical_path, shares
from tpucc.explain.end_to_end import limit_of
from tpucc.isa.program import Program
from tpucc.sim.durations import Edges, edge_seconds
from tpucc.sim.timing import time_program


class Speed(NamedTuple):
    """What a number of a target says the speed of; the factor of the number with which that is twice as fast; and that in words."""

    title: str
    factor: float
    doubled: str


SPEEDS: Mapping[str, Speed] = MappingProxyType(
    {
        "host_bandwidth": Speed("host link bandwidth", 2.0, "twice the bandwidth of the host link"),
        "host_latency_seconds": Speed("start of a transfer", 0.5, "half the time to begin a transfer"),
        "host_step_seconds": Speed("start of host work", 0.5, "half the time to begin the host's work"),
        "host_elements_per_second": Speed("host speed", 2.0, "a host that is twice as fast"),
        "weight_bandwidth": Speed("weight memory bandwidth", 2.0, "twice the bandwidth of weight memory"),
        "clock_hz": Speed("clock", 2.0, "twice the clock of the units"),
    }
)
"""The numbers of a target that say how fast something is. Its sizes are none: for another size the compiler makes another program."""


@dataclass(frozen=True, slots=True)
class Retimed:
    """A program on a machine whose number `field` is `value`: `cycles` of the device, `seconds` of a batch from end to end, and what most
    of them depend on."""

    field: str
    value: float
    cycles: int
    seconds: float
    bottleneck: str


def retimed(program: Program, edges: Edges, field: str, factor: float) -> Retimed:
    """A program, and the host's work at its `edges`, on a machine whose number `field` is `factor` times as large.

    Raises `ValueError` where no machine may have that number.
    """
    value = getattr(program.target, field)
    target = msgspec.structs.replace(program.target, **{field: type(value)(value * factor) or value})
    varied = replace(program, target=target)
    timeline, (before, after) = time_program(varied), edge_seconds(varied, edges)
    seconds = timeline.makespan / target.clock_hz
    path = {limit.value: share / 100 * seconds for limit, share in shares(critical_path(varied, timeline)).items()}
    return Retimed(field, getattr(target, field), timeline.makespan, before + seconds + after, limit_of(path, before + after))


def faster(program: Program, edges: Edges, seconds: float) -> list[Retimed]:
    """The program with each of the `SPEEDS` twice as high. Those are left out with which a batch doesn't take less than `seconds`; the
    fastest is the first."""
    found: list[Retimed] = []
    for field, speed in SPEEDS.items():
        if getattr(program.target, field):
            with suppress(ValueError):  # no machine is that fast
                found.append(retimed(program, edges, field, speed.factor))
    return sorted((each for each in found if each.seconds < seconds), key=lambda each: each.seconds)
