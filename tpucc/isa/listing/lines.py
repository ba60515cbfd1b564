"""The lines of a listing: directives with their blocks, and instructions with their layer.

A line is a directive when it begins with a dot, part of the last directive's block when it begins with a bar, an instruction otherwise;
a semicolon begins a comment. Every error is kept, so that one run reports them all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from tpucc.diagnostics import Diagnostic, Label, Source, Span, counted, did_you_mean, listed, printable
from tpucc.ir.codec import Errors, line_error
from tpucc.isa.listing.words import Word, keyed, label_in, place_of, words

_NUMBER = re.compile(r"; (\d{1,12})\r?$")
"""The comment with which a printed listing ends an instruction's line: the instruction's number."""

IN_CODE = ("for", "resident", "end")
"""The directives that stand among the instructions: a stay lasts from its `.resident` to its `.end`, and `.for` begins a layer."""


class BlockLine(NamedTuple):
    """The part of a line after the bar: its text, its line and the column that it begins at."""

    text: str
    line: int
    column: int

    @property
    def span(self) -> Span:
        return Span(self.line, self.column, self.line, self.column + max(1, len(self.text)))


@dataclass(frozen=True, slots=True)
class Directive:
    """`.name word word`, and the lines after it that begin with a bar, without it."""

    head: Word
    words: tuple[Word, ...]
    block: list[BlockLine]

    @property
    def name(self) -> str:
        return self.head.text.removeprefix(".")

    @property
    def block_text(self) -> str:
        return "\n".join(line.text for line in self.block)


@dataclass(frozen=True, slots=True)
class Lines:
    """A listing's parts: directives in order, and in order the instructions and the directives of `IN_CODE` between them."""

    directives: list[Directive]
    code: list[tuple[Word, ...] | Directive]


@dataclass(frozen=True)
class ListingSpans:
    """The places of a program's lines in `source`, which is a listing or the text of a tile program.

    `spans` has the place of each instruction, None for an instruction that isn't in the text. `directives` has the place of each directive,
    by its kind and the name that it defines, and by its kind and its number: `("buffer", "h.0")`, `("tile", "3")`.
    """

    source: Source
    spans: tuple[Span | None, ...]
    directives: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    exact: bool = False
    """Whether each instruction stands in the text as the machine has it, with names for some numbers: in a listing."""

    @cached_property
    def _lines(self) -> Sequence[str]:
        return self.source.text.split("\n")

    def text(self, instruction: int) -> str:
        """An instruction of a listing as it is written there; empty for another text's, and for one that the text doesn't have."""
        span = self._span(instruction) if self.exact else None
        return printable(self._lines[span.line - 1].partition(";")[0].strip()) if span is not None else ""

    def _span(self, instruction: int) -> Span | None:
        return self.spans[instruction] if 0 <= instruction < len(self.spans) else None

    def labels(self, instruction: int, text: str = "") -> tuple[Label, ...]:
        """A label with `text` at the line of an instruction; empty for an instruction that the text doesn't have."""
        span = self._span(instruction)
        return (Label(span, text, self.source),) if span is not None else ()

    def line(self, instruction: int) -> str:
        """The line of an instruction, in short: `iris.tile:37`; empty for an instruction that the text doesn't have."""
        return "".join(f"{printable(self.source.name)}:{label.span.line}" for label in self.labels(instruction))

    @cached_property
    def is_renumbered(self) -> bool:
        """Whether an instruction's comment says another number than the instruction has in the text as it is now."""
        if None in self.spans:
            return False  # scheduling has added instructions that the text doesn't have, and numbered all anew
        said = (_NUMBER.search(self._lines[span.line - 1]) for span in self.spans if span is not None)
        return any(found is not None and int(found[1]) != number for number, found in enumerate(said))

    def of(self, kind: str, name: str) -> tuple[Label, ...]:
        """The directive that defines something: of a host buffer its own, or that of its port. Else the first directive of its kind, else
        `.program`, else the first line."""
        port = [key for key in self.directives if kind == "host" and key[1] == name.rpartition(".")[0]]
        places = (self.directives.get(key) for key in ((kind, name), *port, (kind, "0"), ("program", "0")))
        span = next(filter(None, places), Span(1, 1, 1, 2))
        return (Label(span, "", self.source),)


