"""How a fully connected layer is cut: row groups and chunks, chosen by a small search with an analytic cost.

The loops are, from the outside: row groups, column blocks n, depth blocks k, chunks of the group. A tile is fetched once for each
group, so one group is best as long as its sums, one accumulator row for each of its rows, fit. Chunks are what activate works on: it
empties one chunk while the matrix unit fills the next. When a layer is one tile deep, sums don't wait for further tiles, and a single
group of any number of rows flows through the accumulators chunk by chunk.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

from tpucc.diagnostics import counted
from tpucc.target import Target

ISSUE_CYCLES = 10
"""What an instruction is taken to cost, so that few are preferred: the average is 10 to 20 cycles (Jouppi et al., ISCA 2017, section 2)."""

Chunk = tuple[int, int]
"""First row and number of rows."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """The chosen cut: groups of chunks, which cover all rows in order; its estimated cycles; and a sentence that says why."""

    groups: tuple[tuple[Chunk, ...], ...]
    cycles: int
    choice: str


@dataclass(frozen=True, slots=True)
class _Problem:
    """`rows` rows times a matrix of `deep` × `wide` tiles."""

    rows: int
    deep: int
    wide: int
    target: Target

    def cycles(self, groups: int, chunks: int) -> int:
        """Estimated cycles of `groups` row groups of `chunks` chunks each (the largest stand for all)."""
        group = -(-self.rows // groups)
        chunk = -(-group // chunks)
        fetch = max(self.target.tile_fetch_cycles, self.target.tile_shift_cycles)
        last = max(fetch, group + self._stall(group, chunk, chunks))
        step = (self.deep - 1) * max(fetch, group) + last
        instructions = groups * self.wide * (chunks * (self.deep + 1) + self.deep)
        tail = self.target.pipeline_cycles + chunk
        return groups * self.wide * step + tail + ISSUE_CYCLES * instructions

    def _stall(self, group: int, chunk: int, chunks: int) -> int:
        """Cycles that the matrix unit waits, a column block, for activate to free accumulators."""
        room, latency = self.target.accumulator_rows, self.target.pipeline_cycles + chunk
        if self.deep == 1:
            return 0 if 2 * chunk <= room else chunks * latency
        return 0 if 2 * group <= room else max(0, latency - (group - chunk))

    def fits(self, groups: int, chunks: int) -> bool:
        """Whether the sums that wait for further tiles find accumulators."""
        group = -(-self.rows // groups)
        return (group if self.deep > 1 else -(-group // chunks)) <= self.target.accumulator_rows


@lru_cache(maxsize=4096)
def choose_blocking(rows: int, deep: int, wide: int, target: Target) -> Blocking:
    """The cheapest cut of `rows` rows times `deep` × `wide` weight tiles; ties go to fewer groups, then to fewer chunks."""
    problem = _Problem(rows, deep, wide, target)
    candidates = [(groups, chunks) for groups in _group_counts(problem) for chunks in _chunk_counts(problem, groups)]
    cycles, groups, chunks = min((problem.cycles(*candidate), *candidate) for candidate in candidates)
    cut = tuple(tuple(_cut(start, count, chunks)) for start, count in _cut(0, rows, groups))
    return Blocking(cut, cycles, _reason(problem, groups, chunks))


def _group_counts(problem: _Problem) -> list[int]:
    """As few groups as the accumulators allow, and as few as halves of them do."""
    room = problem.target.accumulator_rows
    return [1] if problem.deep == 1 else sorted({-(-problem.rows // room), -(-problem.rows // (room // 2))})


def _chunk_counts(problem: _Problem, groups: int) -> list[int]:
    """Doubling counts of chunks that fit; none smaller than the unit's width, below which shifting a tile in takes longer than using it."""
    group = -(-problem.rows // groups)
    smallest = min(problem.target.mxu, problem.target.accumulator_rows)
    counts = [1 << power for power in range(group.bit_length())]
    sensible = [count for count in counts if count == 1 or group // count >= smallest]
    fitting = [count for count in sensible if problem.fits(groups, count)]
    return fitting or [-(-group // smallest)]


def _cut(start: int, rows: int, pieces: int) -> list[Chunk]:
    """`rows` rows in `pieces` consecutive pieces whose sizes differ by at most one, the larger first; no empty ones."""
    size, larger = divmod(rows, pieces)
    sizes = [size + (piece < larger) for piece in range(min(pieces, rows))]
    return list(zip(itertools.accumulate(sizes, initial=start), sizes, strict=False))


def _reason(problem: _Problem, groups: int, chunks: int) -> str:
    rows, tiles, room = problem.rows, problem.deep * problem.wide, problem.target.accumulator_rows
    group = -(-rows // groups)
    size = -(-group // chunks)
    fetched = "its one tile" if tiles == 1 else f"each of {tiles:,} tiles"
    held = size if problem.deep == 1 else group
    overlap = "two blocks fit the accumulators, so activate overlaps the next" if 2 * held <= room else _crowded(chunks, room)
    if groups > 1:
        why = f"{room:,} accumulator rows don't hold the sums of {counted(rows, 'row')}"
        return f"{groups} groups of at most {counted(group, 'row')}, {fetched} fetched {groups} times: {why}; {overlap}"
    cut = counted(rows, "row") if chunks == 1 else f"{counted(rows, 'row')} in {chunks} chunks of at most {size:,}"
    return f"{cut}, {fetched} fetched once; {overlap}"


def _crowded(chunks: int, room: int) -> str:
    if chunks == 1:
        return f"{room:,} accumulator rows hold one block only, so the next waits for activate"
    return f"{room:,} accumulator rows hold one block, whose chunks activate frees one by one"
