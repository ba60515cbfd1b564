"""Sentences in lines of some characters: words stay whole, and a number stays with its unit. And shares in percent."""

from __future__ import annotations

import math
import re
import textwrap

GLUE = "\0"
"""Stands for a blank at which no line ends, while lines are made."""
_UNITS = r"(?<=\d) (?=(?:%|dB|[nµm]?s|[kMG]?Hz|[kMGT]?OPS|[KMGT]iB|[kMGT]?B(?:/s)?|bytes?|[kMGT])(?!\w))"
"""The blank between a number and its unit."""


def folded(text: str, width: int, first: str = "", indent: str = "") -> list[str]:
    """A sentence in lines of at most `width` characters, as far as its words allow: `first` before the first one, `indent` before the
    others. A number stays with its unit."""
    lines = textwrap.wrap(
        glued(text), width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [*map(loose, lines)]


def glued(text: str) -> str:
    """The text with `GLUE` between numbers and their units."""
    return re.sub(_UNITS, GLUE, text)


def loose(text: str) -> str:
    """The text with blanks again."""
    return text.replace(GLUE, " ")


def percent(part: float, whole: float) -> str:
    """`61 %`, `0.3 %`; of two that are equally near the larger one: `13 %` of 12.5; 0 % of nothing."""
    share = 100.0 * part / whole if whole else 0.0
    if 0 < share < 0.05:
        return "under 0.1 %"
    return f"{math.floor(10 * share + 0.5) / 10:.1f} %" if 0 < share < 9.95 else f"{math.floor(share + 0.5)} %"
