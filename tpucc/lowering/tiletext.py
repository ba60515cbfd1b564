"""The text form of a tile program, a `.tile` file: `parse_tiles(print_tiles(p))` gives an equal one.

It is the assembler's listing with two directives more: `.buffer h.0 rows=200 layer=1` is a virtual buffer, with `home=` the host buffer
that holds its rows; `.groups [200 200]` are rows of accumulator groups, numbered g0, g1, … through all these directives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from tpucc.diagnostics import Source, counted, did_you_mean, printable
from tpucc.ir.digests import Known
from tpucc.isa.disassembler import surroundings, with_headings
from tpucc.isa.listing.code import read_code
from tpucc.isa.listing.directives import read_directives
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, Errors, read_lines
from tpucc.isa.listing.parts import Parts
from tpucc.isa.listing.places import Places
from tpucc.isa.listing.printing import name_text
from tpucc.isa.listing.values import integers
from tpucc.isa.listing.words import line_error, name
from tpucc.lowering.tilelines import TileLineReader, tile_lines
from tpucc.lowering.tileprogram import TILE_RECORD, TileProgram, VirtualBuffer, surrounding_program, tile_program

_OWN = ("buffer", "groups")
"""Directives that only tile programs have."""
_GROUPS = 16
"""Accumulator groups on one line."""


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
    own = [directive for directive in lines.directives if directive.name in _OWN]
    parts = read_directives([directive for directive in lines.directives if directive.name not in _OWN], PurePath(name).stem, errors, known)
    buffers, groups = _own_directives(own, parts, errors)
    reader = TileLineReader(buffers, groups, Labels(parts.host, ()))
    code = read_code(lines.code, parts.layers, lambda line, _: reader.fields(line), TILE_RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    code.records["layer"] = code.layers
    return tile_program(parts.program, code.records, tuple(buffers), tuple(groups)), Places(source, code.spans)


def _buffers(tiles: TileProgram) -> Iterator[str]:
    yield ""
    for buffer in tiles.buffers:
        home = f" home={name_text(tiles.host[buffer.home].name)}" if buffer.home >= 0 else ""
        yield f".buffer {name_text(buffer.name)} rows={buffer.rows} layer={buffer.layer}{home}"


def _groups(tiles: TileProgram) -> Iterator[str]:
    for start in range(0, len(tiles.groups), _GROUPS):
        yield f".groups [{' '.join(map(str, tiles.groups[start : start + _GROUPS]))}] ; from g{start}"


def _own_directives(directives: list[Directive], parts: Parts, errors: Errors) -> tuple[list[VirtualBuffer], list[int]]:
    buffers: dict[str, VirtualBuffer] = {}
    groups: list[int] = []
    places = {buffer.name: index for index, buffer in enumerate(parts.host)}
    for directive in directives:
        if errors.full:
            break
        with errors:
            if directive.name == "groups":
                groups += _group_rows(directive)
            else:
                _add_buffer(_buffer(directive, places), directive, buffers)
    return list(buffers.values()), groups


def _group_rows(directive: Directive) -> tuple[int, ...]:
    arguments = Arguments(directive)
    word = arguments.next("rows in brackets")
    arguments.done()
    return integers(word)


def _buffer(directive: Directive, places: dict[str, int]) -> VirtualBuffer:
    arguments = Arguments(directive)
    title, rows, layer = arguments.name("a name"), arguments.integer("rows"), arguments.integer("layer", 0)
    word = arguments.take("home")
    arguments.done()
    if word is not None and name(word) not in places:
        word.fail("E0716", f"no host buffer is named {printable(name(word))}", did_you_mean(name(word), places))
    return VirtualBuffer(title, rows, layer, -1 if word is None else places[name(word)])


def _add_buffer(buffer: VirtualBuffer, directive: Directive, buffers: dict[str, VirtualBuffer]) -> None:
    if buffer.name in buffers:
        raise line_error("E0718", f"two buffers are named {printable(buffer.name)}", directive.head.span)
    buffers[buffer.name] = buffer
