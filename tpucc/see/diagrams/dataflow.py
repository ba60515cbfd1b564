"""A machine program's dataflow as a diagram: from the host's rows through multiplies, activations and host steps back to the host.

A small program is drawn instruction by instruction, a larger one with a box for each layer. Both come from the same walk over the
instructions: for every row of every memory it knows who wrote it last.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted
from tpucc.ir import Graph
from tpucc.isa.effects import Effects, Resolved, effects, resolve, visited
from tpucc.isa.program import LayerInfo, Program
from tpucc.machines.v1 import SPECS, Function, Opcode
from tpucc.numerics import Int64
from tpucc.prose import percent
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.see.diagrams.hostwork import HostPart, host_part, port_rows
from tpucc.see.palette import Kind, kind_of_layer

SMALL_PROGRAM = 48
"""Instructions that move or compute rows; up to so many, each gets a box."""


class Access(NamedTuple):
    """Rows of a memory (ub, acc, host, tile), and whether they are written: those of [start, end) that a walk of these steps visits, or all
    without steps."""

    memory: str
    start: int
    end: int
    written: bool
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def rows(self) -> Int64:
        """The rows, ascending, each once."""
        rows = np.arange(self.start, self.end, dtype=np.int64)
        return rows[visited(len(rows), self.steps)] if self.steps else rows


@dataclass(slots=True)
class Flow:
    """Edges found so far: (writer, reader) and the rows that pass, by memory; a reader has each row once.

    `last` says of each row of a memory who wrote it last and who read it last; -1 for nobody.
    """

    edges: dict[tuple[int, int], list[tuple[str, Int64]]] = field(default_factory=lambda: defaultdict(list))
    last: dict[str, Int64] = field(default_factory=dict)

    def read(self, reader: int, memory: str, rows: Int64) -> None:
        """A reader has the ascending `rows` of a memory from whoever wrote them last."""
        writers, readers = self._last(memory, int(rows[-1]) + 1)
        passing = rows[(writers[rows] >= 0) & (writers[rows] != reader) & (readers[rows] != reader)]
        readers[passing] = reader
        own = writers[passing]
        changes = np.append(True, own[1:] != own[:-1])[: len(own)]
        for writer in np.unique(own[changes]).tolist():  # of many rows, far fewer are to be sorted
            self.edges[writer, reader].append((memory, passing[own == writer]))

    def write(self, writer: int, memory: str, rows: Int64) -> None:
        """A writer changes the ascending `rows` of a memory."""
        self._last(memory, int(rows[-1]) + 1)[0][rows] = writer

    def _last(self, memory: str, least: int) -> Int64:
        last = self.last.get(memory, np.empty((2, 0), np.int64))
        if last.shape[1] < least:
            grown = np.full((2, max(least, 2 * last.shape[1])), -1, np.int64)
            grown[:, : last.shape[1]] = last
            self.last[memory] = last = grown
        return last


def program_diagram(program: Program, layer_cycles: Sequence[int] = (), host: Sequence[Graph] = ()) -> Diagram:
    """The dataflow of a program. `layer_cycles`, one number a layer and one for the work on inputs, adds to each layer's box its share of
    the time. `host` are the graphs of the prologue, the host steps and the epilogue, which say where the host's boxes come from."""
    touched = effects(program.instructions)
    steps = touched.interrupts & (program.instructions["index"] < len(program.host_steps))
    moving = np.flatnonzero((touched.rows > 0) | steps)
    work = host_part(program, touched, host)
    small = len(moving) <= SMALL_PROGRAM
    boxes, edges = _instructions(program, touched, moving, work) if small else _layers(program, touched, moving, layer_cycles, work)
    count = len(program.instructions)
    written = [f"{counted(program.written_tiles, 'tile')} that the host writes"] if program.written_tiles else []
    sizes = counted(count, "instruction"), counted(len(program.tiles), "weight tile"), *written, counted(program.device_layers, "layer")
    hosts = [counted(len(program.host_steps), "host step")] if program.host_steps else []
    title = f"{program.title}: {', '.join([*sizes, *hosts])}"
    clusters = tuple(Cluster(layer.name + (f" · line {layer.origin.line}" if layer.origin.line else "")) for layer in program.layers)
    noun, subtitle, frames = ("instruction", FINE, clusters) if small else ("layer", COARSE, ())
    subtitle += STEPS if hosts else ""
    return Diagram("program", noun, title, subtitle, tuple(boxes), tuple(edges), frames, cycles=0 if small else sum(layer_cycles))


