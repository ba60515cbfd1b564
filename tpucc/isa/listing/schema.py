"""Lines of a listing that follow from the fields of a dataclass: a field's type says how its value stands in a word, and its default
whether the word may be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from tpucc.diagnostics import Span
from tpucc.ir.attributes import REQUIRED, schema
from tpucc.ir.codec import quote
from tpucc.isa.listing.lines import Arguments
from tpucc.isa.listing.words import Word, integer, integers, name, name_text, real, sizes, spans, two_sizes


@dataclass(frozen=True, slots=True)
class Codec:
    """How a value stands in a word: `show` gives the text, `read` the value, or raises `LineError`."""

    show: Callable[[Any], str]
    read: Callable[[Word], Any]


def _bracketed(values: Iterable[object]) -> str:
    return f"[{' '.join(map(str, values))}]"


def _times(values: Iterable[object]) -> str:
    return "x".join(map(str, values))


INTEGERS = Codec(_bracketed, integers)
QUOTED = Codec(quote, name)
SHAPE = Codec(_times, sizes)
WORD = Codec(str, lambda word: word)
"""The codec of a value that can be read only when other words are known."""
_CODECS: Mapping[object, Codec] = {
    int: Codec(str, integer),
    float: Codec(repr, real),
    str: Codec(name_text, name),
    tuple[int, int]: Codec(_times, two_sizes),
    tuple[int, ...]: INTEGERS,
    tuple[Span, ...]: Codec(_bracketed, spans),
}
"""By the type of a field."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A field as a word of a line; its name may lead into a part: `origin.spans`.

    The word has the `key`, the field's own name unless said; without a key it stands by its place, and `what` names it where it is missing.
    A field with a default may be left out, and is, when it has its default: the dataclass's. A default that only the text has is printed.
    """

    field: str
    key: str = ""
    what: str = ""
    codec: Codec | None = None
    default: Any = REQUIRED
    brief: bool = False

    def of(self, kind: type) -> Entry:
        """The entry of a dataclass's field, with the codec of its type and its default."""
        for part in self.field.split("."):
            type_, default = schema(kind)[part]
            kind = type_ if isinstance(type_, type) else type(None)
        brief = self.default is REQUIRED and default is not REQUIRED
        return replace(self, codec=self.codec or _CODECS[type_], default=default if brief else self.default, brief=brief)

    def text(self, of: object) -> str:
        """The word of the field of `of`, with a blank before it; empty where the field is left out."""
        value = attrgetter(self.field)(of)
        assert self.codec is not None
        return (
            "" if self.brief and value == self.default else f" {'' if self.what else f'{self.key or self.field}='}{self.codec.show(value)}"
        )

    def value(self, arguments: Arguments) -> Any:
        key = self.key or self.field
        word = arguments.next(self.what) if self.what else arguments.need(key) if self.default is REQUIRED else arguments.take(key)
        assert self.codec is not None
        return self.default if word is None else self.codec.read(word)


class Fields:
    """The fields of a dataclass as the words of a directive's lines. A string is the entry of the field of that name."""

    def __init__(self, kind: type, *entries: Entry | str) -> None:
        self.kind, self._given = kind, entries

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple((Entry(entry) if isinstance(entry, str) else entry).of(self.kind) for entry in self._given)

    def line(self, directive: str, of: object) -> str:
        """The line of a value."""
        return f".{directive}{''.join(entry.text(of) for entry in self.entries)}"

    def taken(self, arguments: Arguments) -> list[Any]:
        """The values of a line in the order of the entries; other words may follow."""
        return [entry.value(arguments) for entry in self.entries]

    def read(self, arguments: Arguments) -> list[Any]:
        """The values of a whole line. Raises `LineError` E0716 for any other word, and for a block."""
        found = self.taken(arguments)
        arguments.done()
        return found
