"""Orders layers topologically, so that few rows are alive in the unified buffer at any time.

Two orders are compared: the graph's own order, and a greedy order, which always takes the ready step after which fewest rows are alive.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from tpucc.lowering.liveness import largest_sum_alive
from tpucc.lowering.steps import Step
from tpucc.lowering.tensors import Tensor


def order_steps(steps: Sequence[Step], mxu: int) -> tuple[Step, ...]:
    """The steps, given in a topological order, in the order with the smaller live sum; ties go to the given order."""
    given = tuple(steps)
    sizes = {tensor: tensor.rows * tensor.column_blocks(mxu) for step in given for tensor in (*step.reads, step.result)}
    greedy = _Greedy(given, sizes).order()
    return greedy if live_rows(greedy, sizes) < live_rows(given, sizes) else given


TensorRows = Mapping[Tensor, int]
"""Rows that each tensor takes in the unified buffer, all its column blocks together."""


def live_rows(steps: Sequence[Step], sizes: TensorRows) -> int:
    """The largest sum of rows alive at a step. A tensor is alive from its step, or its first reader, to its last reader."""
    return largest_sum_alive([{tensor: sizes[tensor] for tensor in (*step.reads, step.result)} for step in steps])


class _Greedy:
    """List scheduling by the change in live rows.

    Near-linear: a step's change is computed again only when a tensor that it reads is loaded, or has it as its only reader left.
    """

    def __init__(self, steps: tuple[Step, ...], sizes: TensorRows) -> None:
        self._steps = steps
        self._sizes = sizes
        self._readers: dict[Tensor, dict[int, None]] = {tensor: {} for step in steps for tensor in (*step.reads, step.result)}
        """For each tensor the steps that haven't read it yet."""
        self._loaded = set[Tensor]()
        self._changes: dict[int, int] = {}
        """For each step that is ready, the rows alive after it minus the rows alive before it."""
        self._heap: list[tuple[int, int]] = []
        self._missing = [sum(not tensor.comes_from_host for tensor in step.reads) for step in steps]
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
        step = self._steps[index]
        change = self._sizes[step.result] if self._readers[step.result] else 0
        for tensor in step.reads:
            new, dies = tensor.comes_from_host and tensor not in self._loaded, len(self._readers[tensor]) == 1
            change += self._sizes[tensor] * (new - dies)
        self._changes[index] = change
        heapq.heappush(self._heap, (change, index))

    def _take(self, index: int, step: Step) -> None:
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
