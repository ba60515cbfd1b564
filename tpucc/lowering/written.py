"""The `.tile` lines of one product layer as the machine's records: what a replaced lowering has written."""

from __future__ import annotations

from collections.abc import Iterable

from tpucc.diagnostics import ProgramError
from tpucc.isa.instructions import Opcode
from tpucc.isa.listing.instructions import records_of
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Directive, Errors, read_lines
from tpucc.isa.listing.words import Word, integers, line_error
from tpucc.lowering.products import ProductLayer, WrittenProduct
from tpucc.lowering.tileprogram import TILE_RECORD
from tpucc.lowering.tiletext import TileLineReader
from tpucc.machines.v1.machine import V1

WRITTEN = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE, Opcode.ACTIVATE, Opcode.SET_CONFIGURATION, Opcode.NOP, Opcode.DEBUG_TAG)
"""The instructions that a product's lines may have. Transfers to and from the host are added around them."""


def read_product(layer: ProductLayer, lines: Iterable[str]) -> WrittenProduct:
    """The records of a product's lines. Raises `ProgramError` with a diagnostic for each line that can't be read."""
    errors = Errors()
    found = read_lines("\n".join(lines), errors)
    groups: list[int] = []
    for directive in found.directives:
        errors.attempt(_add_groups, directive, groups)
    reader = TileLineReader(layer.buffers, groups, Labels(V1, (), ()))
    rows: list[dict[str, int]] = []
    for line in found.code:
        errors.attempt(_add_fields, line, reader, rows)
    if errors.found:
        raise ProgramError(errors.found)
    return WrittenProduct(records_of(rows, TILE_RECORD), tuple(groups))


def _add_groups(directive: Directive, groups: list[int]) -> None:
    if directive.name != "groups" or len(directive.words) != 1:
        raise line_error("E0716", f"expected .groups [ROWS ROWS …], found {directive.head}", directive.head.span)
    groups += integers(directive.words[0])


def _add_fields(line: tuple[Word, ...] | Directive, reader: TileLineReader, rows: list[dict[str, int]]) -> None:
    if isinstance(line, Directive):
        raise line_error("E0716", "a layer's lines have no .for: all are of this layer", line.head.span)
    fields = reader.fields(line)
    if Opcode(fields["opcode"]) not in WRITTEN:
        words = ", ".join(opcode.mnemonic for opcode in WRITTEN)
        raise line_error("E0716", f"{line[0].text} is added around a layer's lines, which have {words}", line[0].span)
    rows.append(fields)
