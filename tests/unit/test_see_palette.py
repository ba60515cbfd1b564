"""The palette: text stands out on every fill, and colours that mean different things differ for people with any colour vision."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.cases import each
from tpucc.see.charts.chart import WAITS
from tpucc.see.palette import INKS, KINDS, SOURCE_INKS, VARIABLES, Kind

Colour = npt.NDArray[np.float64]

VISIONS = {
    "trichromat": np.eye(3),
    "protanope": np.array([[0.1121, 0.8853, -0.0005], [0.1127, 0.8897, -0.0001], [0.0045, 0.0001, 1.0019]]),
    "deuteranope": np.array([[0.2920, 0.7054, -0.0003], [0.2934, 0.7089, 0.0000], [-0.0210, 0.0256, 1.0000]]),
}
"""What becomes of linear sRGB, after Viénot, Brettel and Mollon, "Digital video colourmaps for checking the legibility of displays by
dichromats", Color Research and Application 24(4), 1999."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
APART = 8.0
"""The least distance in CIELAB of two colours side by side; 2.3 is just noticeable (Mahy, Van Eycken and Oosterlinck, 1994)."""
FAR = 15.0
"""That of thin bars and hatching."""
LEGIBLE = 4.5
"""The contrast that WCAG 2.1 asks for, criterion 1.4.3."""


def linear(colour: str) -> Colour:
    """Linear red, green and blue of `#rrggbb`, from 0 to 1."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, vision: str) -> Colour:
    values = XYZ @ np.clip(VISIONS[vision] @ linear(colour), 0, 1) / WHITE
    x, y, z = np.where(values > 0.008856, np.cbrt(values), 7.787 * values + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str, vision: str) -> float:
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def test_contrast_and_distance_are_the_known_ones() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)
    assert distance("#000000", "#ffffff", "deuteranope") == pytest.approx(100, abs=0.5)
    assert distance("#ff0000", "#00ff00", "trichromat") == pytest.approx(170, abs=1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_on_every_fill(theme: str) -> None:
    fills = {kind: colour.fill if theme == "light" else colour.dark_fill for kind, colour in KINDS.items()}
    fills |= {name: getattr(INKS[name], theme) for name in ("paper", "band")}
    found = {(ink, name): contrast(getattr(INKS[ink], theme), fill) for ink in ("ink", "soft") for name, fill in fills.items()}
    assert {place: ratio for place, ratio in found.items() if ratio < LEGIBLE} == {}
    assert contrast(getattr(INKS["alarm"], theme), getattr(INKS["paper"], theme)) > LEGIBLE


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_of_pages_stands_out(theme: str) -> None:
    """Messages and links on the page and in boxes; lines of a source or of a graph that are marked."""
    colours = {name: getattr(colour, theme) for name, colour in VARIABLES.items()}
    pairs = [(text, under) for text in ("alarm", "warning", "accent") for under in ("paper", "band")]
    pairs += [(text, under) for text in ("ink", "soft") for under in ("mark", "come", "gone")]
    pairs += [(text, under) for text in SOURCE_INKS for under in ("paper", "band", "mark")]
    found = {pair: contrast(*(colours[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in found.items() if ratio < LEGIBLE} == {}


@each(product(["", "dark_"], VISIONS))
def test_kinds_of_boxes_differ_in_fill_or_outline(dark: str, vision: str) -> None:
    for one, other in combinations(KINDS.values(), 2):
        found = [distance(getattr(one, dark + part), getattr(other, dark + part), vision) for part in ("fill", "line")]
        assert max(found) >= APART, (one.meaning, other.meaning, found)


@each(product(["line", "dark_line"], VISIONS))
def test_units_and_waits_in_the_timeline_differ(line: str, vision: str) -> None:
    """Bars by their colours; hatching by its lines, without colours."""
    bars = [getattr(KINDS[kind], line) for kind in (Kind.HOST, Kind.WEIGHTS, Kind.MATRIX, Kind.VECTOR)]
    assert min(distance(*pair, vision) for pair in combinations(bars, 2)) >= FAR
    assert len({(wait.angle % (90 if wait.crossed else 180), wait.crossed) for wait in WAITS.values()}) == len(WAITS)
