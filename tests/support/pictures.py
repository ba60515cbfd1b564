"""Graphs and programs for the tests of pictures, built by hand."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np

from tpucc.diagnostics import Origin, Span
from tpucc.explain.critical import Limit
from tpucc.ir import Attributes, Graph, GraphBuilder, NoAttributes, Node, Quantisation, TensorType
from tpucc.isa.program import HostBuffer, LayerInfo, Port, Program, Resident
from tpucc.layers.kinds import Fc, Requantise
from tpucc.machine.instruction import RECORD
from tpucc.machines.v1 import V1, Engine, Flag, Opcode
from tpucc.machines.v1.machine import parameter_block_dtype
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.see.charts.timeline import Times
from tpucc.see.text import text_width
from tpucc.target import load_target

HOSTILE = '<script>alert("1")</script>\\'
BIDI = "a\u202eb\nc\x00d\"'&\uffff<b>]]>"
PLAIN = NoAttributes()
SVG = "{http://www.w3.org/2000/svg}"
TextBox = tuple[str, float, float, float, float]


class Model(GraphBuilder):
    """A graph builder with a line for each node."""

    def node(
        self,
        name: str,
        op: str,
        operands: tuple[str, ...],
        shape: tuple[int, ...],
        line: int = 1,
        attributes: Attributes = PLAIN,
        dtype: str = "f32",
        quantisation: Quantisation | None = None,
    ) -> str:
        origin = Origin((Span(line, 5, line, 20),))
        return self.add(Node(name, op, operands, attributes, TensorType(dtype, shape, None, quantisation), origin)).name

    def weight(self, key: str, shape: tuple[int, ...], line: int = 7) -> str:
        return self.node(key, "weight", (), shape, line, WeightAttributes(key))


def dense_chain(name: str, batch: int, sizes: list[int], activation: str = "relu") -> Graph:
    """`softmax` of a chain of dense layers fc1, fc2, …: three operators each, the last without an activation."""
    model = Model(name, f"{name}.tpu")
    x = model.node("x", "input", (), (batch, sizes[0]), 11)
    for index, (inputs, outputs) in enumerate(pairwise(sizes), 1):
        weights, bias = model.weight(f"fc{index}.w", (inputs, outputs)), model.weight(f"fc{index}.b", (outputs,), 8)
        x = model.node("product", "matmul", (x, weights), (batch, outputs), 9)
        x = model.node("sum", "add", (x, bias), (batch, outputs), 9)
        if index < len(sizes) - 1:
            x = model.node("h", activation, (x,), (batch, outputs), 12)
    model.output("y", model.node("probabilities", "softmax", (x,), (batch, sizes[-1]), 14))
    return model.build()


def recurrent(steps: int) -> Graph:
    """Steps `h = tanh(x[:, t] @ k + h @ r)` of shared weights, and `h` as the output."""
    model = Model("recurrent")
    x = model.node("x", "input", (), (2, steps, 4))
    h = model.weight("h0", (2, 3), 2)
    kernel, recurrence = model.weight("k", (4, 3), 3), model.weight("r", (3, 3), 4)
    for t in range(steps):
        now = model.node("now", "slice", (x,), (2, 4), 6, SliceAttributes((0, t, 0), (2, t + 1, 4), (1,)))
        a, b = model.node("a", "matmul", (now, kernel), (2, 3), 7), model.node("b", "matmul", (h, recurrence), (2, 3), 7)
        h = model.node("h", "tanh", (model.node("z", "add", (a, b), (2, 3), 7),), (2, 3), 7)
    model.output("h", h)
    return model.build()


def branching() -> Graph:
    """Two layers of one input, joined by a product, and a residual sum."""
    model = Model("branching")
    x = model.node("x", "input", (), (8, 16))
    left = model.node("left", "matmul", (x, model.weight("left.w", (16, 16))), (8, 16), 3)
    right = model.node("right", "matmul", (x, model.weight("right.w", (16, 16))), (8, 16), 4)
    gate = model.node("gate", "sigmoid", (right,), (8, 16), 4)
    joined = model.node("joined", "mul", (left, gate), (8, 16), 5)
    model.output("y", model.node("residual", "add", (joined, x), (8, 16), 6))
    model.output("gate", gate)
    return model.build()


def hostile() -> Graph:
    """Names that would break DOT, SVG and HTML if they were not escaped."""
    model = Model(HOSTILE)
    x = model.node(BIDI, "input", (), (1, 2))
    product = model.node("m", "matmul", (x, model.weight(HOSTILE, (2, 2))), (1, 2), 3)
    model.output(HOSTILE, model.node("r", "relu", (product,), (1, 2), 3))
    return model.build()


def layer_chain(name: str, batch: int, sizes: list[int]) -> Graph:
    """The layer graph of such a chain: quantize, int8 layers, dequantize, softmax on the host."""
    model = Model(name)
    x = model.node("x", "input", (), (batch, sizes[0]))
    x = model.node("x.q", "quantize", (x,), (batch, sizes[0]), dtype="i8", quantisation=Quantisation(0.03137, -3))
    for index, (inputs, outputs) in enumerate(pairwise(sizes), 1):
        weights = model.node(f"w{index}", "constant", (), (inputs, outputs), dtype="i8")
        bias = model.node(f"b{index}", "constant", (), (outputs,), dtype="i32")
        scales = model.node(f"m{index}", "constant", (), (outputs,))
        operands, attributes, held = (x, weights, bias, scales), Fc(Requantise()), Quantisation(1 / 256, 5)
        x = model.node(f"fc{index}", "fc", operands, (batch, outputs), 9, attributes, "i8", held)
    x = model.node("real", "dequantize", (x,), (batch, sizes[-1]))
    model.output("y", model.node("probabilities", "softmax", (x,), (batch, sizes[-1])))
    return model.build()


def chain_program(name: str, rows: int, sizes: list[int], target: str = "tpu_v1") -> Program:
    """A machine program for a chain of layers, without any cleverness: every tile is loaded once, every block has rows of its own."""
    machine = load_target(target)
    mxu, records, owners, layers, residents = machine.mxu, [], [], [], []
    blocks = [-(-size // mxu) for size in sizes]

    def emit(layer: int, opcode: Opcode, flags: int = 0, **fields: int) -> int:
        records.append(V1.record(opcode, flags, **fields))
        owners.append(layer)
        return len(records) - 1

    inputs = [emit(0, Opcode.READ_HOST_MEMORY, host=c * rows, dest=c * rows, inner=rows) for c in range(blocks[0])]
    places, made, free, tile = [c * rows for c in range(blocks[0])], inputs, blocks[0] * rows, 0
    for layer, (depth, width) in enumerate(pairwise(sizes)):
        fills = [
            (tile + k * blocks[layer + 1] + n, min(mxu, depth - k * mxu), min(mxu, width - n * mxu))
            for k in range(blocks[layer])
            for n in range(blocks[layer + 1])
        ]
        results = []
        emit(layer, Opcode.SYNCHRONIZE, index=Engine.MATRIX, engines=1 << (Engine.ACTIVATION if layer else Engine.HOST))
        for n in range(blocks[layer + 1]):
            for k in range(blocks[layer]):
                emit(layer, Opcode.READ_WEIGHTS, index=tile + k * blocks[layer + 1] + n)
                emit(layer, Opcode.MATRIX_MULTIPLY, Flag.SWITCH | (Flag.ACCUMULATE if k else 0), ub=places[k], acc=0, inner=rows)
            emit(layer, Opcode.SET_CONFIGURATION, index=layer)
            emit(layer, Opcode.SYNCHRONIZE, index=Engine.ACTIVATION, engines=1 << Engine.MATRIX)
            results.append(emit(layer, Opcode.ACTIVATE, acc=0, dest=free + n * rows, inner=rows))
        for block, (place, first) in enumerate(zip(places, made, strict=True)):
            residents.append(Resident(f"h{layer}.{block}", max(layer - 1, 0), place, rows, first, len(records) - 1))
        places, made = [free + n * rows for n in range(blocks[layer + 1])], results
        free, tile = free + blocks[layer + 1] * rows, tile + len(fills)
        layers.append(
            LayerInfo(
                f"fc{layer + 1}", "fc", Origin((Span(9 + layer, 1, 9 + layer, 5),)), rows * depth * width, (depth, width), tuple(fills)
            )
        )
    last, base = len(layers) - 1, blocks[0] * rows
    for block, (place, first) in enumerate(zip(places, made, strict=True)):
        end = emit(last, Opcode.WRITE_HOST_MEMORY, ub=place, host=base + block * rows, inner=rows)
        residents.append(Resident(f"y.{block}", last, place, rows, first, end))
    emit(last, Opcode.HALT)
    host = [HostBuffer(f"input:x.{c}", "input", c * rows, rows) for c in range(blocks[0])]
    host += [HostBuffer(f"output:y.{c}", "output", base + c * rows, rows) for c in range(blocks[-1])]
    ports = (
        Port("x", (rows, sizes[0]), 0.1, 0, (rows,), tuple(range(blocks[0]))),
        Port("y", (rows, sizes[-1]), 0.1, 0, (rows,), tuple(range(blocks[0], len(host)))),
    )
    return Program(
        name=name,
        source=f"{name}.tpu",
        source_text="",
        target=machine,
        instructions=np.array(records, RECORD),
        layer_of=np.array(owners, np.uint32),
        layers=tuple(layers),
        tiles=np.zeros((tile, mxu, mxu), np.int8),
        blocks=np.zeros(len(layers), parameter_block_dtype(mxu)),
        host=tuple(host),
        constants=np.zeros((0, mxu), np.int8),
        inputs=ports[:1],
        outputs=ports[1:],
        prologue="",
        epilogue="",
        residents=tuple(residents),
        lower_bound_rows=free // 2,
    )


def steady_times(program: Program, step: int = 10) -> Times:
    """Every instruction takes `step` cycles, one after the other; the matrix unit waits for weights in all others' cycles."""
    count = len(program.instructions)
    starts = np.arange(count, dtype=np.int64) * step
    multiplies = program.instructions["opcode"] == Opcode.MATRIX_MULTIPLY
    tiles = starts[program.instructions["opcode"] == Opcode.READ_WEIGHTS]
    waits = {Limit.WEIGHT_MEMORY: (starts[~multiplies], starts[~multiplies] + step)}
    layers = program.layer_of.astype(np.int64)
    turns = np.flatnonzero(np.diff(layers, prepend=-1))
    return Times(starts, starts + step, tiles, tiles + step, waits, count * step, (starts[turns], layers[turns]))


