"""The text form of a tile program, a `.tile` file: `parse_tiles(print_tiles(p))` gives an equal one.

It is the assembler's listing. Rows are named by their virtual buffer or accumulator group, and with `switch` stands the tile to switch to:
`matrix_multiply ub=x.0 acc=g3 rows=200 tile=5, switch`. There are two directives more: `.buffer h.0 rows=200 layer=1` is a virtual buffer,
with `home=` the host buffer that holds its rows; `.groups [200 200]` are rows of accumulator groups, numbered g0, g1, … through all these
directives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Protocol

import numpy as np

from tpucc.diagnostics import Source, counted, did_you_mean, printable
from tpucc.ir.digests import Known
from tpucc.isa.assembler import read_code, with_headings
from tpucc.isa.instructions import SPECS, Flag, OperandSpec, Place, Records, Spec
from tpucc.isa.listing.directives import read_directives, surroundings
from tpucc.isa.listing.instructions import instruction_fields, instruction_texts
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.lines import Arguments, Directive, Errors, Places, directive_places, read_lines
from tpucc.isa.listing.schema import COUNT, INTEGERS, NAME, WORD, Entry, read, shown
from tpucc.isa.listing.words import Word, label_in, label_text, line_error, name, name_text, number_in
from tpucc.isa.program import HostBuffer
from tpucc.lowering.tileprogram import TILE_RECORD, TileProgram, VirtualBuffer, surrounding_program, tile_program
from tpucc.machine.record import MAXIMUM
from tpucc.machines.v1.machine import V1
from tpucc.numerics import Int64

MULTIPLIES = tuple(opcode for opcode, spec in SPECS.items() if spec.reads & Place.TILE)
NO_TILE = MAXIMUM["index"]
_TILE = OperandSpec("index", "tile", "tile", "weight tile to switch to", NO_TILE)
_OWN = ("buffer", "groups")
"""Directives that only tile programs have."""
_GROUPS = 16
"""Accumulator groups on one line."""
_BUFFER = (Entry("name", NAME, what="a name"), Entry("rows", COUNT), Entry("layer", COUNT, default=0))
_ROWS = (Entry("groups", INTEGERS, what="rows in brackets"),)


def tile_operands(spec: Spec, function: int) -> Sequence[OperandSpec]:
    """The operands of tile instructions: the machine's, and the tile of a multiply that switches."""
    operands = spec.operands_for(function)
    return (*operands, _TILE) if spec.opcode in MULTIPLIES else operands


class Named(Protocol):
    """The source of the rows' names: a tile program, or the layout of one."""

    @property
    def buffers(self) -> Sequence[VirtualBuffer]: ...

    @property
    def host(self) -> Sequence[HostBuffer]: ...


def tile_lines(tiles: Named, instructions: Records) -> list[str]:
    """One line for each of `instructions`, which are some of the program's and well formed."""
    shown = instructions.copy()
    stays = np.isin(shown["opcode"], MULTIPLIES) & ((shown["flags"] & Flag.SWITCH) == 0)
    shown["index"][stays] = NO_TILE
    return instruction_texts(V1, shown, tile_operands, _Texts(tiles, shown))


class _Texts:
    """Shows rows by the names of what they are rows of."""

    def __init__(self, tiles: Named, instructions: Records) -> None:
        self._names = [buffer.name for buffer in tiles.buffers]
        self._instructions = instructions
        self._machine = Labels(V1, tiles.host, ()).texts

    def __call__(self, operand: OperandSpec, indices: Int64, values: Int64) -> list[str]:
        if operand.space == "ub":
            buffers = self._instructions[f"{operand.field}_buffer"][indices].tolist()
            return [label_text(self._names[buffer], row) for buffer, row in zip(buffers, values.tolist(), strict=True)]
        if operand.space == "acc":
            groups = self._instructions["group"][indices].tolist()
            return [label_text(f"g{group}", row) for group, row in zip(groups, values.tolist(), strict=True)]
        return self._machine(operand, indices, values)


class TileLineReader:
    """Reads lines of one tile program, whose buffers, groups and host buffers are known."""

    def __init__(self, buffers: Sequence[VirtualBuffer], groups: Sequence[int], labels: Labels) -> None:
        self._buffers = {buffer.name: (index, buffer.rows) for index, buffer in enumerate(buffers)}
        self._groups = groups
        self._labels = labels

    def fields(self, line: Sequence[Word]) -> dict[str, int]:
        """The fields of `TILE_RECORD`, but for the layer. Raises `LineError` as `instruction_fields` does."""
        found = {"ub_buffer": -1, "ub2_buffer": -1, "dest_buffer": -1, "group": -1}

        def resolve(operand: OperandSpec, word: Word) -> int:
            if operand.space == "ub":
                found[f"{operand.field}_buffer"], row = self._buffer(word)
                return row
            if operand.space == "acc":
                found["group"], row = self._group(word)
                return row
            return self._labels.resolve(operand, word, 0)

        fields = instruction_fields(V1, line, resolve, tile_operands)
        return {**_with_tile(line, fields), **found}

    def _buffer(self, word: Word) -> tuple[int, int]:
        name, row = _label(word, "buffer")
        if name not in self._buffers:
            word.fail("E0713", f"no buffer is named {printable(word.text)}", did_you_mean(name, self._buffers))
        index, rows = self._buffers[name]
        return index, _inside(word, row, rows)

    def _group(self, word: Word) -> tuple[int, int]:
        name, row = _label(word, "group")
        number = int(name[1:]) if name[:1] == "g" and name[1:].isascii() and name[1:].isdecimal() and len(name) < 12 else -1
        if not 0 <= number < len(self._groups) or name != f"g{number}":
            word.fail("E0713", f"no accumulator group is named {printable(word.text)}", f"there are {len(self._groups):,}, from g0 up")
        return number, _inside(word, row, self._groups[number])


def _label(word: Word, what: str) -> tuple[str, int]:
    """Rows of buffers and groups have names in a tile program: their addresses are not known yet."""
    if number_in(word.text) is not None:
        word.fail("E0713", f"expected a row of a {what}, found {printable(word.text)}")
    return label_in(word) or ("", 0)


def _inside(word: Word, row: int, rows: int) -> int:
    if row >= rows:
        word.fail("E0713", f"{printable(word.text)} is past the end: it has {counted(rows, 'row')}")
    return row


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


def parse_tiles(text: str, name: str, known: Known | None = None) -> TileProgram:
    """The tile program of a `.tile` text. Takes and raises what `read_tiles` does."""
    return read_tiles(text, name, known)[0]


def read_tiles(text: str, name: str, known: Known | None = None) -> tuple[TileProgram, Places]:
    """The tile program of a `.tile` text, and where its instructions stand, for messages about them.

    Messages use `name`, the file's; `known` has the constants that the text has as digests.

    Raises `ProgramError` with up to 20 diagnostics, with the codes of `tpucc.isa.assembler.assemble`. The result is well formed, but
    not yet checked: see `verify_tiles`.
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
    reader = TileLineReader([*buffers.values()], groups, Labels(V1, parts.host, ()))
    records, layers, spans = read_code(lines.code, parts.layers, lambda line, _: reader.fields(line), TILE_RECORD, errors)
    source = Source(name, text)
    errors.require_none(source)
    records["layer"] = layers
    return tile_program(parts.program, records, tuple(buffers.values()), tuple(groups)), Places(source, spans, directive_places(lines))


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
