"""The words of one line of a listing: their values, and the faults of a line. Functions that read a word raise `LineError` E0713."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, NoReturn

from tpucc.diagnostics import Span, listed, printable
from tpucc.ir.codec import MAX_INTEGER_CHARACTERS, line_error, quote, unquote
from tpucc.ir.dtypes import DeviceFormat

LARGEST = 2**63 - 1
"""The largest number of a listing: arrays have 64 bits."""
_STRING = r'"(?:[^"\\]|\\.)*"'
_WORD = re.compile(rf'(?:([A-Za-z_]\w*)=)?((?:{_STRING}|\[[^\];]*\]|[^\s,;"\[])+)|(;.*)|[\s,]+|(.)', re.ASCII)
_LABEL = re.compile(rf"({_STRING}|[A-Za-z_][\w.:/#]*)(?:\+(\d+))?", re.ASCII)
_NUMBER = re.compile(r"\d+|0[xX][0-9a-fA-F]+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/#]*")
"""Names that stand in a listing as they are; others are quoted."""


class Word(NamedTuple):
    """`key=value`, or a value alone with an empty key; `start` and `end` are its one-based columns, the end exclusive."""

    key: str
    text: str
    line: int
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.line, self.start, self.line, self.end)

    @property
    def value_span(self) -> Span:
        """The place of the value alone."""
        return Span(self.line, self.end - len(self.text), self.line, self.end)

    def __str__(self) -> str:
        return printable(f"{self.key}={self.text}" if self.key else self.text)

    def split_at(self, mark: str) -> tuple[Word, Word]:
        """The two words before and after the first `mark` in a word without a key; the second is empty where there is none."""
        first, _, second = self.text.partition(mark)
        middle = self.start + len(first)
        return Word("", first, self.line, self.start, middle), Word("", second, self.line, middle + 1, self.end)

    def fail(self, code: str, message: str, *help: str) -> NoReturn:
        """Raises `LineError` with the value underlined."""
        raise line_error(code, message, self.value_span, *help)


def words(text: str, line: int) -> Iterator[Word]:
    """The words of a line up to its comment; blanks and commas separate them. Raises `LineError` E0713 for an unclosed quote or bracket."""
    for match in _WORD.finditer(text):
        if match[2] is not None:
            yield Word(match[1] or "", match[2], line, match.start() + 1, match.end() + 1)
        elif match[4] is not None:
            raise line_error(
                "E0713", f"{printable(match[4])} opens something that is not closed", Span(line, match.start() + 1, line, match.end() + 1)
            )


def keyed(line: Sequence[Word]) -> dict[str, Word]:
    """The words with a key, by their keys. Raises `LineError` E0714 for a key that is given twice."""
    found: dict[str, Word] = {}
    for word in line:
        if word.key in found:
            raise line_error("E0714", f"{word.key} is given twice", word.span)
        if word.key:
            found[word.key] = word
    return found


def place_of(line: Sequence[Word]) -> Span:
    """From the first word of a line to its last."""
    return Span(line[0].line, line[0].start, line[0].line, line[-1].end)


def integer(word: Word, least: int = 0, most: int = LARGEST) -> int:
    """The value of `key=12` or `key=0x1f`."""
    number = number_in(word.text)
    if number is None:
        word.fail("E0713", f"expected a number for {word.key or 'this'}, found {printable(word.text)}")
    if not least <= number <= most:
        word.fail("E0713", f"{word.key or 'the number'} must be from {least:,} to {most:,}")
    return number


def number_in(text: str) -> int | None:
    """The integer that `text` is, decimal or hexadecimal, of at most 20 digits; None when it is none."""
    if len(text) > MAX_INTEGER_CHARACTERS or not _NUMBER.fullmatch(text):
        return None
    return int(text, 16) if text[1:2] in "xX" and len(text) > 1 else int(text)


def signed_in(text: str) -> int | None:
    """The integer that `text` is, with or without a minus sign before it; None when it is none."""
    magnitude = number_in(text.removeprefix("-"))
    return -magnitude if magnitude is not None and text.startswith("-") else magnitude


def name(word: Word) -> str:
    """A plain or quoted name."""
    label = label_in(word)
    if label is None or label[1]:
        word.fail("E0713", f"expected a name, found {printable(word.text)}", "names other than words stand in quotes")
    return label[0]


def label_in(word: Word) -> tuple[str, int] | None:
    """The name and offset of `h.0+8` or `"my name"+8`; None when the value is no label."""
    match = _LABEL.fullmatch(word.text)
    if match is None or len(match[2] or "") > MAX_INTEGER_CHARACTERS:
        return None
    return string(word, match[1]) if match[1].startswith('"') else match[1], int(match[2] or 0)


def string(word: Word, text: str) -> str:
    """The characters between the quotes of `text`, a part of the word."""
    try:
        return unquote(text)
    except ValueError as error:
        word.fail("E0713", str(error))


def number(word: Word) -> int | float:
    """An integer or a finite float."""
    value = number_in(word.text)
    return real(word) if value is None else value


def real(word: Word) -> float:
    """A finite float."""
    try:
        value = float(word.text[:40])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        word.fail("E0713", f"expected a number for {word.key}, found {printable(word.text)}")
    return value


def spans(word: Word) -> tuple[Span, ...]:
    """The places of `at=[3:5-12 4:1-5:9]`."""
    found = [(text, Span.parse(text)) for text in word.text.strip("[]").split()]
    for text, span in found:
        if span is None:
            word.fail("E0713", f"expected places such as 3:5-12 or 3:5-4:2, found {printable(text)}")
    return tuple(span for _, span in found if span is not None)


def sizes(word: Word) -> tuple[int, ...]:
    """`8x4` as numbers."""
    return _whole(word, word.text.split("x"), "sizes such as 8x4")


def two_sizes(word: Word) -> tuple[int, int]:
    """`8x4`, and no more or fewer than two numbers."""
    texts = word.text.split("x")
    first, second = _whole(word, texts if len(texts) == 2 else [""], "sizes such as 8x4")
    return first, second


def integers(word: Word) -> tuple[int, ...]:
    """`8` or `[8 8 4]`."""
    return _whole(word, word.text.strip("[]").replace(",", " ").split(), f"numbers for {word.key or 'this'}")


def _whole(word: Word, texts: Sequence[str], expected: str) -> tuple[int, ...]:
    found = [value for value in map(number_in, texts) if value is not None]
    if len(found) != len(texts):
        word.fail("E0713", f"expected {expected}, found {printable(word.text)}")
    if max(found, default=0) > LARGEST:
        word.fail("E0713", f"numbers are at most {LARGEST:,}")
    return tuple(found)


def one_of(word: Word, choices: Collection[str], code: str, what: str, which: str) -> str:
    """The word, which must be one of the choices: `{word} isn't {what}; the {which} are …`."""
    if word.text not in choices:
        word.fail(code, f"{printable(word.text)} isn't {what}", f"the {which} are {listed(list(choices))}")
    return word.text


def zero(word: Word, of: DeviceFormat) -> int:
    """A zero point."""
    value = signed_in(word.text)
    if value is None or value not in of.zero_points:
        first, last = of.zero_points[0], of.zero_points[-1]
        word.fail("E0713", f"zero must be an integer from {first} to {last}, not {printable(word.text)}")
    return value


def name_text(name: str) -> str:
    """A name as a listing shows it: as it is, or in quotes."""
    return name if _PLAIN.fullmatch(name) else quote(name)


def label_text(name: str, offset: int) -> str:
    """A row of something named: `h.0+8`, `h.0` for the first."""
    return f"{name_text(name)}+{offset}" if offset else name_text(name)
