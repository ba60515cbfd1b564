"""The layer graph while it is made: where each value of the operator graph is, on either side of the host's edge."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tpucc.diagnostics import Diagnostic, Origin, ProgramError
from tpucc.ir import Attributes, Constant, Graph, GraphBuilder, Node, Quantisation, TensorType
from tpucc.ir.dtypes import INTEGER_FORMATS, IntegerFormat
from tpucc.layers.kinds import EXPANSIONS, LAYERS, Requantise
from tpucc.layers.parameters import clamp_bounds, function_table
from tpucc.numerics import AnyArray, DeviceInts, affine_parameters, quantise, weight_scales
from tpucc.ops import facts_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.facts import Values
from tpucc.ops.fused import Fused, activation_of
from tpucc.ops.names import constant, dequantize, quantize, reshape, transpose
from tpucc.ops.names import slice as slice_
from tpucc.ops.opdef import Clamp, Table
from tpucc.ops.parts import Shape
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.passes.rewriter import held_array, is_written

MADE_BY = "quantise"
ON_DEVICE: Mapping[type[Attributes], str] = {
    **{attributes: name for name, attributes in LAYERS.items()},
    **{each.attributes: each.name for each in (reshape, slice_, transpose)},
}
"""The layers and the operators of the layer graph, by their attributes."""


class LayerGraph:
    """Values go by their names in the operator graph; each has a node on the host, on the device, or on both sides.

    The device holds integers of `format`. An edge is crossed once: a value that several layers read is quantised once for all.
    """

    def __init__(self, graph: Graph, format: IntegerFormat, *, per_channel: bool) -> None:
        """`graph` has no places."""
        self.graph = graph
        self.format = format
        self.per_channel = per_channel
        self._builder = GraphBuilder(graph.name, graph.source)
        self._host = {node.name: self.add(node).name for node in graph.inputs}
        self._device: dict[str, Node] = {}
        self._crossed: dict[str, str] = {}
        self._balanced = _balanced(graph)
        self._shared: dict[tuple[str, bytes], Node] = {}
        self.reads_synthetic = False
        """Whether parameters were found from a range that was measured on synthetic inputs."""

    def nodes(self) -> Iterator[Node]:
        """The nodes, each with the values of the operator graph that it has."""
        held: dict[str, dict[str, None]] = {}
        for value, holder in (*self._host.items(), *((value, node.name) for value, node in self._device.items())):
            held.setdefault(holder, {})[value] = None
        for node in self._builder.nodes.values():
            yield node.holding(held.get(node.name, ()))

    def add(self, node: Node) -> Node:
        """Adds a node under a fresh name made from its own."""
        return self._builder.add(node)

    def layer(
        self, node: Node, operands: Iterable[Node], attributes: Attributes, y: Quantisation, name: str = "", shape: Shape | None = None
    ) -> Node:
        """Adds a node of the device on behalf of an operator, whose name and shape it has unless others are given."""
        type_, names = self.held(node.type.shape if shape is None else shape, y), tuple(operand.name for operand in operands)
        return self.add(Node(name or node.name, ON_DEVICE[type(attributes)], names, attributes, type_, node.origin, of=node.name))

    def held(self, shape: tuple[int, ...], quantisation: Quantisation) -> TensorType:
        """The type of a value that the device holds."""
        return TensorType(self.format.name, shape, quantisation=quantisation)

    def covering(self, low: float, high: float) -> Quantisation:
        """The parameters of a value from low to high."""
        return Quantisation(*affine_parameters(low, high, self.format))

    def quantisation_of(self, value: Node) -> Quantisation:
        """The parameters of a value of the operator graph: those that its type fixes, else those that cover its range.

        Raises `ProgramError` E0806 when there is neither.
        """
        if value.type.quantisation is not None:
            return value.type.quantisation
        if value.type.range is None:
            raise ProgramError(Diagnostic("E0806", f"{value.name} has no range: graphs are calibrated before quantising"))
        self.reading(value)
        if value.name in self._balanced:
            return Quantisation(self.symmetric_scale(value), 0)
        return self.covering(value.type.range.low, value.type.range.high)

    def reading(self, value: Node) -> None:
        """Notes that parameters are found from the value's range, or from that before its activation."""
        self.reads_synthetic = self.reads_synthetic or (value.type.range is not None and value.type.range.synthetic)

    def symmetric_scale(self, value: Node) -> float:
        """The scale with which 127 is the value's largest magnitude, by its range or by what the source fixes; one that the source fixes
        with the zero point 0 is kept."""
        if (fixed := value.type.quantisation) is not None and fixed.zero_point == 0:
            return fixed.scale
        if value.type.range is not None:
            self.reading(value)
            largest = max(abs(value.type.range.low), abs(value.type.range.high))
        else:
            held = self.quantisation_of(value)
            largest = held.scale * max(abs(end - held.zero_point) for end in (self.format.low, self.format.high))
        return float(weight_scales(np.full((1, 1), largest, np.float32), False)[0])

    def held_constant(self, name: str, parameters: Quantisation) -> Node:
        """The constant `name` of the operator graph in integers, with these parameters unless the source fixes others, which are int8's."""
        source = self.graph[name]
        fixed = source.type.quantisation or parameters
        format = INTEGER_FORMATS[self.format.weights] if source.type.quantisation else self.format

        def make() -> Node:
            real = self.array(name)
            assert real is not None
            integers = quantise(real, fixed.scale, fixed.zero_point, format).astype(self.format.numpy)
            return self.constant(name, integers, source.origin, fixed)

        return self.shared(name, f"{fixed.scale!r} {fixed.zero_point}".encode(), make)

    def constant(self, name: str, value: AnyArray, origin: Origin, quantisation: Quantisation | None = None) -> Node:
        array = Constant(value)
        type_ = TensorType(array.dtype, array.shape, quantisation=quantisation)
        origin = origin if origin.made_by in EXPANSIONS else origin.by(MADE_BY)
        return self.add(constant.node(name, (), ConstantAttributes(array), type_, origin))

    def shared(self, name: str, key: bytes, make: Callable[[], Node]) -> Node:
        """The node that stands for the operator graph's value `name`, made once for each `key`."""
        if (name, key) not in self._shared:
            self._shared[name, key] = make()
        return self._shared[name, key]

    def array(self, name: str) -> AnyArray | None:
        """The value when it is a constant."""
        return held_array(self.graph[name])

    def on_host(self, name: str) -> bool:
        """Whether the host computes the value, or is given it."""
        return name in self._host

    def keep(self, node: Node) -> None:
        """Adds an operator of the host, as it is."""
        operands = tuple(self.for_host(name) for name in node.operands)
        self._host[node.name] = self.add(replace(node, operands=operands)).name

    def hold(self, name: str, node: Node) -> None:
        """The device computes the value, and holds it in this node."""
        self._device[name] = node

    def for_host(self, name: str) -> str:
        """The node from which the host reads the value: integers of the device stay integers if the source wants them so."""
        if name in self._host:
            return self._host[name]
        if name in self._device and self.graph[name].type.dtype != "f32":
            return self._device[name].name
        if name not in self._crossed:
            self._crossed[name] = self._dequantized(self._device[name]) if name in self._device else self.add(self.graph[name]).name
        return self._crossed[name]

    def for_device(self, name: str) -> Node:
        """The node from which the device reads the value; one of the host is quantised by its own range, if it isn't integers already."""
        if name not in self._device:
            value = self.graph[name]
            real = value.type.dtype == "f32"
            self._device[name] = self._quantized(name, value) if real else self._builder.nodes[self.for_host(name)]
        return self._device[name]

    def symmetric(self, name: str, of: str, scale: float) -> Node:
        """The host's value `of` in integers with the zero point 0, under a name made from `name`."""
        return self.shared(name, repr(scale).encode(), lambda: self._quantized(name, self.graph[of], Quantisation(scale, 0)))

    def _quantized(self, name: str, value: Node, parameters: Quantisation | None = None) -> Node:
        parameters = parameters or self.quantisation_of(value)
        attributes = QuantizeAttributes(parameters.scale, parameters.zero_point, self.format.bits)
        operands, type_ = (self.for_host(value.name),), self.held(value.type.shape, parameters)
        return self.add(quantize.node(f"{name}.{self.format.name}", operands, attributes, type_, value.origin.by(MADE_BY)))

    def _dequantized(self, node: Node) -> str:
        parameters = parameters_of(node)
        attributes = DequantizeAttributes(parameters.scale, parameters.zero_point)
        type_ = TensorType("f32", node.type.shape)
        return self.add(dequantize.node(f"{node.name}.f32", (node.name,), attributes, type_, node.origin.by(MADE_BY))).name


