"""The instructions of one step, for one part of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np

from tpucc.isa.instructions import Function
from tpucc.isa.listing.words import name_text
from tpucc.lowering.blocking import Chunk
from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import Layout
from tpucc.lowering.liveness import BUFFER_FIELDS
from tpucc.lowering.products import Lowerer, ProductLayer, ProductLevel
from tpucc.lowering.tensors import Access
from tpucc.lowering.walks import Walk, nest, part_walks, walks
from tpucc.lowering.workload import (
    SKIPPED,
    Copy,
    ElementWise,
    Level,
    Moving,
    Pooling,
    Product,
    ProductNest,
    Step,
    Weighted,
    WrittenProducts,
    product_nest,
)


def emit_step(step: Step, part: int, layout: Layout, emitter: Emitter, *, complete: bool = True) -> None:
    """Emits a step on the accesses of its part; `complete`: all rows of its result are there after it."""
    _StepEmission(step, part, layout, emitter, complete).emit()


class _StepEmission:
    def __init__(self, step: Step, part: int, layout: Layout, emitter: Emitter, complete: bool) -> None:
        self._is_complete = complete
        self._step = step
        self._part = part
        self._layout = layout
        self._emitter = emitter
        self._results = layout.blocks(step.result, part)

    def emit(self) -> None:
        """Borders are the activation unit's; what the matrix unit waits for crosses the link before what they are copied from."""
        if isinstance(self._step.work, Product) and self._step.work.levels:
            self._block(self._step.work.levels[0].x, self._step.work.levels[0].block)
        for copy in self._step.borders:
            self._copy(copy)
        match self._step.work:
            case Product() as work:
                lower = self._layout.plan.lowerers.get(work.kind)
                self._product(work) if lower is None else self._written(work, lower)
            case WrittenProducts() as work:
                self._written_products(work)
            case ElementWise() as work:
                self._element_wise(work)
            case Pooling() as work:
                self._pool(work)
            case Weighted() as work:
                self._weighted(work)
            case Moving() as work:
                self._move(work)
            case _:
                assert_never(self._step.work)

    def _block(self, access: Access, block: int) -> int:
        """The buffer of a column block, which is in the unified buffer from here on."""
        buffer = self._layout.blocks(access.tensor, self._part)[block]
        self._emitter.require(buffer)
        return buffer

    def _complete(self, buffer: int) -> None:
        """This was the last of the step's work on a buffer of its result."""
        if self._is_complete:
            self._emitter.complete(buffer)

    def _product(self, work: Product) -> None:
        """Row groups, column blocks, levels, chunks: see `blocking`. Each chunk is activated as soon as its last tile is through."""
        # lab 4 begin: write the lines of a product, tile by tile
        loops, blocking = product_nest(self._step), self._layout.plan.blocking(self._step, work)
        for chunks in blocking.groups:
            for n, result in enumerate(self._results):
                self._column_block(work, loops, chunks, n)
                if chunks is blocking.groups[-1]:
                    self._complete(result)
        # lab 4 end

    def _column_block(self, work: Product, loops: ProductNest, chunks: Sequence[Chunk], n: int) -> None:
        # lab 4 begin: write the lines of a product, tile by tile
        emitter = self._emitter
        sums = [(part_walks(loops.loops, first, count), emitter.group(count)) for first, count in chunks]
        levels = [(level, pattern) for level, pattern in zip(work.levels, loops.patterns, strict=True) if level.tiles[n] != SKIPPED]
        for depth, (level, pattern) in enumerate(levels):
            x, tile = self._block(level.x, level.block), level.tiles[n]
            for pieces, group in sums:
                self._multiply(level, pattern, x, pieces, group, tile, depth > 0)
                tile = SKIPPED
                if depth == len(levels) - 1:
                    emitter.configure(work.blocks[n])
                    self._activate(pieces, group, self._results[n])
        # lab 4 end

    def _multiply(self, level: Level, pattern: int, x: int, pieces: Iterable[Walk], group: int, tile: int, accumulate: bool) -> None:
        """One multiply for each piece; the first one switches to the tile, unless that is in use (-1)."""
        # lab 4 begin: write the lines of a product, tile by tile
        acc = 0
        for piece in pieces:
            start = level.x.start + piece.starts[pattern]
            self._emitter.multiply(x, start, piece, pattern, group, acc, tile, accumulate)
            tile = SKIPPED
            acc += piece.rows
        # lab 4 end

    def _activate(self, pieces: Iterable[Walk], group: int, result: int) -> None:
        # lab 4 begin: write the lines of a product, tile by tile
        acc = 0
        for piece in pieces:
            self._emitter.activate(group, acc, result, self._step.y.start + piece.starts[0], piece)
            acc += piece.rows
        # lab 4 end

    def _written(self, work: Product, lower: Lowerer) -> None:
        """A product whose lowering was replaced: its lines, with what they need from the host before and what the host gets after."""
        levels = [self._layout.blocks(level.x.tensor, self._part)[level.block] for level in work.levels]
        buffers = tuple(dict.fromkeys((*levels, *self._results)))
        product = lower(self._layer(work, levels, buffers))
        code, base = product.records, len(self._emitter.groups)
        for rows in product.groups:
            self._emitter.group(rows)
        code["group"] += np.where(code["group"] >= 0, base, 0).astype(np.int32)
        for field in BUFFER_FIELDS:
            code[field] = np.array((*buffers, -1), np.int32)[code[field]]
        last = {int(buffer): index for index, buffer in enumerate(code["dest_buffer"].tolist())}
        for index, (source, result) in enumerate(code[["ub_buffer", "dest_buffer"]].tolist()):
            self._emitter.require(source)
            self._emitter.written(code[index : index + 1])
            if result in self._results and last[result] == index:
                self._complete(result)

    def _layer(self, work: Product, levels: Sequence[int], buffers: tuple[int, ...]) -> ProductLayer:
        """The product in plain words."""
        loops, layout, width = product_nest(self._step), self._layout, self._layout.plan.format.bytes_per_value
        steps = [tuple(loop.steps[pattern] * width for loop in loops.loops) for pattern in (0, *loops.patterns)]

        def builtin() -> list[str]:
            from tpucc.lowering.tiletext import tile_lines  # only replaced lowerings ask for lines

            scratch = Emitter(layout, layout.together)
            _StepEmission(self._step, self._part, layout, scratch, False)._product(work)
            return [f".groups [{' '.join(map(str, scratch.groups))}]", *tile_lines(layout, scratch.instructions())]

        return ProductLayer(
            name=self._step.name,
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
            results=tuple(name_text(layout.buffers[buffer].name) for buffer in self._results),
            start=self._step.y.start * width,
            steps=steps[0],
            blocks=work.blocks,
            wide=width > 1,
            target=layout.plan.target,
            buffers=tuple(layout.buffers[buffer] for buffer in buffers),
            builtin=builtin,
        )

    def _written_products(self, work: WrittenProducts) -> None:
        """All tiles cross the link, then part after part is multiplied. The result is complete after the last part."""
        for write in work.writes:
            self._emitter.write_tile(write)
        for part in work.parts:
            emit_step(part, self._part, self._layout, self._emitter, complete=self._is_complete and part is work.parts[-1])

    def _element_wise(self, work: ElementWise) -> None:
        """Column block after column block; an operand of one column serves all of them from its lane 0."""
        accesses = (*work.accesses, self._step.y)
        pieces = _walks(accesses)
        splats = tuple(operand.splat for operand in work.operands)
        for n, result in enumerate(self._results):
            sources = tuple(self._block(operand.access, 0 if operand.splat else n) for operand in work.operands)
            self._emitter.configure(work.block)
            for piece in pieces:
                self._emitter.vector(work.function, piece, accesses, sources, splats, result)
            self._complete(result)

    def _pool(self, work: Pooling) -> None:
        for n, result in enumerate(self._results):
            for region in work.regions:
                x = self._block(region.x, n)
                if work.function == Function.AVERAGE:
                    self._emitter.configure(region.block)
                for piece in _walks((region.x, region.y)):
                    self._emitter.pool(work.function, piece, region, x, result)
            self._complete(result)

    def _weighted(self, work: Weighted) -> None:
        for n, result in enumerate(self._results):
            x, weights = self._block(work.region.x, n), self._block(work.weights, n)
            self._emitter.configure(work.blocks[n])
            for piece in _walks((work.region.x, work.region.y)):
                self._emitter.pool(Function.WEIGHTED, piece, work.region, x, result, (weights, work.weights.start))
            self._complete(result)

    def _move(self, work: Moving) -> None:
        for copy in work.copies:
            self._copy(copy)
        for result in self._results:
            if work.copies:
                self._complete(result)
            else:
                self._emitter.require(result)  # which writes an output that the host gave

    def _copy(self, copy: Copy) -> None:
        accesses = (copy.source, copy.target)
        for n, result in enumerate(self._results):
            source = self._block(copy.source, 0 if copy.every_block else n)
            for piece in _walks(accesses):
                self._emitter.vector(Function.COPY, piece, accesses, (source,), (False,), result)


def _walks(accesses: tuple[Access, ...]) -> tuple[Walk, ...]:
    """The walks that visit the rows of all accesses together."""
    return walks(nest(accesses[-1].shape, tuple(access.steps for access in accesses)))
