"""Colours: one colour means one thing in every picture.

The hues are those of Okabe and Ito, "Color Universal Design", 2008, which people with any colour vision tell apart; shape, hatching and
words say the same again. Shapes carry the light theme as plain attributes, so that every viewer shows them; `style_sheet` recolours
them where the reader prefers a dark page. Pages take the same colours from CSS variables, which `theme` defines: light or dark as the
reader's system prefers, or as `data-theme` at the root says; on paper light. They are plain colours, not `light-dark()`: scripts that paint
on canvases read them with `getComputedStyle`, which would give them the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpucc.explain.attribution import INPUT
from tpucc.isa.program import HOST
from tpucc.see.text import font_rules


class Kind(StrEnum):
    """The meaning of a box, a bar or a rectangle."""

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


KINDS: Mapping[Kind, Colour] = {
    Kind.MATRIX: Colour("matrix unit", "#cfe5f3", "#0072b2", "#12405c", "#56b4e9"),
    Kind.VECTOR: Colour("activation unit", "#cfeee3", "#00855f", "#0d4a39", "#2fc79b"),
    Kind.MOVE: Colour("another view of the data", "#ffffff", "#6e7781", "#20262d", "#8b949e"),
    Kind.WEIGHTS: Colour("weights and constants", "#fdf0d0", "#b97f00", "#4d3a0c", "#e6a92b"),
    Kind.BOUNDARY: Colour("between float32 and integers", "#f6dfec", "#a9527f", "#4f2a40", "#f7a6d0"),
    Kind.HOST: Colour("host", "#e3e6ea", "#59636e", "#343b44", "#9aa4af"),
}
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


INKS: Mapping[str, Ink] = {
    "ink": Ink("#1f2328", "#e6edf3"),
    "soft": Ink("#57606a", "#b1bac4"),
    "rule": Ink("#8c959f", "#6e7781"),
    "grid": Ink("#d8dee4", "#30363d"),
    "band": Ink("#f3f5f7", "#1b2128"),
    "paper": Ink("#ffffff", "#0d1117"),
    "alarm": Ink("#b3470a", "#f08a4b"),
}
"""Text and lines: `ink` for what is read, `soft` for what stands beside it, `rule` and `grid` for lines, `alarm` for limits and errors."""


PAGE_INKS: Mapping[str, Ink] = {
    "warning": Ink("#8a6000", "#e6a92b"),
    "mark": Ink("#fff1a8", "#453b0d"),
    "glow": Ink("#d9a400", "#ffd75e"),
    "come": Ink("#dcf3e4", "#12402a"),
    "gone": Ink("#fbe3dc", "#4a2419"),
}
"""Colours that only pages have: `warning` for text; `mark` behind what is selected and `glow` around it; `come` and `gone` behind lines of
a difference."""


SOURCE_INKS: Mapping[str, Ink] = {
    "t-keyword": Ink("#8a2c7a", "#f0a8dc"),
    "t-call": Ink("#7a4a00", "#e8c37a"),
    "t-number": Ink("#00558c", "#7cc4f5"),
    "t-string": Ink("#0a6045", "#5fd6ae"),
    "t-comment": Ink("#57606a", "#b1bac4"),
}
"""The tokens of a source."""


def kind_of_layer(kind: str, multiplies: bool) -> Kind:
    """The meaning of a layer of this kind in every picture: the unit that computes it. `multiplies` says whether the matrix unit makes its
    products; a depthwise convolution that the vector unit computes lane by lane has weights, but none of these. What moves rows is the
    activation unit's, which copies them; the work on inputs counts as the host's, who sends them."""
    if multiplies:
        return Kind.MATRIX
    return Kind.HOST if kind in (HOST, INPUT) else Kind.VECTOR


def in_order(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """These kinds, each once, in the palette's order: a legend."""
    present = set(kinds)
    return tuple(kind for kind in Kind if kind in present)


