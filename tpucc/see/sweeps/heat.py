"""A heat map: a table of the best point for each pair of values, in which the better cells have the stronger colour.

The style sheet makes colours of shares: `--share` is 0 for the worst cell, 1 for the best. On text cells stand out in both themes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpucc.explain.names import shown
from tpucc.see.charts.chart import LEAST
from tpucc.see.svg import NOTHING, Markup, escaped, joined, tag
from tpucc.see.text import SMALL, text_width

WIDTH, HEIGHT = 560.0, 360.0
"""What the cells of a map with many columns take together, in pixels."""
ROOMY = 12
"""Columns at most with which cells have text."""
LINE = 18.0
"""The height of a line of text, in pixels."""
SPACE = Markup("\u00a0")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a heat map: the best point there, its value, what limits it, and its words."""

    point: int
    value: float
    limit: str
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A cell of a heat map whose points can't be compiled: the first of them, the codes of their errors with the counts of points, and the
    words."""

    point: int
    codes: Sequence[tuple[str, int]]
    words: str

    @property
    def lines(self) -> list[str]:
        """A code for all; else the first one with its count, and the second, or how many points have others."""
        (first, count), *others = self.codes
        rest = [f"{code} × {count:,}" for code, count in others]
        more = rest if len(rest) < 2 else [f"others × {sum(count for _, count in others):,}"]
        return [f"{first} × {count:,}", *more] if others else [first]


def heat_map(heads: tuple[Sequence[str], Sequence[str]], cells: Mapping[tuple[int, int], Cell | Hole]) -> Markup:
    """The best point of each pair of values: `heads` are those of the columns and of the rows; cells are by column and row.

    The colours are by the logarithms of values. A hole is a dashed cell with the code of an error. With many columns cells are small and
    without text, and heads stand where they have room.
    """
    across, down = heads
    ranked = sorted((cell for cell in cells.values() if isinstance(cell, Cell)), key=lambda cell: -cell.value)
    width, height, roomy = WIDTH / len(across), min(LINE, HEIGHT / len(down)), len(across) <= ROOMY
    widest = max(text_width(shown(text), SMALL) for text in across) + 8
    every, apart = (1, 1) if roomy else (math.ceil(LINE / height), math.ceil(widest / width))
    top = [tag("td", SPACE), *_heads(across, apart, "colspan")]
    sides = dict(zip(range(0, len(down), every), _heads(down, every, "rowspan"), strict=True))
    lines = [
        joined([sides.get(y, NOTHING), *(_cell(cells.get((x, y)), ranked, roomy) for x in range(len(across)))]) for y in range(len(down))
    ]
    size = None if roomy else f"--wide:{width:.1f}px;--high:{height:.1f}px"
    body = joined([tag("tr", joined(top)), *(tag("tr", line) for line in lines)])
    return joined([tag("table", body, class_="heat" if roomy else "heat small", style=size), _scale(ranked)])


def _heads(texts: Sequence[str], every: int, span: str) -> list[Markup]:
    """Heads of columns or rows; of several that have no room side by side, one."""
    return [
        tag("th", escaped(shown(text)), attributes={span: min(every, len(texts) - place) if every > 1 else None})
        for place, text in enumerate(texts)
        if place % every == 0
    ]


def _cell(cell: Cell | Hole | None, ranked: Sequence[Cell], roomy: bool) -> Markup:
    """All of its surface can be clicked. `ranked` are the cells with values, the worst first."""
    if cell is None:
        return tag("td", SPACE)
    lines = [cell.text, cell.limit] if isinstance(cell, Cell) else cell.lines
    text = tag("a", joined(tag("span", escaped(line)) for line in lines), href=f"#point={cell.point}") if roomy else SPACE
    look = {"style": f"--share:{_share(cell, ranked):.3f}"} if isinstance(cell, Cell) else {"class": "hole"}
    return tag("td", text, attributes=look, title=cell.words if roomy else None, data_point=cell.point)


def _share(cell: Cell, ranked: Sequence[Cell]) -> float:
    """How good a cell is: 0 as the worst, 1 as the best."""
    high, low, own = (math.log10(max(each.value, LEAST)) for each in (ranked[0], ranked[-1], cell))
    return (high - own) / (high - low) if high > low else 1.0


def _scale(ranked: Sequence[Cell]) -> Markup:
    """The scale of the colours, from the worst value to the best; nothing where all are alike."""
    if not ranked or ranked[0].value == ranked[-1].value:
        return NOTHING
    return tag("p", escaped(ranked[0].text), tag("span", SPACE, class_="ramp"), escaped(ranked[-1].text), class_="scale")
