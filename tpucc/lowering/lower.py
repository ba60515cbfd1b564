"""From the device graph to tile programs: each layer by its own function (`lower_fc`, `lower_conv`, …), then their instructions.

Lowering has two halves. First each layer becomes a step: tiles and parameter blocks in weight memory, and walks over rows. All steps
together are a *plan*. Then the batch is split (`splits`), a split gives each part its buffers (`layout`), and each step writes its
instructions for each part (`draft`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import assert_never

import numpy as np

from tpucc.diagnostics import LimitError
from tpucc.ir import Graph, Node
from tpucc.layers.kinds import Conv, ConvUnit, Fc, Layer, Move, Pool, Vector
from tpucc.lowering.draft import Draft
from tpucc.lowering.fc import lower_conv, lower_fc
from tpucc.lowering.lane_by_lane import lower_depthwise, lower_move, lower_pool, lower_vector
from tpucc.lowering.order import order_steps
from tpucc.lowering.plan import BUILT_IN, NO_SEGMENTS, UNLIMITED, Lowerer, Plan
from tpucc.lowering.room import shortage_of
from tpucc.lowering.sharding import shard
from tpucc.lowering.splits import choose_splits
from tpucc.lowering.steps import Moving, Step, Work
from tpucc.lowering.tensors import Access, Tensor, whole
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.values import LoweredValues
from tpucc.lowering.weight_memory import require_room
from tpucc.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class Drafts:
    """The drafts of a device graph, all with the same results: the first draft, then others that may be faster, made one at a time.

    `shortage` is E0621 where the operands of one instruction of the first draft don't fit the unified buffer. All other drafts fit.
    """

    plan: Plan
    first: Draft
    others: Iterator[Draft]
    shortage: LimitError | None

    def programs(self) -> Iterator[TileProgram]:
        """The tile program of each draft. Raises the shortage, if there is one."""
        if self.shortage is not None:
            raise self.shortage
        return (replace(_tile_program(self.plan, draft), constants=draft.layout.constants()) for draft in chain((self.first,), self.others))


def drafts_of(
    device: Graph,
    target: Target,
    *,
    parts: int | None = None,
    segments: Mapping[str, int] = NO_SEGMENTS,
    lowerers: Mapping[str, Lowerer] = BUILT_IN,
    most: int = UNLIMITED,
) -> Drafts:
    """The drafts of a device graph: layers in order, cut into tiles and chunks, on virtual buffers.

    `device` has `input` (i8) and `constant` nodes, layers, and views (`reshape`, `slice`, `transpose`) that leave the last axis alone;
    sizes are arbitrary, from 1 up. Between two of the `segments`, which are a partition's, the host takes a step. The batch is split into
    `parts` parts, or into as few as make the program fit the unified buffer; see `splits` for others that may be faster. `lowerers` write
    the instructions of layers of a kind (`fc`, `conv`) in place of the built-in lowering.

    Raises `LimitError`: E0622 when the weights don't fit weight memory, E0624 when the first program would have more than `most`
    instructions, or, unless `parts` is given, the batch in one piece; and `UsageError` E0520 when the batch can't be split into `parts`.
    """
    plan = make_plan(device, target, segments, lowerers, most)
    found = choose_splits(plan, parts)
    first = next(found)
    return Drafts(plan, first, found, shortage_of(_tile_program(plan, first)))


def lower(device: Graph, target: Target, *, parts: int | None = None, segments: Mapping[str, int] = NO_SEGMENTS) -> TileProgram:
    """The tile program of the first draft. Raises the errors of `drafts_of`, and `LimitError` E0621 where the draft doesn't fit."""
    return next(drafts_of(device, target, parts=parts, segments=segments).programs())


def make_plan(
    device: Graph,
    target: Target,
    segments: Mapping[str, int] = NO_SEGMENTS,
    lowerers: Mapping[str, Lowerer] = BUILT_IN,
    most: int = UNLIMITED,
) -> Plan:
    """Lowers the layers of the device graph, whose nodes belong to `segments` (0 unless said) and stand in their order.

    Raises `LimitError` E0622 when the weights don't fit weight memory.
    """
    values = LoweredValues(device, target, segments)
    for node in device:
        values.begin(node)
        if isinstance(node.attributes, Layer):
            lower_layer(node, node.attributes, values)
        else:
            values.show(node)
    outputs = tuple((output.name, device[output.node].type, values.output(output.node)) for output in device.outputs)
    read = {tensor for step in values.steps for tensor in step.reads}
    passing = dict.fromkeys(tensor for _, _, tensor in outputs if tensor.comes_from_host and tensor not in read)
    steps = _ordered(values.steps, target.mxu) + tuple(_passed(device, tensor) for tensor in passing)
    inputs = tuple(values[node.name].tensor for node in device.inputs)
    owners, sharding = _owners(steps), shard(steps)
    tiles, written, blocks = values.tile_pool.stacked(), values.tile_pool.written, values.parameter_block_pool.stacked()
    require_room(target, tiles, blocks, written)
    return Plan(
        device.name, device.source, target, steps, inputs, outputs, owners, tiles, written, blocks, sharding, values.format, lowerers, most
    )


def lower_layer(node: Node, layer: Layer, values: LoweredValues) -> None:
    """Adds the step of a layer, and before it the steps of the copies that it reads."""
    y = values.result(node)
    values.add(node, y, _work(node, layer, y, values))


def _work(node: Node, layer: Layer, y: Access, values: LoweredValues) -> Work:
    match layer:
        case Fc():
            return lower_fc(node, layer, y, values)
        case Conv(unit=ConvUnit.VECTOR):
            return lower_depthwise(node, layer, y, values)
        case Conv():
            return lower_conv(node, layer, y, values)
        case Pool():
            return lower_pool(node, layer, y, values)
        case Vector():
            return lower_vector(node, layer, y, values)
        case Move():
            return lower_move(node, layer, y, values)
        case _:
            assert_never(layer)


def _ordered(steps: Sequence[Step], mxu: int) -> tuple[Step, ...]:
    """The steps in the order that keeps fewest rows alive; in the given order where there are several segments, which wait for each
    other."""
    if len({step.segment for step in steps}) > 1:
        return tuple(sorted(steps, key=lambda step: step.segment))
    return order_steps(steps, mxu)


def _passed(device: Graph, tensor: Tensor) -> Step:
    """The step of an input or constant that is an output as it is, and that no other step reads."""
    return Step(tensor.name, device[tensor.name].origin, whole(tensor), Moving(why="an output that comes from the host as it is"))


def _owners(steps: Sequence[Step]) -> dict[Tensor, int]:
    owners: dict[Tensor, int] = {}
    for index, step in enumerate(steps):
        for tensor in (*step.reads, step.result):
            owners.setdefault(tensor, index)
    return owners


def _tile_program(plan: Plan, draft: Draft) -> TileProgram:
    """The tile program of a draft, without its constants, which may take much memory."""
    layout = draft.layout
    return TileProgram(
        name=plan.name,
        source=plan.source,
        target=plan.target,
        instructions=draft.instructions,
        buffers=tuple(layout.buffers),
        groups=draft.groups,
        layers=plan.layers(draft.split),
        tiles=plan.tiles,
        written_tiles=plan.written_tiles,
        blocks=plan.parameter_blocks,
        host=tuple(layout.host),
        constants=np.zeros((0, plan.target.mxu), np.int8),
        inputs=layout.inputs,
        outputs=layout.outputs,
        notes=draft.notes,
        division=draft.division,
    )
