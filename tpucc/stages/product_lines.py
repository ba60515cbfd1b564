"""A product whose lowering is replaced: the layer in plain words, and what its lines need around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.isa.listing.words import name_text
from tpucc.lowering.emission import Emission
from tpucc.lowering.emitter import Emitter
from tpucc.lowering.liveness import BUFFER_FIELDS
from tpucc.lowering.products import Lowerer, ProductLayer, ProductLevel
from tpucc.lowering.steps import SKIPPED, Product, product_nest
from tpucc.lowering.tiled_product import emit_product
from tpucc.lowering.tileprogram import tile_lines


def emit_replaced(work: Product, lower: Lowerer, at: Emission) -> None:
    """The lines that `lower` gives, with what they need from the host before and what the host gets after."""
    levels = [at.layout.blocks(level.x.tensor, at.part)[level.block] for level in work.levels]
    buffers = tuple(dict.fromkeys((*levels, *at.results)))
    product = lower(_layer(work, levels, buffers, at))
    code, base = product.records, len(at.emitter.groups)
    for rows in product.groups:
        at.emitter.group(rows)
    code["group"] += np.where(code["group"] >= 0, base, 0).astype(np.int32)
    for field in BUFFER_FIELDS:
        code[field] = np.array((*buffers, -1), np.int32)[code[field]]
    last = {int(buffer): index for index, buffer in enumerate(code["dest_buffer"].tolist())}
    for index, (source, result) in enumerate(code[["ub_buffer", "dest_buffer"]].tolist()):
        at.emitter.require(source)
        at.emitter.written(code[index : index + 1])
        if result in at.results and last[result] == index:
            at.complete(result)


def _layer(work: Product, levels: Sequence[int], buffers: tuple[int, ...], at: Emission) -> ProductLayer:
    """The product in plain words: `levels` are the buffers of its levels, `buffers` all that its lines may name."""
    loops, layout, width = product_nest(at.step), at.layout, at.layout.plan.format.bytes_per_value
    steps = [tuple(loop.steps[pattern] * width for loop in loops.loops) for pattern in (0, *loops.patterns)]

    def builtin() -> list[str]:
        scratch = Emitter(layout, layout.together)
        emit_product(work, Emission(at.step, at.part, layout, scratch, is_last=False))
        return [f".groups [{' '.join(map(str, scratch.groups))}]", *tile_lines(layout, scratch.instructions())]

    return ProductLayer(
        name=at.step.name,
        kind=work.kind,
        shape=tuple(loop.size for loop in loops.loops),
        levels=tuple(
            ProductLevel(
                name_text(layout.buffers[buffer].name),
                level.x.start * width,
                step,
                tuple(None if tile == SKIPPED else tile for tile in level.tiles),
            )
            for level, buffer, step in zip(work.levels, levels, steps[1:], strict=True)
        ),
        results=tuple(name_text(layout.buffers[buffer].name) for buffer in at.results),
        start=at.step.y.start * width,
        steps=steps[0],
        blocks=work.blocks,
        wide=width > 1,
        target=layout.plan.target,
        buffers=tuple(layout.buffers[buffer] for buffer in buffers),
        builtin=builtin,
    )