def _balanced(graph: Graph) -> frozenset[str]:
    """The values that are only read, or only moved and then read, by products with weights that the host writes: the zero point of both
    sides is 0 there."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        users = graph.users[node.name]
        if users and node.name not in graph.output_nodes and all(_wants_balance(graph, user, node.name, found) for user in users):
            found.add(node.name)
    return frozenset(found)


def _wants_balance(graph: Graph, user: Node, name: str, found: Container[str]) -> bool:
    if facts_of(user.op).values in (Values.VIEWED, Values.PICKED):
        return user.name in found
    return is_written(user) or (user.operands[:1] == (name,) and len(user.operands) > 1 and is_written(graph[user.operands[1]]))


def reshaped(layers: LayerGraph, node: Node, x: Node) -> Node:
    """x in the shape of an operator, which has the same rows: a `reshape` of the integers, which moves nothing."""
    return layers.layer(node, (x,), ReshapeAttributes(node.type.shape), parameters_of(x))


def parameters_of(node: Node) -> Quantisation:
    """Scale and zero point of a node that the device holds."""
    if node.type.quantisation is None:
        raise ProgramError(Diagnostic("E0806", f"{node.name} has no scale and zero point"))
    return node.type.quantisation


# The work of the activation unit at the end of a layer: it requantises, clamps, and looks up.


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Requantises as `to`, clamps to low…high (see `Requantise`), looks up in `table` if there is one."""

    to: Quantisation
    low: int | None = None
    high: int | None = None
    table: DeviceInts | None = None

    def epilogue(self, scales: tuple[float, ...] = (), zeros: tuple[int, ...] = ()) -> Requantise:
        """The epilogue of the layer; it has the scales and zero points of the operands unless constants have them."""
        return Requantise(self.to.zero_point, self.low, self.high, self.table is not None, scales, zeros)


def tail_of(layers: LayerGraph, node: Node, y: Quantisation) -> Tail:
    """The tail of an operator with what was fused into it: a clamp requantises as the result is held, `y`; a table needs parameters for
    the value before it. Raises `ProgramError` E0806 when nothing says that value's range."""
    held = layers.format
    if not isinstance(node.attributes, Fused) or (fused := activation_of(node.attributes)) is None:
        return Tail(y)
    operator, parameters = fused
    match operator.legalisation:
        case Clamp(bounds):
            return Tail(y, *clamp_bounds(*bounds(parameters), y, held))
        case Table(function) if node.attributes.pre is not None:
            layers.reading(node)
            before = layers.covering(*node.attributes.pre)
            return Tail(before, table=function_table(lambda x: function(parameters, x), before, y, held))
    raise ProgramError(Diagnostic("E0806", f"nothing says the range of {node.name} before {operator.name}: graphs are calibrated first"))
