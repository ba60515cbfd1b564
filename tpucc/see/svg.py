"""Writing SVG: markup is made here and nowhere else, so that every text and attribute is escaped.

Places in a picture are pixels from its upper left corner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NewType

from tpucc.see.palette import Kind, ink_fill, ink_line, kind_paint, style_sheet
from tpucc.see.text import FONT, RENDERING, SMALL, font_faces

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle by its sides, in pixels; `top` is less than `bottom`."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> Point:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def meets(self, other: Rect) -> bool:
        """Whether the insides of both have a point in common."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def moved(self, dx: float, dy: float) -> Rect:
        """The rectangle so many pixels to the right and down."""
        return Rect(self.left + dx, self.top + dy, self.right + dx, self.bottom + dy)


def centred(x: float, y: float, size: tuple[float, float]) -> Rect:
    """The rectangle of this size whose middle is (x, y)."""
    return Rect(x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def hull(rects: Iterable[Rect]) -> Rect:
    """The smallest rectangle around all; a point when there is none."""
    sides = [(r.left, r.top, r.right, r.bottom) for r in rects] or [(0.0, 0.0, 0.0, 0.0)]
    left, top, right, bottom = zip(*sides, strict=True)
    return Rect(min(left), min(top), max(right), max(bottom))


Markup = NewType("Markup", str)
"""Text that is already XML."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Markup, and the room that it takes in pixels."""

    markup: Markup
    width: float
    height: float


Value = str | float | int | None
NOTHING = Markup("")
_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;"}
_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What XML has no way to write, and what turns the direction of the text around it."""
_PLAIN = re.compile(r"[\w .,:;#()/*+=%-]*", re.ASCII)
"""The characters of most texts and attributes, none of which is escaped."""


def escaped(text: str) -> Markup:
    """`text` as XML: the five special characters, and what no text of a page has, as `\\x1f`."""
    return Markup(text if _PLAIN.fullmatch(text) else _ILLEGAL.sub(_written, text).translate(_ESCAPES))


def joined(parts: Iterable[Markup]) -> Markup:
    """The parts one after the other."""
    return Markup("".join(parts))


def tag(name: str, *children: Markup, attributes: Mapping[str, Value] | None = None, **more: Value) -> Markup:
    """An element. An attribute that is None is left out; `class_` and `stroke_width` stand for `class` and `stroke-width`."""
    pairs = dict(attributes or {})
    pairs.update((key.rstrip("_").replace("_", "-"), value) for key, value in more.items())
    texts = {key: escaped(value) if isinstance(value, str) else number_text(value) for key, value in pairs.items() if value is not None}
    written = "".join(f' {key}="{text}"' for key, text in texts.items())
    body = "".join(children)
    return Markup(f"<{name}{written}>{body}</{name}>" if body else f"<{name}{written}/>")


def prose(text: str) -> Markup:
    """Text of a page in which options of commands, such as `--error`, go to the next line whole."""
    return Markup(re.sub(r"(?<=\s)--?\w[\w-]*", r'<span class="word">\g<0></span>', escaped(text)))


def number_text(value: float) -> str:
    """A coordinate with one decimal at most."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def points_text(points: Iterable[Point]) -> str:
    """The corners of a line or of a polygon: `0,1.5 2,3`."""
    return " ".join(f"{number_text(x)},{number_text(y)}" for x, y in points)


def label(text: str, x: float, y: float, size: float = SMALL, ink: str = "ink", anchor: str = "start", **more: Value) -> Markup:
    """One line of text; `y` is its baseline."""
    place = None if anchor == "start" else anchor
    return tag("text", escaped(text), attributes=ink_fill(ink), x=x, y=y, font_size=size, text_anchor=place, **more)


def line(x1: float, y1: float, x2: float, y2: float, ink: str = "rule", **more: Value) -> Markup:
    """A straight line between two points."""
    return tag("line", attributes=ink_line(ink), x1=x1, y1=y1, x2=x2, y2=y2, **more)


def kind_rect(kind: Kind, x: float, y: float, width: float, height: float, *children: Markup, **more: Value) -> Markup:
    """A rectangle in the colours of its kind."""
    return tag("rect", *children, attributes=kind_paint(kind), x=x, y=y, width=max(0.0, width), height=max(0.0, height), **more)


def ink_rect(ink: str, x: float, y: float, width: float, height: float, *children: Markup, **more: Value) -> Markup:
    """A plain rectangle without an outline."""
    return tag("rect", *children, attributes=ink_fill(ink), x=x, y=y, width=max(0.0, width), height=max(0.0, height), **more)


def moved(x: float, y: float, *parts: Markup) -> Markup:
    """The parts in a group whose origin is at (x, y)."""
    return tag("g", *parts, transform=f"translate({number_text(x)} {number_text(y)})")


def title(text: str) -> Markup:
    """The text that a viewer shows when the pointer rests on the element."""
    return tag("title", escaped(text)) if text else NOTHING


def row(cells: Iterable[Markup], name: str = "td", **more: Value) -> Markup:
    """A row of an HTML table."""
    return tag("tr", joined(tag(name, cell) for cell in cells), attributes=None, **more)


def table(head: Iterable[str], rows: Iterable[Markup], **more: Value) -> Markup:
    """An HTML table of these rows, with a head where there are words for it."""
    top = tag("thead", row(map(escaped, head), "th")) if head else NOTHING
    return tag("table", top, tag("tbody", joined(rows)), attributes=None, **more)


def picture(key: str, name: str, width: float, height: float, *children: Markup) -> str:
    """A whole SVG file: `name` is read aloud in its place, `key` begins all of its ids."""
    width, height = round(width + 0.5), round(height + 0.5)
    attributes: dict[str, Value] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "id": key,
        "role": "img",
        "aria-label": name,
        "width": width,
        "height": height,
        "viewBox": f"0 0 {width} {height}",
        "font-family": FONT,
        "font-size": SMALL,
        "text-rendering": RENDERING,
    }
    return tag("svg", _style(), ink_rect("paper", 0, 0, width, height), *children, attributes=attributes) + "\n"


def inlined(svg: str) -> Markup:
    """An SVG file of ours as a part of a page, whose style sheet has the colours and the fonts of all of them."""
    return Markup(svg.strip().replace(_style(), "", 1))


def beside(svg: str, key: str, more: str = "narrow") -> str:
    """A picture whose ids, which begin with `key`, are others than those of one of its kind on the same page: `more` is added to them."""
    return re.sub(rf'(id="|url\(#){key}(?=[-")])', rf"\g<1>{key}-{more}", svg)


def _style() -> Markup:
    return tag("style", Markup(font_faces() + style_sheet()))


def _written(illegal: re.Match[str]) -> str:
    code = ord(illegal[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
