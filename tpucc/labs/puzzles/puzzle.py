"""The puzzles: what puzzles.toml declares, with a term's words and numbers, and how a puzzle shows itself."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from textwrap import fill
from typing import Any

from tpucc.diagnostics import counted, listed
from tpucc.isa.listing.data import matrix_lines
from tpucc.labs.lab import AS_WRITTEN, Term, filled
from tpucc.labs.puzzles.checking import Verdict, judged
from tpucc.labs.puzzles.draws import DRAWS, Rules, rules
from tpucc.labs.puzzles.setting import Task

WIDTH = 78
DECLARED = Path(__file__).with_name("puzzles.toml")


@dataclass(frozen=True, repr=False)
class Puzzle(Task):
    """A task that a student is shown, and that checks what the student writes."""

    @property
    def begun(self) -> str:
        """The file that a student begins with."""
        where = f"`tpucc lab puzzle {self.number}` shows the memories and the goal."
        said = fill(f"{self.task} {where}", WIDTH, initial_indent="; ", subsequent_indent="; ", break_on_hyphens=False)
        return f"; {self.title[0].upper()}{self.title[1:]}\n{said}\n\n{self.text}"

    def check(self, text: str, seed: int | None = None) -> Verdict:
        """The verdict on the text of a program, on numbers that `seed` draws, or on fresh ones."""
        return judged(self, text, seed)

    def __str__(self) -> str:
        return "\n\n".join([*(fill(text, WIDTH, break_on_hyphens=False) for text in self.paragraphs), self.memories])

    __repr__ = __str__

    @property
    def paragraphs(self) -> tuple[str, str, str]:
        """The title, the task and the machine, in lines without an end."""
        return f"{self.title[0].upper()}{self.title[1:]}", self.task, self._machine()

    @property
    def memories(self) -> str:
        """The memories at the start and the goal, in lines."""
        return "\n".join(self._memories())

    def _machine(self) -> str:
        target, said = self.target, [counted(number, name) for name, number in self.most.items()]
        told = f" A solution has at most {listed(said)}." if said else ""
        return (
            f"The machine has a unified buffer of {target.unified_buffer_rows} rows, {target.accumulator_rows} rows of accumulators, and a "
            f"FIFO of {target.weight_fifo_tiles} tiles.{told} The best known solution has {counted(self.best, 'instruction')}."
        )

    def _memories(self) -> Iterator[str]:
        """The memories at the start and the goal, for one draw of numbers."""
        setting = self.draw(Random(0))
        yield "At the start, for example:"
        for name, values in setting.inputs.items():
            yield f"host memory, input {name}: {self._rows(name, values.shape)}"
            yield from matrix_lines(values)
        for name, rows in setting.scratch.items():
            yield f"host memory, {counted(rows, 'row')} to use: {name}"
        for number, tile in enumerate(setting.tiles):
            yield f"weight memory, tile {number}"
            yield from matrix_lines(tile)
        for number, block in enumerate(setting.blocks):
            yield f"parameter block {number}: {block.line.removeprefix('.block').strip() or block.words or 'multiplier=1'}"
        for name, values in setting.goal.items():
            yield ""
            yield f"the goal, output {name}: {self._rows(name, values.shape)}"
            yield from matrix_lines(values)
        yield ""
        yield "Whenever a program is checked, other numbers are drawn."

    def _rows(self, name: str, shape: tuple[int, ...]) -> str:
        """Where a port's rows lie: each four columns at a place of their own."""
        places = [f"{name}.{block}" for block in range(-(-shape[1] // self.target.mxu))]
        each = ", four columns each" if len(places) > 1 else ""
        return f"{counted(shape[0], 'row')} at {listed(places)}{each}"


def puzzles(term: Term = AS_WRITTEN) -> tuple[Puzzle, ...]:
    """All puzzles of a term, in the order of their numbers, which begin with 1."""
    term_rules = rules(term)
    declared = tomllib.loads(filled(DECLARED.read_text("utf-8"), term_rules.words))["puzzle"]
    return tuple(_puzzle(number, term, term_rules, **said) for number, said in enumerate(declared, 1))


def _puzzle(number: int, term: Term, term_rules: Rules, setting: str, task: str, **said: Any) -> Puzzle:
    """A puzzle of what is declared of it; a `task` is one paragraph."""
    said |= {"directives": tuple(said.get("directives", ()))}
    return Puzzle(number=number, task=" ".join(task.split()), draw=partial(DRAWS[setting], term_rules), term=term, **said)