def text_boxes(svg: str) -> list[TextBox]:
    """Each text that isn't turned, with its left, top, right and bottom on the page; letters are 0.75 of the size high, and 0.2 deep."""
    found: list[TextBox] = []

    def walk(element: ET.Element, x: float, y: float) -> None:
        move = element.get("transform", "")
        if move.startswith("translate("):
            dx, dy = move.removeprefix("translate(").rstrip(")").split()
            x, y = x + float(dx), y + float(dy)
        if element.tag == f"{SVG}text" and not move:
            size, words = float(element.get("font-size", "")), element.text or ""
            long = text_width(words, size, bold=element.get("font-weight") == "bold")
            left = x + float(element.get("x", "")) - long * {"middle": 0.5, "end": 1.0}.get(element.get("text-anchor", ""), 0.0)
            base = y + float(element.get("y", ""))
            found.append((words, left, base - 0.75 * size, left + long, base + 0.2 * size))
        for child in element:
            walk(child, x, y)

    walk(ET.fromstring(svg), 0.0, 0.0)
    return found


def assert_readable(svg: str) -> None:
    """No text is smaller than 9 points, leaves the page, or lies on another."""
    root = ET.fromstring(svg)
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    assert all(float(element.get("font-size", "0")) >= 12 for element in root.iter(f"{SVG}text"))
    found = text_boxes(svg)
    for words, left, top, right, bottom in found:
        assert 0 <= left < right <= width + 1, words
        assert 0 <= top < bottom <= height, words
    for index, (words, left, top, right, bottom) in enumerate(found):
        for other, start, above, end, below in found[index + 1 :]:
            assert end <= left or right <= start or below <= top or bottom <= above, (words, other)
