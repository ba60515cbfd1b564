"""The instructions of one step for one part of the batch."""

from __future__ import annotations

from tpucc.lowering.blocking import choose_blocking
from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import Layout
from tpucc.lowering.tensors import FcStep, MoveStep, Step, VectorStep
from tpucc.lowering.walks import broadcast_walks


def emit_step(step: Step, part: int, layout: Layout, emitter: Emitter) -> None:
    match step:
        case FcStep():
            _fc(step, part, layout, emitter)
        case VectorStep():
            _vector(step, part, layout, emitter)
        case MoveStep():
            for buffer in layout.blocks(step.y, part):
                emitter.require(buffer)


def _fc(step: FcStep, part: int, layout: Layout, emitter: Emitter) -> None:
    """Row groups, column blocks, depth blocks, chunks: see `blocking`. Each chunk is activated as soon as its last tile is through."""
    deep, wide = step.tiles.shape
    blocking = choose_blocking(layout.rows(step.y, part), deep, wide, layout.plan.target)
    tiles, xs, ys = step.tiles.tolist(), layout.blocks(step.x, part), layout.blocks(step.y, part)
    for chunks in blocking.groups:
        for n, y in enumerate(ys):
            sums = [emitter.group(rows) for _, rows in chunks]
            for k, x in enumerate(xs):
                emitter.require(x)
                tile = tiles[k][n]
                for (start, rows), group in zip(chunks, sums, strict=True):
                    emitter.multiply(x, start, rows, group, tile, k > 0)
                    tile = -1
                    if k == deep - 1:
                        emitter.configure(step.blocks[n])
                        emitter.activate(group, y, start, rows)
            if chunks is blocking.groups[-1]:
                emitter.complete(y)


def _vector(step: VectorStep, part: int, layout: Layout, emitter: Emitter) -> None:
    """Column block after column block; an operand of one column serves all of them from its lane 0."""
    shapes = [layout.leading(view.tensor, view.leading, part) for view in step.operands]
    walks = broadcast_walks((*shapes, layout.leading(step.y, step.y.type.shape[:-1], part)))
    splats = tuple(view.splat for view in step.operands)
    for block, y in enumerate(layout.blocks(step.y, part)):
        sources = tuple(layout.blocks(view.tensor, part)[0 if view.splat else block] for view in step.operands)
        for source in sources:
            emitter.require(source)
        emitter.configure(step.block)
        for walk in walks:
            emitter.vector(step.function, walk, sources, splats, y)
        emitter.complete(y)
