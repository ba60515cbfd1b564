"""Pictures of three dataflows on an array of 4×4 elements: what stays in each element, and what moves to the next one.

Colours are those of the waves: an element has the colour of the row of the input that it works on. What stays has a thick outline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tpucc.see.palette import WAVE_RULES, Kind, ink_fill, ink_line, kind_paint, style_sheet, wave_paint, wave_solid_paint
from tpucc.see.svg import NOTHING, Markup, Value, joined, label, line, number_text, picture, tag
from tpucc.see.text import LARGE, NORMAL, SMALL
from tpucc.see.waves.picture import chip, pill_paint

SIDE, CYCLE, KERNEL = 4, 5, 3
LEFT, TOP, WIDE, HIGH, GAP, MARGIN = 118.0, 118.0, 104.0, 74.0, 26.0, 24.0
WEIGHT: Mapping[str, Value] = kind_paint(Kind.WEIGHTS)
STAYS: Mapping[str, Value] = {"stroke": ink_line("ink")["stroke"], "stroke-width": 2.5}


@dataclass(frozen=True, slots=True)
class Element:
    """What an element works with: names of an activation, a weight and a sum. `row` is that of the input; below 0 it has no work yet."""

    activation: str
    weight: str
    total: str
    row: int

    @property
    def marks(self) -> tuple[tuple[str, str, Mapping[str, Value], str], ...]:
        """For each of the three what it is, its name, its colours and those of its name."""
        activation, total = wave_solid_paint(max(0, self.row)), pill_paint(max(0, self.row))
        return (
            ("weight", self.weight, WEIGHT, "ink"),
            ("activation", self.activation, activation, "paper"),
            ("total", self.total, total, "ink"),
        )


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Which of the three stays (`weight` or `total`), and the directions in which the others go: steps down and to the right."""

    title: str
    says: str
    stays: str
    at: Callable[[int, int], Element | None]
    """The element of row r and column c; None where it is never used."""
    moves: tuple[tuple[int, int], ...]
    left: str
    above: str
    below: str


def _weight_stationary(r: int, c: int) -> Element | None:
    row = CYCLE - r - c
    return Element(f"x{row}{r}", f"w{r}{c}", f"y{row}{c}", row)


def _output_stationary(r: int, c: int) -> Element | None:
    depth = CYCLE - r - c
    return Element(f"x{r}{depth}", f"w{depth}{c}", f"y{r}{c}", r if depth >= 0 else -1)


def _row_stationary(r: int, c: int) -> Element | None:
    return Element(f"image {r + c}", f"kernel {r}", f"output {c}", r + c) if r < KERNEL else None


DATAFLOWS: Mapping[str, Dataflow] = {
    "weight": Dataflow(
        "Weight stationary, five cycles after the first product",
        "An element keeps its weight w. Activations x go to the right, sums y go down.",
        "weight",
        _weight_stationary,
        ((0, 1), (1, 0)),
        "activations",
        "",
        "sums, to the accumulators",
    ),
    "output": Dataflow(
        "Output stationary, five cycles after the first product",
        "An element keeps its sum y. Activations x go to the right, weights w go down.",
        "total",
        _output_stationary,
        ((0, 1), (1, 0)),
        "activations",
        "weights",
        "",
    ),
    "row": Dataflow(
        "Row stationary: a 3×3 kernel on an image of 6×6 pixels",
        "An element keeps a row of the kernel, and makes a row of sums. Sums go up.",
        "weight",
        _row_stationary,
        ((0, 1), (-1, 1), (-1, 0)),
        "kernel rows",
        "rows of the output",
        "rows of the image, along the diagonals; the fourth row of elements has no work",
    ),
}


def dataflow_svg(kind: str) -> str:
    """The picture of the dataflow of this name."""
    flow = DATAFLOWS[kind]
    width, height = LEFT + SIDE * (WIDE + GAP) - GAP + MARGIN, TOP + SIDE * (HIGH + GAP) + 30
    style = tag("style", Markup(style_sheet(WAVE_RULES)))
    head = label(flow.title, MARGIN, 34, LARGE, font_weight="bold"), label(flow.says, MARGIN, 56, NORMAL, "soft")
    parts = style, *head, *_words(flow), *_elements(flow), *_moves(flow)
    return picture(f"dataflow-{kind}", f"{flow.title}. {flow.says}", width, height, *parts)


