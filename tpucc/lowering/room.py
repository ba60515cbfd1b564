"""The check that the operands of each instruction fit the unified buffer together: no allocation and no spilling can do without that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType

import numpy as np

from tpucc.diagnostics import Diagnostic, Label, LimitError, counted, some
from tpucc.isa.program import LayerInfo
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows
from tpucc.lowering.tileprogram import TileProgram, VirtualBuffer
from tpucc.machine.instruction import Records
from tpucc.numerics import Int64

CODE = "E0621"
_PARTS = MappingProxyType({"band": "a band of lines of {}", "lines": "a few lines of {}", "patches": "the patches of {}"})
"""Endings that passes add to a name, in words."""
_ADDED = re.compile(rf"([.#]({'|'.join(_PARTS)}|copy\d+|[iuf]\d+|\d+))+$")
"""Everything that passes add to a name: numbers and formats, too. The name of a layer that is named after its weights has dots of its
own."""
NAMED = 3
"""Other layers that the message names."""
_HELP = ("make the batch smaller, or each item of it: fewer pixels, shorter sequences", "use a larger target")


def shortage_of(tiles: TileProgram) -> LimitError | None:
    """E0621 for the instruction whose operands take the most rows, where they don't fit the unified buffer; None where all operands fit.

    The constants of `tiles` aren't needed, which may take much memory."""
    rows = rows_at_once(tiles.instructions, tiles.buffers)
    over = np.flatnonzero(rows > tiles.target.unified_buffer_rows)
    if not len(over):
        return None
    index = int(over[np.argmax(rows[over])])
    operands = {int(tiles.instructions[field][index]) for field in BUFFER_FIELDS}
    names = [_ADDED.sub("", tiles.layers[layer].name) for layer in dict.fromkeys(tiles.instructions["layer"][over].tolist())]
    return too_large(tiles, sorted(buffer for buffer in operands if buffer >= 0), index, names)


def rows_at_once(instructions: Records, buffers: Sequence[VirtualBuffer]) -> Int64:
    """The sum of the rows of the operands of each instruction: int64 [instructions]."""
    operands = np.sort(np.stack([instructions[field] for field in BUFFER_FIELDS], axis=1), axis=1)
    repeated = np.pad(operands[:, 1:] == operands[:, :-1], ((0, 0), (1, 0)))
    rows = np.append(buffer_rows(buffers), 0)[operands]
    found: Int64 = np.where(repeated, 0, rows).sum(axis=1)
    return found


def too_large(tiles: TileProgram, needed: Sequence[int], index: int, names: Sequence[str] = ()) -> LimitError:
    """E0621 for instruction `index`, whose operands are the buffers `needed`; `names` has the names of all layers that don't fit."""
    layer = tiles.layers[int(tiles.instructions["layer"][index])]
    room, rows = tiles.target.unified_buffer_rows, sum(tiles.buffers[buffer].rows for buffer in needed)
    copies = layer.is_copy
    reader = _reader(tiles, index) if copies else None
    purpose = f" for {_known(reader.name)}" if reader else ""
    work = f"copying {_known(layer.name)}{purpose} takes" if copies else f"{_known(layer.name)} works on"
    message = f"{work} {counted(rows, 'row')} at once, {rows - room:,} more than the unified buffer of {room:,} has"
    own = {_ADDED.sub("", named.name) for named in (layer, reader) if named}
    others = [name for name in dict.fromkeys(names) if name not in own]
    also = [f"{some(others, NAMED)} {'takes' if len(others) == 1 else 'take'} too many rows, too"] if others else []
    return LimitError(Diagnostic(CODE, message, tuple(_labels(layer, reader)), (*also, *_HELP)))


def _labels(layer: LayerInfo, reader: LayerInfo | None) -> Iterator[Label]:
    yield from layer.origin.labels()
    if reader is not None:
        yield from reader.origin.labels(f"{_known(reader.name)} reads {layer.choice}")


def _known(name: str) -> str:
    """A layer's name as the source has it: `x` for `x.i8#copy0`, `a band of lines of h` for `h.band.2`."""
    base = _ADDED.sub("", name)
    words = next((_PARTS[part] for part in reversed(re.split(r"[.#]", name[len(base) :])) if part in _PARTS), "{}")
    return words.format(base or name)


def _reader(tiles: TileProgram, index: int) -> LayerInfo | None:
    """The first layer after instruction `index` that reads the buffer that the instruction writes; None if there is none."""
    code, written = tiles.instructions[index + 1 :], tiles.instructions["dest_buffer"][index]
    reads = ((code["ub_buffer"] == written) | (code["ub2_buffer"] == written)) & (code["layer"] != tiles.instructions["layer"][index])
    return tiles.layers[int(code["layer"][np.argmax(reads)])] if reads.any() else None
