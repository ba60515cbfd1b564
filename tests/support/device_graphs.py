"""Device graphs for tests: random int8 layers of any shape, and the integer reference's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpucc.diagnostics import Origin, Span
from tpucc.ir.array import Array
from tpucc.ir.graph import Attributes, Graph, GraphBuilder, NoAttributes, Node
from tpucc.ir.types import Quantisation, TensorType
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.layers.kinds import Fc, Vector
from tpucc.layers.reference import compute
from tpucc.lowering.lower import lower
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import AnyArray, Int8
from tpucc.ops.constant import ConstantAttributes
from tpucc.schedule import schedule
from tpucc.sim.execute import Interpreter
from tpucc.target import Target, load_target

TINY = load_target("tiny")
V1 = load_target("tpu_v1")


class Device:
    """Builds a device graph layer by layer, with constants drawn from a seed."""

    def __init__(self, name: str = "device", seed: int = 0) -> None:
        self.builder = GraphBuilder(name, "device.tpu")
        self.random = np.random.default_rng(seed)

    def input(self, name: str, *shape: int) -> str:
        return self._node(name, "input", (), NoAttributes(), _i8(shape))

    def constant(self, name: str, *shape: int) -> str:
        return self._constant(name, self.random.integers(-128, 128, shape, np.int8))

    def weights(self, name: str, depth: int, width: int) -> str:
        return self._constant(name, self.random.integers(-127, 128, (depth, width), np.int8))

    def fc(self, name: str, x: str, width: int, *, weights: str = "", table: bool = False) -> str:
        shape = self.builder.nodes[x].type.shape
        weights = weights or self.weights(f"{name}.w", shape[-1], width)
        bias = self._constant(f"{name}.b", self.random.integers(-5000, 5000, width, np.int32))
        scale = 1 / (40 * np.sqrt(shape[-1]))
        multiplier = self._constant(f"{name}.m", (self.random.random(width, np.float32) + np.float32(0.5)) * np.float32(scale))
        operands = (x, weights, bias, multiplier, *self._table(name, table))
        return self._node(name, "fc", operands, Fc(zero=3, low=-120, table=table), _i8((*shape[:-1], width)))

    def vector(self, name: str, function: str, a: str, b: str, *, table: bool = False) -> str:
        shapes = [self.builder.nodes[operand].type.shape for operand in (a, b)]
        attributes = Vector(function, 0.5, 2, 0.25 if function != "multiply" else 1.0, -3, 1, -100, 101, table)
        return self._node(name, "vector", (a, b, *self._table(name, table)), attributes, _i8(np.broadcast_shapes(*shapes)))

    def look_up(self, name: str, a: str) -> str:
        shape = self.builder.nodes[a].type.shape
        return self._node(name, "vector", (a, *self._table(name, True)), Vector("table"), _i8(shape))

    def reshape(self, name: str, a: str, *shape: int) -> str:
        return self._node(name, "reshape", (a,), NoAttributes(), _i8(shape))

    def build(self, *outputs: str) -> Graph:
        for position, node in enumerate(outputs):
            taken = node in outputs[:position]
            self.builder.output(f"{node}.again" if taken else node, node)
        return self.builder.build()

    def _table(self, name: str, table: bool) -> tuple[str, ...]:
        return (self._constant(f"{name}.t", self.random.integers(-128, 128, 256, np.int8)),) if table else ()

    def _constant(self, name: str, data: AnyArray) -> str:
        value = Array(data)
        return self._node(name, "constant", (), ConstantAttributes(value), TensorType(value.dtype, value.shape))

    def _node(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> str:
        line = len(self.builder.nodes) + 1
        return self.builder.add(Node(name, op, operands, attributes, type_, Origin((Span(line, 1, line, 2),)))).name


def chain(rows: int, *widths: int, seed: int = 0) -> Graph:
    """Fully connected layers one after the other, `widths` wide."""
    device = Device("chain", seed)
    h = device.input("x", rows, widths[0])
    for number, width in enumerate(widths[1:], 1):
        h = device.fc(f"h{number}", h, width)
    return device.build(h)


def lstm(steps: int, batch: int, features: int, units: int) -> Graph:
    """LSTM steps as the front end makes them, gates apart: 4 × (x @ k + h @ r), three products, two sums and a tanh a step."""
    device = Device("lstm")
    gates = "ifgo"
    kernels = {gate: device.weights(f"k.{gate}", features, units) for gate in gates}
    recurrent = {gate: device.weights(f"r.{gate}", units, units) for gate in gates}
    h, c = device.constant("h.0", batch, units), device.constant("c.0", batch, units)
    for t in range(steps):
        x = device.input(f"x.{t}", batch, features)
        gate = {}
        for g in gates:
            from_x = device.fc(f"zx.{g}.{t}", x, units, weights=kernels[g])
            from_h = device.fc(f"zh.{g}.{t}", h, units, weights=recurrent[g])
            gate[g] = device.vector(f"gate.{g}.{t}", "add", from_x, from_h, table=True)
        kept = device.vector(f"kept.{t}", "multiply", gate["f"], c)
        new = device.vector(f"new.{t}", "multiply", gate["i"], gate["g"])
        c = device.vector(f"c.{t + 1}", "add", kept, new)
        h = device.vector(f"h.{t + 1}", "multiply", gate["o"], device.look_up(f"tanh.{t}", c))
    return device.build(h, c)


def _i8(shape: Sequence[int]) -> TensorType:
    return TensorType("i8", tuple(shape), None, Quantisation(0.5, 1))


def random_inputs(graph: Graph, seed: int = 1) -> dict[str, Int8]:
    random = np.random.default_rng(seed)
    return {node.name: random.integers(-128, 128, node.type.shape, np.int8) for node in graph.inputs}


def reference(graph: Graph, inputs: Mapping[str, Int8]) -> dict[str, Int8]:
    """The outputs by the layers' integer reference, which knows no tiles."""
    values: dict[str, AnyArray] = dict(inputs)
    for node in graph:
        operands = [values[name] for name in node.operands]
        match node.op:
            case "input":
                pass
            case "constant":
                assert isinstance(node.attributes, ConstantAttributes)
                values[node.name] = node.attributes.value.data
            case "reshape":
                values[node.name] = operands[0].reshape(node.type.shape)
            case _:
                values[node.name] = compute(node, operands)
    return {output.name: values[output.node] for output in graph.outputs}


def compiled(graph: Graph, target: Target, parts: int | None = None) -> tuple[TileProgram, Program]:
    """Lowered, scheduled and verified."""
    tiles = lower(graph, target, parts=parts)
    program = schedule(tiles)
    assert verify(program) == ()
    return tiles, program


def assert_computes(graph: Graph, program: Program, seed: int = 1) -> None:
    """The machine gives the reference's integers, all of them."""
    inputs = random_inputs(graph, seed)
    found, expected = Interpreter(program).run(inputs), reference(graph, inputs)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name].reshape(value.shape), value, err_msg=name)
