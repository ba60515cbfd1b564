"""The checker of tile programs: what scheduling may take for granted.

Every row lies inside its buffer or group, is written before it is read, and sums are begun, completed and activated in this order.
`isa.verify` proves the same, and more, of the machine program that comes out; this check finds a fault of lowering where it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from tpucc.diagnostics import Diagnostic, Label, ProgramError, Source, printable
from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.fields import well_formed
from tpucc.isa.listing.lines import Places, with_numbering
from tpucc.isa.numbering import Numbering
from tpucc.isa.verify import ports, structure
from tpucc.isa.verify.events import READ, WRITE, Accesses, Events, events, walk_accesses
from tpucc.isa.verify.rules import Context, Violation
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows
from tpucc.lowering.tileprogram import MULTIPLIES, TILE_RECORD, TileProgram, flat, surrounding_program, tile_lines
from tpucc.machine.record import RECORD
from tpucc.machines.v1 import V1, Opcode
from tpucc.numerics import Int64

MAX_REPORTED = 10
ALLOWED = (
    *(Opcode.NOP, Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY, Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE),
    *(Opcode.WRITE_WEIGHTS, Opcode.ACTIVATE, Opcode.VECTOR, Opcode.POOL, Opcode.SET_CONFIGURATION, Opcode.INTERRUPT_HOST, Opcode.DEBUG_TAG),
)
"""The instructions of a tile program. Scheduling adds fetches, waits and the end."""


Found = tuple[int, str, str]
"""A broken rule before its instruction's text is known: the index, the code, the message."""


def verify_tiles(tiles: TileProgram, places: Places | None = None, model: Source | None = None, numbering: Numbering | None = None) -> None:
    """Raises `ProgramError` with the first violations, when there are any.

    `places` are the lines of the text that the program was read from, `model` the source that its layers come from: where they are known,
    messages show them. `numbering` has the instructions' numbers before they were put into another order.

    E0750 parts that don't fit each other, E0751 a malformed instruction, E0752 a name of nothing, E0753 rows outside, E0754 rows read
    before they are written, E0755 a sum in disorder, E0756 no tile or parameter block chosen, E0757 a buffer that its home doesn't
    hold, E0758 an output not written exactly once.
    """
    for stage in (_parts, _records, _counts, _names, _rows, _meaning):
        found = list(islice(stage(tiles), MAX_REPORTED))
        if found:
            source = places.source if places else Source(tiles.source, "")
            found = (
                [replace(fault, message=numbering.words(fault.message, fault.instruction, fault.other)) for fault in found]
                if numbering is not None
                else found
            )
            diagnostics = [_diagnostic(tiles, fault, places, model) for fault in found]
            raise ProgramError(with_numbering(diagnostics, places), source)


def _diagnostic(tiles: TileProgram, fault: Violation, places: Places | None, model: Source | None) -> Diagnostic:
    labels = (places.labels(fault.instruction) or places.of(*fault.about)) if places else ()
    if fault.instruction >= 0 and model is not None:
        layer = int(tiles.instructions["layer"][fault.instruction])
        spans = tiles.layers[layer].origin.call if layer < len(tiles.layers) else ()
        labels += tuple(Label(span, "compiled from here", model) for span in spans)
    return Diagnostic(fault.code, fault.message, labels)


def _parts(tiles: TileProgram) -> Iterator[Violation]:
    """The program's parts by the machine's own rules, without instructions; then what only tile programs have."""
    if tiles.instructions.dtype != TILE_RECORD or tiles.instructions.ndim != 1:
        yield Violation("E0750", "the instructions aren't tile records")
    context = Context(surrounding_program(tiles))
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


def _records(tiles: TileProgram) -> Iterator[Violation]:
    """Each record is one encoding of a tile instruction."""
    code = tiles.instructions
    machine = np.zeros(len(code), RECORD)
    for name in RECORD.names or ():
        machine[name] = code[name]
    machine["index"][np.isin(code["opcode"], MULTIPLIES)] = 0
    bad = ~np.isin(code["opcode"], ALLOWED) | ~well_formed(V1, machine)
    for index in np.flatnonzero(bad).tolist():
        yield Violation("E0751", f"tile instruction {index:,} is malformed, or one that only scheduling makes", index)


def _counts(tiles: TileProgram) -> Iterator[Violation]:
    """Instructions that move rows move at least one."""
    touched = effects(tiles.instructions)
    for index in np.flatnonzero(touched.moves & (touched.rows == 0)).tolist():
        yield Violation("E0753", f"tile instruction {index:,} has a count of 0", index)


