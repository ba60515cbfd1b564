"""Which function ends each layer, as a table or a clamp: that of the operator which the layer was made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tpucc.interop.onnx.functions import Function, Step
from tpucc.interop.onnx.writing.model import Activation, Weight
from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.ir.dtypes import DEVICE_FORMATS, IntegerFormat
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ir.types import Quantisation
from tpucc.layers.kinds import Conv, Fc, Layer, Move, Vector, VectorFunction, looks_up
from tpucc.layers.parameters import UnfitError
from tpucc.numerics import DeviceInts, affine_parameters
from tpucc.ops import legalisation_of
from tpucc.ops.fused import Fused, activation_of
from tpucc.ops.opdef import Arithmetic

ARITHMETIC = {"add": "Add", "multiply": "Mul", "subtract": "Sub"}
"""The steps of a value and a number, by the functions of the vector unit."""


def activations(layers: Graph, operators: Graph, weights: Mapping[str, Weight]) -> dict[str, Activation]:
    """The functions of tables and clamps, by the names of their layers; what a pass has changed may have none.

    `operators` is the graph before its values became integers; what depends on constants only is a constant there. `weights` are those
    which such constants are, by their names.
    """
    found = (
        (node.name, _activation(node, node.attributes, layers, _Operators(operators, weights)))
        for node in layers
        if isinstance(node.attributes, Layer)
    )
    return {name: made for name, made in found if made is not None}


def biases(layers: Graph, operators: Graph) -> dict[str, str]:
    """The constants that are biases of the operators, by those of their layers, in which the zero points are folded, too."""
    found: dict[str, str] = {}
    for node in layers:
        layer = node.attributes
        place = 2 * layer.sources if isinstance(layer, Fc) else 2 if isinstance(layer, Conv) else None
        of = operators.by_name.get(node.of)
        if place is not None and of is not None and isinstance(of.attributes, Fused) and len(of.operands) > 2:
            found[node.operands[place]] = of.operands[2]
    return found


@dataclass(frozen=True)
class _Operators:
    """The graph of operators, and which of its constants are weights, by their names."""

    graph: Graph
    weights: Mapping[str, Weight]


def _activation(node: Node, layer: Layer, layers: Graph, operators: _Operators) -> Activation | None:
    y, of = node.type.quantisation, DEVICE_FORMATS[node.type.dtype]
    operator = operators.graph.by_name.get(node.of)
    if y is None or operator is None:
        return None
    if looks_up(layer):
        return _of_table(node, layer, y, layers, operator, operators)
    end = None if isinstance(layer, Move) else layer.epilogue
    if end is None:
        return None
    return next((made for made in _tried(operator, operators, of, alone=False) if made.function.has_bounds(*end.bounds(of), y, of)), None)


def _of_table(node: Node, layer: Layer, y: Quantisation, layers: Graph, operator: Node, operators: _Operators) -> Activation | None:
    """What has the layer's table: the operator's function, or none."""
    held, of = layers[node.operands[-1]], DEVICE_FORMATS[node.type.dtype]
    table = array_of(held)
    if table is None:
        return None
    x = layers[node.operands[0]].type.quantisation if isinstance(layer, Vector) and layer.function == VectorFunction.TABLE else None
    tried = _tried(operator, operators, of, alone=x is not None)
    return next((made for made in tried if _has_table(made.function, table, x or made.before, y, of)), None)


def _has_table(function: Function, table: DeviceInts, x: Quantisation | None, y: Quantisation, of: IntegerFormat) -> bool:
    try:
        return x is not None and function.has_table(table, x, y, of)
    except UnfitError:
        return False


def _tried(node: Node, operators: _Operators, of: IntegerFormat, *, alone: bool) -> Iterator[Activation]:
    """The function of an operator that is `alone` in its layer, or follows the layer's sums; and none, of which a new scale is made."""
    fused = activation_of(node.attributes) if isinstance(node.attributes, Fused) else None
    last = Step.of_operator(*((fused[0].name, fused[1]) if fused else (node.op, node.attributes)))
    number = _with_number(node, operators) if alone else None
    pre = node.attributes.pre if isinstance(node.attributes, Fused) else None
    before = None if alone or pre is None else Quantisation(*affine_parameters(*pre, of))
    steps = (number.step if number else None, last)
    made = Activation(Function(tuple(step for step in steps if step is not None)), before)
    yield replace(made, weight=number.weight, is_subtracted=number.is_subtracted) if number else made
    if alone:
        yield Activation(Function())


@dataclass(frozen=True)
class _Number:
    """A sum, a difference or a product with a constant number, and the weight that the number is, or of which it is the opposite."""

    step: Step
    weight: Weight | None
    is_subtracted: bool = False


def _with_number(node: Node, operators: _Operators) -> _Number | None:
    """The step with a number that an operator begins with."""
    legalisation = legalisation_of(node.op)
    if not isinstance(legalisation, Arithmetic):
        return None
    name = ARITHMETIC[legalisation.function(node.attributes)]
    left, right = (_number(operators.graph[operand]) for operand in node.operands)
    first, second = (operators.weights.get(operand) for operand in node.operands)
    if right is not None:
        return _Number(Step("Add", (-right,)), second, is_subtracted=True) if name == "Sub" else _Number(Step(name, (right,)), second)
    return None if left is None else _Number(Step(name, (left,)), first)


def _number(node: Node) -> float | None:
    array = array_of(node)
    return None if array is None or array.size != 1 else float(array.reshape(()))