def _words(flow: Dataflow) -> Iterator[Markup]:
    middle = LEFT + (SIDE * (WIDE + GAP) - GAP) / 2
    yield label(flow.left, LEFT - 34, TOP + HIGH / 2 + 4, SMALL, "soft", "end")
    yield label(flow.above, middle, TOP - 28, SMALL, "soft", "middle") if flow.above else NOTHING
    yield label(flow.below, middle, TOP + SIDE * (HIGH + GAP) + 10, SMALL, "soft", "middle") if flow.below else NOTHING


def _used(flow: Dataflow) -> int:
    """How many rows of elements have work."""
    return KERNEL if flow.at(SIDE - 1, 0) is None else SIDE


def _corner(r: int, c: int) -> tuple[float, float]:
    return LEFT + c * (WIDE + GAP), TOP + r * (HIGH + GAP)


def _elements(flow: Dataflow) -> Iterator[Markup]:
    for r in range(SIDE):
        for c in range(SIDE):
            yield _element(flow, flow.at(r, c), *_corner(r, c))


def _element(flow: Dataflow, element: Element | None, x: float, y: float) -> Markup:
    idle = {**ink_fill("band"), "class": "f-band l-grid", "stroke": ink_line("grid")["stroke"]}
    paint = idle if element is None or element.row < 0 else wave_paint(element.row)
    box = tag("rect", attributes=paint, x=x, y=y, width=WIDE, height=HIGH, rx=8)
    return joined([box, *_contents(flow, element, x, y)]) if element else box


def _contents(flow: Dataflow, element: Element, x: float, y: float) -> Iterator[Markup]:
    """A weight, an activation and a sum, below each other; before its first work only what stays."""
    for number, (name, text, paint, ink) in enumerate(element.marks):
        stays = name == flow.stays
        if stays or element.row >= 0:
            middle = y + 15 + number * 22
            yield chip(x + WIDE / 2, middle, 66, 18, {**paint, **STAYS} if stays else paint, rx=9.0 if name == "total" else 4.0)
            yield label(text, x + WIDE / 2, middle + 4, SMALL, ink, "middle", font_weight="bold" if stays else None)


def _moves(flow: Dataflow) -> Iterator[Markup]:
    """An arrow across each gap that something crosses, the edges of the array among them."""
    for down, right in flow.moves:
        for r in range(-1, SIDE + 1):
            for c in range(-1, SIDE):
                if _crosses(flow, r, c, down, right):
                    yield _arrow(*_corner(r, c), down, right)


def _crosses(flow: Dataflow, r: int, c: int, down: int, right: int) -> bool:
    """Whether something goes from element (r, c) in this direction; elements outside of the array stand for what is beside it."""
    rows = _used(flow)
    inside = 0 <= r < rows and 0 <= c < SIDE
    reaches = 0 <= r + down < rows and 0 <= c + right < SIDE
    ends = inside and not right and (bool(flow.below) if down > 0 else bool(flow.above))
    begins = reaches and (not down or (down > 0 and bool(flow.above)))
    return (inside and reaches) or ends or begins


def _arrow(x: float, y: float, down: int, right: int) -> Markup:
    """From the element with this corner, across the gap to its neighbour."""
    start = x + WIDE * (0.5 + right / 2) + 3 * right, y + HIGH * (0.5 + down / 2) + 3 * down
    end = start[0] + (GAP - 6) * right, start[1] + (GAP - 6) * down
    length = (right * right + down * down) ** 0.5
    along, across = (right / length, down / length), (-down / length, right / length)
    corners = [end] + [(end[0] - 7 * along[0] + s * across[0], end[1] - 7 * along[1] + s * across[1]) for s in (4, -4)]
    points = " ".join(f"{number_text(px)},{number_text(py)}" for px, py in corners)
    shaft = line(*start, end[0] - 5 * along[0], end[1] - 5 * along[1], "soft", stroke_width=1.5)
    return joined([shaft, tag("polygon", attributes=ink_fill("soft"), points=points)])
