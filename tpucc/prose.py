"""Sentences in lines of some characters: words stay whole, and a number stays with its unit."""

from __future__ import annotations

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
