"""A product whose lowering is replaced: the layer in plain words, its lines, and what these need around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from tpucc.diagnostics import ProgramError
from tpucc.ir.codec import Errors, line_error
from tpucc.isa.listing.instructions import records_of
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, read_lines
from tpucc.isa.listing.words import Word, name_text
from tpucc.lowering.emitter import Emission, Emitter
from tpucc.lowering.liveness import BUFFER_FIELDS
from tpucc.lowering.plan import Lowerer
from tpucc.lowering.steps import SKIPPED, Product, product_nest
from tpucc.lowering.tiled_product import emit_product
from tpucc.lowering.tileprogram import TILE_RECORD, tile_lines
from tpucc.lowering.tiletext import TileLineReader, add_groups
from tpucc.machines.v1 import V1, Opcode
from tpucc.stages.products import ProductLayer, ProductLevel, ReadLowering, WrittenProduct

WRITTEN = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE, Opcode.ACTIVATE, Opcode.SET_CONFIGURATION, Opcode.NOP, Opcode.DEBUG_TAG)
"""The instructions that a product's lines may have. Transfers to and from the host are added around them."""


def lowerer_of(lower: ReadLowering) -> Lowerer:
    """A lowering as a plan calls it: its lines, with what they need from the host before and what the host gets after."""
    return partial(_emit, lower)


def _emit(lower: ReadLowering, work: Product, at: Emission) -> None:
    levels = [at.layout.column_blocks(level.x.tensor, at.part)[level.column_block] for level in work.levels]
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
        blocks=work.parameter_blocks,
        wide=width > 1,
        target=layout.plan.target,
        buffers=tuple(layout.buffers[buffer] for buffer in buffers),
        builtin=builtin,
    )


def read_product(layer: ProductLayer, lines: Iterable[str]) -> WrittenProduct:
    """The records of a product's lines. Raises `ProgramError` with a diagnostic for each line that can't be read."""
    errors = Errors()
    found = read_lines("\n".join(lines), errors)
    groups: list[int] = []
    for directive in found.directives:
        errors.attempt(_read_groups, directive, groups)
    reader = TileLineReader(layer.buffers, groups, Labels(V1, (), ()))
    rows: list[dict[str, int]] = []
    for line in found.code:
        errors.attempt(_read_fields, line, reader, rows)
    if errors.found:
        raise ProgramError(errors.found)
    return WrittenProduct(records_of(rows, TILE_RECORD), tuple(groups))


def _read_groups(directive: Directive, groups: list[int]) -> None:
    if directive.name != "groups" or len(directive.words) != 1:
        raise line_error("E0716", f"expected .groups [ROWS ROWS …], found {directive.head}", directive.head.span)
    add_groups(Arguments(directive), groups)


def _read_fields(line: tuple[Word, ...] | Directive, reader: TileLineReader, rows: list[dict[str, int]]) -> None:
    if isinstance(line, Directive):
        raise line_error("E0716", "a layer's lines have no .for: all are of this layer", line.head.span)
    fields = reader.fields(line)
    if Opcode(fields["opcode"]) not in WRITTEN:
        words = ", ".join(opcode.mnemonic for opcode in WRITTEN)
        raise line_error("E0716", f"{line[0].text} is added around a layer's lines, which have {words}", line[0].span)
    rows.append(fields)