def _names(tiles: TileProgram) -> Iterator[Violation]:
    """Layers, buffers, groups, tiles and parameter blocks exist, and are named by the instructions that use some."""
    code, touched = tiles.instructions, effects(tiles.instructions)
    uses_group = touched.acc_end > touched.acc_start
    wanted = {
        "layer": (np.ones(len(code), np.bool_), len(tiles.layers)),
        "ub_buffer": (touched.source.used, len(tiles.buffers)),
        "ub2_buffer": (touched.source2.used, len(tiles.buffers)),
        "dest_buffer": (touched.target.used, len(tiles.buffers)),
        "group": (uses_group, len(tiles.groups)),
    }
    for field, (used, count) in wanted.items():
        value = code[field].astype(np.int64)
        bad = np.where(used, (value < 0) | (value >= count), (value != -1) if field != "layer" else False)
        for index in np.flatnonzero(bad).tolist():
            yield Violation("E0752", f"tile instruction {index:,} has {field.replace('_', ' ')} {value[index]}; there are {count:,}", index)
    fixed, every = len(tiles.tiles), len(tiles.tiles) + tiles.written_tiles
    for used, count, what in ((touched.pops, every, "tile"), (touched.configures, len(tiles.blocks), "parameter block")):
        for index in np.flatnonzero(used & (code["index"] >= count)).tolist():
            yield Violation("E0752", f"tile instruction {index:,} names {what} {code['index'][index]:,}; there are {count:,}", index)
    written = code["index"].astype(np.int64)
    kept = touched.stores & ((written < fixed) | (written >= every))
    yield from _each(tiles, "E0752", kept, f"writes none of the tiles {fixed:,} to {every - 1:,}, which are there to be written")


def _rows(tiles: TileProgram) -> Iterator[Violation]:
    """Every row lies in its buffer, group or host buffer."""
    touched, code = effects(tiles.instructions), tiles.instructions
    rows, groups = buffer_rows(tiles.buffers), np.array(tiles.groups, np.int64)
    for field, walks in zip(BUFFER_FIELDS, (touched.source, touched.source2, touched.target), strict=True):
        yield from _each(tiles, "E0753", _beyond(walks.high, rows, code[field]), f"reaches past the end of its {field.replace('_', ' ')}")
    yield from _each(tiles, "E0753", _beyond(touched.acc_end, groups, code["group"]), "reaches past the end of its accumulator group")
    host = sorted(tiles.host, key=lambda buffer: buffer.start)
    place = np.searchsorted(np.array([buffer.start for buffer in host], np.int64), touched.host_start, side="right") - 1
    ends = np.array([*(buffer.start + buffer.rows for buffer in host), 0], np.int64)
    outside = (touched.host_end > touched.host_start) & (touched.host_end > ends[place])
    yield from _each(tiles, "E0753", outside, "moves host rows that are in no one host buffer")


def _beyond(high: Int64, sizes: Int64, owner: Int64) -> Bools:
    """Whether the rows up to `high` pass the end of what they are rows of; -1 owns nothing."""
    return high > np.append(sizes, 0)[owner]


def _meaning(tiles: TileProgram) -> Iterator[Violation]:
    touched = effects(flat(tiles))
    chosen = np.logical_or.accumulate(touched.configures)
    yield from _each(tiles, "E0756", touched.configured & ~chosen, "needs a parameter block, and none was chosen before")
    switched = np.logical_or.accumulate(touched.pops)
    yield from _each(tiles, "E0756", touched.multiplies & ~switched, "needs a weight tile, and none was switched to before")
    yield from _homes(tiles, touched)
    yield from _defined(tiles, touched)
    yield from _sums(tiles, touched)
    yield from _outputs(tiles, touched)


def _homes(tiles: TileProgram, touched: Effects) -> Iterator[Violation]:
    """A buffer with a home gets its rows from there and nowhere else; no input or constant of the host is written."""
    code, buffer = tiles.instructions, tiles.instructions["dest_buffer"]
    starts = np.array([tiles.host[b.home].start if b.home >= 0 else -1 for b in tiles.buffers] + [-1], np.int64)[buffer]
    right = touched.host_reads & (touched.host_start == starts + code["dest"])
    yield from _each(tiles, "E0757", touched.target.used & (starts >= 0) & ~right, "writes a buffer that has a home, but not from there")
    held = sorted((each for each in tiles.host if each.kind in ("input", "constant")), key=lambda each: each.start)
    begins, ends = np.array([each.start for each in held], np.int64), np.array([each.end for each in held], np.int64)
    last = (
        np.searchsorted(begins, touched.host_end) - 1
    )  # they share no rows: only the last that begins before the end of a write can be hit
    hits = touched.host_writes & (last >= 0) & (np.append(ends, 0)[last] > touched.host_start)
    yield from _each(tiles, "E0757", hits, lambda index: f"writes to {held[last[index]].name}, which the host holds")


