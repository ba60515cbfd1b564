"""Characters that begin nothing in the language."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from tpucc.diagnostics import printable
from tpucc.frontend.problem import Problem
from tpucc.frontend.scan import Text

INSTEAD: Mapping[str, str] = {
    "!": "write not, or != for different",
    "&": "write and",
    "|": "write or",
    "^": "write a power as a product: x * x",
    "~": "write not",
    ";": "write one statement a line",
    "{": "lists stand in [ ], and a block is indented under a colon",
    "}": "lists stand in [ ], and a block is indented under a colon",
    "?": "write value if condition else other",
    "$": "a param is used by its plain name; -D changes it",
    "\\": "inside brackets, lines continue by themselves",
    ".": "numbers are written like 0.5",
    "<": "compare with <, <=, > or >=",
    "×": "write *",
    "÷": "write // or /",
    "−": "write the plain minus sign -",
    "–": "write the plain minus sign -",
    "—": "write the plain minus sign -",
    "→": "write ->",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}
QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb`\u00b4"
BLANKS = ("Zs", "Cf", "Cc")


def unexpected(text: Text, offset: int) -> Problem:
    """The message for a character where no token begins."""
    character = text.text[offset]
    span = text.span(offset, offset + 1)
    if character in "\"'":
        return _unterminated(text, offset)
    if character in QUOTES:
        return Problem(
            "E0102", f"{character} is no quotation mark of the language", span, "", 'strings stand between plain quotes: "fc1.w"'
        )
    if character in INSTEAD:
        return Problem("E0102", f"`{character}` means nothing here", span, "", INSTEAD[character])
    name = unicodedata.name(character, "").lower() or f"character number {ord(character)}"
    if unicodedata.category(character) in BLANKS:
        return Problem("E0102", f"an invisible character: {printable(name)}", span, "delete it, or type a plain space")
    if character.isalpha():
        return Problem(
            "E0102", f"{character} ({name}) can't be part of a name", span, "", "names are made of the letters a–z and A–Z, digits and _"
        )
    return Problem("E0102", f"`{printable(character)}` ({name}) means nothing in the language", span)


def _unterminated(text: Text, offset: int) -> Problem:
    quote = text.text[offset]
    end = text.text.find("\n", offset)
    end = len(text.text) if end < 0 else end
    if text.text.startswith(quote * 3, offset):
        return Problem(
            "E0103", "strings stand on one line", text.span(offset, end), "", "there are no triple quotes; comments begin with #"
        )
    return Problem("E0103", "this string doesn't end", text.span(offset, end), f"expected a closing {quote} on this line")
