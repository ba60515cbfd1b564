"""Each kind of operator as a layer of the device, with its constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Diagnostic, ProgramError
from tpucc.ir.graph import Attributes, Node
from tpucc.ir.types import Quantisation
from tpucc.layers.kinds import Fc, Vector
from tpucc.layers.parameters import clamp_bounds, fitting_scales, function_table, quantisation_of, requantisation, scaling
from tpucc.numerics import INT8_HIGH, INT8_LOW, AnyArray, Float32, Float64, Int8, affine_parameters, dequantise, quantise, quantise_weights
from tpucc.ops import OPS
from tpucc.ops.linear import LinearAttributes, activation_of
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Matrix, Table, View
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.passes.layer_graph import LayerGraph, constant_array, held, parameters_of, quantisation_of_value

RealFunction = Callable[[Float64], Float64]
ARITHMETIC: dict[str, Callable[[Float64, Float64], Float64]] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}


def layer(layers: LayerGraph, node: Node) -> Node:
    """Adds the layer of an operator; returns the int8 node that holds its result.

    Raises `UnfitError` when no parameters fit, `ProgramError` E0806 for a graph that isn't ready.
    """
    made = _computed(layers, node)
    fixed = node.type.quantisation or parameters_of(made)
    return made if parameters_of(made) == fixed else _looked_up(layers, node, made, _identity, fixed)


def _computed(layers: LayerGraph, node: Node) -> Node:
    match OPS[node.op].legalisation:
        case Matrix():
            return _fully_connected(layers, node)
        case Table(function):
            return _table(layers, node, lambda x: function(node.attributes, x))
        case Clamp(low, high):
            return _clamp(layers, node, low, high)
        case Arithmetic(kind):
            return _arithmetic(layers, node, kind)
        case View():
            return _reshaped(layers, node, layers.for_device(node.operands[0]))
        case Boundary():
            return _boundary(layers, node)
    raise ProgramError(Diagnostic("E0806", f"{node.name} was placed on the device, which has no {node.op}"))


def layer_name(node: Node) -> str:
    """A product's name: what stands before the last dot of its weight's key (`fc1` of `fc1.w`), else its variable's.

    Numbers at the end of the weight's name were put there to keep names apart.
    """
    words = node.operands[1].split(".")
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    return ".".join(words[:-1]) or node.name


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """What the activation unit does with a product's sums: requantises as `to`, clamps to low…high, looks up in `table` if there is one."""

    to: Quantisation
    low: int = INT8_LOW
    high: int = INT8_HIGH
    table: Int8 | None = None


def _fully_connected(layers: LayerGraph, node: Node) -> Node:
    """A product, with the bias and the activation that were fused into it."""
    x = layers.for_device(node.operands[0])
    y, name = quantisation_of_value(node), layer_name(node)
    tail = _tail(node, y)
    bias = _array(layers, node.operands[2]) if len(node.operands) == 3 else np.zeros(node.type.columns, np.float32)
    weights, scales = _weights(layers, node, bias, parameters_of(x))
    folded = requantisation(_values(weights), scales, bias, parameters_of(x), tail.to)
    constants: dict[str, AnyArray] = {"bias": folded.bias, "multiplier": folded.multiplier}
    if tail.table is not None:
        constants["table"] = tail.table
    made = (layers.constant(f"{name}.{part}", value, node.origin).name for part, value in constants.items())
    attributes = Fc(tail.to.zero_point, tail.low, tail.high, tail.table is not None)
    return _add(layers, node, "fc", (x.name, weights.name, *made), attributes, y, name=name)


def _tail(node: Node, y: Quantisation) -> _Tail:
    """A clamp requantises as the result is held; a table needs parameters for the value before it."""
    if not isinstance(node.attributes, LinearAttributes) or (fused := activation_of(node.attributes)) is None:
        return _Tail(y)
    operator, parameters = fused
    match operator.legalisation:
        case Clamp(low, high):
            return _Tail(y, *clamp_bounds(low, high, y))
        case Table(function) if node.attributes.pre is not None:
            before = Quantisation(*affine_parameters(*node.attributes.pre))
            return _Tail(before, table=function_table(lambda x: function(parameters, x), before, y))
    raise ProgramError(Diagnostic("E0806", f"nothing says the range of {node.name} before {operator.name}: graphs are calibrated first"))


def _weights(layers: LayerGraph, node: Node, bias: AnyArray, x: Quantisation) -> tuple[Node, Float32]:
    """The int8 weights [K, N] of a product and their scales [N].

    Parameters that the source fixes are kept when they are symmetric. With a zero point they can't be: then the values are, rounded so.
    """
    source = layers.graph[node.operands[1]]
    real, given = _array(layers, source.name), source.type.quantisation
    if given is not None and given.zero_point != 0:
        real = dequantise(quantise(real, given.scale, given.zero_point), given.scale, given.zero_point)
    scales = fitting_scales(real, bias, x, layers.per_channel)
    if given is not None and given.zero_point == 0:
        scales = np.full_like(scales, given.scale)

    def make() -> Node:
        return layers.constant(source.name, quantise_weights(real, scales), source.origin)

    return layers.shared(source.name, scales.tobytes(), make), scales


