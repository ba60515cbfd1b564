"""Device graphs for tests: random int8 layers of any shape, and the integer reference's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tpucc.diagnostics import Origin, Span
from tpucc.ir import Attributes, Constant, Graph, GraphBuilder, NoAttributes, Node, Quantisation, TensorType
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.layers.kinds import Conv, Fc, Move, Pool, Requantise, Sides, Vector
from tpucc.layers.reference import compute
from tpucc.layers.verify import conv_shape, move_shape, pool_shape
from tpucc.lowering.count import step_counts
from tpucc.lowering.lower import lower, make_plan
from tpucc.lowering.plan import NO_SEGMENTS
from tpucc.lowering.splits import choose_splits
from tpucc.lowering.tensors import NO_SIDES
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machine.instruction import Records
from tpucc.machines.v1 import Opcode
from tpucc.numerics import AnyArray, Int8
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.schedule import schedule
from tpucc.sim.interpret import Interpreter
from tpucc.target import Target, load_target

TINY = load_target("tiny")
V1 = load_target("tpu_v1")
Pair = tuple[int, int]
ZERO = 1
"""The zero point of every value."""
UNCOUNTED = (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY, Opcode.SET_CONFIGURATION, Opcode.INTERRUPT_HOST)
"""What the limit of instructions leaves out."""


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
        operands = (x, weights, *self._tail(name, width, shape[-1]), *self._table(name, table))
        return self._node(name, "fc", operands, Fc(Requantise(3, low=-120, table=table)), _i8((*shape[:-1], width)))

    def fc_sum(self, name: str, xs: Sequence[str], width: int) -> str:
        """The sum of a product for each of `xs`."""
        types = [self.builder.nodes[x].type for x in xs]
        weights = [self.weights(f"{name}.w{number}", type_.columns, width) for number, type_ in enumerate(types)]
        tail = self._tail(name, width, sum(type_.columns for type_ in types))
        return self._node(name, "fc", (*xs, *weights, *tail), Fc(Requantise(-5), len(xs)), _i8((*types[0].shape[:-1], width)))

    def conv(
        self,
        name: str,
        x: str,
        kernel: Pair,
        filters: int,
        *,
        weights: str = "",
        stride: Pair = (1, 1),
        sides: Sides = NO_SIDES,
        table: bool = False,
    ) -> str:
        """A convolution of x [B, H, W, C] with windows of `kernel` pixels."""
        image = self.builder.nodes[x].type.shape
        shape = (*kernel, image[3], filters)
        weights = weights or self._constant(f"{name}.w", self.random.integers(-127, 128, shape, np.int8))
        attributes = Conv(stride, sides, ZERO, Requantise(-7, high=99, table=table))
        found = conv_shape(attributes, image, shape)
        assert found is not None
        operands = (x, weights, *self._tail(name, filters, prod(shape[:3])), *self._table(name, table))
        return self._node(name, "conv", operands, attributes, _i8(found))

    def pool(self, name: str, function: str, x: str, size: Pair, *, stride: Pair = (1, 1), sides: Sides = NO_SIDES) -> str:
        epilogue = None if function == "max" else Requantise(4, scales=(0.75,), zeros=(ZERO,))
        attributes = Pool(function, size, stride, sides, epilogue)
        found = pool_shape(attributes, self.builder.nodes[x].type.shape)
        assert found is not None
        return self._node(name, "pool", (x,), attributes, _i8(found))

    def concat(self, name: str, axis: int, *xs: str) -> str:
        """Rows joined along an axis that isn't the last."""
        return self._move(name, xs, Move("concat", axis))

    def pad(self, name: str, x: str, *pads: Pair) -> str:
        """Rows around x; `pads` has a pair for each axis but the last."""
        return self._move(name, (x,), Move("pad", pads=(*pads, (0, 0)), value=ZERO))

    def transpose(self, name: str, x: str, *perm: int) -> str:
        shape = self.builder.nodes[x].type.shape
        return self._node(name, "transpose", (x,), TransposeAttributes(perm), _i8([shape[axis] for axis in perm]))

    def slice(self, name: str, x: str, *parts: Pair) -> str:
        """`parts` has start and stop of each axis but the last."""
        columns = self.builder.nodes[x].type.columns
        starts, stops = ((*(part[end] for part in parts), (0, columns)[end]) for end in (0, 1))
        return self._node(name, "slice", (x,), SliceAttributes(starts, stops), _i8(np.subtract(stops, starts).tolist()))

    def vector(self, name: str, function: str, a: str, b: str, *, table: bool = False) -> str:
        shapes = [self.builder.nodes[operand].type.shape for operand in (a, b)]
        scales = (0.5,) if function == "multiply" else (0.5, 0.25)
        attributes = Vector(function, Requantise(1, -100, 101, table, scales, (2, -3)))
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

    def _tail(self, name: str, width: int, depth: int) -> tuple[str, str]:
        """Bias and multiplier of a product of so many terms."""
        bias = self._constant(f"{name}.b", self.random.integers(-5000, 5000, width, np.int32))
        scale = 1 / (40 * np.sqrt(depth))
        return bias, self._constant(f"{name}.m", (self.random.random(width, np.float32) + np.float32(0.5)) * np.float32(scale))

    def _move(self, name: str, xs: tuple[str, ...], attributes: Move) -> str:
        found = move_shape(attributes, [self.builder.nodes[x].type.shape for x in xs])
        assert found is not None
        return self._node(name, "move", xs, attributes, _i8(found))

    def _table(self, name: str, table: bool) -> tuple[str, ...]:
        return (self._constant(f"{name}.t", self.random.integers(-128, 128, 256, np.int8)),) if table else ()

    def _constant(self, name: str, data: AnyArray) -> str:
        value = Constant(data)
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
    return TensorType("i8", tuple(shape), None, Quantisation(0.5, ZERO))


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
            case "transpose" | "slice":
                values[node.name] = OPS[node.op].reference(node.attributes, operands)
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


def is_counted(instructions: Records) -> AnyArray:
    """Which of the instructions the limit counts."""
    return ~np.isin(instructions["opcode"], UNCOUNTED)


def assert_counted(graph: Graph, target: Target, parts: int | None = None, segments: Mapping[str, int] = NO_SEGMENTS) -> None:
    """Each step of every draft takes the instructions that are counted for it before it is made."""
    plan = make_plan(graph, target, segments)
    for draft in choose_splits(plan, parts):
        layers = draft.instructions["layer"][is_counted(draft.instructions)]
        made = np.bincount(layers, minlength=len(plan.steps) + plan.segments - 1)
        assert step_counts(plan, draft.split) == [made[plan.layer_of(number)] for number in range(len(plan.steps))], draft.split
