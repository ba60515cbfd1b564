"""Charts on the terminal: whether to print them, in which characters and colours, how wide."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TextIO

import click

from tpucc.explain.timed import Timed
from tpucc.see.charts.textcharts import COLUMNS, Canvas, Line, buffer_lines, lane_lines, marks_for, plain, timeline_lines
from tpucc.see.palette import Kind

STYLES: Mapping[Kind, str] = MappingProxyType(
    {Kind.HOST: "dim", Kind.WEIGHTS: "yellow", Kind.MATRIX: "bright_blue", Kind.VECTOR: "green", Kind.MOVE: "", Kind.BOUNDARY: "magenta"}
)
"""The palette's meanings in the colours that every terminal has, so that they suit its background."""

chart_option = click.option(
    "--chart/--no-chart", "chart", default=None, help="Also print charts of the timeline and the unified buffer (default: on a terminal)."
)


def wants_chart(asked: bool | None) -> bool:
    """Whether to draw charts: as `--chart` or `--no-chart` says, else whether standard output is a terminal."""
    return sys.stdout.isatty() if asked is None else asked


def charts_text(runtime: Timed) -> str:
    """The timeline and the buffer, for standard output."""
    from tpucc.see.pictures import times_of  # it brings the whole of drawing with it

    program, times, canvas = runtime.program, times_of(runtime), _canvas(runtime)
    charts = (timeline_lines(program, times, canvas), buffer_lines(program, times, canvas))
    return "\n\n".join(painted(lines, sys.stdout) for lines in charts)


def lanes_text(runtime: Timed) -> str:
    """The lanes of the timeline with their axis, and no more; nothing where nothing runs on the device."""
    from tpucc.see.pictures import times_of

    canvas = _canvas(runtime)
    if not canvas.cycles:
        return ""
    return painted([*lane_lines(runtime.program, times_of(runtime), canvas), canvas.axis()[0]], sys.stdout)


def painted(lines: Sequence[Line], stream: TextIO) -> str:
    """The lines as text: in colours where `stream` shows them."""
    if not coloured(stream):
        return "\n".join(map(plain, lines))
    from rich.console import Console  # imported only where colours are used
    from rich.text import Text

    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        for line in lines:
            console.print(Text.assemble(*((piece.text, STYLES[piece.kind] if piece.kind else "") for piece in line)), soft_wrap=True)
    return captured.get().rstrip("\n")


def coloured(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and nobody said that it shouldn't (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", None)


def _canvas(runtime: Timed) -> Canvas:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else COLUMNS
    return Canvas(runtime.timeline.makespan, runtime.program.target.clock_hz, columns, marks_for(sys.stdout.encoding))
