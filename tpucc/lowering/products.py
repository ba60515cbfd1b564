"""One product layer as plain numbers and names, and its `.tile` lines as the machine's records: the door of a replaced lowering.

Row i, j, … of the result is the sum over all levels of row `start + i * steps[0] + j * steps[1] + …` of the level's buffer times the
level's tile, under the parameter block of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tpucc.diagnostics import ProgramError
from tpucc.isa.instructions import Opcode, Records
from tpucc.isa.listing.instructions import records_of
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Directive, Errors, read_lines
from tpucc.isa.listing.words import Word, integers, line_error
from tpucc.lowering.tileprogram import TILE_RECORD, VirtualBuffer
from tpucc.lowering.tiletext import TileLineReader
from tpucc.target import Target

WRITTEN = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE, Opcode.ACTIVATE, Opcode.SET_CONFIGURATION, Opcode.NOP, Opcode.DEBUG_TAG)
"""What a product's lines are. Transfers to and from the host are added around them."""


@dataclass(frozen=True, slots=True)
class ProductLevel:
    """What each row of the result is multiplied from: rows of a buffer, and for each column block of the result a weight tile, or None
    where the tile has nothing but zeros and is left out."""

    buffer: str
    start: int
    steps: tuple[int, ...]
    tiles: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProductLayer:
    """An fc or conv layer, or its part of a batch, as a lowering gets it.

    Its result has the leading sizes `shape`. Column block n of it goes to buffer `results[n]`, to row `start` and on by `steps`, and is
    activated under the parameter block `blocks[n]`. Starts and steps count rows of the unified buffer; where values have 16 bits, each
    takes two rows, and every line ends in `, wide`.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    levels: tuple[ProductLevel, ...]
    results: tuple[str, ...]
    start: int
    steps: tuple[int, ...]
    blocks: tuple[int, ...]
    wide: bool
    target: Target
    buffers: tuple[VirtualBuffer, ...]
    """All buffers that its lines may name."""
    builtin: Callable[[], list[str]] = field(repr=False)


LowerProduct = Callable[[ProductLayer], str | Iterable[str]]
"""A lowering: the `.tile` lines of a layer. `.groups [200 200]` among them gives it accumulator groups of so many rows, from g0 on."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenProduct:
    """A product's lines, read: records whose buffers are indices into the layer's, and the rows of their accumulator groups."""

    records: Records
    groups: tuple[int, ...]


Lowerer = Callable[[ProductLayer], WrittenProduct]
"""A lowering whose lines are read already."""


def lower_product(layer: ProductLayer) -> list[str]:
    """The built-in lowering, as lines: row groups, column blocks, levels, chunks (see `blocking`)."""
    return layer.builtin()


def read_product(layer: ProductLayer, lines: Iterable[str]) -> WrittenProduct:
    """The records of a product's lines. Raises `ProgramError` with a diagnostic for each line that can't be read."""
    errors = Errors()
    found = read_lines("\n".join(lines), errors)
    groups: list[int] = []
    for directive in found.directives:
        errors.attempt(_add_groups, directive, groups)
    reader = TileLineReader(layer.buffers, groups, Labels((), ()))
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
