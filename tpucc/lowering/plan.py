"""The decisions of lowering that don't depend on how the batch is split: tensors, steps in order, tiles and parameter blocks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Any, assert_never

from tpucc.ir import TensorType
from tpucc.ir.dtypes import DeviceFormat
from tpucc.isa.program import LayerInfo, host_layer
from tpucc.lowering.blocking import Blocking, choose_blocking
from tpucc.lowering.sharding import Sharding, Split
from tpucc.lowering.steps import LaneByLane, Moving, Product, Step, WrittenProducts, product_nest
from tpucc.lowering.tensors import Tensor
from tpucc.numerics import AnyArray, Int8
from tpucc.target import Target

NO_SEGMENTS: Mapping[str, int] = MappingProxyType({})
Lowerer = Callable[[Product, Any], None]
"""A function `lower(work, at)` that writes the instructions of a product; `at` is the `Emission` of its step."""
BUILT_IN: Mapping[str, Lowerer] = MappingProxyType({})
"""No lowering of the user's."""
UNLIMITED = sys.maxsize
"""As many instructions as the memory holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The steps of a device graph in their final order.

    `outputs` has the name, the type and the tensor of each output; the type of a view may have another shape than the tensor. `owners` has
    every tensor that takes rows of the unified buffer, with the index of the step that computes it or, for inputs and constants, of the
    first step that reads it. `sharding` says how the batch may be split; `format` is the integer format of all tensors. `lowerers` has the
    user's functions that lower layers, by the layer's kind. A program of the plan may take at most `most` instructions.
    """

    name: str
    source: str
    target: Target
    steps: tuple[Step, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[str, TensorType, Tensor], ...]
    owners: dict[Tensor, int]
    tiles: Int8
    written_tiles: int
    parameter_blocks: AnyArray
    sharding: Sharding
    format: DeviceFormat
    lowerers: Mapping[str, Lowerer]
    most: int

    @property
    def segments(self) -> int:
        """The number of segments: one more than the number of the host's steps between them."""
        return 1 + max((step.segment for step in self.steps), default=0)

    def layer_of(self, number: int) -> int:
        """The index of a step's layer in the program. The host's steps before the step are layers of the program, too."""
        return number + self.steps[number].segment

    def host_layer(self, step: int) -> int:
        """The index of the layer of a host step in the program, after all layers of the segment before it."""
        return step + sum(each.segment <= step for each in self.steps)

    def steps_of(self, segment: int) -> list[tuple[int, Step]]:
        """The steps of a segment, each with its number."""
        return [(number, step) for number, step in enumerate(self.steps) if step.segment == segment]

    def joined(self, split: Split) -> frozenset[Tensor]:
        """The tensors that steps for the whole batch read or compute."""
        after = () if split.parted is None else self.steps[split.parted :]
        return frozenset(tensor for step in after for tensor in (*step.reads, step.result))

    def layers(self, split: Split) -> tuple[LayerInfo, ...]:
        """The layers of the program for a split of the batch: one for each step, and one for each step of the host."""
        found = [self._layer(step, split.sizes if split.is_parted(number) else ()) for number, step in enumerate(self.steps)]
        for step in range(self.segments - 1):
            found.insert(self.host_layer(step), host_layer(step))
        return tuple(found)

    def _layer(self, step: Step, splits: tuple[int, ...]) -> LayerInfo:
        match step.work:
            case Product() as work:
                macs = 0 if work.moves else step.y.rows * work.depth * work.weights[1]
                choice = self._choice(step, work, splits)
                return LayerInfo(step.name, work.kind, step.origin, macs, work.weights, work.fills, choice, work.group)
            case WrittenProducts(parts=parts):
                each = [self._layer(part, splits) for part in parts]
                macs, fills = sum(info.macs for info in each), tuple(fill for info in each for fill in info.tile_fills)
                choice = f"for each of {len(each):,} products: {each[0].choice}" if len(each) > 1 else each[0].choice
                return replace(each[0], macs=macs, tile_fills=tuple(dict.fromkeys(fills)), choice=choice)
            case Moving(why=why):
                return LayerInfo(step.name, "move", step.origin, 0, (0, 0), (), why)
            case LaneByLane(regions=(region,)) if region.weights is not None:
                shape = region.pixels, step.result.columns
                macs, choice = step.y.rows * prod(shape), "lane by lane on the activation unit"
                return LayerInfo(step.name, step.work.kind, step.origin, macs, shape, (), choice)
            case LaneByLane():
                return LayerInfo(step.name, step.work.kind, step.origin, 0, (0, 0), ())
            case _:
                assert_never(step.work)

    def blocking(self, step: Step, work: Product) -> Blocking:
        """The blocking of a product of a step, or of the step's part of a batch."""
        loops = tuple(loop.size for loop in product_nest(step).loops)
        return choose_blocking(loops, work.deep, len(work.parameter_blocks), self.target, self.format.bytes_per_value)

    def _choice(self, step: Step, work: Product, splits: tuple[int, ...]) -> str:
        if work.kind in self.lowerers:
            return f"as the replaced stage lower_{work.kind} says"
        parted = len(splits) > 1 and self.sharding.has_items(step.result)
        part = self.sharding.part(step, max(splits)) if parted else step
        choice = self.blocking(part, work).choice
        return f"in each of {len(splits):,} parts: {choice}" if parted else choice
