"""The verifier of tile programs: the properties that scheduling relies on.

Every row lies inside its buffer or group, is written before it is read, and sums are begun, completed and activated in this order: by the
rules of `isa.verify`, which proves the same, and more, of the machine program that comes out. This verifier finds a fault of lowering where
it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import assert_never

import numpy as np

from tpucc.diagnostics import Source, printable
from tpucc.isa.effects import Bools
from tpucc.isa.fields import well_formed
from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import Program
from tpucc.isa.verify import definitions, endings, ports, raise_violations, reported, structure
from tpucc.isa.verify.events import Events
from tpucc.isa.verify.memories import memory_events
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Violation
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows
from tpucc.lowering.tileprogram import MULTIPLIES, TILE_RECORD, TileProgram, flat, surrounding_program, tile_lines
from tpucc.machine.instruction import RECORD
from tpucc.machine.parts import Contents, Memory
from tpucc.machines.v1 import V1, Opcode
from tpucc.numerics import Int64

SCHEDULED = (Opcode.READ_WEIGHTS, Opcode.SYNCHRONIZE, Opcode.SYNCHRONIZE_HOST, Opcode.HALT)
"""Instructions that no tile program has: scheduling adds fetches, waits and the end."""

CODES = {"V0401": "E0754", "V0403": "E0756", "V1002": "E0758", "V1003": "E0758", "V1004": "E0757"}
"""The error code of each rule of the machine that a tile program may break. The rules of sums have the code E0755."""


@dataclass(frozen=True, eq=False)
class _Context(Context):
    """The instructions of a tile program under verification."""

    _: KW_ONLY
    tiles: TileProgram

    def text(self, index: int) -> str:
        """An instruction as messages show it."""
        line = tile_lines(self.tiles, self.tiles.instructions[index : index + 1])[0]
        return f"tile instruction {index:,} `{printable(line)}`"

    def row(self, memory: Memory, row: int) -> str:
        """A row by its buffer, or by its accumulator group: `row 3 of h.0`."""
        if memory.contents is Contents.BUFFERS:
            return super().row(memory, row)
        buffers = [(buffer.name, buffer.rows) for buffer in self.tiles.buffers]
        named = buffers if memory.contents is Contents.VALUES else [(f"g{group}", rows) for group, rows in enumerate(self.tiles.groups)]
        ends = np.cumsum([rows for _, rows in named], dtype=np.int64)
        owner = int(np.searchsorted(ends, row, side="right"))
        name, rows = named[owner]
        return f"row {row - int(ends[owner]) + rows:,} of {name}"


def verify_tiles(tiles: TileProgram, places: ListingSpans | None = None, model: Source | None = None) -> None:
    """Raises `ProgramError` with the first violations, when there are any.

    `places` are the lines of the text that the program was read from, `model` the source that its layers come from: where they are known,
    messages show them.

    E0750 parts that don't fit each other, E0751 a malformed instruction, E0752 a name of nothing, E0753 rows outside, E0754 rows read
    before they are written, E0755 a sum in disorder, E0756 no tile or parameter block chosen, E0757 a buffer that its home doesn't
    hold, E0758 an output not written exactly once.
    """
    program, found = tile_violations(tiles)
    raise_violations(program, found, model, places.source if places else Source(tiles.source, ""), places)


def tile_violations(tiles: TileProgram) -> tuple[Program, tuple[Violation, ...]]:
    """The violations of `verify_tiles`, and the program that they are about."""
    program = surrounding_program(tiles)
    found = reported(_parts(tiles, program))
    if not found:
        program = replace(program, instructions=tiles.instructions, layer_of=tiles.instructions["layer"])
        context = _Context(program, tiles=tiles)
        for stage in (_records, _counts, _names, _rows, _meaning):
            found = found or reported(stage(context))
    return program, found


def _parts(tiles: TileProgram, program: Program) -> Iterator[Violation]:
    """The violations of the machine's rules about a program's parts, then of the rules about buffers and groups."""
    if tiles.instructions.dtype != TILE_RECORD or tiles.instructions.ndim != 1:
        yield Violation("E0750", "the instructions aren't tile records")
    context = Context(program)
    for violation in (*structure.check(context), *ports.check(context)):
        yield replace(violation, code="E0750")
    if min(tiles.groups, default=1) < 1:
        yield Violation("E0750", f"the accumulator group g{tiles.groups.index(min(tiles.groups))} has no rows", about=("groups", ""))
    if len({buffer.name for buffer in tiles.buffers}) < len(tiles.buffers):
        yield Violation("E0750", "two buffers have the same name", about=("buffer", ""))
    for buffer in tiles.buffers:
        about = ("buffer", buffer.name)
        if buffer.rows < 1:
            yield Violation("E0750", f"the buffer {printable(buffer.name)} has no rows", about=about)
        held = tiles.host[buffer.home] if 0 <= buffer.home < len(tiles.host) else None
        if buffer.home != -1 and (held is None or held.rows != buffer.rows or held.kind not in ("input", "constant")):
            yield Violation(
                "E0750", f"the home of {printable(buffer.name)} isn't an input or constant of {buffer.rows:,} rows", about=about
            )
        if tiles.layers and not 0 <= buffer.layer < len(tiles.layers):
            yield Violation(
                "E0750", f"{printable(buffer.name)} belongs to layer {buffer.layer}; there are {len(tiles.layers):,}", about=about
            )


def _records(context: _Context) -> Iterator[Violation]:
    """Each record is the encoding of a tile instruction."""
    code = context.tiles.instructions
    machine = np.zeros(len(code), RECORD)
    for name in RECORD.names or ():
        machine[name] = code[name]
    machine["index"][np.isin(code["opcode"], MULTIPLIES)] = 0
    bad = np.isin(code["opcode"], SCHEDULED) | ~well_formed(V1, machine)
    yield from _numbered("E0751", bad, "is malformed, or one that only scheduling makes")


def _numbered(code: str, wrong: Bools, message: str, values: Int64 | None = None) -> Iterator[Violation]:
    """A violation for each of the first instructions that are `wrong`, by their numbers: not every name in their lines is of something.
    `{}` in the message stands for the instruction's value."""
    for index in np.flatnonzero(wrong)[:MAX_REPORTED].tolist():
        yield Violation(code, f"tile instruction {index:,} {message.format(0 if values is None else int(values[index]))}", index)


