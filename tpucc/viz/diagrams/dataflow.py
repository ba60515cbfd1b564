"""A machine program's dataflow as a diagram: from the host's rows through multiplies and activations back to the host.

A small program is drawn instruction by instruction, a larger one with a box for each layer. Both come from the same walk over the
instructions: for every row of every memory it knows who wrote it last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted, percent
from tpucc.isa.effects import Effects, effects, resolve
from tpucc.isa.instructions import SPECS, Function, Opcode
from tpucc.isa.program import Port, Program
from tpucc.numerics import Int64
from tpucc.values import dataclass
from tpucc.viz.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.viz.palette import Kind

SMALL_PROGRAM = 48
"""Instructions that move or compute rows; up to so many, each gets a box."""

Access = tuple[str, int, int, bool]
"""A memory (ub, acc, host), the rows [start, end), and whether they are written."""


@dataclass(slots=True)
class Flow:
    """Edges found so far: (writer, reader) and the rows that pass."""

    edges: dict[tuple[int, int], list[tuple[str, int, int]]] = field(default_factory=lambda: defaultdict(list))
    owners: dict[str, Int64] = field(default_factory=dict)

    def read(self, reader: int, memory: str, start: int, end: int) -> None:
        for writer in np.unique(self._rows(memory, end)[start:end]).tolist():
            if writer >= 0 and writer != reader:
                self.edges[writer, reader].append((memory, start, end))

    def write(self, writer: int, memory: str, start: int, end: int) -> None:
        self._rows(memory, end)[start:end] = writer

    def _rows(self, memory: str, least: int) -> Int64:
        rows = self.owners.get(memory, np.empty(0, np.int64))
        if len(rows) < least:
            grown = np.full(max(least, 2 * len(rows)), -1, np.int64)
            grown[: len(rows)] = rows
            self.owners[memory] = rows = grown
        return rows


def program_diagram(program: Program, layer_cycles: Sequence[int] = ()) -> Diagram:
    """The dataflow of a program. `layer_cycles`, one number a layer, adds to each layer's box its share of the time."""
    touched = effects(program.instructions)
    moving = np.flatnonzero(touched.rows > 0)
    small = len(moving) <= SMALL_PROGRAM
    boxes, edges = _instructions(program, touched, moving) if small else _layers(program, touched, moving, layer_cycles)
    count = len(program.instructions)
    sizes = counted(count, "instruction"), counted(program.tile_count, "weight tile"), counted(len(program.layers), "layer")
    title = f"{program.title}: {', '.join(sizes)}"
    clusters = tuple(Cluster(layer.name + (f" · line {layer.origin.line}" if layer.origin.line else "")) for layer in program.layers)
    noun, subtitle, frames = ("instruction", FINE, clusters) if small else ("layer", COARSE, ())
    return Diagram("program", noun, title, subtitle, tuple(boxes), tuple(edges), frames)


FINE = "Instructions in the order of the data; an arrow names the memory rows that one writes and another reads."
COARSE = "One box a layer; the arrows are rows of the unified buffer that one layer writes and another reads."


def _accesses(touched: Effects, moving: Int64) -> Iterator[tuple[int, list[Access]]]:
    """For each instruction in order what it reads, then what it writes. Intervals stand for walks with holes."""
    columns = [touched.source.low, touched.source.high, touched.source2.low, touched.source2.high, touched.target.low, touched.target.high]
    columns += [touched.acc_start, touched.acc_end, touched.host_start, touched.host_end]
    rows = np.stack([column[moving] for column in columns], axis=1).tolist()
    flags = np.stack([touched.acc_reads, touched.acc_writes, touched.host_reads, touched.host_writes], axis=1)[moving].tolist()
    for index, (a, a_end, b, b_end, t, t_end, acc, acc_end, host, host_end), (acc_in, acc_out, host_in, host_out) in zip(
        moving.tolist(), rows, flags, strict=True
    ):
        found: list[Access] = [("ub", a, a_end, False), ("ub", b, b_end, False)]
        found += [("acc", acc, acc_end, False)] if acc_in else []
        found += [("host", host, host_end, False)] if host_in else []
        found += [("acc", acc, acc_end, True)] if acc_out else []
        found += [("host", host, host_end, True)] if host_out else []
        yield index, [access for access in (*found, ("ub", t, t_end, True)) if access[2] > access[1]]


