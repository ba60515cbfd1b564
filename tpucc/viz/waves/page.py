"""The array as a page: a slider over the cycles, steps, play, and each element's computation in words.

The page is one file without a network: `waves.html` with `waves.css` and the scripts of `js/`, and the registers as JSON.
"""

from __future__ import annotations

from importlib import resources
from string import Template

from tpucc.diagnostics import counted
from tpucc.viz.palette import WAVES, theme
from tpucc.viz.svg import escaped, number_text
from tpucc.viz.waves.geometry import fitting
from tpucc.viz.waves.payload import payload
from tpucc.viz.waves.picture import busiest
from tpucc.viz.waves.work import Demo

SCRIPTS = ("data", "boxes", "words", "scene", "captions", "targets", "player")
"""The files of `js/` in the order in which they become one script."""


def waves_page(work: Demo) -> str:
    """The page as HTML."""
    folder = resources.files(__package__)
    geometry = fitting(work)
    return Template(folder.joinpath("waves.html").read_text("utf-8")).substitute(
        title=escaped(f"{counted(work.count, 'row')} through {work.rows} × {work.columns} elements"),
        theme=theme(),
        style=row_rules() + "\n" + folder.joinpath("waves.css").read_text("utf-8"),
        view=f"0 0 {number_text(geometry.width)} {number_text(geometry.height)}",
        last=len(work.frames) - 1,
        data=payload(work, geometry, busiest(work)),
        script="\n".join(folder.joinpath("js", f"{name}.js").read_text("utf-8") for name in SCRIPTS),
    )


def row_rules() -> str:
    """CSS that gives each row of the input its colours, as `--fill` and `--line` of what belongs to it."""
    return "".join(f".row-{i}{{--fill:var(--row-{i});--line:var(--row-{i}-line)}}" for i in range(len(WAVES)))