def _counts(context: _Context) -> Iterator[Violation]:
    """Instructions that move rows move at least one."""
    yield from _numbered("E0753", context.effects.moves & (context.effects.rows == 0), "has a count of 0")


def _names(context: _Context) -> Iterator[Violation]:
    """Layers, buffers, groups, tiles and parameter blocks exist, and are named by the instructions that use some."""
    tiles, touched = context.tiles, context.effects
    code = tiles.instructions
    wanted = {
        "layer": (np.ones(len(code), np.bool_), len(tiles.layers)),
        "ub_buffer": (touched.source.used, len(tiles.buffers)),
        "ub2_buffer": (touched.source2.used, len(tiles.buffers)),
        "dest_buffer": (touched.target.used, len(tiles.buffers)),
        "group": (touched.sums.used, len(tiles.groups)),
    }
    for field, (used, count) in wanted.items():
        value = code[field].astype(np.int64)
        bad = np.where(used, (value < 0) | (value >= count), (value != -1) if field != "layer" else False)
        yield from _numbered("E0752", bad, f"has {field.replace('_', ' ')} {{}}; there are {count:,}", value)
    fixed, every, written = len(tiles.tiles), tiles.tile_count, code["index"].astype(np.int64)
    for used, count, what in ((touched.pops, every, "tile"), (touched.configures, len(tiles.blocks), "parameter block")):
        yield from _numbered("E0752", used & (written >= count), f"names {what} {{:,}}; there are {count:,}", written)
    kept = touched.stores & ((written < fixed) | (written >= every))
    yield from context.each("E0752", kept, f"writes none of the tiles {fixed:,} to {every - 1:,}, which are there to be written")


def _rows(context: _Context) -> Iterator[Violation]:
    """Every row lies in its buffer, group or host buffer."""
    tiles, touched = context.tiles, context.effects
    code = tiles.instructions
    rows, groups = buffer_rows(tiles.buffers), np.array(tiles.groups, np.int64)
    for field, walks in zip(BUFFER_FIELDS, (touched.source, touched.source2, touched.target), strict=True):
        yield from context.each("E0753", _beyond(walks.high, rows, code[field]), f"reaches past the end of its {field.replace('_', ' ')}")
    yield from context.each("E0753", _beyond(touched.sums.high, groups, code["group"]), "reaches past the end of its accumulator group")
    ends = np.array([*(buffer.end for buffer in context.host), 0], np.int64)
    outside = touched.host.used & (touched.host.high > ends[context.buffer_of(touched.host.low)])
    yield from context.each("E0753", outside, "moves host rows that are in no one host buffer")


def _beyond(high: Int64, sizes: Int64, owner: Int64) -> Bools:
    """Whether the rows up to `high` pass the end of their buffer or group `owner`; `owner` is -1 where there is none."""
    return high > np.append(sizes, 0)[owner]


def _meaning(context: _Context) -> Iterator[Violation]:
    """The machine's rules about what instructions read and write, in program order. All buffers lie one after the other, and so do all
    groups."""
    context = replace(context, program=replace(context.program, instructions=flat(context.tiles)))
    touched = context.effects
    switched = np.logical_or.accumulate(touched.pops)
    yield from context.each("E0756", touched.multiplies & ~switched, "needs a weight tile, and none was switched to before")
    yield from _homes(context)
    rules = [definitions.configuration(context), endings.inputs_kept(context)]
    rules += [_history(context, memory, events) for memory in V1.memories for events in memory_events(context, memory)]
    for violation in chain.from_iterable(rules):
        yield replace(violation, code=CODES.get(violation.code, "E0755"))


def _history(context: _Context, memory: Memory, events: Events) -> Iterator[Violation]:
    """The rules about the rows of a memory, in program order."""
    match memory.contents:
        case Contents.VALUES:
            yield from definitions.values(context, events, memory)
        case Contents.SUMS:
            yield from definitions.begun(context, events, memory)
            yield from definitions.sums(context, events, memory)
        case Contents.BUFFERS:
            yield from endings.outputs(context, events, memory)
        case _:
            assert_never(memory.contents)


def _homes(context: _Context) -> Iterator[Violation]:
    """A buffer with a home gets its rows from there and nowhere else."""
    tiles, touched = context.tiles, context.effects
    code, buffer = tiles.instructions, tiles.instructions["dest_buffer"]
    starts = np.array([tiles.host[b.home].start if b.home >= 0 else -1 for b in tiles.buffers] + [-1], np.int64)[buffer]
    right = touched.host_reads & (touched.host.low == starts + code["dest"])
    yield from context.each("E0757", touched.target.used & (starts >= 0) & ~right, "writes a buffer that has a home, but not from there")
