"""The text form of a tile program, a `.tile` file: `read_tiles(print_tiles(p))` gives an equal one.

It is the assembler's listing. Rows are named by their virtual buffer or accumulator group, and with `switch` stands the tile to switch to:
`matrix_multiply ub=x.0 acc=g3 rows=200 tile=5, switch`. There are two directives more: `.buffer h.0 rows=200 layer=1` is a virtual buffer,
with `home=` the host buffer that holds its rows; `.groups [200 200]` are rows of accumulator groups, numbered g0, g1, … through all these
directives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from tpucc.diagnostics import Source, counted, did_you_mean, printable
from tpucc.ir.codec import Errors, line_error
from tpucc.ir.digests import Known
from tpucc.isa.assembler import read_code, with_headings
from tpucc.isa.listing.directives import Handler, ProgramDraft, read_directives, surroundings
from tpucc.isa.listing.instructions import instruction_fields
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, ListingSpans, directive_spans, read_lines
from tpucc.isa.listing.schema import INTEGERS, Entry, Fields
from tpucc.isa.listing.words import Word, integers, label_in, name, name_text, number_in
from tpucc.lowering.tileprogram import (
    MULTIPLIES,
    NO_TILE,
    TILE_RECORD,
    TileProgram,
    VirtualBuffer,
    surrounding_program,
    tile_lines,
    tile_operands,
    tile_program,
)
from tpucc.machine.instruction import OperandSpec
from tpucc.machines.v1 import V1, Flag

_GROUPS = 16
"""Accumulator groups on one line."""
_BUFFER = Fields(VirtualBuffer, Entry("name", what="a name"), "rows", Entry("layer", default=0))


class TileLineReader:
    """Reads lines of one tile program, whose buffers, groups and host buffers are known."""

    def __init__(self, buffers: Sequence[VirtualBuffer], groups: Sequence[int], labels: Labels) -> None:
        self._buffers = {buffer.name: (index, buffer.rows) for index, buffer in enumerate(buffers)}
        self._groups = {f"g{index}": (index, rows) for index, rows in enumerate(groups)}
        self._labels = labels

    def fields(self, line: Sequence[Word]) -> dict[str, int]:
        """The fields of `TILE_RECORD`, but for the layer. Raises `LineError` as `instruction_fields` does."""
        found = {"ub_buffer": -1, "ub2_buffer": -1, "dest_buffer": -1, "group": -1}

        def resolve(operand: OperandSpec, word: Word) -> int:
            if operand.space == "ub":
                found[f"{operand.field}_buffer"], row = _row(word, self._buffers, "buffer", "no buffer")
            elif operand.space == "acc":
                found["group"], row = _row(word, self._groups, "group", "no accumulator group")
            else:
                row = self._labels.resolve(operand, word, 0)
            return row

        fields = instruction_fields(V1, line, resolve, tile_operands)
        return {**_with_tile(line, fields), **found}


def _row(word: Word, known: Mapping[str, tuple[int, int]], what: str, unknown: str) -> tuple[int, int]:
    """The index of the buffer or group that a word names, and the row in it. `known` has the index and the rows of each. A number is no
    name: addresses aren't known yet."""
    if number_in(word.text) is not None:
        word.fail("E0713", f"expected a row of a {what}, found {printable(word.text)}")
    name, row = label_in(word) or ("", 0)
    if name not in known:
        near = did_you_mean(name, known) if what == "buffer" else f"there are {len(known):,}, from g0 up"
        word.fail("E0713", f"{unknown} is named {printable(word.text)}", near)
    index, rows = known[name]
    if row >= rows:
        word.fail("E0713", f"{printable(word.text)} is past the end: it has {counted(rows, 'row')}")
    return index, row


def _with_tile(line: Sequence[Word], fields: dict[str, int]) -> dict[str, int]:
    """A multiply names a tile exactly when it switches."""
    if fields["opcode"] not in MULTIPLIES:
        return fields
    switches, named = bool(fields["flags"] & Flag.SWITCH), fields["index"] != NO_TILE
    if switches != named:
        message = "a multiply that switches needs tile=" if switches else "a multiply that doesn't switch has no tile"
        raise line_error("E0712", message, line[0].span)
    return fields if named else {**fields, "index": 0}


def print_tiles(tiles: TileProgram, with_data: bool = True) -> str:
    """The `.tile` text of a tile program that `verify_tiles` accepts; without data, large constants stand by their digests."""
    program = surrounding_program(tiles)
    before, after = surroundings(program, with_data)
    code = with_headings(program, tiles.instructions["layer"].tolist(), tile_lines(tiles, tiles.instructions))
    head = f"; tiles of {printable(tiles.name)} for {printable(tiles.target.name)}: {counted(len(tiles.instructions), 'instruction')}"
    before[0] += " stage=tile"
    return "\n".join([head, *before, *_buffers(tiles), *_groups(tiles), *code, *after]) + "\n"


def read_tiles(text: str, name: str, known: Known | None = None) -> tuple[TileProgram, ListingSpans]:
    """The tile program of a `.tile` text, and where its instructions stand, for messages about them.

    Messages use `name`, the file's; `known` has the constants that the text has as digests.

    Raises `ProgramError` with up to 20 diagnostics, with the codes of `tpucc.isa.assembler.assemble`. The result is well formed, but
    not yet checked: see `verify_tiles`.
    """
    errors = Errors()
    lines = read_lines(text, errors)
    groups: list[int] = []
    buffers: dict[str, VirtualBuffer] = {}
    own: Mapping[str, Handler] = {
        "groups": lambda arguments, _: add_groups(arguments, groups),
        "buffer": lambda arguments, draft: _add_buffer(arguments, draft, buffers),
    }
    draft = read_directives(lines.directives, PurePath(name).stem, errors, known, own=own)
    reader = TileLineReader([*buffers.values()], groups, Labels(V1, draft.lists["host"], ()))
    records, layers, spans = read_code(lines.code, draft.lists["layers"], lambda line, _: reader.fields(line), TILE_RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    records["layer"] = layers
    tiles = tile_program(draft.program(), records, tuple(buffers.values()), tuple(groups))
    return tiles, ListingSpans(source, spans, directive_spans(lines))


def _buffers(tiles: TileProgram) -> Iterator[str]:
    yield ""
    for buffer in tiles.buffers:
        home = f" home={name_text(tiles.host[buffer.home].name)}" if buffer.home >= 0 else ""
        yield _BUFFER.line("buffer", buffer) + home


def _groups(tiles: TileProgram) -> Iterator[str]:
    for start in range(0, len(tiles.groups), _GROUPS):
        yield f".groups {INTEGERS.show(tiles.groups[start : start + _GROUPS])} ; from g{start}"


def add_groups(arguments: Arguments, groups: list[int]) -> None:
    """Adds the accumulator groups of a directive `.groups`."""
    groups += integers(arguments.next("rows in brackets"))
    arguments.done()


def _add_buffer(arguments: Arguments, draft: ProgramDraft, buffers: dict[str, VirtualBuffer]) -> None:
    (title, rows, layer), word = _BUFFER.taken(arguments), arguments.take("home")
    arguments.done()
    home = "" if word is None else name(word)
    if word is not None and home not in draft.buffers:
        word.fail("E0716", f"no host buffer is named {printable(home)}", did_you_mean(home, draft.buffers))
    if title in buffers:
        raise line_error("E0718", f"two buffers are named {printable(title)}", arguments.directive.head.span)
    buffers[title] = VirtualBuffer(title, rows, layer, -1 if word is None else draft.buffers[home])
