"""What to say when the operands of one instruction don't fit the unified buffer: in the names of the source, not in ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType

import numpy as np

from tpucc.diagnostics import Diagnostic, Label, LimitError, counted
from tpucc.isa.program import LayerInfo
from tpucc.lowering.tileprogram import TileProgram

_PARTS = MappingProxyType({"band": "a band of lines of {}", "lines": "a few lines of {}", "patches": "the patches of {}"})
"""What passes add to a name, in words. Names of a source have no dots."""
_HELP = ("make the batch smaller, or each item of it: fewer pixels, shorter sequences", "use a larger target")


def too_large(tiles: TileProgram, needed: Sequence[int], index: int) -> LimitError:
    """E0621 for instruction `index`, whose operands are the buffers `needed`."""
    layer = tiles.layers[int(tiles.instructions["layer"][index])]
    room, rows = tiles.target.unified_buffer_rows, sum(tiles.buffers[buffer].rows for buffer in needed)
    copies = "#copy" in layer.name
    reader = _reader(tiles, index) if copies else None
    purpose = f" for {_known(reader.name)}" if reader else ""
    work = f"copying {_known(layer.name)}{purpose} takes" if copies else f"{_known(layer.name)} works on"
    message = f"{work} {counted(rows, 'row')} at once, {rows - room:,} more than the unified buffer of {room:,} has"
    return LimitError(Diagnostic("E0621", message, tuple(_labels(layer, reader)), _HELP))


def _labels(layer: LayerInfo, reader: LayerInfo | None) -> Iterator[Label]:
    yield from layer.origin.labels()
    if reader is not None:
        yield from reader.origin.labels(f"{_known(reader.name)} reads {layer.choice}")


def _known(name: str) -> str:
    """A layer's name as the source has it: `x` for `x.i8#copy0`, `a band of lines of h` for `h.band.2`."""
    base, *parts = re.split(r"[.#]", name)
    words = next((_PARTS[part] for part in reversed(parts) if part in _PARTS), "{}")
    return words.format(base or name)


def _reader(tiles: TileProgram, index: int) -> LayerInfo | None:
    """The first layer after instruction `index` that reads what it writes."""
    code, written = tiles.instructions[index + 1 :], tiles.instructions["dest_buffer"][index]
    reads = ((code["ub_buffer"] == written) | (code["ub2_buffer"] == written)) & (code["layer"] != tiles.instructions["layer"][index])
    return tiles.layers[int(code["layer"][np.argmax(reads)])] if reads.any() else None
