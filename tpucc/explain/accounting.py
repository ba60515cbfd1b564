"""One accounting of time: what the matrix unit's cycles go to, each row with one name, in all tables, charts and sentences.

The unit multiplies, or it waits. A wait counts for its root: what is at work at the end of the chain of waits (`tpucc.explain.critical`).
So the rows are `Limit`s, and each cycle is in one of them. The TPU paper's Table 3 (Jouppi et al., ISCA 2017) counts otherwise: by what the
matrix unit itself waits for. Its rows are `TABLE_3`, and `breakdown` of `stats.json` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tpucc.explain.critical import Limit
from tpucc.explain.segments import Cause


@dataclass(frozen=True, slots=True)
class Row:
    """A row's name, its letter in charts of characters, and what happens in its cycles."""

    name: str
    letter: str
    meaning: str

    @property
    def root(self) -> str:
        """`the host link`, for which the matrix unit waits."""
        return self.name.removeprefix(_FOR)


_FOR = "waits for "
_AT_WORK = "the matrix unit waits; at the end of the chain of waits"


def _wait(root: str, letter: str, meaning: str) -> Row:
    return Row(f"{_FOR}{root}", letter, f"{_AT_WORK} {meaning}")


ROWS: Mapping[Limit, Row] = MappingProxyType(
    {
        Limit.MATRIX_UNIT: Row("array active", "m", "the matrix unit multiplies"),
        Limit.WEIGHT_MEMORY: _wait("weight memory", "w", "a weight tile is fetched"),
        Limit.WEIGHT_SHIFT: _wait("the weight shift", "s", "a tile that has arrived is shifted in"),
        Limit.ACTIVATION: _wait("activation", "a", "the activation unit works"),
        Limit.HOST_WORK: _wait("host work", "c", "the host computes a step"),
        Limit.HOST_LINK: _wait("the host link", "h", "rows cross between the host and the unified buffer"),
        Limit.DEPENDENCIES: _wait(
            "sums to come out", "d", "sums are on their way through the array, which they leave by its lower edge: they drain"
        ),
    }
)
WAIT_ROWS: Mapping[Limit, Row] = MappingProxyType({limit: row for limit, row in ROWS.items() if limit is not Limit.MATRIX_UNIT})
TABLE_3: Mapping[Cause, str] = MappingProxyType({cause: cause.name.lower() for cause in Cause} | {Cause.ACTIVE: "array_active"})
"""The keys of `breakdown`. Table 3 has four of these rows, and `non_matrix`, the sum of all rows from `RAW_STALL` on; of that sum it names
two parts, its rows 7 and 8. The other parts are ours."""


def cycles_by_row(stats: Mapping[str, Any]) -> dict[Limit, int]:
    """The cycles of each row, of a program or of one of its layers by their entries in `stats.json`; they add up to `cycles`."""
    waits = {limit: int(stats["waits_by_root"][limit]) for limit in WAIT_ROWS}
    return {Limit.MATRIX_UNIT: int(stats["cycles"]) - sum(waits.values()), **waits}
