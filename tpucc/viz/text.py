"""How wide text is, and how names and numbers are written in pictures.

Widths come from a table, not from the fonts of the machine that compiles: pictures have the same bytes everywhere. The table is that
of Helvetica (Adobe's font metrics, thousandths of the size), which Arial and Liberation Sans share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from tpucc.diagnostics import counted, printable

SMALL, NORMAL, LARGE = 12.0, 13.0, 17.0
"""Sizes in CSS pixels; 12 pixels are 9 points."""
LINE_HEIGHT = 1.25
MAX_NAME = 40
LEAST_CUT = 3
"""A name that doesn't fit is shortened by so many characters at least: the gap takes the room of two."""
MOST_NAMES = 3
"""Operators or values that a box or a row names."""

_ASCII = (
    [278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278]  # space to /
    + [556] * 10
    + [278, 278, 584, 584, 584, 556, 1015]  # : to @
    + [667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611]
    + [278, 278, 278, 469, 556, 333]  # [ to `
    + [556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500]
    + [334, 260, 334, 584]
)
Width = Callable[[str], int]
"""The room that a text takes, in characters or columns."""
_NO_CHARACTERS = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
"""Characters that XML can't express, and that `printable` lets pass."""
_OTHER, _WIDE = 700, 1000
BOLD = 1.08
"""How much wider bold text is."""


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of one line in pixels, never too small for the fonts that pictures ask for."""
    return sum(map(_thousandths, text)) * size / 1000 * (BOLD if bold else 1.0)


def whole(text: str) -> str:
    """`text` with control and bidirectional characters escaped."""
    return printable(text).translate(_NO_CHARACTERS)


def shown(text: str, limit: int = MAX_NAME) -> str:
    """The same, of at most `limit` characters: the middle goes first."""
    safe = whole(text)
    if len(safe) <= limit:
        return safe
    head = (limit - 1) * 2 // 3
    return f"{safe[:head]}…{safe[len(safe) - (limit - 1 - head) :]}"


def shortened(names: Sequence[str], room: int, width: Width = len, *, middle: bool = False) -> list[str]:
    """The names, each as wide as `room` by `width`, or by the least more with which different ones stay different.

    Of those that are too long their beginnings are kept, or where that doesn't tell them apart their ends, initials, or both ends; where
    the `middle` goes first, both ends before all others.
    """
    ways = (_beginning, _ending, _initials, _both_ends)
    for most in range(room, max([room, *map(width, names)]) + 1):
        for keep in (_both_ends, *ways[:-1]) if middle else ways:
            if found := _apart(names, keep, most, width):
                return found
    return list(names)


def _apart(names: Sequence[str], keep: Callable[[str, int, Width], str], most: int, width: Width) -> list[str]:
    """The names in so much room; nothing where two of them would be alike."""
    known: dict[str, str] = {}
    found = []
    for name in names:
        short = name if width(name) <= most else keep(name, most, width)
        if known.setdefault(short, name) != name:
            return []
        found.append(short)
    return found


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


def _beginning(name: str, room: int, width: Width) -> str:
    kept = name
    while kept and width(kept) >= room:
        kept = kept[:-1]
    return kept + "…"


def _ending(name: str, room: int, width: Width) -> str:
    kept = name
    while kept and width(kept) >= room:
        kept = kept[1:]
    return "…" + kept


def _both_ends(name: str, room: int, width: Width) -> str:
    """Without its middle, two thirds of the room before the gap."""
    if width(name) <= room:
        return name
    before = name
    while width(before) > (room - 1) * 2 // 3:
        before = before[:-1]
    return before + _ending(name, room - width(before), width)


def _initials(name: str, room: int, width: Width) -> str:
    """`s3.b1.conv2` of `stage3.block1.conv2`, and `f.0.1` of `features.0.1`; without its middle where that is too long as well. A name of
    one part has no initials."""
    *outer, last = name.split(".")
    return _both_ends(".".join([*map(_initial, outer), last]), room, width) if outer else _beginning(name, room, width)


def _initial(part: str) -> str:
    """The first letter of a part of a name, and the number behind it (`1_2` of `layer1_2`); a part that begins with a digit is kept."""
    number = re.search(r"(?:[0-9]+_)*[0-9]*$", part)
    return part if part[:1].isdigit() or number is None else part[:1] + number.group()


def first_names(names: Sequence[str]) -> str:
    """`softmax`, `exp, sum, divide, 2 more`."""
    more = [counted(len(names) - MOST_NAMES, "more", "more")] if len(names) > MOST_NAMES else []
    return ", ".join([*names[:MOST_NAMES], *more])


def fitted(text: str, size: float, width: float) -> str:
    """`text` cut to `width` pixels, or nothing when fewer than four characters would be left."""
    if text_width(text, size) <= width:
        return text
    kept = text
    while kept and text_width(kept + "…", size) > width:
        kept = kept[:-1]
    return kept + "…" if len(kept) >= 4 else ""


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


def number(value: float) -> str:
    """Four significant digits at most: `0.00392`, `1,349`, `10 M`, `2.5e-07`."""
    unit, factor = _unit(value)
    if unit:
        return f"{value / factor:.4g} {unit}"
    return f"{int(value):,}" if value == int(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def numbers(values: Sequence[float]) -> list[str]:
    """The numbers of an axis, all in the unit of the last and largest: `0, 5 M, 10 M`."""
    unit, factor = _unit(values[-1]) if values else ("", 1.0)
    return [f"{value / factor:.4g} {unit}" if unit and value else number(value) for value in values]


def rate_text(rate: float) -> str:
    """Operations a second: `12.3 TOPS`, `8 MOPS`."""
    for unit, factor in (("TOPS", 1e12), ("GOPS", 1e9), ("MOPS", 1e6), ("kOPS", 1e3)):
        if rate >= factor:
            return f"{number(float(f'{rate / factor:.3g}'))} {unit}"
    return f"{number(float(f'{rate:.3g}'))} OPS"


def layer_rate(tops: float, macs: int) -> str:
    """The TOPS of a layer, in a cell; a dash for one that multiplies nothing."""
    return f"{tops:.3g}" if macs else "–"


def size(count: float) -> str:
    """`37.5 KiB`, `1.2 MiB`."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:,.4g} {unit}"
    return f"{count:,.0f} bytes"


def _unit(value: float) -> tuple[str, float]:
    """The letter of millions and more, and how many one of them is; empty for what is written in full."""
    units = (("T", 1e12), ("G", 1e9), ("M", 1e6))
    return next(((unit, factor) for unit, factor in units if abs(value) >= max(1e7, factor)), ("", 1.0))


@cache
def _thousandths(character: str) -> int:
    code = ord(character)
    if 32 <= code < 127:
        return _ASCII[code - 32]
    if unicodedata.combining(character):
        return 0
    return _WIDE if character == "…" or unicodedata.east_asian_width(character) in "WF" else _OTHER
