"""Chunks: what vector memory has no room for, computed some rows after the others.

A *run* are instructions that follow each other. The last ones write one buffer, and nothing after the run needs what the others write.
A chunk of a run computes some rows of that buffer: from the last instruction back, each instruction computes those rows that later
ones of the chunk need, and no others. So what it needs of the other buffers is found from the walks of the instructions, and rows of
those are there for the chunk alone. Where the buffer is small, and its sums are deep, a chunk has some of the passes in the place of
some of the rows. No sum is added up in another order: each chunk executes the instructions that the whole would be computed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.machines.v2.places import Flag
from tpucc.numerics import Int64
from tpucc.training.lowering.code import MULTIPLIES, PUSHES, WHOLE, Buffer, Code, Expression, Instruction, stretches


class Marked(dict[int, Bools]):
    """Rows of buffers, by the numbers of these: for each of its rows whether it is one of them."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._buffers = buffers

    def __missing__(self, number: int) -> Bools:
        self[number] = np.zeros(self._buffers[number].rows, np.bool_)
        return self[number]


class Chunk:
    """Some instructions: the rows that they have between them (`touched`), those that they need from before (`read`), and those that
    they write."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.touched, self.read, self.written = Marked(buffers), Marked(buffers), Marked(buffers)
        self._last_first: list[Instruction] = []

    @property
    def instructions(self) -> Iterator[Instruction]:
        return reversed(self._last_first)

    @property
    def work(self) -> int:
        """How many rows are walked over."""
        return sum(each.fields["outer"] * each.fields["inner"] for each in self._last_first)

    def precede(self, instruction: Instruction) -> None:
        """Puts an instruction before the others."""
        self._last_first.append(instruction)
        for name, place in instruction.places.items():
            self.touched[place.buffer][place.row : place.row + instruction.span(name)] = True
        if instruction.y:
            number, rows = instruction.places[instruction.y].buffer, instruction.rows(instruction.y)
            self.written[number][rows] = True
            self.read[number][rows] = instruction.keeps
        for name in instruction.sources:
            self.read[instruction.places[name].buffer][instruction.rows(name)] = True

    def precede_needed(self, instructions: Sequence[Instruction], expression: Expression) -> None:
        """Puts before the others what they need of instructions. A push is needed if the multiply after it is."""
        multiplies = False
        for instruction in reversed(instructions):
            if instruction.opcode in PUSHES:
                parts = [instruction] if multiplies else []
            else:
                parts = [*instruction.needed(self.read[instruction.places[instruction.y].buffer], expression)]
            multiplies = bool(parts)
            for part in reversed(parts):
                self.precede(part)

    def join(self, near: int) -> None:
        """Counts rows between stretches that it reads among those that it touches, if these are as near to each other: one transfer is for
        both."""
        for rows in (rows for number, rows in self.touched.items() if number not in self.written):
            for (_, end), (first, _) in pairwise([*stretches(rows)]):
                rows[end:first] |= first - end <= near


@dataclass(frozen=True, slots=True)
class Run:
    """The instructions from `first` to before `end`, of which those from `ends` on write one buffer."""

    first: int
    ends: int
    end: int


class Runs:
    """The runs of some code, and their chunks."""

    def __init__(self, code: Code) -> None:
        self._code, self._buffers, self._instructions = code, tuple(code.buffers), tuple(code.instructions)
        self._uses: dict[int, tuple[int, int]] = {}
        """The first and the last instruction of each buffer."""
        for index, instruction in enumerate(self._instructions):
            for number in instruction.touched:
                self._uses[number] = self._uses.get(number, (index, 0))[0], index
        self._groups = self._grouped()

    def _grouped(self) -> dict[int, tuple[int, int]]:
        """Instructions that follow each other and write one buffer: by the first of each group, the instruction after it, and the buffer.
        Those that read it, too, are alone. A push is with its multiply."""
        found: dict[int, tuple[int, int]] = {}
        first, pending, before = 0, False, -1
        for index, instruction in enumerate(self._instructions):
            if not pending:
                start = index
            if pending := instruction.opcode in PUSHES:
                continue
            written = -1 if instruction.table or not instruction.y else instruction.places[instruction.y].buffer
            first = first if written >= 0 and written == before and not instruction.works_in_place else start
            found[first] = index + 1, written
            before = -1 if instruction.works_in_place else written
        return found

    def begins_group(self, index: int) -> bool:
        return index in self._groups

    def beginning(self, first: int) -> list[Run]:
        """The runs of several groups, or of several passes, that begin with an instruction; the longest one comes first."""
        found, at, last = list[Run](), first, -1
        while at in self._groups and len(found) < MOST_GROUPS:
            end, written = self._groups[at]
            if written < 0:
                break
            if last < end and end - first > 1:
                found.append(Run(first, at, end))
            begins, ends = self._uses[written]
            if begins < first or self._buffers[written].home >= 0 or end - first > MOST_INSTRUCTIONS:
                break
            at, last = end, max(last, ends)
        return found[::-1]

    def of(self, run: Run) -> tuple[Instruction, ...]:
        return self._instructions[run.first : run.end]

    def parts(self, instruction: Instruction, most: int) -> list[Chunk]:
        """Chunks of an instruction by itself: each has one of its outer steps, and at most so many inner ones. Blocks stay whole."""
        fields, found = instruction.fields, list[Chunk]()
        most = fields["inner"] if instruction.opcode in WHOLE else most
        for outer in range(fields["outer"]):
            for inner in range(0, fields["inner"], most):
                steps = range(inner, min(inner + most, fields["inner"]))
                part = instruction.within(range(outer, outer + 1), steps, self._code.after_rows)
                chunk = Chunk(self._buffers)
                chunk.precede(replace(part, flags=part.flags & ~Flag.SWITCH) if found else part)  # its tile stays in use
                found.append(chunk)
        return found

    def chunks(self, run: Run, most: int, fits: Callable[[Chunk], bool], resident: bool) -> list[Chunk] | None:
        """The chunks of a run, with the least work. Those of some rows have at most so many of the buffer that the run writes, of all
        column blocks of a product or of one; if the buffer is `resident`, they may have some of the last instructions each. None where
        not even the smallest ones fit, or where what they compute several times is too much."""
        final = self._instructions[run.end - 1]
        if not final.y or (final.opcode in MULTIPLIES and run.end - run.first == 1):
            return chunks if all(map(fits, chunks := self.parts(final, most))) else None
        written = Chunk(self._buffers)
        for instruction in self._instructions[run.ends : run.end]:
            written.precede(instruction)
        (rows,) = np.nonzero(written.written[final.places[final.y].buffer])
        extent = int(rows[-1] - rows[0]) + 1
        heights = {final.fields["inner"] if final.opcode in MULTIPLIES else extent, extent}
        ways = [self._by_rows(run, rows, height, most, fits) for height in sorted(heights)]
        ways.append(self._by_instructions(run, fits) if resident else None)
        best = min((way for way in ways if way is not None), key=_work, default=None)
        own = sum(each.fields["outer"] * each.fields["inner"] for each in self.of(run))
        return None if best is not None and run.first < run.ends and _work(best) > MOST_WORK * own else best

    def _by_rows(self, run: Run, rows: Int64, height: int, most: int, fits: Callable[[Chunk], bool]) -> list[Chunk] | None:
        """Chunks of these rows of the result. Those that lie as many rows apart as a column block has are in one chunk."""
        instructions = self.of(run)
        number, places = instructions[-1].places[instructions[-1].y].buffer, (rows - rows[0]) % height

        def made(first: int, end: int) -> Chunk:
            chunk = Chunk(self._buffers)
            chunk.read[number][rows[(first <= places) & (places < end)]] = True
            chunk.precede_needed(instructions, self._code.after_rows)
            return chunk

        found, done = _halved(made, height, most, fits), np.zeros(self._buffers[number].rows, np.bool_)
        for chunk in found or ():
            if (chunk.read[number] & done).any():  # it needs what stood there before
                return None
            done |= chunk.written[number]
        return found

    def _by_instructions(self, run: Run, fits: Callable[[Chunk], bool]) -> list[Chunk] | None:
        """Chunks of some of the last instructions each: of some of the passes of sums."""
        last = [index + 1 for index in range(run.ends, run.end) if self._instructions[index].opcode not in PUSHES]
        bounds = [run.ends, *last]

        def made(first: int, end: int) -> Chunk:
            chunk = Chunk(self._buffers)
            for instruction in reversed(self._instructions[bounds[first] : bounds[end]]):
                chunk.precede(instruction)
            chunk.precede_needed(self._instructions[run.first : run.ends], self._code.after_rows)
            return chunk

        return _halved(made, len(last), len(last), fits)


MOST_GROUPS, MOST_INSTRUCTIONS = 16, 2**14
"""A run isn't longer."""
MOST_WORK = 2
"""Chunks of a run of several groups walk over so many times the rows of the run, at most."""


def _work(chunks: Sequence[Chunk]) -> int:
    return sum(chunk.work for chunk in chunks)


def _halved(made: Callable[[int, int], Chunk], count: int, most: int, fits: Callable[[Chunk], bool]) -> list[Chunk] | None:
    """Chunks of at most so many rows of `count`. What doesn't fit is divided where a halving tree divides it. None where one row is
    too much."""
    waiting, found = [(0, count)], list[Chunk]()
    while waiting:
        first, end = waiting.pop()
        if end - first <= most and fits(chunk := made(first, end)):
            found.append(chunk)
        elif end - first == 1:
            return None
        else:
            middle = first + (1 << (end - first - 1).bit_length() - 1)
            waiting += (middle, end), (first, middle)
    return found