def _instructions(program: Program, touched: Effects, moving: Int64) -> tuple[list[Box], list[Edge]]:
    flow = Flow()
    place = {index: number for number, index in enumerate(moving.tolist())}
    tiles = resolve(program.instructions, touched).tile
    for index, accesses in _accesses(touched, moving):
        for memory, start, end, written in accesses:
            (flow.write if written else flow.read)(place[index], memory, start, end)
        for tile, written in _written_tile(program, touched, tiles, index):
            (flow.write if written else flow.read)(place[index], "tile", tile, tile + 1)
    boxes = [_instruction_box(program, touched, index) for index in moving.tolist()]
    edges = [Edge(*ends, _rows_label(rows), rows[0][0] != "acc") for ends, rows in flow.edges.items()]
    for index, small in _parameters(program, touched, moving):
        edges.append(Edge(len(boxes), place[index]))
        boxes.append(Box(small, Kind.WEIGHTS, beside=place[index], origins=boxes[place[index]].origins))
    return boxes, edges


def _written_tile(program: Program, touched: Effects, tiles: Int64, index: int) -> Iterator[tuple[int, bool]]:
    """The tile that an instruction writes, or switches to where the program has written it; and whether it writes."""
    if touched.stores[index]:
        yield int(program.instructions["index"][index]), True
    elif touched.pops[index] and tiles[index] >= len(program.tiles):
        yield int(tiles[index]), False


def _rows_label(rows: Sequence[tuple[str, int, int]]) -> tuple[str, ...]:
    memory, start, end = rows[0]
    return (f"{memory} {start:,}{f'–{end - 1:,}' if end - start > 1 else ''}{', …' if len(rows) > 1 else ''}",)


def _instruction_box(program: Program, touched: Effects, index: int) -> Box:
    opcode = Opcode(int(program.instructions["opcode"][index]))
    rows = counted(int(touched.rows[index]), "row")
    layer = int(program.layer_of[index])
    own = program.layers[layer : layer + 1]
    origins, layers = tuple(info.origin for info in own), tuple(info.name for info in own)
    kind, details = Kind.VECTOR, [rows, f"instruction {index}"]
    if touched.host_reads[index] or touched.host_writes[index]:
        kind = Kind.HOST
        details.insert(0, _buffers(program, int(touched.host_start[index]), int(touched.host_end[index])))
    elif touched.multiplies[index]:
        kind = Kind.MATRIX
        details[0] += ", accumulate" if touched.acc_reads[index] else ""
    title = opcode.mnemonic.replace("_", " ")
    if SPECS[opcode].functions:
        title += f" {Function(int(program.instructions['function'][index])).name.lower()}"
    cluster = layer if kind is not Kind.HOST and own else -1
    return Box(title, kind, tuple(details), cluster, origins=origins, signature=title, layers=layers)


def _buffers(program: Program, start: int, end: int) -> str:
    """The host buffers of a transfer: the first one's name, and how many there are besides."""
    names = [buffer.name for buffer in program.host if buffer.start < end and start < buffer.end]
    return names[0] + (f" and {counted(len(names) - 1, 'more', 'more')}" if names[1:] else "") if names else f"host row {start}"


def _parameters(program: Program, touched: Effects, moving: Int64) -> Iterator[tuple[int, str]]:
    """The tile that a multiply switches to, and the parameter block that an activation uses first."""
    tiles = iter(program.instructions["index"][touched.pushes].tolist())
    fills = {tile: (rows, columns) for layer in program.layers for tile, rows, columns in layer.tile_fills}
    blocks = program.instructions["index"]
    current, named = -1, -1
    for index in range(len(program.instructions)):
        if touched.configures[index]:
            current = int(blocks[index])
        elif touched.pops[index] and (tile := next(tiles, None)) is not None:
            rows, columns = fills.get(tile, (program.target.mxu, program.target.mxu))
            yield index, f"tile {tile} · {rows}×{columns}"
        elif touched.configured[index] and current != named:
            named = current
            yield index, f"parameters {current}"


