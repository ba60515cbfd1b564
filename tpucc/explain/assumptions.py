"""What the assumptions about the host move: the time of a program from end to end, with each of them halved and doubled.

The TPU paper excludes the host, so the numbers in `ASSUMED` are ours. The program stays the same and is timed again; a compiler that knew
the other number might choose another program.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tpucc.explain.retiming import retimed
from tpucc.explain.timed import Timed
from tpucc.sim.durations import duration
from tpucc.target import ASSUMED, number_text

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
