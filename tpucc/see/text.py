"""How wide text is in pictures.

Widths come from a table, not from the fonts of the machine that compiles: pictures have the same bytes everywhere. The table is that
of Helvetica (Adobe's font metrics, thousandths of the size), which Arial and Liberation Sans share.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

from tpucc.explain.names import MAX_NAME, shortened, shown, whole

SMALL, NORMAL, LARGE = 12.0, 13.0, 17.0
"""Sizes in CSS pixels; 12 pixels are 9 points."""
LINE_HEIGHT = 1.25
LEAST_CUT = 3
"""A name that doesn't fit is shortened by so many characters at least: the gap takes the room of two."""

_ASCII = (
    [278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278]  # space to /
    + [556] * 10
    + [278, 278, 584, 584, 584, 556, 1015]  # : to @
    + [667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611]
    + [278, 278, 278, 469, 556, 333]  # [ to `
    + [556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500]
    + [334, 260, 334, 584]
)
_OTHER, _WIDE = 700, 1000
BOLD = 1.08
"""How much wider bold text is."""


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of one line in pixels, never too small for the fonts that pictures ask for."""
    return sum(map(_thousandths, text)) * size / 1000 * (BOLD if bold else 1.0)


def shortened_to(names: Sequence[str], size: float, width: float) -> list[str]:
    """The names as `shortened`, each in at most `width` pixels; one by one as `fitted_name` where they can't be told apart in these."""
    safe = [*map(whole, names)]
    for room in range(MAX_NAME, 4, -1):
        found = shortened(safe, room)
        if all(text_width(name, size) <= width for name in found):
            return found
        if max(map(len, found)) > room:
            break
    return [fitted_name(name, size, width) for name in names]


def fitted_name(name: str, size: float, width: float) -> str:
    """A name as `shown`, in at most `width` pixels: the middle goes first, as names of one network often begin alike; where dots would be
    beside the gap, or hardly anything would go, the beginning. Nothing when fewer than four characters would be left."""
    safe = whole(name)
    limits = range(min(MAX_NAME, len(safe) - LEAST_CUT), 4, -1)
    middles = [words for limit in limits if ".…" not in (words := shown(name, limit)) and "…." not in words]
    ends = [f"…{safe[-kept:]}" for kept in range(len(safe) - LEAST_CUT - 1, 3, -1) if safe[-kept] != "."]
    return next((words for words in (shown(name), *middles, *ends) if text_width(words, size) <= width), "")


def broken(text: str, size: float, width: float) -> list[str]:
    """`text` in lines of at most `width` pixels, broken between words; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


@cache
def _thousandths(character: str) -> int:
    code = ord(character)
    if 32 <= code < 127:
        return _ASCII[code - 32]
    if unicodedata.combining(character):
        return 0
    return _WIDE if character == "…" or unicodedata.east_asian_width(character) in "WF" else _OTHER


_NARROWED = "'narrowed DejaVu Sans'"
SHARE = 86
"""The percentage of a size at which nine of ten texts in DejaVu Sans are as wide as `text` says, or narrower."""
_SHARES = {"normal": ("DejaVu Sans", SHARE), "bold": ("DejaVu Sans Bold", 82)}
"""The font of each weight, and this percentage for it."""

FONT = f"Helvetica, Arial, 'Liberation Sans', {_NARROWED}, sans-serif"
"""What pictures and pages ask for."""
RENDERING = "geometricPrecision"
"""How texts of pictures are drawn, so that they are as wide at each size of a picture: with hinting, letters are whole pixels wide, and a
seventh wider at some sizes."""


def font_faces() -> str:
    """CSS that defines the font in its smaller size."""
    return "".join(
        f"@font-face{{font-family:{_NARROWED};font-weight:{weight};src:local('{name}');size-adjust:{share}%}}\n"
        for weight, (name, share) in _SHARES.items()
    )


def font_rules() -> str:
    """CSS that defines `--sans`, the fonts of a page, and gives them to the pictures in it."""
    return f"{font_faces()}:root{{--sans:{FONT}}}\nsvg{{font-family:var(--sans);text-rendering:{RENDERING}}}"
