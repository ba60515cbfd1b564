"""Lines that follow from the fields of a dataclass: one row of entries says how such a line is written and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from tpucc.ir.textdata import quote
from tpucc.isa.listing.lines import Arguments
from tpucc.isa.listing.words import Word, integer, integers, name, name_text, real, sizes, spans


@dataclass(frozen=True, slots=True)
class Codec:
    """How a value stands in a word: `show` gives the text, `read` the value, or raises `LineError`."""

    show: Callable[[Any], str]
    read: Callable[[Word], Any]


def _bracketed(values: Iterable[object]) -> str:
    return f"[{' '.join(map(str, values))}]"


def _times(values: Iterable[object]) -> str:
    return "x".join(map(str, values))


NAME = Codec(name_text, name)
QUOTED = Codec(quote, name)
COUNT = Codec(str, integer)
REAL = Codec(repr, real)
SHAPE = Codec(_times, sizes)
SIZES = Codec(_times, partial(sizes, rank=2))
INTEGERS = Codec(_bracketed, integers)
SPANS = Codec(_bracketed, spans)
WORD = Codec(str, lambda word: word)
"""For what can be read only when other words are known."""

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Entry:
    """A field, which may be one of a part (`origin.spans`), as a word of a line.

    The word has the `key`, the field's name unless said; without a key it stands by its place, and `what` names it where it is missing.
    What has a `default` may be left out, and is printed even so unless it is `brief`.
    """

    field: str
    codec: Codec
    key: str = ""
    what: str = ""
    default: Any = REQUIRED
    brief: bool = False

    def text(self, of: object) -> str:
        """The word that says the field of `of`, with a blank before it; nothing for what is left out."""
        value = attrgetter(self.field)(of)
        if self.brief and value == self.default:
            return ""
        return f" {'' if self.what else f'{self.key or self.field}='}{self.codec.show(value)}"

    def value(self, arguments: Arguments) -> Any:
        key = self.key or self.field
        word = arguments.next(self.what) if self.what else arguments.need(key) if self.default is REQUIRED else arguments.take(key)
        return self.default if word is None else self.codec.read(word)


Row = Sequence[Entry]


def shown(directive: str, row: Row, of: object) -> str:
    """The line of a value."""
    return f".{directive}{''.join(entry.text(of) for entry in row)}"


def taken(row: Row, arguments: Arguments) -> list[Any]:
    """The values of a line in the order of its row; other words may follow."""
    return [entry.value(arguments) for entry in row]


def read(row: Row, arguments: Arguments) -> list[Any]:
    """The values of a whole line, in the order of its row. Raises `LineError` E0716 for any other word, and for a block."""
    found = taken(row, arguments)
    arguments.done()
    return found
