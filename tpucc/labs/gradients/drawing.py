"""Two curves of losses beside each other: a submission's and the reference's, as a picture and in characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tpucc.see.charts.chart import Scale, row_axis
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import ink_line
from tpucc.see.svg import Markup, joined, label, line, picture, tag
from tpucc.see.text import SMALL

WIDTH, HEIGHT, LEFT, RIGHT = 900.0, 320.0, 90.0, 740.0
LINES, GAP = 12, 4
Losses = Sequence[float]


def curves_svg(found: Losses, reference: Losses, words: str) -> str:
    """An SVG: the loss before each step, upwards; the reference's is dashed. A loss beyond twice the reference's largest is cut off."""
    head = heading("The loss, step by step", words, ())
    top, highest = EDGE + head.height + 30, _highest(found, reference)
    across, up = Scale(0, len(reference) - 1, LEFT, RIGHT), Scale(0, highest, top + HEIGHT, top)
    steps = joined(label(str(step), across(step), top + HEIGHT + 18, anchor="middle") for step in range(0, len(reference), 5))
    shown = [min(loss, highest) if math.isfinite(loss) else highest for loss in found]
    curves = (_curve(shown, across, up, "alarm", None), _curve(reference, across, up, "ink", "6 4"))
    key = (
        *(line(RIGHT + 20, top + 12, RIGHT + 50, top + 12, "ink", stroke_width=2, stroke_dasharray="6 4"),),
        *(label("reference", RIGHT + 58, top + 16), label("your rules", RIGHT + 58, top + 38)),
        line(RIGHT + 20, top + 34, RIGHT + 50, top + 34, "alarm", stroke_width=2),
    )
    name = label("steps", (LEFT + RIGHT) / 2, top + HEIGHT + 38, SMALL, "soft", "middle")
    return picture(
        "losses",
        words,
        max(WIDTH, head.width + 2 * EDGE),
        top + HEIGHT + 50,
        head.markup,
        row_axis(up, LEFT, RIGHT, "loss"),
        steps,
        *curves,
        *key,
        name,
    )


def _curve(losses: Losses, across: Scale, up: Scale, ink: str, dashes: str | None) -> Markup:
    points = " ".join(f"{across(step):.1f},{up(loss):.1f}" for step, loss in enumerate(losses))
    return tag("polyline", attributes=ink_line(ink), points=points, fill="none", stroke_width=2, stroke_dasharray=dashes)


def curves_text(found: Losses, reference: Losses) -> str:
    """The same in characters: `o` is the reference, `x` the submission, `*` both."""
    highest = _highest(found, reference)
    grid = np.full((LINES, GAP * (len(reference) - 1) + 1), " ")
    for losses, mark in ((reference, "o"), (found, "x")):
        for step, loss in enumerate(losses):
            height = min(loss, highest) if math.isfinite(loss) else highest
            place = LINES - 1 - round(height / highest * (LINES - 1)), GAP * step
            grid[place] = mark if grid[place] == " " else "*"
    rows = [
        f"{highest if n == 0 else 0:8.3f} |{''.join(row)}" if n in (0, LINES - 1) else f"{'':8} |{''.join(row)}"
        for n, row in enumerate(grid)
    ]
    under = "".join(f"{step:<{GAP * 5}}" for step in range(0, len(reference), 5)).rstrip()
    return "\n".join(row.rstrip() for row in (*rows, f"{'':10}{under} steps", "o reference, x your rules, * both"))


def _highest(found: Losses, reference: Losses) -> float:
    """The upper end: the largest loss that is finite, and at most twice the reference's."""
    return min(max(loss for loss in (*found, *reference) if math.isfinite(loss)), 2 * max(reference))
