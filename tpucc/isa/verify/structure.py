"""Group 1: the program's parts fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from math import prod

import numpy as np

from tpucc.diagnostics import printable
from tpucc.isa.program import CORES, HOST_ROWS, KINDS, ORDERS, HostBuffer, LayerInfo, Program, Resident, array_types
from tpucc.isa.verify.rules import Context, Rule, Violation, for_each, named_twice
from tpucc.machine.parts import Contents
from tpucc.target import MEMORY_ROWS

MACS = 2**53
"""No layer has as many: up to here, counts in floating-point numbers are exact."""
WEIGHTS = 2**40
"""Elements of the largest weights."""

RULES = (
    Rule(
        "V0101",
        "arrays",
        "Instructions, layers of instructions, tiles, parameter blocks and constants have the types and shapes of the format.",
    ),
    Rule(
        "V0102",
        "layers",
        "Every instruction belongs to a layer, every layer has an origin, and its tiles are tiles of the program; a division of the batch "
        "ends at a layer.",
    ),
    Rule("V0103", "host buffers", "Host buffers have different names, a known kind and rows of their own; constants have their data."),
    Rule("V0104", "memory map", "Stays of buffers lie inside their memory and inside the program, and belong to a layer."),
    Rule("V0105", "memories", "Tiles and parameter blocks fit the weight memory, and all memories are of a size that can be simulated."),
    Rule("V0109", "cores", f"A program runs on 1 to {CORES:,} cores."),
)


def check(context: Context) -> Iterator[Violation]:
    """The violations of group 1; when there are none, all indices into the program's parts are good."""
    program = context.program
    arrays = list(_arrays(program))
    if arrays:
        yield from arrays
        return
    yield from _layers(program)
    yield from _division(program)
    yield from _host(program)
    yield from _residents(program)
    yield from _memories(program)
    if not 1 <= program.cores <= CORES:
        yield Violation("V0109", f"the program is for {program.cores:,} cores; it can be for 1 to {CORES:,}", about=("cores", ""))


def _arrays(program: Program) -> Iterator[Violation]:
    for name, (dtype, shape) in array_types(program.machine, program.target.mxu).items():
        array = getattr(program, name)
        if array.dtype != dtype or array.ndim != 1 + len(shape) or array.shape[1:] != shape:
            yield Violation("V0101", f"{name} have the shape {list(array.shape)} or a type that the format doesn't have")
    layer_of = program.layer_of
    if layer_of.dtype.kind not in "iu" or layer_of.shape != (program.instructions.size,):
        yield Violation("V0101", f"layer_of has the shape {list(layer_of.shape)}, but there are {program.instructions.size:,} instructions")


def _layers(program: Program) -> Iterator[Violation]:
    outside = np.flatnonzero((program.layer_of >= len(program.layers)) | (program.layer_of < 0))
    if len(outside):
        index = int(outside[0])
        message = f"instruction {index:,} belongs to layer {program.layer_of[index]}; there are {len(program.layers):,}"
        yield Violation("V0102", message, index)
    yield from for_each("V0102", "layer", "layer", program.layers, partial(_layer, program))


def _layer(program: Program, layer: LayerInfo) -> Iterator[str]:
    if not layer.origin:
        yield "has no origin"
    if not 0 <= layer.macs < MACS or min(layer.weights) < 0 or prod(size or 1 for size in layer.weights) > WEIGHTS:
        yield "has a size below zero, or one that no layer has"
    elif layer.macs and not all(layer.weights):
        yield f"has {layer.macs:,} multiply-accumulates, and no weights"
    if any(layer.group) and (min(layer.group) <= 0 or any(w % part for w, part in zip(layer.weights, layer.group, strict=True))):
        yield f"has groups of {'×'.join(map(str, layer.group))}, into which its weights can't be divided"
    mxu, tiles = program.target.mxu, program.tile_count
    unfit = (fill for fill in layer.tile_fills if not (0 <= fill[0] < tiles and 0 < fill[1] <= mxu and 0 < fill[2] <= mxu))
    for tile, rows, columns in islice(unfit, 1):
        yield f"names tile {tile} filled {rows}×{columns}, which can't be"


