"""A number of both sides of a comparison, and the rows of the accounting as such pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpucc.runtime.runtime import Runtime
from tpucc.sim.accounting import ROWS
from tpucc.values import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """A number of both sides."""

    a: int
    b: int

    @property
    def difference(self) -> int:
        """How much larger that of b is."""
        return self.b - self.a

    @property
    def times(self) -> float:
        """How many times that of a that of b is."""
        return self.b / max(self.a, 1)


def together(pairs: Sequence[Pair]) -> Pair:
    """The sum of both sides."""
    return Pair(sum(pair.a for pair in pairs), sum(pair.b for pair in pairs))


def spent(runtime: Runtime) -> dict[str, int]:
    """The cycles of each row of the accounting, by its key."""
    return {row.key: row_cycles(runtime.stats, row.key) for row in ROWS.values()}


def paired(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, Pair]:
    return {row.key: Pair(a[row.key], b[row.key]) for row in ROWS.values()}


def row_cycles(stats: Mapping[str, Any], key: str) -> int:
    """A row of a breakdown in cycles."""
    return round(float(stats["cycles"] * stats["breakdown"][key] / 100))


def more(change: int, what: str = "") -> str:
    return f"{abs(change):,} {f'{what} ' if what else ''}{'more' if change > 0 else 'fewer'}"