FINE = "Instructions in the order of the data; an arrow names the memory rows that one writes and another reads."
COARSE = "One box a layer; the arrows are rows of the unified buffer that one layer writes and another reads."
STEPS = " A host step reads and fills rows of host memory."


def _accesses(program: Program, touched: Effects, moving: Int64) -> Iterator[tuple[int, list[Access]]]:
    """For each instruction in order what it reads, then what it writes; a host step reads and fills host memory."""
    found: dict[int, list[Access]] = {index: [] for index in moving.tolist()}
    for written, (memory, walks) in itertools.product((False, True), touched.touches):
        own = moving[((walks.writes if written else walks.reads) & walks.used)[moving]]
        bounds = (column[own].tolist() for column in (walks.low, walks.high, walks.dense))
        for index, low, high, dense in zip(own.tolist(), *bounds, strict=True):
            found[index].append(Access(memory.name, low, high, written, () if dense else walks.steps(index)))
    for index, accesses in found.items():
        yield index, accesses + (_host_step(program, index) if touched.interrupts[index] else [])


def _host_step(program: Program, index: int) -> list[Access]:
    """What the host step of an interrupt reads and fills."""
    reads, writes = program.step_ports[int(program.instructions["index"][index])]
    parts = [(port_rows(program, port), written) for ports, written in ((reads, False), (writes, True)) for port in ports]
    runs = [(run, written) for rows, written in parts for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(run)]
    return [Access("host", int(run[0]), int(run[-1]) + 1, written) for run, written in runs]


def _instructions(program: Program, touched: Effects, moving: Int64, work: HostPart) -> tuple[list[Box], list[Edge]]:
    flow = Flow()
    place = {index: number for number, index in enumerate(moving.tolist())}
    resolved = resolve(program.instructions, touched)
    for index, accesses in _accesses(program, touched, moving):
        for access in (*accesses, *_written_tile(program, touched, resolved.tile, index)):
            (flow.write if access.written else flow.read)(place[index], access.memory, access.rows)
    ports = {index: port for port, own in work.transfers.items() for index in own}
    hosts = touched.host_reads | touched.host_writes | touched.interrupts
    boxes = [
        _host_box(program, touched, index, work, ports.get(index)) if hosts[index] else _instruction_box(program, touched, index)
        for index in moving.tolist()
    ]
    edges = [Edge(*ends, _rows_label(rows), rows[0][0] != "acc") for ends, rows in flow.edges.items()]
    for index, small in _parameters(program, touched, moving, resolved):
        edges.append(Edge(len(boxes), place[index]))
        boxes.append(Box(small, Kind.WEIGHTS, beside=place[index], origins=boxes[place[index]].origins))
    return boxes, edges


def _written_tile(program: Program, touched: Effects, tiles: Int64, index: int) -> Iterator[Access]:
    """The tile that an instruction writes, or switches to where the program has written it."""
    if touched.stores[index]:
        tile = int(program.instructions["index"][index])
        yield Access("tile", tile, tile + 1, True)
    elif touched.pops[index] and tiles[index] >= len(program.tiles):
        yield Access("tile", int(tiles[index]), int(tiles[index]) + 1, False)


def _rows_label(passed: Sequence[tuple[str, Int64]]) -> tuple[str, ...]:
    """`ub 8–10`, `200 of ub 0–1,592`, `ub 8–10, …`: the rows that pass first, and whether others do."""
    memory, rows = passed[0]
    first, last = int(rows[0]), int(rows[-1])
    holes = f"{len(rows):,} of " if len(rows) <= last - first else ""
    return (f"{holes}{memory} {first:,}{f'–{last:,}' if last > first else ''}{', …' if len(passed) > 1 else ''}",)


def _instruction_box(program: Program, touched: Effects, index: int) -> Box:
    """The box of an instruction of the device; it stands for the whole layer, as all of the layer's boxes do."""
    details = [counted(int(touched.rows[index]), "row"), f"instruction {index}"]
    layer = int(program.layer_of[index])
    own = program.layers[layer : layer + 1]
    origins, layers = tuple(info.origin for info in own), tuple(info.name for info in own)
    kind, title = Kind.VECTOR, _mnemonic(program, index)
    if touched.multiplies[index]:
        kind = Kind.MATRIX
        details[0] += ", accumulate" if touched.sums.reads[index] else ""
    if SPECS[Opcode(int(program.instructions["opcode"][index]))].functions:
        title += f" {Function(int(program.instructions['function'][index])).name.lower()}"
    return Box(title, kind, tuple(details), layer if own else -1, origins=origins, signature=title, layers=layers)


