"""The task of a puzzle: a machine of 4×4 multiply-accumulates, its memories, a goal, and limits of a solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from tpucc.labs.lab import AS_WRITTEN, Term
from tpucc.labs.puzzles.setting import Setting
from tpucc.target import Target, load_target, number_fields


@dataclass(frozen=True)
class Most:
    """What a solution may use; None where any number will do."""

    instructions: int | None = None
    cycles: int | None = None
    fetches: int | None = None


@dataclass(frozen=True, repr=False)
class Task:
    """A task, and what is needed to check it. `draw` makes the memories and the goal of fresh numbers.

    `text` is what the student begins with, after the comment that says the task. `best` is the least number of instructions that is
    known. `directives` are those that the student may write. With `keeps`, the instructions of `text` stay, and only waits are added.
    `slow` are the cycles of a `text` that is right already: who needs as many has done nothing.
    """

    number: int
    idea: str
    task: str
    draw: Callable[[Random], Setting]
    best: int
    text: str = "    halt\n"
    kind: str = "asm"
    directives: tuple[str, ...] = ()
    most: Most = Most()
    keeps: bool = False
    slow: int | None = None
    accumulator_rows: int = 16
    unified_buffer_rows: int = 48
    term: Term = AS_WRITTEN

    @property
    def file(self) -> str:
        """The name of the student's file."""
        return f"puzzle{self.number:02}.{self.kind}"

    @property
    def title(self) -> str:
        return f"puzzle {self.number}: {self.idea}"

    @property
    def target(self) -> Target:
        """The machine: `tiny`, or `tiny` with less memory."""
        return _machine(self.accumulator_rows, self.unified_buffer_rows)

    @property
    def target_line(self) -> str:
        """The machine as `.target` has it."""
        return _line(self.target)


@cache
def _machine(accumulator_rows: int, unified_buffer_rows: int) -> Target:
    return load_target("tiny", {"accumulator_rows": accumulator_rows, "unified_buffer_rows": unified_buffer_rows})


@cache
def _line(target: Target) -> str:
    return "puzzle " + " ".join(f"{name}={getattr(target, name)}" for name in number_fields())
