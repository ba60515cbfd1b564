"""The rules of the verifier: the type of a rule, and its message when it is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from tpucc.diagnostics import printable
from tpucc.isa.effects import Bools, Effects, Resolved, effects, resolve
from tpucc.isa.listing.instructions import instruction_text
from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import HostBuffer, Program
from tpucc.machine.parts import Contents, Memory
from tpucc.numerics import Int64

MAX_REPORTED = 10
"""Of one rule no more violations than this are reported: the first ones, in program order."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its code (group and number), its name, and its demand with the reason."""

    code: str
    name: str
    description: str

    @property
    def group(self) -> int:
        """The rule's group, 1 to 10."""
        return int(self.code[1:3])


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken. `instruction` is the index of the one at fault, -1 when the fault lies outside the instructions.

    `other` is the index of the instruction that it collides with, or -1. `about` is the part at fault, by the name of its directive in a
    listing and its own: `("host", "x.0")`.
    """

    code: str
    message: str
    instruction: int = -1
    other: int = -1
    about: tuple[str, str] = ("program", "")


@dataclass(frozen=True, eq=False)
class Context:
    """The program under verification, with what several rules need of it. `effects` needs known opcodes. `places` are the lines of the
    listing that the program was assembled from."""

    program: Program
    places: ListingSpans | None = None

    @cached_property
    def effects(self) -> Effects:
        return effects(self.program.instructions, self.program.machine)

    @cached_property
    def resolved(self) -> Resolved:
        return resolve(self.program.instructions, self.effects)

    @cached_property
    def host(self) -> list[HostBuffer]:
        """The host buffers in the order of their starts."""
        return sorted(self.program.host, key=lambda buffer: buffer.start)

    def buffer_of(self, rows: Int64) -> Int64:
        """For each host row the position of its buffer in `host`, -1 when it lies before all of them."""
        return np.searchsorted(np.array([buffer.start for buffer in self.host], np.int64), rows, side="right") - 1

    def in_buffers(self, rows: Int64, chosen: Callable[[HostBuffer], bool]) -> Bools:
        """Whether each host row lies in, or behind, a buffer that is `chosen`."""
        found: Bools = np.array([*map(chosen, self.host), False], np.bool_)[self.buffer_of(rows)]
        return found

    def text(self, index: int) -> str:
        """An instruction as messages show it: its index and its text, with the names that a listing has in it."""
        written = self.places.text(index) if self.places is not None else ""
        return f"instruction {index:,} `{written or instruction_text(self.program.machine, self.program.instructions[index])}`"

    def row(self, memory: Memory, row: int) -> str:
        """A row of a memory as messages name it: `row 3 of the unified buffer`, `accumulator 5`, or by its buffer, `row 3 of x.0`."""
        if memory.contents is not Contents.BUFFERS:
            return f"row {row:,} of the {memory.title}" if memory.contents is Contents.VALUES else f"{memory.row} {row:,}"
        held = (f"row {row - each.start:,} of {printable(each.name)}" for each in self.program.host if each.start <= row < each.end)
        return next(held, f"row {row:,} of {memory.title}")

    def violation(self, code: str, index: int, message: str, other: int = -1) -> Violation:
        """`message` continues the text of the instruction; with `other`, `{other}` in it stands for the other one's text."""
        if other >= 0:
            message = message.replace("{other}", self.text(other))
        return Violation(code, f"{self.text(index)} {message}", index, other)

    def each(self, code: str, wrong: Bools | Int64, message: str | Callable[[int], str]) -> Iterator[Violation]:
        """A violation for each of the first instructions that are `wrong`: a mark for each, or their indices. `message` may depend on the
        index."""
        indices = np.flatnonzero(wrong) if wrong.dtype == np.bool_ else wrong
        for index in indices[:MAX_REPORTED].tolist():
            yield self.violation(code, index, message if isinstance(message, str) else message(index))


class Named(Protocol):
    """A part of a program that has a name."""

    @property
    def name(self) -> str: ...


_Part = TypeVar("_Part", bound=Named)


def for_each(code: str, kind: str, title: str, parts: Iterable[_Part], faults: Callable[[_Part], Iterator[str]]) -> Iterator[Violation]:
    """A violation for each fault of each of the parts, whose directive is `kind`: a fault is the words after `title NAME`."""
    for part in parts:
        for fault in faults(part):
            yield Violation(code, f"{title} {printable(part.name)} {fault}", about=(kind, part.name))


def named_twice(code: str, what: str, kind: str, named: Iterable[Named]) -> Iterator[Violation]:
    """A violation for each name that several have; `kind` is their directive's."""
    for name, count in Counter(each.name for each in named).items():
        if count > 1:
            yield Violation(code, f"two {what} are named {printable(name)}", about=(kind, name))
