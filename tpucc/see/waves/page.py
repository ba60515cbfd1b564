"""The array as a page: a slider over the cycles, steps, play, and each element's computation in words.

The page is one file without a network: `waves.html` with `waves.css` and the scripts of `js/`, and the registers as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from tpucc.diagnostics import counted
from tpucc.see.kit import THEME, embedded, page_files, page_template, scripts, shell
from tpucc.see.palette import WAVES
from tpucc.see.svg import escaped, number_text
from tpucc.see.waves.geometry import CHIP, GAP, INSET, LEFT, LOWER, RIGHT, UPPER, Geometry, fitting
from tpucc.see.waves.picture import busiest
from tpucc.systolic.work import Demo, Frame, Registers

SCRIPTS = ("dom", "theme", "data", "boxes", "words", "scene", "targets", "player")
"""The files of `js/` in the order in which they become one script."""

REGISTERS = (
    *("row", "x", "weights", "tile", "sums", "shadow", "shadow_row", "shadow_tile", "accumulators"),
    *("setup", "setup_row", "edge", "edge_row"),
)
"""The fields of a `Cycle` that the page has under the same names."""

SHARES: Mapping[str, float] = {"left": LEFT, "right": RIGHT, "upper": UPPER, "lower": LOWER, "chip": CHIP, "gap": GAP, "inset": INSET}
"""Where boxes stand in an element, and their height; see `geometry`."""


def waves_page(work: Demo, registers: Registers | None = None) -> str:
    """The page as HTML, with registers of the hardware beside those of the array."""
    title = f"{counted(work.count, 'row')} through {work.rows} × {work.columns} elements"
    page = waves_frame()
    for name, value in work_parts(work, title, registers).items():
        page = page.replace(f"${name}", value)
    return page


def waves_frame() -> str:
    """The page without a product: `$` stands before the names of the parts that are missing, those of `work_parts`."""
    body = page_template(__package__, "waves.html").safe_substitute(theme=THEME)
    style = row_rules() + "\n" + page_files(__package__, "waves.css")
    return shell("$title", body, style=style, script=scripts(__package__, SCRIPTS))


def work_parts(work: Demo, title: str, registers: Registers | None = None) -> dict[str, str]:
    """What is a product's own in the page."""
    geometry = fitting(work)
    return {
        "title": escaped(title),
        "view": f"0 0 {number_text(geometry.width)} {number_text(geometry.height)}",
        "last": str(len(work.frames) - 1),
        "data": _payload(work, geometry, busiest(work), registers),
    }


def row_rules() -> str:
    """CSS that gives each row of the input its colours, as `--fill` and `--line` of what belongs to it."""
    return "".join(f".row-{i}{{--fill:var(--row-{i});--line:var(--row-{i}-line)}}" for i in range(len(WAVES)))


def _payload(work: Demo, geometry: Geometry, first: int, registers: Registers | None) -> str:
    """The JSON; `first` is the cycle to begin with."""
    values = {
        "rows": work.rows,
        "columns": work.columns,
        "count": work.count,
        "tiles": work.tiles,
        "colours": len(WAVES),
        "first": first,
        "input": work.lanes.tolist(),
        "product": work.product.tolist(),
        "geometry": asdict(geometry) | {"shares": SHARES},
        "cycles": [_cycle_values(work, frame) for frame in work.frames],
    }
    if registers is not None:
        values["hardware"] = [{name: found.tolist() for name, found in each.items()} for each in registers]
    return embedded(values)


def _cycle_values(work: Demo, frame: Frame) -> Mapping[str, object]:
    """The registers of one cycle, and what follows from them."""
    cycle = frame.cycle
    done = frame.summed == work.tiles
    return {name: getattr(cycle, name).tolist() for name in REGISTERS} | {
        "shifting": cycle.shifting,
        "read": frame.read,
        "last": frame.last,
        "above": frame.above.tolist(),
        "summed": frame.summed.tolist(),
        "fresh": frame.fresh.astype(np.int8).tolist(),
        "busy": int(np.count_nonzero(cycle.busy)),
        "done": int(np.count_nonzero(done)),
        "equal": int(np.count_nonzero(done & (cycle.accumulators == work.product))),
    }