def _layers(program: Program, touched: Effects, moving: Int64, cycles: Sequence[int]) -> tuple[list[Box], list[Edge]]:
    """Boxes for the layers, then for the ports: inputs before all layers, outputs after them."""
    count = len(program.layers)
    flow = _layer_flow(program, touched, moving)
    instructions = np.bincount(program.layer_of, minlength=count)
    total = sum(cycles)
    times = [f"{counted(own, 'cycle')}, {percent(own, total)}" if own else "" for own in cycles]
    boxes = [_layer_box(program, layer, int(instructions[layer]), times[layer] if times else "") for layer in range(count)]
    boxes += [_port_box("host input", port) for port in program.inputs] + [_port_box("host output", port) for port in program.outputs]
    starts = np.full(count, len(touched), np.int64)
    np.minimum.at(starts, program.layer_of[moving].astype(np.int64), moving)
    ends = [-1] * len(program.inputs) + [len(touched)] * len(program.outputs)
    edges = [Edge(*pair, (_sum(rows),), True) for pair, rows in flow.edges.items()]
    return _in_order(boxes, edges, [*starts.tolist(), *ends])


def _port_box(title: str, port: Port) -> Box:
    return Box(title, Kind.HOST, (port.name, f"{port.format.name}[{', '.join(map(str, port.shape))}]"), signature=title)


def _layer_flow(program: Program, touched: Effects, moving: Int64) -> Flow:
    """As between instructions, but equal accesses in a row of instructions of one layer count once.

    Constants (rows of zero points, for borders) belong to no layer, although one brings them for all.
    """
    flow = Flow()
    count, inputs = len(program.layers), len(program.inputs)
    for number, port in enumerate(program.inputs):
        for buffer in map(program.host.__getitem__, port.blocks):
            flow.write(count + number, "host", buffer.start, buffer.start + buffer.rows)
    layers = program.layer_of.tolist()
    seen: set[Access] = set()
    before = -1
    constant = _constant_rows(program)
    for index, accesses in _accesses(touched, moving):
        brought = any(memory == "host" and not written and constant[start] for memory, start, _, written in accesses)
        layer = -1 if brought else layers[index]
        if layer != before:
            seen.clear()
            before = layer
        for access in accesses:
            if access not in seen and access[0] != "acc":
                seen.add(access)
                memory, start, end, written = access
                (flow.write if written else flow.read)(layer, memory, start, end)
    for number, port in enumerate(program.outputs):
        for buffer in map(program.host.__getitem__, port.blocks):
            flow.read(count + inputs + number, "host", buffer.start, buffer.start + buffer.rows)
    return flow


def _constant_rows(program: Program) -> npt.NDArray[np.bool_]:
    """For each row of host memory whether it is a constant."""
    found = np.zeros(program.host_rows + 1, np.bool_)
    for buffer in program.host:
        found[buffer.start : buffer.start + buffer.rows] = buffer.kind == "constant"
    return found


def _sum(rows: Sequence[tuple[str, int, int]]) -> str:
    """How many rows pass, each counted once."""
    spans = sorted(set(rows))
    total, reach = 0, -1
    for _, start, end in spans:
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return counted(total, "row")


def _layer_box(program: Program, layer: int, count: int, time: str) -> Box:
    info = program.layers[layer]
    inputs, outputs = info.weights
    details = [f"{info.kind} {inputs:,} → {outputs:,}" if inputs else info.kind]
    words = [counted(count, "instruction")]
    if info.tile_fills:
        words.insert(0, counted(len(info.tile_fills), "tile"))
    details.append(", ".join(words))
    if time:
        details.append(time)
    kind = Kind.MATRIX if info.weights[0] else Kind.HOST if info.kind in ("move", "host") else Kind.VECTOR
    return Box(info.name, kind, tuple(details), origins=(info.origin,), signature=f"{info.kind} {info.weights}", layers=(info.name,))


def _in_order(boxes: list[Box], edges: list[Edge], starts: Sequence[int]) -> tuple[list[Box], list[Edge]]:
    """The boxes by their start, so that edges run forwards; one that doesn't (between layers that alternate) is left out."""
    order = sorted(range(len(boxes)), key=lambda index: (starts[index], index))
    place = {index: number for number, index in enumerate(order)}
    kept = [Edge(place[e.tail], place[e.head], e.label, e.quantised) for e in edges if place[e.tail] < place[e.head]]
    return [boxes[index] for index in order], kept
