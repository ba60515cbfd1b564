"""The cycles of a program by lines of its source: a loop, or a function that is called often, makes many layers on one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Layers = Sequence[Mapping[str, Any]]


def by_lines(layers: Layers) -> list[dict[str, Any]]:
    """The layers of `stats.json` added up by their `line`, in the order of the lines' first layers.

    Of each line: `line`, how many `layers` it has, the `name` of that of most cycles; the sums of `cycles`, `macs`, `tile_fetches` and
    `instructions` and `waits_by_root`; and `tops` and `breakdown` of them together.
    """
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for layer in layers:
        groups.setdefault(layer["line"], []).append(layer)
    return [_together(line, group) for line, group in groups.items()]


def _together(line: int, layers: Layers) -> dict[str, Any]:
    largest = max(layers, key=lambda layer: int(layer["cycles"]))
    cycles = sum(layer["cycles"] for layer in layers)
    keys = ("macs", "tile_fetches", "instructions")
    return {
        "line": line,
        "layers": len(layers),
        "name": largest["name"],
        "cycles": cycles,
        **{key: sum(layer[key] for layer in layers) for key in keys},
        "tops": sum(layer["tops"] * layer["cycles"] for layer in layers) / max(1, cycles),
        "waits_by_root": {root: sum(layer["waits_by_root"][root] for layer in layers) for root in largest["waits_by_root"]},
        "breakdown": {
            key: sum(layer["breakdown"][key] * layer["cycles"] for layer in layers) / max(1, cycles) for key in largest["breakdown"]
        },
    }
