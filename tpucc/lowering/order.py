"""Orders layers topologically, so that few rows are alive in the unified buffer at any time.

Two orders are compared by the largest number of rows that are alive at a step: the graph's own order, and a greedy order. Of the ready
steps, whose operands are computed or come from the host, this always takes the one after which fewest rows are alive.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from tpucc.lowering.liveness import largest_sum_alive
from tpucc.lowering.steps import Step
from tpucc.lowering.tensors import Tensor


def order_steps(steps: Sequence[Step], mxu: int) -> tuple[Step, ...]:
    """The steps, given in a topological order, in the given or the greedy order, whichever has fewer `live_rows`; ties go to the given one.

    The host must have no steps between them. `mxu` is the number of lanes of a row.
    """
    given = tuple(steps)
    sizes = {tensor: tensor.rows * tensor.column_blocks(mxu) for step in given for tensor in (*step.reads, step.result)}
    greedy = _Greedy(given, sizes).order()
    return greedy if live_rows(greedy, sizes) < live_rows(given, sizes) else given


TensorRows = Mapping[Tensor, int]
"""Rows that each tensor takes in the unified buffer, all its column blocks together."""


def live_rows(steps: Sequence[Step], sizes: TensorRows) -> int:
    """The largest sum of rows alive at one of the steps. A tensor is alive from the first of these steps that computes or reads it to the
    last that reads it. Of a part of a program's steps: what was computed before them counts only from its first reader among them.
    """
    return largest_sum_alive([{tensor: sizes[tensor] for tensor in (*step.reads, step.result)} for step in steps])


class _Greedy:
    """List scheduling: step after step, the ready one that changes the number of live rows least; the first one given where several do.

    Near-linear: a ready step's change is computed again only when a tensor that it reads has just been loaded from host memory by another
    step, or has just lost all its other readers.
    """

    def __init__(self, steps: tuple[Step, ...], sizes: TensorRows) -> None:
        self._steps = steps
        self._sizes = sizes
        self._readers: dict[Tensor, dict[int, None]] = {tensor: {} for step in steps for tensor in (*step.reads, step.result)}
        """For each tensor the steps that haven't read it yet."""
        self._loaded = set[Tensor]()
        """The tensors that some step has read: of these, the ones of the host are in the unified buffer."""
        self._changes: dict[int, int] = {}
        """For each step that is ready, the rows alive after it minus the rows alive before it."""
        self._heap: list[tuple[int, int]] = []
        """(change, step) for each ready step; those whose change was computed again, or that are taken, are skipped."""
        self._missing = [sum(not tensor.comes_from_host for tensor in step.reads) for step in steps]
        """For each step the number of tensors that it reads and that aren't computed yet."""
        for index, step in enumerate(steps):
            for tensor in step.reads:
                self._readers[tensor][index] = None

    def order(self) -> tuple[Step, ...]:
        for index, missing in enumerate(self._missing):
            if missing == 0:
                self._offer(index)
        chosen: list[Step] = []
        while self._heap:
            change, index = heapq.heappop(self._heap)
            if self._changes.get(index) == change:
                del self._changes[index]
                chosen.append(self._steps[index])
                self._take(index, self._steps[index])
        return tuple(chosen)

    def _offer(self, index: int) -> None:
        """Computes the change of a ready step, and puts it on the heap."""
        step = self._steps[index]
        change = self._sizes[step.result] if self._readers[step.result] else 0
        for tensor in step.reads:
            new, dies = tensor.comes_from_host and tensor not in self._loaded, len(self._readers[tensor]) == 1
            change += self._sizes[tensor] * (new - dies)
        self._changes[index] = change
        heapq.heappush(self._heap, (change, index))

    def _take(self, index: int, step: Step) -> None:
        """Notes that a step has run: offers the steps that are ready now, and the ready ones whose change is another now (`stale`)."""
        stale: dict[int, None] = {}
        for tensor in step.reads:
            readers = self._readers[tensor]
            del readers[index]
            if len(readers) == 1 or (tensor.comes_from_host and tensor not in self._loaded):
                stale |= readers
            self._loaded.add(tensor)
        for reader in stale:
            if reader in self._changes:
                self._offer(reader)
        if not step.result.comes_from_host:
            for reader in self._readers[step.result]:
                self._missing[reader] -= 1
                if self._missing[reader] == 0:
                    self._offer(reader)
