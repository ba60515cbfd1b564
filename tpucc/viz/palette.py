"""Colours: one colour means one thing in every picture.

The hues are those of Okabe and Ito, "Color Universal Design", 2008, which people with any colour vision tell apart; shape, hatching and
words say the same again. Shapes carry the light theme as plain attributes, so that every viewer shows them; `style_sheet` recolours
them where the reader prefers a dark page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"


class Kind(StrEnum):
    """What a box, a bar or a rectangle stands for."""

    MATRIX = "matrix"
    VECTOR = "vector"
    MOVE = "move"
    WEIGHTS = "weights"
    BOUNDARY = "boundary"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Colour:
    """A fill and an outline for the light theme and for the dark one, and what they mean."""

    meaning: str
    fill: str
    line: str
    dark_fill: str
    dark_line: str


KINDS: Mapping[Kind, Colour] = MappingProxyType(
    {
        Kind.MATRIX: Colour("matrix unit", "#cfe5f3", "#0072b2", "#12405c", "#56b4e9"),
        Kind.VECTOR: Colour("activation unit", "#cfeee3", "#00855f", "#0d4a39", "#2fc79b"),
        Kind.MOVE: Colour("another view of the data", "#ffffff", "#6e7781", "#20262d", "#8b949e"),
        Kind.WEIGHTS: Colour("weights and constants", "#fdf0d0", "#b97f00", "#4d3a0c", "#e6a92b"),
        Kind.BOUNDARY: Colour("between float32 and integers", "#f6dfec", "#a9527f", "#4f2a40", "#f7a6d0"),
        Kind.HOST: Colour("host", "#e3e6ea", "#59636e", "#343b44", "#9aa4af"),
    }
)
"""Every kind's colour. `host` is grey, as the host's part stands back."""


WAVES = (
    Colour("row 0 of the input", "#b3def8", "#0072b2", "#0d5078", "#6cc0f0"),
    Colour("row 1 of the input", "#f0998a", "#b3382a", "#6b2418", "#f59c8b"),
    Colour("row 2 of the input", "#bdeedd", "#00755a", "#0a684c", "#4fd0a5"),
    Colour("row 3 of the input", "#b3a6ec", "#5646ad", "#3c3185", "#b3a6f7"),
    Colour("row 4 of the input", "#deeaa0", "#5f6f12", "#596717", "#c0d45f"),
    Colour("row 5 of the input", "#e59ac6", "#9c3c73", "#5e1c44", "#ee9cc9"),
)
"""The rows that flow through the array, again from the first after the last. Light and dark, blue and yellow alternate: neighbours stay
apart for people with any colour vision."""


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour that stands alone: light and dark."""

    light: str
    dark: str


INKS: Mapping[str, Ink] = MappingProxyType(
    {
        "ink": Ink("#1f2328", "#e6edf3"),
        "soft": Ink("#57606a", "#b1bac4"),
        "rule": Ink("#8c959f", "#6e7781"),
        "grid": Ink("#d8dee4", "#30363d"),
        "band": Ink("#f3f5f7", "#1b2128"),
        "paper": Ink("#ffffff", "#0d1117"),
        "alarm": Ink("#b3470a", "#f08a4b"),
    }
)
"""Text and lines: `ink` for what is read, `soft` for what stands beside it, `rule` and `grid` for lines, `alarm` for limits and errors."""


PAGE_INKS: Mapping[str, Ink] = MappingProxyType(
    {
        "warning": Ink("#8a6000", "#e6a92b"),
        "mark": Ink("#fff1a8", "#453b0d"),
        "glow": Ink("#d9a400", "#ffd75e"),
        "come": Ink("#dcf3e4", "#12402a"),
        "gone": Ink("#fbe3dc", "#4a2419"),
    }
)
"""What only pages have: `warning` for text; `mark` behind what is selected and `glow` around it; `come` and `gone` behind lines of a
difference."""


def kind_paint(kind: Kind) -> dict[str, str]:
    """Attributes of a shape of this kind: its fill and its outline."""
    colour = KINDS[kind]
    return {"class": f"k-{kind}", "fill": colour.fill, "stroke": colour.line}


def solid_paint(kind: Kind) -> dict[str, str]:
    """Attributes of a bar or a mark in the strong colour of its kind."""
    return {"class": f"s-{kind}", "fill": KINDS[kind].line}


def ink_fill(ink: str) -> dict[str, str]:
    return {"class": f"f-{ink}", "fill": INKS[ink].light}


def ink_line(ink: str) -> dict[str, str]:
    return {"class": f"l-{ink}", "stroke": INKS[ink].light, "fill": "none"}


def wave_paint(row: int) -> dict[str, str]:
    """Attributes of a shape that belongs to this row of the input."""
    colour = WAVES[row % len(WAVES)]
    return {"class": f"w-{row % len(WAVES)}", "fill": colour.fill, "stroke": colour.line}


def wave_solid_paint(row: int) -> dict[str, str]:
    """Attributes of a mark in the strong colour of this row."""
    return {"class": f"v-{row % len(WAVES)}", "fill": WAVES[row % len(WAVES)].line}


def wave_line(row: int) -> dict[str, str]:
    """Attributes of an outline in the strong colour of this row."""
    return {"class": f"u-{row % len(WAVES)}", "stroke": WAVES[row % len(WAVES)].line, "fill": "none"}


def wave_style_sheet() -> str:
    """CSS that recolours the rows for a dark page."""
    rules = (
        f".w-{i}{{fill:{wave.dark_fill};stroke:{wave.dark_line}}}.v-{i}{{fill:{wave.dark_line}}}.u-{i}{{stroke:{wave.dark_line}}}"
        for i, wave in enumerate(WAVES)
    )
    return "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"


def style_sheet() -> str:
    """CSS that recolours every picture for a dark page."""
    rules = [
        f".k-{kind}{{fill:{c.dark_fill};stroke:{c.dark_line}}}.s-{kind}{{fill:{c.dark_line}}}.t-{kind}{{stroke:{c.dark_line}}}"
        for kind, c in KINDS.items()
    ]
    rules += [f".f-{name}{{fill:{ink.dark}}}.l-{name}{{stroke:{ink.dark}}}" for name, ink in INKS.items()]
    rules.append(f".h-paper{{stroke:{INKS['paper'].dark}}}")
    return "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"
