"""How names are written where there is little room: escaped, shortened, listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tpucc.diagnostics import counted, printable

MAX_NAME = 40
MOST_NAMES = 3
"""Operators or values that a box or a row names."""
Width = Callable[[str], int]
"""The room that a text takes, in characters or columns."""
_NO_CHARACTERS = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
"""Characters that XML can't express, and that `printable` lets pass."""


def whole(text: str) -> str:
    """`text` with control and bidirectional characters escaped."""
    return printable(text).translate(_NO_CHARACTERS)


def shown(text: str, limit: int = MAX_NAME) -> str:
    """`whole` of a text, of at most `limit` characters: the middle goes first."""
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
