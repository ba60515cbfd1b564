"""The order of layers: topological, with little alive in the unified buffer at any time.

Two orders compete: the graph's own, and a greedy one that always takes the ready step after which the least is alive. The better wins.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tpucc.lowering.liveness import largest_sum_alive
from tpucc.lowering.steps import Step
from tpucc.lowering.tensors import Tensor


def order_steps(steps: Sequence[Step], mxu: int) -> tuple[Step, ...]:
    """`steps`, which are in some topological order, in the one with the smaller live sum; ties go to the order given."""
    given = tuple(steps)
    sizes = {tensor: tensor.rows * tensor.blocks(mxu) for step in given for tensor in (*step.reads, step.result)}
    greedy = _Greedy(given, sizes).order()
    return greedy if live_rows(greedy, sizes) < live_rows(given, sizes) else given


Sizes = Mapping[Tensor, int]
"""Rows that each tensor takes in the unified buffer, all its column blocks together."""


def live_rows(steps: Sequence[Step], sizes: Sizes) -> int:
    """The largest sum of rows alive at a step. Whole tensors count, from their step or their first reader to their last reader."""
    return largest_sum_alive([{tensor: sizes[tensor] for tensor in (*step.reads, step.result)} for step in steps])


@dataclass(slots=True)
class _Use:
    """The readers of a tensor that are still to come: how many, and the sum of their indices, which is the last one's when one is left."""

    readers: list[int] = field(default_factory=list)
    left: int = 0
    index_sum: int = 0
    loaded: bool = False


class _Greedy:
    """List scheduling by the change in live rows.

    Near-linear: a step's change is computed again only when a tensor it reads changes state.
    """

    def __init__(self, steps: tuple[Step, ...], sizes: Sizes) -> None:
        self._steps = steps
        self._sizes = sizes
        self._use: dict[Tensor, _Use] = {}
        self._changes: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self._missing = [0] * len(steps)
        for index, step in enumerate(steps):
            self._register(index, step)

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
                self._take(index)
        return tuple(chosen)

    def _register(self, index: int, step: Step) -> None:
        for tensor in step.reads:
            use = self._use.setdefault(tensor, _Use())
            use.readers.append(index)
            use.left += 1
            use.index_sum += index
            self._missing[index] += not tensor.comes_from_host
        self._use.setdefault(step.result, _Use())

    def _offer(self, index: int) -> None:
        self._changes[index] = change = self._change(self._steps[index])
        heapq.heappush(self._heap, (change, index))

    def _change(self, step: Step) -> int:
        """Rows alive after the step, less those alive before it."""
        change = self._sizes[step.result] if self._use[step.result].left else 0
        for tensor in step.reads:
            use = self._use[tensor]
            new, dies = tensor.comes_from_host and not use.loaded, use.left == 1
            change += self._sizes[tensor] * (new - dies)
        return change

    def _take(self, index: int) -> None:
        step = self._steps[index]
        stale: dict[int, None] = {}
        for tensor in step.reads:
            use = self._use[tensor]
            use.left, use.index_sum = use.left - 1, use.index_sum - index
            if tensor.comes_from_host and not use.loaded:
                use.loaded = True
                stale.update(dict.fromkeys(use.readers))
            if use.left == 1:
                stale[use.index_sum] = None
        for reader in stale:
            if reader in self._changes:
                self._offer(reader)
        self._release(step.result)

    def _release(self, result: Tensor) -> None:
        if result.comes_from_host:
            return
        for reader in self._use[result].readers:
            self._missing[reader] -= 1
            if self._missing[reader] == 0:
                self._offer(reader)