def _defined(tiles: TileProgram, touched: Effects) -> Iterator[Violation]:
    accesses = [*walk_accesses(touched.source, READ), *walk_accesses(touched.source2, READ), *walk_accesses(touched.target, WRITE)]
    names = [(buffer.name, buffer.rows) for buffer in tiles.buffers]
    found: list[Found] = []
    for part in events(accesses):
        undefined = (part.kind == READ) & (part.last(part.kind == WRITE) < 0)
        found += _first("E0754", part, undefined, "reads {row}, which nothing has written", names)
    yield from _told(tiles, found)


def _sums(tiles: TileProgram, touched: Effects) -> Iterator[Violation]:
    """The first tile of a sum overwrites, the others add, then it is activated, and every sum is."""
    start, end = touched.acc_start, touched.acc_end
    reads, writes = (np.flatnonzero((end > start) & among) for among in (~touched.acc_writes, touched.acc_writes))
    names = [(f"g{group}", rows) for group, rows in enumerate(tiles.groups)]
    found: list[Found] = []
    for part in events([Accesses.of(reads, start[reads], end[reads], READ), Accesses.of(writes, start[writes], end[writes], WRITE)]):
        before = part.last(np.ones(len(part), np.bool_))
        adds = touched.acc_reads[part.instruction] & (part.kind == WRITE)
        open_sum = (before >= 0) & (part.kind[before] == WRITE)
        empty = (part.kind == READ) & ~(part.last(part.kind == WRITE) >= 0)
        found += _first("E0755", part, empty, "activates {row}, a sum that nothing is added to", names)
        found += _first("E0755", part, adds & ~open_sum, "adds to {row}, where no sum is begun", names)
        lost = (part.kind == WRITE) & ~adds & open_sum
        found += _first("E0755", part, lost, "overwrites {row}, a sum that wasn't activated", names)
        left = (part.kind == WRITE) & part.ends_segment
        found += _first("E0755", part, left, "leaves {row}, a sum that nothing activates", names)
    yield from _told(tiles, found)


def _outputs(tiles: TileProgram, touched: Effects) -> Iterator[Violation]:
    """Every row of every output is written, and once."""
    writes = np.flatnonzero(touched.host_writes)
    low, high = touched.host_start[writes], touched.host_end[writes]
    order = np.argsort(low, kind="stable")
    overlap = low[order[1:]] < high[order[:-1]]
    twice = np.zeros(len(touched), np.bool_)
    twice[writes[order[1:][overlap]]] = True
    yield from _each(tiles, "E0758", twice, "writes rows of an output a second time")
    outputs = [buffer for buffer in tiles.host if buffer.kind == "output"]
    if twice.any() or int((high - low).sum()) == sum(buffer.rows for buffer in outputs):
        return
    for buffer in outputs:
        written = int((np.minimum(high, buffer.end) - np.maximum(low, buffer.start)).clip(0).sum())
        if written < buffer.rows:
            message = f"the output buffer {printable(buffer.name)} has {buffer.rows:,} rows, and {written:,} are written"
            yield Violation("E0758", message, about=("host", buffer.name))


def _first(code: str, part: Events, wrong: Bools, message: str, names: Sequence[tuple[str, int]]) -> Iterator[Found]:
    """For each instruction its first event that is wrong; `{row}` in the message is a row of one of `names`, which lie one after the other
    with so many rows each."""
    ends = np.cumsum([rows for _, rows in names], dtype=np.int64)
    instructions, places = np.unique(part.instruction[wrong], return_index=True)
    for index, row in zip(instructions.tolist(), part.row[wrong][places].tolist(), strict=True):
        owner = int(np.searchsorted(ends, row, side="right"))
        name, rows = names[owner]
        yield index, code, message.format(row=f"row {row - int(ends[owner]) + rows:,} of {name}")


def _told(tiles: TileProgram, found: Iterable[Found]) -> Iterator[Violation]:
    """The first faults, in the order of the program, with the instructions' texts; of one kind and instruction one."""
    first = sorted({(index, code): message for index, code, message in found}.items())[:MAX_REPORTED]
    if not first:
        return
    lines = tile_lines(tiles, tiles.instructions[[index for (index, _), _ in first]])
    for ((index, code), message), line in zip(first, lines, strict=True):
        yield Violation(code, f"tile instruction {index:,} `{printable(line)}` {message}", index)


def _each(tiles: TileProgram, code: str, wrong: Bools, message: str | Callable[[int], str]) -> Iterator[Violation]:
    """A diagnostic for each of the first marked instructions, with its text; the message may depend on its number."""
    indices = np.flatnonzero(wrong)[:MAX_REPORTED]
    lines = tile_lines(tiles, tiles.instructions[indices]) if len(indices) else []
    for index, line in zip(indices.tolist(), lines, strict=True):
        said = message if isinstance(message, str) else message(index)
        yield Violation(code, f"tile instruction {index:,} `{printable(line)}` {said}", index)
