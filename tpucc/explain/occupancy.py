"""How much of three memories is in use: rows of the unified buffer (values) and of the accumulators (sums), cycle by cycle; and cells of
the array, instruction by instruction."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from tpucc.explain.tilegrid import tile_grid
from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Program, Resident
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64


def rows_in_use(residents: Sequence[Resident], start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """The cycles at which the number of rows in use changes, ascending, and the rows in use from each of them on.

    `start` and `end` are the cycles of each instruction. A resident takes its rows from the start of its first instruction to the end of
    its last. The next resident may take some of these rows before that end, as where a buffer is written back in pieces: then they count
    once, for the one that took them last. The last number is 0. Both results are empty when there are no residents.
    """
    first, last, rows = np.array([(r.first, r.last, r.rows) for r in residents], np.int64).reshape(-1, 3).T
    taken = np.array([(end[h.before.last], start[h.after.first], h.rows) for h in handovers(residents, start, end)], np.int64)
    until, since, twice = taken.reshape(-1, 3).T  # between these cycles both residents count these rows: they are subtracted once
    return step_function(np.concatenate([start[first], end[last], until, since]), np.concatenate([rows, -rows, twice, -twice]))


@dataclass(frozen=True, slots=True)
class Handover:
    """The resident `after` takes so many `rows` of the resident `before` while that one still has others: its last instruction hasn't
    ended."""

    before: Resident
    after: Resident
    rows: int


def handovers(residents: Sequence[Resident], start: Int64, end: Int64) -> Iterator[Handover]:
    """The handovers of a verified program, in which no row has two residents at one instruction. `start` and `end` are the cycles of each
    instruction."""
    firsts: list[int] = []
    owners: list[tuple[int, Resident]] = []
    """Rows that somebody has had, in stretches that don't overlap, ascending: their first rows in `firsts`; in `owners` the row after each
    one's last, and the resident that had it last."""
    for resident in sorted(residents, key=lambda r: r.first):
        # the stretches from `left` to `right` may share rows with the resident: what is left of them beside it, and it, replace them
        left = max(0, bisect_right(firsts, resident.start) - 1)
        right = bisect_left(firsts, resident.end)
        rest: list[tuple[int, int, Resident]] = []
        for begin, (stop, owner) in zip(firsts[left:right], owners[left:right], strict=True):
            rows = min(stop, resident.end) - max(begin, resident.start)
            if rows > 0 and end[owner.last] > start[resident.first]:
                yield Handover(owner, resident, rows)
            rest += [(begin, min(stop, resident.start), owner), (max(begin, resident.end), stop, owner)]
        rest = sorted((entry for entry in (*rest, (resident.start, resident.end, resident)) if entry[0] < entry[1]), key=itemgetter(0))
        firsts[left:right] = [begin for begin, *_ in rest]
        owners[left:right] = [(stop, owner) for _, stop, owner in rest]


def step_function(times: Int64, changes: Int64) -> tuple[Int64, Int64]:
    """Adds up changes of a number that begins as 0: the times at which it changes, ascending, and what it is from each of them on.

    At each of `times`, in any order, the entry of `changes` is added. Times whose changes cancel are left out.
    """
    moments, which = np.unique(times, return_inverse=True)
    sums = np.zeros(len(moments), np.int64)
    np.add.at(sums, which, changes)
    kept = np.flatnonzero(sums)
    return moments[kept], np.cumsum(sums[kept])


def sums_in_use(program: Program, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """As `rows_in_use`, but the rows of sums of a verified program; both results are empty where its machine has no memory of sums.

    An instruction that writes a row and doesn't read it begins a sum there; one that only reads the row uses it. The row is in use from the
    start of the first to the end of the last that uses this sum, before another is begun. A sum that none uses doesn't count.
    """
    memory = program.machine.holding(Contents.SUMS)
    if memory is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    (walks,) = effects(program.instructions, program.machine).of(memory)
    begins = walks.writes & ~walks.reads
    own = np.flatnonzero(begins | walks.only_reads)
    low, high = walks.low[own], walks.high[own]
    bounds = np.unique(np.concatenate([low, high]))  # rows between two of these (a strip) are begun and read by the same instructions
    first, after = np.searchsorted(bounds, low), np.searchsorted(bounds, high)
    which, strip = _spread(own, first, after)
    order = np.lexsort((which, strip))  # strip by strip, the instructions of each in order: the first of a strip begins a sum
    which, strip = which[order], strip[order]
    begun = np.flatnonzero(begins[which])
    done = np.append(begun[1:], len(which))[: len(begun)] - 1  # the last entry before the next sum is begun, here or in the next strip
    read = done > begun
    begun, done = begun[read], done[read]
    rows = np.diff(bounds)[strip[begun]]
    return step_function(np.concatenate([start[which[begun]], end[which[done]]]), np.concatenate([rows, -rows]))


def _spread(values: Int64, first: Int64, after: Int64) -> tuple[Int64, Int64]:
    """Two columns of pairs: each value with each of the numbers from its `first` on, up to but not including its `after`."""
    counts = after - first
    before = np.cumsum(counts) - counts
    return np.repeat(values, counts), np.repeat(first - before, counts) + np.arange(counts.sum())


def cells_in_use(program: Program) -> Int64:
    """For each instruction [instructions] that multiplies, how many cells of its tile hold weights of the model; 0 for all others.

    The tiles of layers that only move lanes hold none. A tile that its layer doesn't list counts as full.
    """
    touched = effects(program.instructions, program.machine)
    multiplies = np.flatnonzero(touched.multiplies)
    layer, tile = program.layer_of[multiplies].astype(np.int64), resolve(program.instructions, touched).tile[multiplies]
    listed: dict[tuple[int, int], int] = {}
    used_by: dict[Hashable, list[int]] = {}  # the steps of a recurrence are layers with the same tiles
    for index, each in enumerate(program.layers):
        alike = each.tile_fills, each.weights, each.group
        if alike not in used_by:
            used_by[alike] = tile_grid(each, program.target.mxu).used.tolist()
        for (own, _, _), cells in zip(each.tile_fills, used_by[alike], strict=True):
            listed[index, own] = max(cells, listed.get((index, own), 0))  # equal tiles at several places are one
    pairs, place = np.unique(np.stack([layer, tile]), axis=1, return_inverse=True)
    working = np.array([each.macs > 0 for each in program.layers], np.bool_)
    used = [working[index] * listed.get((index, own), program.target.tile_bytes) for index, own in pairs.T.tolist()]
    found = np.zeros(len(touched), np.int64)
    found[multiplies] = np.array(used, np.int64)[place.ravel()]
    return found