def _table(layers: LayerGraph, node: Node, function: RealFunction) -> Node:
    return _looked_up(layers, node, layers.for_device(node.operands[0]), function, quantisation_of_value(node))


def _clamp(layers: LayerGraph, node: Node, low: float, high: float) -> Node:
    """A clamp on its own keeps the parameters of its operand, so that nothing is rounded, unless the source fixes others."""
    x = layers.for_device(node.operands[0])
    return _looked_up(layers, node, x, lambda real: np.clip(real, low, high), node.type.quantisation or parameters_of(x))


def _arithmetic(layers: LayerGraph, node: Node, function: str) -> Node:
    """A function of two values: a table when one of them is a constant number, else a vector layer."""
    left, right = (_number(layers, name) for name in node.operands)
    real = ARITHMETIC[function]
    if right is not None:
        return _with_number(layers, node, node.operands[0], lambda x: real(x, right))
    if left is not None:
        return _with_number(layers, node, node.operands[1], lambda x: real(left, x))
    a, b = (_operand(layers, name) for name in node.operands)
    y = quantisation_of_value(node)
    return _add(layers, node, "vector", (a.name, b.name), _vector(function, parameters_of(a), parameters_of(b), y), y)


def _vector(function: str, a: Quantisation, b: Quantisation, y: Quantisation) -> Vector:
    if function == "multiply":
        return Vector(function, scaling(a.scale, b.scale, y.scale), a.zero_point, 1.0, b.zero_point, y.zero_point)
    return Vector(function, scaling(a.scale, 1.0, y.scale), a.zero_point, scaling(b.scale, 1.0, y.scale), b.zero_point, y.zero_point)


def _with_number(layers: LayerGraph, node: Node, name: str, function: RealFunction) -> Node:
    """The table of a function with a constant number, which may have brought leading sizes of 1 with it."""
    x = layers.for_device(name)
    made = _looked_up(layers, node, x, function, quantisation_of_value(node))
    return made if made.type.shape == node.type.shape else _reshaped(layers, node, made)


def _operand(layers: LayerGraph, name: str) -> Node:
    """An operand of a vector layer: a value, or a constant in int8, by its own range unless the source fixes parameters."""
    real, source = layers.array(name), layers.graph[name]
    if real is None:
        return layers.for_device(name)
    parameters = source.type.quantisation or quantisation_of(real)

    def make() -> Node:
        return layers.constant(name, quantise(real, parameters.scale, parameters.zero_point), source.origin, parameters)

    return layers.shared(name, b"operand", make)


def _boundary(layers: LayerGraph, node: Node) -> Node:
    """`quantize` of a value of the host is the edge itself; on the device, it and `dequantize` are what they read."""
    source = node.operands[0]
    if node.op == "quantize" and layers.on_host(source):
        return layers.add(Node(node.name, node.op, (layers.for_host(source),), node.attributes, node.type, node.origin))
    return layers.for_device(source)


def _looked_up(layers: LayerGraph, node: Node, x: Node, function: RealFunction, y: Quantisation) -> Node:
    entries = layers.constant(f"{node.name}.table", function_table(function, parameters_of(x), y), node.origin)
    return _add(layers, node, "vector", (x.name, entries.name), Vector("table"), y, shape=x.type.shape)


def _reshaped(layers: LayerGraph, node: Node, x: Node) -> Node:
    """Another shape of the same rows: a `reshape` of the integers, which moves nothing."""
    return _add(layers, node, "reshape", (x.name,), ReshapeAttributes(node.type.shape), parameters_of(x))


def _add(
    layers: LayerGraph,
    node: Node,
    op: str,
    operands: tuple[str, ...],
    attributes: Attributes,
    y: Quantisation,
    *,
    name: str = "",
    shape: tuple[int, ...] | None = None,
) -> Node:
    """Adds a node on behalf of an operator, whose name and shape it has unless others are given."""
    type_ = held(node.type.shape if shape is None else shape, y)
    return layers.add(Node(name or node.name, op, operands, attributes, type_, node.origin))


def _array(layers: LayerGraph, name: str) -> AnyArray:
    values = layers.array(name)
    if values is None:
        raise ProgramError(Diagnostic("E0806", f"{name} must be constant: the device reads it from weight memory"))
    return values


def _values(node: Node) -> AnyArray:
    values = constant_array(node)
    assert values is not None
    return values


def _number(layers: LayerGraph, name: str) -> Float64 | None:
    """The constant as a number, when it is one."""
    values = layers.array(name)
    return None if values is None or values.size != 1 else values.reshape(()).astype(np.float64)


def _identity(real: Float64) -> Float64:
    return real
