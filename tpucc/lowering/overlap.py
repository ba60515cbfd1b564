"""Splitting the batch for speed: transfers and activations of one part overlap with products of another.

A program that does all layers for the whole batch waits for the last row of its inputs before it begins, for the last activation of each
layer before the next layer begins, and for the last row of its outputs at the end. In two halves that take turns *layer by layer*, the
matrix unit works on one while the other is activated; the first half leads by as many layers as transfers take. In
parts that follow each other, the next one's inputs arrive meanwhile. Every part fetches the weights again, so that this pays only where a
part has enough rows for each tile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from math import prod
from typing import assert_never

from tpucc.lowering.plan import Plan
from tpucc.lowering.sharding import Split, even
from tpucc.lowering.steps import SKIPPED, ElementWise, Moving, Pooling, Product, Step, WrittenProducts
from tpucc.lowering.tensors import Tensor


def overlapping_splits(plan: Plan) -> list[Split]:
    """The splits that may be faster than the whole batch: two halves in turn, and the best number of parts that follow each other.

    There are none where fetching the weights once more takes as long as all else, by an estimate, or where steps of the host wait for all
    items. Which one is fastest, if any, only the clock can tell.
    """
    batch = plan.sharding.batch
    if batch == 1 or plan.segments > 1:
        return []
    whole = _Estimate(plan, batch)
    limit = min(batch, whole.serial // max(1, whole.fetches))
    if limit < 2:
        return []
    lead = _Estimate(plan, -(-batch // 2)).lead
    count = min(_doubling(2, limit), key=lambda n: _following(_Estimate(plan, -(-batch // n)), n))
    halves = even(batch, 2)
    return [*(Split(halves, lead=steps) for steps in sorted({0, lead})), Split(even(batch, count), ahead=True)]


def _doubling(first: int, limit: int) -> Iterator[int]:
    while first <= limit:
        yield first
        first *= 2


class _Estimate:
    """The cycles of a part of `items` items: products, the activation unit's own work, transfers in and out; and the fetches of weights,
    which the products include already."""

    def __init__(self, plan: Plan, items: int) -> None:
        self._plan = plan
        self._items = items
        self.products = self.fetches = self.others = 0
        done = []
        for step in plan.steps:
            self._add(plan.sharding.part(step, items) if items < plan.sharding.batch else step)
            done.append(self.work)
        self.inputs = sum(self._transfer(tensor) for tensor in plan.inputs)
        self.outputs = sum(self._transfer(tensor) for _, _, tensor in plan.outputs)
        lead = max(bisect_left(done, self.inputs), len(done) - bisect_right(done, self.work - self.outputs))
        self.lead = min(lead, len(done) // 3)
        """Steps by which a part should be ahead of another, for that one's inputs to arrive and its own outputs to leave meanwhile."""

    @property
    def serial(self) -> int:
        """The part alone, nothing overlapping."""
        return self.inputs + self.work + self.outputs

    @property
    def work(self) -> int:
        """The part alone, its inputs there."""
        return self.products + self.others

    def _add(self, step: Step) -> None:
        target, width = self._plan.target, self._plan.format.bytes_per_value
        blocks = step.result.blocks(target.mxu) * width
        match step.work:
            case Product() as work:
                self.products += self._plan.blocking(step, work).cycles
                self.fetches += sum(tile != SKIPPED for level in work.levels for tile in level.tiles) * target.tile_fetch_cycles
            case WrittenProducts(parts=parts):
                for part in parts:
                    self._add(part)
            case Pooling(regions=regions):
                self.others += sum(prod(region.y.shape) * prod(region.window) for region in regions) * blocks
            case ElementWise():
                self.others += step.y.rows * blocks
            case Moving(copies=copies):
                self.others += sum(copy.target.rows for copy in copies) * blocks
            case _:
                assert_never(step.work)

    def _transfer(self, tensor: Tensor) -> int:
        target = self._plan.target
        rows = self._plan.sharding.rows(tensor, self._items) if self._items < self._plan.sharding.batch else tensor.rows
        return target.host_cycles(rows * tensor.blocks(target.mxu) * self._plan.format.bytes_per_value)


def _following(part: _Estimate, count: int) -> int:
    """Parts one after the other: each as long as its work, or as the transfers that go on meanwhile."""
    return part.inputs + (count - 1) * max(part.work, part.inputs + part.outputs) + part.work + part.outputs
