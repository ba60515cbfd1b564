"""The text form of a tile program, a `.tile` file: `parse_tiles(print_tiles(p))` gives an equal one.

It is the assembler's listing with two directives more: `.buffer h.0 rows=200 layer=1` is a virtual buffer, with `home=` the host buffer
that holds its rows; `.groups [200 200]` are rows of accumulator groups, numbered g0, g1, … through all these directives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from tpucc.diagnostics import Source, counted, did_you_mean, printable
from tpucc.ir.digests import Known
from tpucc.isa.assembler import read_code
from tpucc.isa.disassembler import with_headings
from tpucc.isa.listing.directives import read_directives, surroundings
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, Errors, Places, read_lines
from tpucc.isa.listing.schema import COUNT, INTEGERS, NAME, WORD, Entry, read, shown
from tpucc.isa.listing.words import line_error, name, name_text
from tpucc.lowering.tilelines import TileLineReader, tile_lines
from tpucc.lowering.tileprogram import TILE_RECORD, TileProgram, VirtualBuffer, surrounding_program, tile_program

_OWN = ("buffer", "groups")
"""Directives that only tile programs have."""
_GROUPS = 16
"""Accumulator groups on one line."""
_BUFFER = (Entry("name", NAME, what="a name"), Entry("rows", COUNT), Entry("layer", COUNT, default=0))
_ROWS = (Entry("groups", INTEGERS, what="rows in brackets"),)


def print_tiles(tiles: TileProgram, with_data: bool = True) -> str:
    """The `.tile` text of a tile program that `verify_tiles` accepts; without data, large constants stand by their digests."""
    program = surrounding_program(tiles)
    before, after = surroundings(program, with_data)
    code = with_headings(program, tiles.instructions["layer"].tolist(), tile_lines(tiles, tiles.instructions))
    head = f"; tiles of {printable(tiles.name)} for {printable(tiles.target.name)}: {counted(len(tiles.instructions), 'instruction')}"
    before[0] += " stage=tile"
    return "\n".join([head, *before, *_buffers(tiles), *_groups(tiles), *code, *after]) + "\n"


def parse_tiles(text: str, name: str, known: Known | None = None) -> TileProgram:
    """The tile program of a `.tile` text. Takes and raises what `read_tiles` does."""
    return read_tiles(text, name, known)[0]


def read_tiles(text: str, name: str, known: Known | None = None) -> tuple[TileProgram, Places]:
    """The tile program of a `.tile` text, and where its instructions stand, for messages about them.

    `name` (the file's) stands in messages; `known` has the constants that stand in the text by their digests.

    Raises `ProgramError` with up to 20 diagnostics, with the codes of `tpucc.isa.assembler.assemble`. What is read is well formed, not
    yet valid: see `verify_tiles`.
    """
    errors = Errors()
    lines = read_lines(text, errors)
    parts = read_directives([line for line in lines.directives if line.name not in _OWN], PurePath(name).stem, errors, known)
    buffers: dict[str, VirtualBuffer] = {}
    groups: list[int] = []
    homes = {buffer.name: index for index, buffer in enumerate(parts.host)}
    for directive in lines.directives:
        if directive.name == "groups":
            errors.attempt(_add_groups, directive, groups)
        elif directive.name == "buffer":
            errors.attempt(_add_buffer, directive, homes, buffers)
    reader = TileLineReader([*buffers.values()], groups, Labels(parts.host, ()))
    records, layers, spans = read_code(lines.code, parts.layers, lambda line, _: reader.fields(line), TILE_RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    records["layer"] = layers
    return tile_program(parts.program, records, tuple(buffers.values()), tuple(groups)), Places(source, spans)


def _buffers(tiles: TileProgram) -> Iterator[str]:
    yield ""
    for buffer in tiles.buffers:
        home = f" home={name_text(tiles.host[buffer.home].name)}" if buffer.home >= 0 else ""
        yield shown("buffer", _BUFFER, buffer) + home


def _groups(tiles: TileProgram) -> Iterator[str]:
    for start in range(0, len(tiles.groups), _GROUPS):
        yield f".groups {INTEGERS.show(tiles.groups[start : start + _GROUPS])} ; from g{start}"


def _add_groups(directive: Directive, groups: list[int]) -> None:
    (rows,) = read(_ROWS, Arguments(directive))
    groups += rows


def _add_buffer(directive: Directive, homes: dict[str, int], buffers: dict[str, VirtualBuffer]) -> None:
    title, rows, layer, home = read((*_BUFFER, Entry("home", WORD, default=None)), Arguments(directive))
    if home is not None and name(home) not in homes:
        home.fail("E0716", f"no host buffer is named {printable(name(home))}", did_you_mean(name(home), homes))
    if title in buffers:
        raise line_error("E0718", f"two buffers are named {printable(title)}", directive.head.span)
    buffers[title] = VirtualBuffer(title, rows, layer, -1 if home is None else homes[name(home)])
