"""Bounds of slices that may be left out, as `x[4:]` of 8 rows is `x[4:8]`.

In a loop `x[t:t + 4]` stands for both. So the lines of a body have such a bound as a number with a mark, until loops are found.
"""

from __future__ import annotations

import re

MARK = "\x01"
"""Stands before a bound that may be left out. No source has this character, not even in a string."""
MARKED = re.compile(rf"{MARK}\d+")


def marked(bound: str) -> str:
    """A bound that may be left out."""
    return f"{MARK}{bound}"


def shortened(text: str) -> str:
    """The text without the bounds that may be left out."""
    return MARKED.sub("", text)
