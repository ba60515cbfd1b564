"""Group 1: the program's parts fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

import numpy as np

from tpucc.diagnostics import printable
from tpucc.isa.program import CORES, HOST_ROWS, KINDS, ORDERS, Program, array_types
from tpucc.isa.verify.rules import Context, Rule, Violation, twice
from tpucc.machine.memory import Contents
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
    Rule("V0104", "memory map", "Stays in the unified buffer lie inside it and inside the program, and belong to a layer."),
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
        yield Violation(
            "V0102", f"instruction {index:,} belongs to layer {program.layer_of[index]}; there are {len(program.layers):,}", index
        )
    for layer in program.layers:
        about = ("layer", layer.name)
        if not layer.origin:
            yield Violation("V0102", f"layer {printable(layer.name)} has no origin", about=about)
        if not 0 <= layer.macs < MACS or min(layer.weights) < 0 or prod(layer.weights) > WEIGHTS:
            yield Violation("V0102", f"layer {printable(layer.name)} has a size below zero, or one that no layer has", about=about)
        elif layer.macs and not all(layer.weights):
            yield Violation("V0102", f"layer {printable(layer.name)} has {layer.macs:,} multiply-accumulates, and no weights", about=about)
        if any(layer.group) and not _divides(layer.group, layer.weights):
            sizes = "×".join(map(str, layer.group))
            why = f"layer {printable(layer.name)} has groups of {sizes}, into which its weights can't be divided"
            yield Violation("V0102", why, about=about)
        for tile, rows, columns in layer.tile_fills:
            if not (0 <= tile < program.tile_count and 0 < rows <= program.target.mxu and 0 < columns <= program.target.mxu):
                yield Violation(
                    "V0102", f"layer {printable(layer.name)} names tile {tile} filled {rows}×{columns}, which can't be", about=about
                )
                break


def _division(program: Program) -> Iterator[Violation]:
    found = program.division
    if found is None:
        return
    if found.order not in ORDERS or not (1 < found.parts <= HOST_ROWS and 0 < found.items <= HOST_ROWS):
        message = f"the batch is divided into {found.parts:,} parts of at most {found.items:,}, {printable(found.order)}, which can't be"
        yield Violation("V0102", message, about=("division", ""))
    if found.until and found.until not in {layer.name for layer in program.layers}:
        yield Violation("V0102", f"the batch is divided until {printable(found.until)}, which is no layer", about=("division", ""))


def _divides(group: tuple[int, int], weights: tuple[int, int]) -> bool:
    return min(group) > 0 and not any(whole % part for part, whole in zip(group, weights, strict=True))


def _host(program: Program) -> Iterator[Violation]:
    yield from twice("V0103", "host buffers", "host", program.host)
    for buffer in program.host:
        if buffer.kind not in KINDS:
            yield Violation(
                "V0103", f"host buffer {printable(buffer.name)} has the unknown kind {printable(buffer.kind)}", about=("host", buffer.name)
            )
        if buffer.start < 0 or buffer.rows <= 0:
            yield Violation(
                "V0103",
                f"host buffer {printable(buffer.name)} has {buffer.rows:,} rows from row {buffer.start:,}",
                about=("host", buffer.name),
            )
    for below, above in pairwise(sorted(program.host, key=lambda buffer: buffer.start)):
        if below.end > above.start:
            yield Violation(
                "V0103", f"the host buffers {printable(below.name)} and {printable(above.name)} overlap", about=("host", above.name)
            )
    constant = sum(buffer.rows for buffer in program.host if buffer.kind == "constant")
    if constant != len(program.constants):
        yield Violation(
            "V0103",
            f"the constant host buffers have {constant:,} rows, but there is data for {len(program.constants):,}",
            about=("constants", ""),
        )


def _residents(program: Program) -> Iterator[Violation]:
    memory = program.machine.holding(Contents.VALUES)
    rows, title = (memory.size(program.target), memory.title) if memory is not None else (0, "machine")
    for resident in program.residents:
        name, about = printable(resident.name), ("resident", resident.name)
        if not (resident.start >= 0 and resident.rows > 0 and resident.end <= rows):
            yield Violation(
                "V0104",
                f"the stay of {name} has {resident.rows:,} rows from row {resident.start:,}, outside the {title}",
                about=about,
            )
        elif not 0 <= resident.first <= resident.last < program.instructions.size:
            yield Violation("V0104", f"the stay of {name} lasts from instruction {resident.first:,} to {resident.last:,}", about=about)
        elif not 0 <= resident.layer < len(program.layers):
            yield Violation(
                "V0104", f"the stay of {name} belongs to layer {resident.layer}; there are {len(program.layers):,}", about=about
            )
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
        yield Violation(
            "V0105",
            f"tiles and parameter blocks take {weights:,} bytes of {target.weight_memory_bytes:,} of weight memory",
            about=_over(program),
        )
    if program.host_rows > HOST_ROWS:
        message = f"the host memory of {program.host_rows:,} rows can't be simulated; at most {HOST_ROWS:,} rows can"
        yield Violation("V0105", message, about=("host", max(program.host, key=lambda held: held.end).name))


def _over(program: Program) -> tuple[str, str]:
    """The first directive for which weight memory has no room: of the program's tiles, of those that it writes, of a parameter block."""
    target, room = program.target, program.target.weight_memory_bytes
    if program.tiles.nbytes > room:
        return "tile", str(room // target.tile_bytes)
    return ("written_tiles", "") if program.tiles.nbytes + program.written_tiles * target.tile_bytes > room else ("block", "")
