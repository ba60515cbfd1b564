"""Products of tiles: the product of a layer from its levels, and the instructions of a product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpucc.ir import Node
from tpucc.layers.kinds import Conv, Fc, own_rows, weight_shape, weights_of
from tpucc.lowering.emitter import Emission
from tpucc.lowering.steps import SKIPPED, Level, Product, product_nest
from tpucc.lowering.values import LoweredValues
from tpucc.lowering.walks import part_walks


def product_of(node: Node, levels: Sequence[Level], parameter_blocks: tuple[int, ...], values: LoweredValues) -> Product:
    """The product of an `fc` or `conv` from its levels and the numbers of its parameter blocks, one for each column block n of the result.

    Tiles of nothing but zeros are skipped. A column block keeps at least one tile, which begins its sum.
    """
    layer, (depth, width), mxu = node.attributes, weight_shape(node, values.device), values.mxu
    assert isinstance(layer, Fc | Conv)
    kept = [[SKIPPED if values.tile_pool.is_zero(tile) else tile for tile in level.tiles] for level in levels]
    for n, first in enumerate(levels[0].tiles):
        if all(row[n] == SKIPPED for row in kept):
            kept[0][n] = first
    fills = tuple(
        (tile, min(mxu, level.x.tensor.columns - level.column_block * mxu), min(mxu, width - n * mxu))
        for level in levels
        for n, tile in enumerate(level.tiles)
    )
    group = (0, 0)
    if isinstance(layer, Conv) and layer.groups > 1:
        *_, channels, filters = values.device[node.operands[1]].type.shape
        group = channels, filters // layer.groups
    return Product(
        kind="fc" if isinstance(layer, Fc) else "conv",
        levels=tuple(replace(level, tiles=tuple(row)) for level, row in zip(levels, kept, strict=True) if set(row) != {SKIPPED}),
        parameter_blocks=parameter_blocks,
        fills=fills,
        weights=(depth, width),
        depth=sum(own_rows(values.device[name]) for name in weights_of(node)),
        moves=isinstance(layer, Fc) and layer.moves,
        group=group,
    )


def emit_product(work: Product, at: Emission) -> None:
    """The instructions of a product: loops over row groups, column blocks n of y, levels of the sum, and chunks of rows (see `blocking`).

    The first level of a sum overwrites its accumulators, and the others add to them. Each chunk is activated as soon as its last tile is
    through. So the activation unit empties one chunk while the matrix unit fills the next.
    """
    # lab 4 begin: write the lines of a product, tile by tile
    emitter, loops, blocking = at.emitter, product_nest(at.step), at.layout.plan.blocking(at.step, work)
    for chunks in blocking.groups:
        for n, y in enumerate(at.results):
            sums = [(emitter.group(count), part_walks(loops.loops, first, count)) for first, count in chunks]
            levels = [(level, tensor) for level, tensor in zip(work.levels, loops.patterns, strict=True) if level.tiles[n] != SKIPPED]
            for depth, (level, tensor) in enumerate(levels):
                x, tile = at.buffer(level.x, level.column_block), level.tiles[n]
                for group, walks in sums:
                    emitter.multiply(x, level.x.start, walks, tensor, group, tile, accumulate=depth > 0)
                    tile = SKIPPED  # the next chunk uses the tile that is in the unit
                    if depth == len(levels) - 1:
                        emitter.configure(work.parameter_blocks[n])
                        emitter.activate(group, y, at.step.y.start, walks)
            if chunks is blocking.groups[-1]:
                at.complete(y)
    # lab 4 end
