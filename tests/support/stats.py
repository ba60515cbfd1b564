"""The numbers of a program that a test makes up, in the form of `stats.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpucc.explain.accounting import TABLE_3, WAIT_ROWS
from tpucc.explain.end_to_end import PARTS
from tpucc.explain.segments import Cause

UNTIMED = {"operators": [], "lines": [], "macs": 0, "elements": 0}
WHOLE = {
    "cores": 1, "cycles": 0, "tile_fetches": 0, "written_tiles": 0, "host_macs": 0, "critical_path": {}, "explanation": "", "advice": "",
    "layers": [],
    "stream": {"cycles": 0, "seconds": 0.0, "bottleneck": "", "fits": True}, "untimed": {"before": UNTIMED, "after": UNTIMED},
}  # fmt: skip


def breakdown(**shares: float) -> dict[str, float]:
    """All rows of Table 3, those that aren't given with 0, and the sum of those that are no part of the matrix unit's work."""
    rows = dict.fromkeys(TABLE_3.values(), 0.0) | shares
    non_matrix = sum(rows[key] for cause, key in TABLE_3.items() if cause >= Cause.RAW_STALL)
    return {"non_matrix": non_matrix, "useful_macs": 0.0, "unused_macs": 0.0, **rows}


def waits_by_root(**cycles: int) -> dict[str, int]:
    """Those that aren't given are 0; keywords are names of limits in small letters."""
    return {limit.value: cycles.get(limit.name.lower(), 0) for limit in WAIT_ROWS}


def made_up(**given: Any) -> dict[str, Any]:
    """The numbers that are given, among those that every program has."""
    ends = dict.fromkeys(("seconds", *PARTS, "stream_seconds"), 0.0) | dict.fromkeys(
        ("bottleneck", "stream_bottleneck", "explanation", "advice"), ""
    )
    layers = [_layer(layer) for layer in given.get("layers", ())]
    shares, waits = breakdown(**given.get("breakdown", {})), waits_by_root(**given.get("waits_by_root", {}))
    return {
        **WHOLE,
        **given,
        "layers": layers,
        "breakdown": shares,
        "waits_by_root": waits,
        "end_to_end": ends | given.get("end_to_end", {}),
    }


def _layer(given: Mapping[str, Any]) -> dict[str, Any]:
    both = {"breakdown": breakdown(**given.get("breakdown", {})), "waits_by_root": waits_by_root(**given.get("waits_by_root", {}))}
    return {"line": 0, "cycles": 0, "tiles": 0, "tops": 0.0, "macs": 0, **given, **both}
