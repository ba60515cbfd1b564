"""From the device graph to the tile program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpucc.ir.graph import Graph
from tpucc.lowering.plan import BUILT_IN, NO_SEGMENTS, Plan, make_plan
from tpucc.lowering.products import Lowerer
from tpucc.lowering.split import Draft, choose_splits
from tpucc.lowering.tileprogram import TileProgram
from tpucc.target import Target


def lower(device: Graph, target: Target, *, parts: int | None = None, segments: Mapping[str, int] = NO_SEGMENTS) -> TileProgram:
    """The tile program of a device graph: layers in order, cut into tiles and chunks, on virtual buffers.

    `device` has `input` (i8) and `constant` nodes, layers, and views (`reshape`, `slice`, `transpose`) that leave the last axis alone;
    sizes are arbitrary, from 1 up. Between two of the `segments`, which are a partition's, the host takes a step. The batch is split into
    `parts` parts, or into as few as make the program fit the unified buffer.

    Raises `LimitError` E0622 when the weights don't fit weight memory, and `UsageError` E0520 when the batch can't be split into `parts`.
    """
    return next(lowerings(device, target, parts=parts, segments=segments))


def lowerings(
    device: Graph,
    target: Target,
    *,
    parts: int | None = None,
    segments: Mapping[str, int] = NO_SEGMENTS,
    lowerers: Mapping[str, Lowerer] = BUILT_IN,
) -> Iterator[TileProgram]:
    """The tile program that `lower` gives, then others with the same results that may be faster: see `overlap`.

    `lowerers` write the instructions of layers of a kind (`fc`, `conv`) in place of the built-in lowering.
    """
    plan = make_plan(device, target, segments, lowerers)
    return (_tile_program(plan, draft) for draft in choose_splits(plan, parts))


def _tile_program(plan: Plan, draft: Draft) -> TileProgram:
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
        blocks=plan.blocks,
        host=tuple(layout.host),
        constants=layout.constants(),
        inputs=layout.inputs,
        outputs=layout.outputs,
        notes=draft.notes,
    )
