"""One accounting of time: what the matrix unit's cycles go to, each row with one key and one name, in all tables, charts and sentences.

The rows are `Cause`s, so that each cycle is in one of them. Four rows and one sum are those of the TPU paper's Table 3 (Jouppi et al.,
ISCA 2017): `non_matrix` is the sum of all rows from `RAW_STALL` on. Table 3 names two of these, its rows 7 and 8; the others are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tpucc.explain.segments import Cause


@dataclass(frozen=True, slots=True)
class Row:
    """A row's key in `stats.json`, its name, its letter in charts of characters, and what happens in its cycles."""

    key: str
    name: str
    letter: str
    meaning: str


ROWS: Mapping[Cause, Row] = MappingProxyType(
    {
        Cause.ACTIVE: Row("array_active", "array active", "m", "the matrix unit multiplies"),
        Cause.WEIGHT_STALL: Row("weight_stall", "weight stall", "w", "the matrix unit waits for a tile that hasn't arrived"),
        Cause.WEIGHT_SHIFT: Row(
            "weight_shift", "weight shift", "s", "the matrix unit waits for a tile that has arrived and is being shifted in"
        ),
        Cause.RAW_STALL: Row(
            "raw_stall",
            "waits for activation",
            "a",
            "the matrix unit waits, at a synchronize, for the activation unit, and for sums that drain first",
        ),
        Cause.INPUT_STALL: Row(
            "input_stall", "waits for the host", "h", "the matrix unit waits, at a synchronize, for a transfer or a step of the host"
        ),
        Cause.ACTIVATION: Row("activation", "only activation works", "v", "the matrix unit waits for nothing; the activation unit works"),
        Cause.HOST_STEP: Row("host_step", "host computes a step", "c", "the matrix unit waits for nothing; the host computes"),
        Cause.OUTPUT: Row(
            "output", "outputs leave", "o", "the matrix unit waits for nothing; rows cross from the unified buffer to the host"
        ),
        Cause.INPUT: Row(
            "input", "only inputs arrive", "i", "the matrix unit waits for nothing; rows cross from the host to the unified buffer"
        ),
        Cause.IDLE: Row(
            "idle",
            "nothing to do",
            "n",
            "the matrix unit waits for nothing, and none of these units works: the array fills, or drains without a synchronize",
        ),
    }
)
MATRIX = tuple(cause for cause in Cause if cause < Cause.RAW_STALL)
NON_MATRIX = tuple(cause for cause in Cause if cause >= Cause.RAW_STALL)
ALWAYS = frozenset({Cause.RAW_STALL, Cause.INPUT_STALL, Cause.OUTPUT, Cause.IDLE})
"""Rows below `non_matrix` that a table has though they are zero."""


def added(shares: Mapping[str, float], causes: Iterable[Cause]) -> float:
    """The sum of rows."""
    return sum(shares[ROWS[cause].key] for cause in causes)
