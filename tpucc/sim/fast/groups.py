"""Finds multiplies that can run as one matrix product, by a proof from the rows that instructions read and write.

A *chain* is a multiply that overwrites accumulators, the multiplies that add to the same rows, and the activate that empties them. A
*group* is a set of chains that runs as a whole: all of its input rows are read, then all of its results are written. Each other
instruction that stands between instructions of the group runs either before the whole group or after it. The outcome is that of program
order, because of what must hold when an instruction comes in:

- a multiply of the group reads no unified-buffer row that the group or a postponed instruction writes;
- an accumulating multiply adds to exactly the accumulators of one chain, and no activate has read them yet;
- an activate of the group reads exactly the rows of one chain, and writes no row that the group writes or a postponed instruction touches;
- an instruction that runs before the group writes no row that the group or a postponed instruction touches and reads none that they write;
a transfer never overtakes another one, whatever its rows of host memory.

An instruction that can't run before the group is postponed. A multiply or activate that can't join closes the group; accumulators that are
still needed then are written by the group, so that it may close anywhere. Only a chain that a multiply goes on with, or may go on with,
moves to the next group instead (a recurrent layer's x @ k comes before the state that its h @ r needs): the group it leaves must not write
what it has read. At the interrupt of a host step the group closes, and nothing passes it: the host may look at all of its memory. At a
write of a weight tile it closes, too: products after it may use the tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpucc.isa.effects import Effects, Walks
from tpucc.machines.v1 import SPECS, Engine
from tpucc.machines.v1.instructions import activated, multiplied
from tpucc.sim.memories import RowIndex
from tpucc.target import Target

MULTIPLIES = [opcode for opcode, spec in SPECS.items() if spec.compute is multiplied]
ACTIVATES = [opcode for opcode, spec in SPECS.items() if spec.compute is activated]
"""Multiplies and activates become part of groups. Other instructions that touch accumulators run by themselves, where they stand."""
RESULT_LIMIT = 2**23
"""Accumulators (rows × mxu) of a group: bounds the memory for its results."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The indices of instructions: the multiplies of one accumulator interval in order, and their activate (-1: none in this group).

    `live` says that the accumulators are read after the group.
    """

    multiplies: tuple[int, ...]
    activate: int
    live: bool


ChainGroup = tuple[Chain, ...]
"""Chains that run as a whole. Some may write rows that others read."""
Item = ChainGroup | int
"""A group, or the index of an instruction that runs by itself."""


def find_groups(effects: Effects, target: Target, stops: Sequence[int] = ()) -> list[Item]:
    """The program as groups and single instructions, in an order of execution that has the outcome of program order.

    Nothing moves across the instructions `stops`, the interrupts of host steps. Other instructions without data (weights, configuration,
    synchronisation) are left out.
    """
    finder = _Finder(effects, target)
    opcode = effects.source.records["opcode"]
    multiplies, activates = np.isin(opcode, MULTIPLIES).tolist(), np.isin(opcode, ACTIVATES).tolist()
    bars = effects.stores | effects.sums.reads | effects.sums.writes  # nothing passes them; a store writes a weight tile
    matters = effects.rows > 0
    bars[list(stops)] = matters[list(stops)] = True
    for index in np.flatnonzero(matters).tolist():
        if multiplies[index]:
            finder.multiply(index)
        elif activates[index]:
            finder.activate(index)
        elif bars[index]:
            finder.stop(index)
        else:
            finder.other(index)
    finder.close()
    return finder.items


class _Open:
    """A chain that is being built."""

    __slots__ = ("activate", "interval", "moved", "multiplies", "number")

    def __init__(self, number: int, interval: tuple[int, int]) -> None:
        self.number, self.interval = number, interval
        self.multiplies: list[int] = []
        self.activate = -1
        self.moved = False


class _Finder:
    """One pass over the program."""

    def __init__(self, effects: Effects, target: Target) -> None:
        self.items: list[Item] = []
        self._accumulates = (effects.sums.reads & effects.multiplies).tolist()
        self._transfers = (effects.engine == Engine.HOST).tolist()
        self._intervals = list(zip(effects.sums.low.tolist(), effects.sums.high.tolist(), strict=True))
        self._live = _live_after(effects, target.accumulator_rows)
        self._sources = (_RowsOf(effects.source), _RowsOf(effects.source2))
        self._targets = _RowsOf(effects.target)
        self._owner = np.full(target.accumulator_rows, -1, np.int64)
        self._mxu = target.mxu
        self._made = self._results = 0
        self._chains: list[_Open] = []
        self._postponed: list[int] = []
        self._touched, self._touched_later = _Touched(target.unified_buffer_rows), _Touched(target.unified_buffer_rows)
        self._transfer_postponed = False

    def multiply(self, index: int) -> None:
        rows, accumulates = self._sources[0].rows(index), self._accumulates[index]
        without_chain = accumulates and self._owned(index) is None
        if without_chain or self._written(rows) or (not accumulates and self._full()):
            self.close(keep=not without_chain)
        chain = self._owned(index) if accumulates else self._begin(index)
        if chain is None:
            self.items.append(index)
            return
        chain.multiplies.append(index)
        self._touched.read[rows] = self._touched.number

    def activate(self, index: int) -> None:
        rows, chain = self._targets.rows(index), self._owned(index)
        if chain is None or self._touched.writes(rows) or self._touched_later.touches(rows):
            self.close()
            self.items.append(index)
            return
        chain.activate = index
        self._touched.written[rows] = self._touched.number

    def other(self, index: int) -> None:
        """A transfer, a vector or a pool instruction: runs before the group or after it."""
        sources, target = [visits.rows(index) for visits in self._sources], self._targets.rows(index)
        if self._commutes(sources, target) and not (self._transfers[index] and self._transfer_postponed):
            self.items.append(index)
            return
        self._postponed.append(index)
        self._transfer_postponed = self._transfer_postponed or self._transfers[index]
        for rows in sources:
            self._touched_later.read[rows] = self._touched_later.number
        self._touched_later.written[target] = self._touched_later.number

    def stop(self, index: int) -> None:
        """An instruction that nothing passes."""
        self.close()
        self.items.append(index)

    def close(self, keep: bool = False) -> None:
        """Ends the open group. Chains whose sums nobody reads are dropped; with `keep`, unfinished chains move to the next group."""
        moving = [chain for chain in self._chains if keep and self._movable(chain)]
        moving_numbers = {chain.number for chain in moving}
        ended = [chain for chain in self._chains if chain.number not in moving_numbers]
        chains = [Chain(tuple(c.multiplies), c.activate, self._live[max(c.multiplies[-1], c.activate)]) for c in ended]
        needed = tuple(chain for chain in chains if chain.live or chain.activate >= 0)
        if needed:
            self.items.append(needed)
        self.items.extend(self._postponed)
        self._touched.clear()
        self._touched_later.clear()
        self._chains, self._postponed, self._results = [], [], 0
        self._transfer_postponed = False
        for chain in moving:
            self._move(chain)

    def _movable(self, chain: _Open) -> bool:
        """Whether a chain may run later: unfinished, and neither its accumulators nor its inputs have been overwritten. A chain
        moves at most once."""
        if chain.activate >= 0 or chain.moved or not self._whole(chain):
            return False
        return not any(self._written(self._sources[0].rows(index)) for index in chain.multiplies)

    def _move(self, chain: _Open) -> None:
        moved = self._begin(chain.multiplies[0])
        moved.multiplies, moved.moved = chain.multiplies, True
        for index in moved.multiplies:
            self._touched.read[self._sources[0].rows(index)] = self._touched.number

    def _begin(self, index: int) -> _Open:
        start, end = self._intervals[index]
        chain = _Open(self._made, (start, end))
        self._owner[start:end] = self._made
        self._chains.append(chain)
        self._made += 1
        self._results += (end - start) * self._mxu
        return chain

    def _owned(self, index: int) -> _Open | None:
        """The open group's chain that has exactly this instruction's accumulators, all of them still its own, and no reader yet."""
        start, end = self._intervals[index]
        place = int(self._owner[start]) - self._made + len(self._chains)
        if place < 0:
            return None
        chain = self._chains[place]
        return chain if chain.interval == (start, end) and chain.activate < 0 and self._whole(chain) else None

    def _whole(self, chain: _Open) -> bool:
        start, end = chain.interval
        return bool((self._owner[start:end] == chain.number).all())

    def _written(self, rows: RowIndex) -> bool:
        return self._touched.writes(rows) or self._touched_later.writes(rows)

    def _full(self) -> bool:
        return self._results > RESULT_LIMIT and all(chain.activate >= 0 for chain in self._chains)

    def _commutes(self, sources: Iterable[RowIndex], target: RowIndex) -> bool:
        marks = (self._touched, self._touched_later)
        return not any(m.touches(target) or any(m.writes(rows) for rows in sources) for m in marks)


class _Touched:
    """The unified-buffer rows that a set of instructions reads and writes. A row is read, or written, if its mark is `number`: a new number
    clears all marks without writing them."""

    def __init__(self, rows: int) -> None:
        self.number = 1
        self.read, self.written = np.zeros(rows, np.int64), np.zeros(rows, np.int64)

    def clear(self) -> None:
        self.number += 1

    def reads(self, rows: RowIndex) -> bool:
        return bool((self.read[rows] == self.number).any())

    def writes(self, rows: RowIndex) -> bool:
        return bool((self.written[rows] == self.number).any())

    def touches(self, rows: RowIndex) -> bool:
        return self.reads(rows) or self.writes(rows)


class _RowsOf:
    """The rows of each instruction's walk, as an index."""

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._low, self._high, self._dense = walks.low.tolist(), walks.high.tolist(), walks.dense.tolist()

    def rows(self, index: int) -> RowIndex:
        low, high = self._low[index], self._high[index]
        return slice(low, high) if self._dense[index] or high <= low else self._walks.rows(index)


def _live_after(effects: Effects, accumulator_rows: int) -> npt.NDArray[np.bool_]:
    """For each multiply and activate whether any of its accumulators is read afterwards, before it is overwritten."""
    live = np.zeros(len(effects), np.bool_)
    needed = np.zeros(accumulator_rows, np.bool_)
    starts, ends, reads = effects.sums.low.tolist(), effects.sums.high.tolist(), effects.sums.reads.tolist()
    for index in reversed(np.flatnonzero(effects.sums.high > effects.sums.low).tolist()):
        rows = needed[starts[index] : ends[index]]
        live[index] = rows.any()
        rows[...] = reads[index]
    return live
