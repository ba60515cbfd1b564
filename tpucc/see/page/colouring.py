"""The source in colours: keywords, names of what is called, numbers, strings and comments, line by line, as no token goes past one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpucc.see.svg import Markup, escaped, joined, tag

KEYWORDS = ("and", "def", "elif", "else", "False", "for", "if", "in", "not", "or", "pass", "return", "True")
"""Those of the language, which the page may not ask."""
DIRECTIVES = ("param", "weights", "calibration", "weight", "state", "model", "examples", "optimizer", "train")
"""Words that begin a statement, and are names elsewhere."""
_TOKEN = re.compile(
    rf"""
      (?P<comment>\#.*)
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<keyword>\b(?:{"|".join(KEYWORDS)})\b|^\s*(?:{"|".join(DIRECTIVES)})\b(?=\s+["\w]|\())
    | (?P<number>(?<![\w.])(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    | (?P<call>[^\W\d]\w*(?=\s*\())
    | \w+
    """,
    re.VERBOSE,
)


def coloured(line: str) -> Markup:
    """A line of the source, as it is shown. The classes of tokens are those of `SOURCE_INKS`: `t-keyword`, `t-number` and so on."""
    return joined(_pieces(line))


def _pieces(line: str) -> Iterator[Markup]:
    at = 0
    for found in _TOKEN.finditer(line):
        if found.lastgroup is not None:
            yield escaped(line[at : found.start()])
            yield tag("span", escaped(found.group()), class_=f"t-{found.lastgroup}")
            at = found.end()
    yield escaped(line[at:])