def _host_box(program: Program, touched: Effects, index: int, work: HostPart, port: tuple[str, str] | None) -> Box:
    """The box of one instruction of the host. A transfer of `port`, by its kind and name, comes from where the port comes from."""
    if touched.interrupts[index]:
        box, own = work.step_box(int(program.instructions["index"][index]), [index]), _host_layer(program, index)
        return _of_layer(box, program.layers[own]) if own >= 0 else box
    layer = int(program.layer_of[index])
    origins = (work.origins(*port) if port else ()) or tuple(info.origin for info in program.layers[layer : layer + 1])
    moved = _buffers(program, int(touched.host.low[index]), int(touched.host.high[index]))
    details, title = (moved, counted(int(touched.rows[index]), "row"), f"instruction {index}"), _mnemonic(program, index)
    return Box(title, Kind.HOST, details, origins=origins, signature=title, instructions=(index,))


def _mnemonic(program: Program, index: int) -> str:
    return Opcode(int(program.instructions["opcode"][index])).mnemonic.replace("_", " ")


def _buffers(program: Program, start: int, end: int) -> str:
    """The host buffers of a transfer: the first one's name, and how many there are besides."""
    names = [buffer.name for buffer in program.host if buffer.start < end and start < buffer.end]
    return names[0] + (f" and {counted(len(names) - 1, 'more', 'more')}" if names[1:] else "") if names else f"host row {start}"


def _parameters(program: Program, touched: Effects, moving: Int64, resolved: Resolved) -> Iterator[tuple[int, str]]:
    """The tile that a multiply switches to, and the parameter block that an activation uses first."""
    fills = {tile: (rows, columns) for layer in program.layers for tile, rows, columns in layer.tile_fills}
    named = -1
    for index, tile, block in zip(moving.tolist(), resolved.tile[moving].tolist(), resolved.block[moving].tolist(), strict=True):
        if touched.pops[index] and tile >= 0:
            rows, columns = fills.get(tile, (program.target.mxu, program.target.mxu))
            yield index, f"tile {tile} · {rows}×{columns}"
        elif touched.configured[index] and block != named:
            named = block
            yield index, f"parameters {block}"


def _layers(program: Program, touched: Effects, moving: Int64, cycles: Sequence[int], work: HostPart) -> tuple[list[Box], list[Edge]]:
    """Boxes for the layers, then for the host: its inputs before all layers, its steps where they interrupt, its outputs after all. A step
    that is a layer has that layer's box."""
    count = len(program.layers)
    instructions = np.bincount(program.layer_of, minlength=count)
    total = sum(cycles)
    times = [f"{counted(own, 'cycle')}, {percent(own, total)}" if own else "" for own in cycles]
    works = _works(program, touched, moving)
    interrupts = moving[touched.interrupts[moving]].tolist()
    numbers = program.instructions["index"][interrupts].tolist()
    steps = {at: work.step_box(step, work.instructions_of(step, at)) for step, at in zip(numbers, interrupts, strict=True)}
    hosts = {layer: steps.pop(at) for at in interrupts if (layer := _host_layer(program, at)) >= 0}
    boxes = [_layer_box(program, layer, int(instructions[layer]), times[layer] if times else "", works[layer]) for layer in range(count)]
    for layer, box in hosts.items():
        boxes[layer] = _of_layer(box, program.layers[layer], times[layer] if times else "")
    boxes = [replace(box, cycles=own) for box, own in zip(boxes, cycles or [0] * count, strict=False)]
    starts = np.full(count, len(touched), np.int64)
    np.minimum.at(starts, program.layer_of[moving].astype(np.int64), moving)
    boxes += [work.port_box("input", port) for port in work.inputs]
    boxes += steps.values()
    boxes += [work.port_box("output", port) for port in work.outputs]
    ends = [-1] * len(work.inputs) + [*steps] + [len(touched)] * len(work.outputs)
    passed = _rows_between_layers(program, touched, moving, work)
    edges = [Edge(*pair, (counted(rows, "row"),), True) for pair, rows in passed.items()]
    return _in_order(boxes, edges, [*starts.tolist(), *ends])


def _host_layer(program: Program, interrupt: int) -> int:
    """The layer that stands for the host step of an interrupt; -1 in a program whose author made it a part of another layer."""
    layer = int(program.layer_of[interrupt])
    return layer if program.layers[layer].is_host_step else -1


def _of_layer(box: Box, info: LayerInfo, time: str = "") -> Box:
    """The box of a host step that is a layer, with what it costs."""
    return replace(box, details=(*box.details, *([time] if time else [])), origins=(info.origin,), layers=(info.name,))