def _division(program: Program) -> Iterator[Violation]:
    found = program.division
    if found is None:
        return
    if found.order not in ORDERS or not (1 < found.parts <= HOST_ROWS and 0 < found.items <= HOST_ROWS):
        message = f"the batch is divided into {found.parts:,} parts of at most {found.items:,}, {printable(found.order)}, which can't be"
        yield Violation("V0102", message, about=("division", ""))
    if found.until and found.until not in {layer.name for layer in program.layers}:
        yield Violation("V0102", f"the batch is divided until {printable(found.until)}, which is no layer", about=("division", ""))


def _host(program: Program) -> Iterator[Violation]:
    yield from named_twice("V0103", "host buffers", "host", program.host)
    yield from for_each("V0103", "host", "host buffer", program.host, _buffer)
    for below, above in pairwise(sorted(program.host, key=lambda buffer: buffer.start)):
        if below.end > above.start:
            message = f"the host buffers {printable(below.name)} and {printable(above.name)} overlap"
            yield Violation("V0103", message, about=("host", above.name))
    constant = sum(buffer.rows for buffer in program.host if buffer.kind == "constant")
    if constant != len(program.constants):
        message = f"the constant host buffers have {constant:,} rows, but there is data for {len(program.constants):,}"
        yield Violation("V0103", message, about=("constants", ""))


def _buffer(buffer: HostBuffer) -> Iterator[str]:
    if buffer.kind not in KINDS:
        yield f"has the unknown kind {printable(buffer.kind)}"
    if buffer.start < 0 or buffer.rows <= 0:
        yield f"has {buffer.rows:,} rows from row {buffer.start:,}"


def _residents(program: Program) -> Iterator[Violation]:
    memory = program.machine.holding(Contents.VALUES)
    rows, title = (memory.size(program.target), memory.title) if memory is not None else (0, "machine")

    def faults(stay: Resident) -> Iterator[str]:
        if not (stay.start >= 0 and stay.rows > 0 and stay.end <= rows):
            yield f"has {stay.rows:,} rows from row {stay.start:,}, outside the {title}"
        elif not 0 <= stay.first <= stay.last < program.instructions.size:
            yield f"lasts from instruction {stay.first:,} to {stay.last:,}"
        elif not 0 <= stay.layer < len(program.layers):
            yield f"belongs to layer {stay.layer}; there are {len(program.layers):,}"

    yield from for_each("V0104", "resident", "the stay of", program.residents, faults)
    if program.lower_bound_rows < 0:
        yield Violation("V0104", f"the lower bound of the {title}'s peak is {program.lower_bound_rows:,} rows", about=("lower_bound", ""))


def _memories(program: Program) -> Iterator[Violation]:
    target = program.target
    if not 0 <= program.written_tiles * target.mxu <= MEMORY_ROWS:
        message = f"{program.written_tiles:,} written tiles can't be simulated; 0 to {MEMORY_ROWS // target.mxu:,} can"
        yield Violation("V0105", message, about=("written_tiles", ""))
        return
    weights = program.tiles.nbytes + program.written_tiles * target.tile_bytes + program.blocks.nbytes
    if weights > target.weight_memory_bytes:
        message = f"tiles and parameter blocks take {weights:,} bytes of {target.weight_memory_bytes:,} of weight memory"
        yield Violation("V0105", message, about=_over(program))
    if program.host_rows > HOST_ROWS:
        message = f"the host memory of {program.host_rows:,} rows can't be simulated; at most {HOST_ROWS:,} rows can"
        yield Violation("V0105", message, about=("host", max(program.host, key=lambda held: held.end).name))


def _over(program: Program) -> tuple[str, str]:
    """The first directive for which weight memory has no room: of the program's tiles, of those that it writes, of a parameter block."""
    target, room = program.target, program.target.weight_memory_bytes
    if program.tiles.nbytes > room:
        return "tile", str(room // target.tile_bytes)
    return ("written_tiles", "") if program.tiles.nbytes + program.written_tiles * target.tile_bytes > room else ("block", "")