_KINDS = {"memory": "host"}
"""The kinds of directives that go by another word: `.host` and `.memory` define the same, on different machines."""


def directive_spans(lines: Lines) -> dict[tuple[str, str], Span]:
    """The `directives` of `ListingSpans`."""
    found: dict[tuple[str, str], Span] = {}
    numbers: Counter[str] = Counter()
    for directive in (*lines.directives, *(line for line in lines.code if isinstance(line, Directive))):
        kind, span = _KINDS.get(directive.name, directive.name), place_of((directive.head, *directive.words[:1]))
        named = label_in(directive.words[0]) if directive.words and not directive.words[0].key else None
        for name in (str(numbers[kind]), *((named[0],) if named else ())):
            found.setdefault((kind, name), span)
        numbers[kind] += 1
    return found


def with_numbering(found: Sequence[Diagnostic], places: ListingSpans | None) -> list[Diagnostic]:
    """Messages about a text's instructions; where its comments number them otherwise, the first message says which numbers are meant."""
    if not found or places is None or not places.is_renumbered:
        return list(found)
    help = "instructions are counted from 0 as the text has them now; the numbers in its comments are from before it was edited"
    return [replace(found[0], help=(*found[0].help, help)), *found[1:]]


def read_lines(text: str, errors: Errors) -> Lines:
    """The lines of a listing. Lines that can't be split into words are left out and reported."""
    lines = Lines([], [])
    block: list[BlockLine] | None = None
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = raw.rstrip("\r")
        start = line.lstrip()[:1]
        if start == "|":
            column = len(line) - len(line.lstrip()) + 1
            text = line.lstrip()[1:].removeprefix(" ")
            if block is None:
                message = "this line begins with a bar, but stands after no directive"
                errors.add("E0715", message, Span(number, column, number, column + 1))
            else:
                block.append(BlockLine(text, number, len(line) - len(text) + 1))
        elif start and start != ";":
            block = []
            errors.attempt(_add, line, number, lines, block)
            block = block if start == "." else None  # an instruction has none
    return lines


def _add(line: str, number: int, lines: Lines, block: list[BlockLine]) -> None:
    """Adds a line to `lines`; `block` gets the bars after it."""
    found = tuple(words(line, number))
    if found and found[0].text.startswith(".") and not found[0].key:
        directive = Directive(found[0], found[1:], block)
        (lines.code if directive.name in IN_CODE else lines.directives).append(directive)
    elif found:
        lines.code.append(found)


@dataclass(slots=True)
class Arguments:
    """The words of a directive, taken one by one. `done` raises an error for the words that are left."""

    directive: Directive
    positional: list[Word] = field(init=False)
    keyed: dict[str, Word] = field(init=False)
    keys: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.positional = [word for word in self.directive.words if not word.key]
        self.keyed = keyed(self.directive.words)

    def next(self, what: str) -> Word:
        """The next word without a key. Raises `LineError` E0716 when there is none."""
        if not self.positional:
            raise line_error("E0716", f"{self.directive.head} needs {what}", self.directive.head.span)
        return self.positional.pop(0)

    def rest(self) -> list[Word]:
        """All words without a key that are left."""
        left, self.positional = self.positional, []
        return left

    def take(self, key: str) -> Word | None:
        """The word with this key, which the directive may have; None where the line has none."""
        self.keys.append(key)
        return self.keyed.pop(key, None)

    def need(self, key: str) -> Word:
        word = self.take(key)
        if word is None:
            raise line_error("E0716", f"{self.directive.head} needs {key}=", self.directive.head.span)
        return word

    def done(self, block: bool = False) -> None:
        """Raises `LineError` E0716 for the first word that nothing took, and for a block unless the directive may have one."""
        for word in (*self.positional, *self.keyed.values()):
            near = did_you_mean(word.key or word.text, self.keys)
            choices = f"it has {listed([f'{key}=' for key in self.keys])}" if self.keys else ""
            raise line_error("E0716", f"{self.directive.head} doesn't take {printable(str(word))}", word.span, near or choices)
        if self.directive.block and not block:
            lines = counted(len(self.directive.block), "line")
            raise line_error(
                "E0716", f"{self.directive.head} has no block, but is followed by {lines} with a bar", self.directive.head.span
            )
