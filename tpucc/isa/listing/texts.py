"""Texts in a listing, of many lines: as they are in a block, or in quotes where a line couldn't show them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from tpucc.ir.textdata import quote
from tpucc.isa.listing.lines import Arguments
from tpucc.isa.listing.words import label_in, line_error, string


def text_lines(head: str, text: str) -> Iterator[str]:
    """A directive that begins with `head` and its text."""
    if _plain(text):
        yield head
        yield from (f"| {line}" if line else "|" for line in text.split("\n") if text)
    else:
        yield f"{head} {quote(text)}"


def read_text(arguments: Arguments) -> str:
    """The text of a directive whose other words have been taken. Raises `LineError` E0716."""
    directive = arguments.directive
    quoted = next(iter(arguments.rest()), None)
    arguments.done(block=True)
    if quoted is None:
        return directive.block_text
    if directive.block or label_in(quoted) is None:
        raise line_error("E0716", f"{directive.head} takes a text in quotes or lines with a bar", directive.head.span)
    return string(quoted, quoted.text)


def _plain(text: str) -> bool:
    """Whether a text can stand in a listing as it is: nothing in it but characters that are shown, blanks and line ends."""
    return not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in set(text) - {"\n", "\t"})
