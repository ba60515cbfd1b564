"""Element-wise layers: functions of one value as tables, arithmetic of two as vector layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpucc.ir import Node, Quantisation
from tpucc.layers.kinds import FUNCTIONS_OF_TWO, Vector, VectorFunction
from tpucc.layers.parameters import clamp_bounds, function_table, quantisation_of, scaling
from tpucc.numerics import Float64
from tpucc.ops import OPS, quantizes
from tpucc.ops.fused import Fused, activation_of
from tpucc.ops.opdef import Arithmetic, Clamp, Table
from tpucc.passes.layering.graph import LayerGraph, Tail, parameters_of, reshaped, tail_of

ONE = Quantisation(1.0, 0)
"""The parameters of integers that stand for themselves."""
RealFunction = Callable[[Float64], Float64]


def function(layers: LayerGraph, node: Node, real: RealFunction) -> Node:
    """A function of one value: a table."""
    return _looked_up(layers, node, layers.for_device(node.operands[0]), real, layers.quantisation_of(node))


def clamp(layers: LayerGraph, node: Node, low: float, high: float) -> Node:
    """A clamp on its own keeps the parameters of its operand, so that nothing is rounded, unless the source fixes others."""
    x = layers.for_device(node.operands[0])
    y = node.type.quantisation or parameters_of(x)
    if layers.format.has_exact_tables:
        return _looked_up(layers, node, x, lambda real: np.clip(real, low, high), y)
    return _times_one(layers, node, x, Tail(y, *clamp_bounds(low, high, y, layers.format)))


def arithmetic(layers: LayerGraph, node: Node) -> Node:
    """A function of two values: a table when one of them is a constant number, else a vector layer."""
    left, right = (_number(layers, name) for name in node.operands)
    kind, after = _vector_function(node), _activation(node)
    real = FUNCTIONS_OF_TWO[kind].real
    if right is not None:
        return _with_number(layers, node, node.operands[0], lambda x: after(real(x, right)))
    if left is not None:
        return _with_number(layers, node, node.operands[1], lambda x: after(real(left, x)))
    a, b = (_operand(layers, name) for name in node.operands)
    y = layers.quantisation_of(node)
    tail = tail_of(layers, node, y)
    table = [] if tail.table is None else [layers.constant(f"{node.name}.table", tail.table, node.origin)]
    return layers.layer(node, (a, b, *table), _vector(kind, parameters_of(a), parameters_of(b), tail), y)


def boundary(layers: LayerGraph, node: Node) -> Node:
    """`quantize` of a value of the host is the edge itself; on the device, it and `dequantize` are what they read."""
    source = node.operands[0]
    if quantizes(node.op) and layers.on_host(source):
        return layers.add(Node(node.name, node.op, (layers.for_host(source),), node.attributes, node.type, node.origin))
    return layers.for_device(source)


def requantised(layers: LayerGraph, node: Node, x: Node, y: Quantisation) -> Node:
    """The value of x with other parameters: x itself when it has them."""
    if parameters_of(x) == y:
        return x
    if layers.format.has_exact_tables:
        return _looked_up(layers, node, x, _identity, y)
    return _times_one(layers, node, x, Tail(y))


def _vector_function(node: Node) -> VectorFunction:
    """The operator's name as a function of the vector unit."""
    legalisation = OPS[node.op].legalisation
    assert isinstance(legalisation, Arithmetic)
    return VectorFunction(legalisation.function(node.attributes))


def _activation(node: Node) -> RealFunction:
    """The function that was fused into the operator, of real numbers."""
    fused = activation_of(node.attributes) if isinstance(node.attributes, Fused) else None
    if fused is None:
        return _identity
    operator, parameters = fused
    match operator.legalisation:
        case Clamp(bounds):
            return lambda x: np.clip(x, *bounds(parameters))
        case Table(real):
            return lambda x: np.asarray(real(parameters, x))
    raise AssertionError(f"{operator.name} isn't an activation")


def _vector(kind: VectorFunction, a: Quantisation, b: Quantisation, tail: Tail) -> Vector:
    y = tail.to.scale
    scales = (scaling(a.scale, b.scale, y),) if FUNCTIONS_OF_TWO[kind].one_scale else (scaling(a.scale, 1.0, y), scaling(b.scale, 1.0, y))
    return Vector(kind, tail.epilogue(scales, (a.zero_point, b.zero_point)))


def _with_number(layers: LayerGraph, node: Node, name: str, real: RealFunction) -> Node:
    """The table of a function with a constant number, which may have brought leading sizes of 1 with it."""
    made = _looked_up(layers, node, layers.for_device(name), real, layers.quantisation_of(node))
    return made if made.type.shape == node.type.shape else reshaped(layers, node, made)


def _operand(layers: LayerGraph, name: str) -> Node:
    """An operand of a vector layer: a value, or a constant in integers, by its own range unless the source fixes parameters."""
    real = layers.array(name)
    return layers.for_device(name) if real is None else layers.held_constant(name, quantisation_of(real, layers.format))


def _looked_up(layers: LayerGraph, node: Node, x: Node, real: RealFunction, y: Quantisation) -> Node:
    entries = layers.constant(f"{node.name}.table", function_table(real, parameters_of(x), y, layers.format), node.origin)
    return layers.layer(node, (x, entries), Vector(VectorFunction.TABLE), y, shape=x.type.shape)


def _times_one(layers: LayerGraph, node: Node, x: Node, y: Tail) -> Node:
    """x requantised as y and clamped, each value rounded once: a product with a constant 1, where a table has no entry for each value."""
    number = np.ones((1,) * min(1, x.type.rank), layers.format.numpy)
    one = layers.constant(f"{node.name}.one", number, node.origin, ONE)
    layer = _vector(VectorFunction.MULTIPLY, parameters_of(x), ONE, y)
    return layers.layer(node, (x, one), layer, y.to, shape=x.type.shape)


def _number(layers: LayerGraph, name: str) -> Float64 | None:
    """The constant as a number, when it is one."""
    values = layers.array(name)
    return None if values is None or values.size != 1 else values.reshape(()).astype(np.float64)


def _identity(real: Float64) -> Float64:
    return real