_PAIRS = {**{str(kind): colour for kind, colour in KINDS.items()}, **{f"row-{i}": wave for i, wave in enumerate(WAVES)}}
VARIABLES: Mapping[str, Ink] = {
    **{name: Ink(colour.fill, colour.dark_fill) for name, colour in _PAIRS.items()},
    **{f"{name}-line": Ink(colour.line, colour.dark_line) for name, colour in _PAIRS.items()},
    **INKS,
    **PAGE_INKS,
    **SOURCE_INKS,
    "accent": Ink(KINDS[Kind.MATRIX].line, KINDS[Kind.MATRIX].dark_line),
}
"""Colours by the names that pages have for them: `matrix` and `matrix-line` for a kind, `row-0` and `row-0-line` for a row of the input,
`ink` for an ink; `accent` for what can be clicked and what has the focus."""

Rules = dict[str, dict[str, str]]
"""For each class the properties that it colours, and the variables that they have."""


def _looks(name: str, box: str, solid: str, outline: str) -> Rules:
    """The classes of a pair of colours: `box` has both, `solid` is filled with the strong one, `outline` is a line in it."""
    return {box: {"fill": name, "stroke": f"{name}-line"}, solid: {"fill": f"{name}-line"}, outline: {"stroke": f"{name}-line"}}


RULES: Rules = {
    **{look: rule for kind in KINDS for look, rule in _looks(kind, f"k-{kind}", f"s-{kind}", f"t-{kind}").items()},
    **{look: rule for ink in INKS for look, rule in ((f"f-{ink}", {"fill": ink}), (f"l-{ink}", {"stroke": ink}))},
    "h-paper": {"stroke": "paper"},
}
WAVE_RULES: Rules = {look: rule for i in range(len(WAVES)) for look, rule in _looks(f"row-{i}", f"w-{i}", f"v-{i}", f"u-{i}").items()}
"""The rules of the rows that flow through the array, which only its picture has."""


def _paint(look: str, **more: str) -> dict[str, str]:
    """Attributes of a shape of this class, with the colours of the light theme."""
    rule = RULES[look] if look in RULES else WAVE_RULES[look]
    return {"class": look, **{key: VARIABLES[name].light for key, name in rule.items()}, **more}


def kind_paint(kind: Kind) -> dict[str, str]:
    """Attributes of a box or a bar of this kind: its fill and its outline."""
    return _paint(f"k-{kind}")


def solid_paint(kind: Kind) -> dict[str, str]:
    """Attributes of a bar or a mark in the strong colour of its kind."""
    return _paint(f"s-{kind}")


def ink_fill(ink: str) -> dict[str, str]:
    """Attributes of a text or a shape that is filled with this ink."""
    return _paint(f"f-{ink}")


def ink_line(ink: str) -> dict[str, str]:
    """Attributes of a line in this ink."""
    return _paint(f"l-{ink}", fill="none")


def wave_paint(row: int) -> dict[str, str]:
    """Attributes of a shape that belongs to this row of the input."""
    return _paint(f"w-{row % len(WAVES)}")


def wave_solid_paint(row: int) -> dict[str, str]:
    """Attributes of a mark in the strong colour of this row of the input."""
    return _paint(f"v-{row % len(WAVES)}")


def wave_line(row: int) -> dict[str, str]:
    """Attributes of a line in the colour of this row of the input."""
    return _paint(f"u-{row % len(WAVES)}", fill="none")


def style_sheet(rules: Rules = RULES) -> str:
    """CSS that recolours a picture for a dark page."""
    return f"@media (prefers-color-scheme:dark){{{_css(rules, lambda name: VARIABLES[name].dark)}}}"


def picture_rules() -> str:
    """CSS that gives pictures in a page the colours of the page, by its variables."""
    return _css(RULES, lambda name: f"var(--{name})")


def _css(rules: Rules, colour: Callable[[str], str]) -> str:
    return "".join(f".{look}{{{';'.join(f'{key}:{colour(name)}' for key, name in rule.items())}}}" for look, rule in rules.items())


def theme() -> str:
    """CSS that defines the variables, the fonts, and the colours of what the browser itself draws: fields, sliders, scroll bars."""
    light, dark = ("".join(f"--{name}:{getattr(ink, shade)};" for name, ink in VARIABLES.items()) for shade in ("light", "dark"))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
        f"{font_rules()}"
    )
