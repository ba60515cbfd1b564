"""How a product is cut: row groups and chunks, chosen by a small search with an analytic cost.

The loops are, from the outside: row groups, column blocks n, depth blocks k (levels), chunks of the group. A tile is fetched once for each
group, so one group is best as long as its sums, one accumulator row for each of its rows, fit. Chunks are what activate works on: it
empties one chunk while the matrix unit fills the next. When a layer is one tile deep, sums don't wait for further tiles, and a single
group of any number of rows flows through the accumulators chunk by chunk.

The rows of an image that are not consecutive in the buffer are walked line by line. A cut in the middle of a line, or of an image, costs
an instruction more for each multiply; so cuts are at whole lines, or whole images, where such pieces are small enough.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tpucc.diagnostics import counted
from tpucc.lowering.cost import costs_on
from tpucc.target import Target

Chunk = tuple[int, int]
"""First row and number of rows."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """The chosen cut: groups of chunks, which cover all rows in order; its estimated cycles, and a sentence that says why."""

    groups: tuple[tuple[Chunk, ...], ...]
    cycles: int
    choice: str


@dataclass(frozen=True, slots=True)
class _Problem:
    """A product: the rows that loops of the sizes `loops` walk, times a matrix of `deep` × `wide` tiles, at `bytes_per_value` cycles a
    row."""

    loops: tuple[int, ...]
    deep: int
    wide: int
    target: Target
    bytes_per_value: int

    @property
    def rows(self) -> int:
        return prod(self.loops)

    @property
    def smallest_chunk(self) -> int:
        return min(self.target.mxu, self.target.accumulator_rows)

    def undivided_sizes(self) -> list[int]:
        """The sizes of the pieces between which the rows may be cut: single rows, lines, images."""
        return [prod(self.loops[depth:]) for depth in range(len(self.loops), 0, -1)]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cut of a problem into `groups` row groups of `chunks` chunks each, between pieces of `undivided` rows, which are never cut; the
    largest group must fit."""

    problem: _Problem
    groups: int
    chunks: int
    undivided: int

    @property
    def group(self) -> int:
        """Rows of the largest group."""
        return -(-self.problem.rows // self.undivided // self.groups) * self.undivided

    @property
    def chunk(self) -> int:
        """Rows of the largest chunk."""
        return -(-self.group // self.undivided // self.chunks) * self.undivided

    @property
    def cycles(self) -> int:
        """Estimated cycles. Each group counts as a group of the mean size."""
        problem, costs = self.problem, costs_on(self.problem.target)
        group, drain = -(-problem.rows // self.groups) * problem.bytes_per_value, costs.drain(self.chunk * problem.bytes_per_value)
        column_block = (problem.deep - 1) * costs.tile(group) + costs.tile(group, self._stall(drain))
        instructions = self.groups * problem.wide * (self.chunks * self._walks() * (problem.deep + 1) + problem.deep)
        return self.groups * problem.wide * column_block + drain + costs.issue * instructions

    def _stall(self, drain: int) -> int:
        """Cycles for each column block in which the matrix unit waits for free accumulators; to free those of a chunk takes `drain`
        cycles."""
        room = self.problem.target.accumulator_rows
        if self.problem.deep == 1:
            return 0 if 2 * self.chunk <= room else self.chunks * drain
        return 0 if 2 * self.group <= room else max(0, drain - (self.group - self.chunk) * self.problem.bytes_per_value)

    def _walks(self) -> int:
        """Estimated instructions that walk a chunk, as if each walked the two innermost loops; one more at both ends where lines are
        cut."""
        loops = self.problem.loops
        if len(loops) == 1:
            return 1
        whole = -(-self.chunk // prod(loops[-2:]))
        return whole if self.undivided > 1 else whole + 2

    def fits(self) -> bool:
        """Whether the accumulators hold all sums that wait for further tiles."""
        return (self.group if self.problem.deep > 1 else self.chunk) <= self.problem.target.accumulator_rows

    def pieces(self) -> tuple[tuple[Chunk, ...], ...]:
        """Groups of chunks, which cover all rows in order."""
        pieces = self.problem.rows // self.undivided
        return tuple(
            tuple((first * self.undivided, count * self.undivided) for first, count in _even(start, size, self.chunks))
            for start, size in _even(0, pieces, self.groups)
        )


@lru_cache(maxsize=4096)
def choose_blocking(loops: tuple[int, ...], deep: int, wide: int, target: Target, bytes_per_value: int = 1) -> Blocking:
    """The cheapest cut of the rows that `loops` walk, times `deep` × `wide` weight tiles, at `bytes_per_value` cycles a row.

    Ties go to fewer groups, then to fewer chunks, then to larger pieces.
    """
    # lab 4 begin: cut the rows of a product into groups and chunks
    problem = _Problem(loops, deep, wide, target, bytes_per_value)
    best = min(_candidates(problem), key=lambda cut: (cut.cycles, cut.groups, cut.chunks, -cut.undivided))
    return Blocking(best.pieces(), best.cycles, _reason(best))
    # lab 4 end


def _candidates(problem: _Problem) -> list[_Cut]:
    """The cuts to try that fit. If none does: one group, cut between single rows, in chunks of about the smallest size."""
    cuts = [
        cut
        for undivided in problem.undivided_sizes()
        for groups in _group_counts(problem, undivided)
        for chunks in _chunk_counts(problem, groups, undivided)
        if (cut := _Cut(problem, groups, chunks, undivided)).fits()
    ]
    return cuts or [_Cut(problem, 1, -(-problem.rows // problem.smallest_chunk), 1)]


def _group_counts(problem: _Problem, undivided: int) -> list[int]:
    """The fewest groups that the accumulators allow, and the fewest that half of the accumulators allow."""
    if problem.deep == 1:
        return [1]
    pieces, room = problem.rows // undivided, problem.target.accumulator_rows
    return sorted({-(-pieces // (held // undivided)) for held in (room, room // 2) if held >= undivided})


def _chunk_counts(problem: _Problem, groups: int, undivided: int) -> list[int]:
    """The counts of chunks to try: powers of two. No chunk is smaller on average than the matrix unit is wide, except a
    single one: shifting a tile in would take longer than using it."""
    group = -(-problem.rows // undivided // groups) * undivided
    counts = [1 << power for power in range((group // undivided).bit_length())]
    return [count for count in counts if count == 1 or group // count >= problem.smallest_chunk]


def _even(start: int, size: int, pieces: int) -> list[Chunk]:
    """`size` undivided pieces from `start` in `pieces` consecutive pieces whose sizes differ by at most one, the larger first; no empty
    ones."""
    each, larger = divmod(size, pieces)
    sizes = [each + (piece < larger) for piece in range(min(pieces, size))]
    return list(zip(itertools.accumulate(sizes, initial=start), sizes, strict=False))


def _reason(cut: _Cut) -> str:
    """Why the rows are cut so, in a sentence."""
    problem = cut.problem
    rows, tiles, room = problem.rows, problem.deep * problem.wide, problem.target.accumulator_rows
    fetched = "its one tile" if tiles == 1 else f"each of {tiles:,} tiles"
    overlap = _overlap(cut)
    if cut.groups > 1:
        why = f"{room:,} accumulator rows don't hold the sums of {counted(rows, 'row')}"
        which = f"{cut.groups} row groups of at most {counted(cut.group, 'row')}, {fetched} fetched once for each row group"
        return f"{which}: {why}{overlap}"
    pieces = counted(rows, "row") if cut.chunks == 1 else f"{counted(rows, 'row')} in {cut.chunks} chunks of at most {cut.chunk:,}"
    return f"{pieces}, {fetched} fetched once for them{overlap}"


def _overlap(cut: _Cut) -> str:
    """In words, whether `activate` overlaps with the products of the next block; empty if there is one block only."""
    problem, room = cut.problem, cut.problem.target.accumulator_rows
    held, blocks = (cut.chunk, cut.chunks) if problem.deep == 1 else (cut.group, cut.groups)
    if problem.wide * blocks == 1:
        return ""
    if 2 * held <= room:
        return "; two blocks fit the accumulators, so activate overlaps the next"
    if cut.chunks == 1:
        return f"; {room:,} accumulator rows hold one block only, so the next waits for activate"
    return f"; {room:,} accumulator rows hold one block, whose chunks activate frees one by one"
