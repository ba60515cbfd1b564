"""The order in which a lowering visits tiles: a table for each chunk of rows, levels downwards, column blocks to the right."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tpucc.diagnostics import counted
from tpucc.labs.tiling.rules import Visit
from tpucc.stages.products import ProductLayer

COLUMNS, MOST_LEVELS, MOST_BLOCKS = 78, 18, 8
Panel = tuple[int, int, dict[tuple[int, int], list[int]]]
"""A chunk of rows of the result: its first row, how many it has, and the numbers of the visits of each tile (k, n)."""


def panels(visits: Sequence[Visit]) -> list[Panel]:
    """The chunks in the order of their rows, with the visits numbered from 1."""
    found: dict[int, Panel] = {}
    for number, visit in enumerate(visits, 1):
        _, _, numbers = found.setdefault(visit.row, (visit.row, visit.rows, {}))
        numbers.setdefault((visit.k, visit.n), []).append(number)
    return [found[row] for row in sorted(found)]


def order_text(layer: ProductLayer, visits: Sequence[Visit]) -> str:
    """The tables in characters, side by side as far as they fit."""
    every = panels(visits)
    deep, wide = _shown(layer)
    cell = max(4, len(str(len(visits))) + 1)
    width = max(wide * cell, len("rows 000-000")) + 2
    fit = every[: max(1, (COLUMNS - 6) // width)]
    lines = [" " * 6 + "".join(_title(panel).ljust(width) for panel in fit)]
    lines.append(" " * 6 + "".join("".join(f"n={n}".rjust(cell) for n in range(wide)).ljust(width) for _ in fit))
    for k in range(deep):
        parts = ["".join(_mark(layer, panel, k, n).rjust(cell) for n in range(wide)).ljust(width) for panel in fit]
        lines.append(f"k={k}".ljust(6) + "".join(parts))
    lines += [*_left_out(layer, len(every) - len(fit)), *textwrap.wrap(_reading(layer, every), COLUMNS)]
    return "\n".join(line.rstrip() for line in lines)


def _shown(layer: ProductLayer) -> tuple[int, int]:
    return min(len(layer.levels), MOST_LEVELS), min(len(layer.results), MOST_BLOCKS)


def _title(panel: Panel) -> str:
    row, rows, _ = panel
    return f"rows {row}-{row + rows - 1}" if rows > 1 else f"row {row}"


def _mark(layer: ProductLayer, panel: Panel, k: int, n: int) -> str:
    """The number of the visit; `0` for a tile of zeros; `-` for none, and a `+` for more than one."""
    seen = panel[2].get((k, n), [])
    if not seen:
        return "0" if layer.levels[k].tiles[n] is None else "-"
    return f"{seen[0]}" + "+" * (len(seen) > 1)


def _reading(layer: ProductLayer, every: Sequence[Panel]) -> str:
    """What the numbers and the marks are, of the marks that are there."""
    deep, wide = _shown(layer)
    marks = {_mark(layer, panel, k, n) for panel in every for k in range(deep) for n in range(wide)}
    told = ["- is a product that is missing"] * ("-" in marks) + ["0 a tile of zeros"] * ("0" in marks)
    told += ["+ a product that is there again"] * any(mark.endswith("+") for mark in marks)
    return "; ".join(["levels k, column blocks n, and the order of the multiplies", *told])


def _left_out(layer: ProductLayer, chunks: int) -> list[str]:
    deep, wide = _shown(layer)
    counts = [(chunks, "more chunk"), (len(layer.levels) - deep, "more level"), (len(layer.results) - wide, "more column block")]
    told = [counted(count, what) for count, what in counts if count > 0]
    return [f"not shown: {', '.join(told)}"] if told else []
