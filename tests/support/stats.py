"""The numbers of a program that a test makes up, in the form of `stats.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpucc.explain.accounting import NON_MATRIX, ROWS, added
from tpucc.explain.end_to_end import PARTS

UNTIMED = {"operators": [], "lines": [], "macs": 0, "elements": 0}
WHOLE = {
    "cores": 1, "cycles": 0, "tile_fetches": 0, "written_tiles": 0, "host_macs": 0, "critical_path": {}, "explanation": "", "layers": [],
    "stream": {"cycles": 0, "seconds": 0.0, "bottleneck": "", "fits": True}, "untimed": {"before": UNTIMED, "after": UNTIMED},
}  # fmt: skip


def breakdown(**shares: float) -> dict[str, float]:
    """All rows of the accounting, those that aren't given with 0, and the sum of those that are no part of the matrix unit's work."""
    rows = {row.key: 0.0 for row in ROWS.values()} | shares
    return {"non_matrix": added(rows, NON_MATRIX), "useful_macs": 0.0, "unused_macs": 0.0, **rows}


def made_up(**given: Any) -> dict[str, Any]:
    """The numbers that are given, among those that every program has."""
    ends = dict.fromkeys(("seconds", *PARTS, "stream_seconds"), 0.0) | dict.fromkeys(("bottleneck", "stream_bottleneck", "explanation"), "")
    layers = [_layer(layer) for layer in given.get("layers", ())]
    shares = breakdown(**given.get("breakdown", {}))
    return {**WHOLE, **given, "layers": layers, "breakdown": shares, "end_to_end": ends | given.get("end_to_end", {})}


def _layer(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"line": 0, "cycles": 0, "tiles": 0, "tops": 0.0, "macs": 0, **given, "breakdown": breakdown(**given.get("breakdown", {}))}
