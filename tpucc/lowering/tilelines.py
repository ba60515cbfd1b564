"""Tile instructions as lines of text: `matrix_multiply ub=x.0 acc=g3 rows=200 tile=5, switch`.

The lines are the assembler's, with rows named by their virtual buffer or accumulator group and, with `switch`, the tile to switch to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tpucc.diagnostics import counted, did_you_mean, printable
from tpucc.isa.fields import MAXIMUM
from tpucc.isa.instructions import SPECS, Flag, Opcode, OperandSpec, Place, Records
from tpucc.isa.listing.instructions import instruction_fields, instruction_texts
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.words import Word, label_in, label_text, line_error
from tpucc.isa.program import HostBuffer
from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.numerics import Int64

MULTIPLIES = tuple(opcode for opcode, spec in SPECS.items() if spec.reads & Place.TILE)
NO_TILE = MAXIMUM["index"]
_TILE = OperandSpec("index", "tile", "tile", "weight tile to switch to", NO_TILE)


def tile_operands(opcode: Opcode, function: int) -> Sequence[OperandSpec]:
    """The operands of tile instructions: the machine's, and the tile of a multiply that switches."""
    operands = SPECS[opcode].operands_for(function)
    return (*operands, _TILE) if opcode in MULTIPLIES else operands


class Named(Protocol):
    """What gives rows their names: a tile program, or the layout of one."""

    @property
    def buffers(self) -> Sequence[VirtualBuffer]: ...

    @property
    def host(self) -> Sequence[HostBuffer]: ...


def tile_lines(tiles: Named, instructions: Records) -> list[str]:
    """One line for each of `instructions`, which are some of the program's and well formed."""
    shown = instructions.copy()
    stays = np.isin(shown["opcode"], MULTIPLIES) & ((shown["flags"] & Flag.SWITCH) == 0)
    shown["index"][stays] = NO_TILE
    return instruction_texts(shown, tile_operands, _Texts(tiles, shown))


class _Texts:
    """Shows rows by the names of what they are rows of."""

    def __init__(self, tiles: Named, instructions: Records) -> None:
        self._names = [buffer.name for buffer in tiles.buffers]
        self._instructions = instructions
        self._machine = Labels(tiles.host, ()).texts

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

        fields = instruction_fields(line, tile_operands, resolve)
        _require_names(line, fields, found)
        return {**_with_tile(line, fields), **found}

    def _buffer(self, word: Word) -> tuple[int, int]:
        name, row = label_in(word) or ("", 0)
        if name not in self._buffers:
            word.fail("E0713", f"no buffer is named {printable(word.text)}", did_you_mean(name, self._buffers))
        index, rows = self._buffers[name]
        return index, _inside(word, row, rows)

    def _group(self, word: Word) -> tuple[int, int]:
        name, row = label_in(word) or ("", 0)
        number = int(name[1:]) if name[:1] == "g" and name[1:].isascii() and name[1:].isdecimal() and len(name) < 12 else -1
        if not 0 <= number < len(self._groups) or name != f"g{number}":
            word.fail("E0713", f"no accumulator group is named {printable(word.text)}", f"there are {len(self._groups):,}, from g0 up")
        return number, _inside(word, row, self._groups[number])


def _inside(word: Word, row: int, rows: int) -> int:
    if row >= rows:
        word.fail("E0713", f"{printable(word.text)} is past the end: it has {counted(rows, 'row')}")
    return row


def _require_names(line: Sequence[Word], fields: dict[str, int], found: dict[str, int]) -> None:
    """Rows of buffers and groups have names in a tile program: their addresses are not known yet."""
    for operand in tile_operands(Opcode(fields["opcode"]), fields.get("function", 0)):
        column = {"ub": f"{operand.field}_buffer", "acc": "group"}.get(operand.space)
        if column is not None and found[column] < 0:
            word = next(word for word in line if word.key == operand.key)
            word.fail("E0713", f"expected a row of a {'group' if column == 'group' else 'buffer'}, found {printable(word.text)}")


def _with_tile(line: Sequence[Word], fields: dict[str, int]) -> dict[str, int]:
    """A multiply names a tile exactly when it switches."""
    if Opcode(fields["opcode"]) not in MULTIPLIES:
        return fields
    switches, named = bool(fields["flags"] & Flag.SWITCH), fields["index"] != NO_TILE
    if switches != named:
        message = "a multiply that switches needs tile=" if switches else "a multiply that doesn't switch has no tile"
        raise line_error("E0712", message, line[0].span)
    return fields if named else {**fields, "index": 0}