def _rows_between_layers(program: Program, touched: Effects, moving: Int64, work: HostPart) -> dict[tuple[int, int], int]:
    """For each two boxes how many rows one reads of what the other wrote: a row once, and again each time that it is written anew.

    Rows pass between turns: instructions of one layer in a row, or a host step. Constants (rows of zero points, for borders) belong to no
    layer, although one brings them for all.
    """
    flow, turns = Flow(), list[int]()
    count, inputs = len(program.layers), len(work.inputs)
    hosts = count + inputs
    for number, port in enumerate(work.inputs):
        turns.append(count + number)
        flow.write(number, "host", port_rows(program, port))
    layers = program.layer_of.tolist()
    seen: set[Access] = set()
    constant = _constant_rows(program)
    for index, accesses in _accesses(program, touched, moving):
        brought = any(access.memory == "host" and not access.written and constant[access.start] for access in accesses)
        layer = -1 if brought else layers[index]
        if touched.interrupts[index] and _host_layer(program, index) < 0:
            layer, hosts = hosts, hosts + 1
        if len(turns) == inputs or layer != turns[-1]:
            seen.clear()
            turns.append(layer)
        for access in accesses:
            if access not in seen and access.memory != "acc":
                seen.add(access)
                (flow.write if access.written else flow.read)(len(turns) - 1, access.memory, access.rows)
    for number, port in enumerate(work.outputs):
        turns.append(hosts + number)
        flow.read(len(turns) - 1, "host", port_rows(program, port))
    return _counted(flow, turns)


def _counted(flow: Flow, turns: Sequence[int]) -> dict[tuple[int, int], int]:
    """The rows between boxes, of those between their turns. Several turns of a box may read what one turn of another wrote."""
    passed: dict[tuple[int, int, str], list[Int64]] = defaultdict(list)
    for (writer, reader), parts in flow.edges.items():
        for memory, rows in parts:
            passed[writer, turns[reader], memory].append(rows)
    found: dict[tuple[int, int], int] = defaultdict(int)
    for (writer, box, _), read in passed.items():
        if turns[writer] >= 0 and box >= 0 and turns[writer] != box:
            found[turns[writer], box] += len(np.unique(np.concatenate(read)))
    return found


def _constant_rows(program: Program) -> npt.NDArray[np.bool_]:
    """For each row of host memory whether it is a constant."""
    found = np.zeros(program.host_rows + 1, np.bool_)
    for buffer in program.host:
        found[buffer.start : buffer.start + buffer.rows] = buffer.kind == "constant"
    return found


def _works(program: Program, touched: Effects, moving: Int64) -> list[str]:
    """For each layer what it computes, equal for layers that compute alike: each instruction's opcode and function, with the rows."""
    own = moving[~(touched.host_reads | touched.host_writes | touched.interrupts)[moving]]
    records = program.instructions[own]
    keys = np.stack([program.layer_of[own], records["opcode"], records["function"]], axis=1)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    rows = np.zeros(len(kinds), np.int64)
    np.add.at(rows, which.reshape(-1), touched.rows[own])
    found = [""] * len(program.layers)
    for (layer, opcode, function), total in zip(kinds.tolist(), rows.tolist(), strict=True):
        found[layer] += f" {opcode}.{function}×{total}"
    return found


def _layer_box(program: Program, layer: int, count: int, time: str, work: str) -> Box:
    info = program.layers[layer]
    inputs, outputs = info.weights
    size = f"{info.kind} {inputs:,} → {outputs:,}" if inputs else info.kind
    tiles = [counted(len(info.tile_fills), "tile")] if info.tile_fills else []
    details = size, ", ".join([*tiles, counted(count, "instruction")]), *([time] if time else [])
    kind = kind_of_layer(info.kind, info.multiplies)
    return Box(info.name, kind, details, origins=(info.origin,), signature=f"{info.kind} {info.weights}{work}", layers=(info.name,))


def _in_order(boxes: list[Box], edges: list[Edge], starts: Sequence[int]) -> tuple[list[Box], list[Edge]]:
    """The boxes by their start, so that edges run forwards; one that doesn't (between layers that alternate) is left out."""
    order = sorted(range(len(boxes)), key=lambda index: (starts[index], index))
    place = {index: number for number, index in enumerate(order)}
    kept = [Edge(place[e.tail], place[e.head], e.label, e.quantised) for e in edges if place[e.tail] < place[e.head]]
    return [boxes[index] for index in order], kept
