"""The rules of layer graphs: only layers that the target has, every edge quantised, every constant of the kind that its layer needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.diagnostics import Diagnostic, Label, ProgramError
from tpucc.ir.array import Array
from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import TensorType
from tpucc.layers.kinds import LAYERS, Fc, Vector
from tpucc.layers.parameters import UnfitError, require_accumulators
from tpucc.layers.summary import is_layer
from tpucc.numerics import INT8_HIGH, INT8_LOW, AnyArray

ENTRANCES = ("quantize", "reshape", "constant", "input")
"""Operators beside the layers that hold what the device reads."""
FUNCTIONS = ("add", "subtract", "multiply")
TABLE = TensorType("i8", (256,))
REPORTED = 20
"""Problems that one error shows."""


def verify_layers(graph: Graph) -> None:
    """Raises `ProgramError` with what is wrong with the layers of a graph.

    E0820 a layer reads what is no value of the device; E0821 number of operands, or attributes of another kind; E0822 an edge without scale
    and zero point; E0823 operands whose types or shapes don't fit; E0824 zero points and clamps outside int8; E0825 multipliers that aren't
    positive and finite; E0803 accumulators that could overflow. Host operators have their own check.
    """
    layers = (node for node in graph if node.op in LAYERS)
    found = [Diagnostic(code, f"{node.name}: {text}", _labels(node)) for node in layers for code, text in _faults(graph, node)]
    if found:
        raise ProgramError(found[:REPORTED])


Fault = tuple[str, str]


def _faults(graph: Graph, node: Node) -> Iterator[Fault]:
    operands = graph.operands(node)
    if not isinstance(node.attributes, LAYERS[node.op]):
        yield "E0821", f"a layer {node.op} has the attributes {LAYERS[node.op].__name__}, not {type(node.attributes).__name__}"
    elif isinstance(node.attributes, Fc):
        yield from _edge_faults(node, operands[:1]) or _fc_faults(node, node.attributes, operands)
    elif isinstance(node.attributes, Vector):
        yield from _edge_faults(node, operands[: _sources(node.attributes)]) or _vector_faults(node, node.attributes, operands)


def _edge_faults(node: Node, sources: Sequence[Node]) -> list[Fault]:
    """What is wrong with the values that the layer reads and with its result; constants may stand for values."""
    bare = [edge for edge in (*sources, node) if _is_bare(edge)]
    hosts = [edge for edge in sources if not is_layer(edge) and edge.op not in ENTRANCES]
    return [
        *(("E0822", f"{edge.name} is {edge.type}, and the device holds i8 with scale and zero point") for edge in bare),
        *(("E0820", f"it reads {edge.name}, which {edge.op} computes on the host: only quantize leads to the device") for edge in hosts),
    ]


def _is_bare(node: Node) -> bool:
    return node.type.dtype != "i8" or node.type.quantisation is None


def _fc_faults(node: Node, layer: Fc, operands: Sequence[Node]) -> Iterator[Fault]:
    if len(operands) != 4 + layer.table:
        yield "E0821", f"it has {len(operands)} operands, and takes x, weights, bias, multiplier{', table' if layer.table else ''}"
        return
    x, weights = operands[0].type, operands[1].type
    n = weights.columns
    expected = (TensorType("i8", (x.columns, n)), TensorType("i32", (n,)), TensorType("f32", (n,)), TABLE)
    wrong = _misfits(operands[1:], expected)
    if (*x.shape[:-1], n) != node.type.shape or not x.shape:
        wrong.append(("E0823", f"{x.brief} times {weights.brief} isn't {node.type.brief}"))
    yield from wrong or _fc_constants(operands)
    yield from _clamp_faults(layer, (layer.zero,))


def _fc_constants(operands: Sequence[Node]) -> Iterator[Fault]:
    weights, bias, factors, *table = (_value(operand) for operand in operands[1:])
    if weights is None or bias is None or factors is None or any(entries is None for entries in table):
        yield "E0823", "its weights, bias, multiplier and table must be constants"
        return
    if not (np.isfinite(factors) & (factors > 0)).all():
        yield "E0825", "its multipliers must be positive and finite"
    try:
        require_accumulators(weights, bias)
    except UnfitError as error:
        yield error.code, error.message


def _vector_faults(node: Node, layer: Vector, operands: Sequence[Node]) -> Iterator[Fault]:
    sources = _sources(layer)
    tables = 1 if layer.table or layer.function == "table" else 0
    if layer.function not in (*FUNCTIONS, "table"):
        yield "E0821", f"there is no vector function {layer.function}"
        return
    if len(operands) != sources + tables:
        yield "E0821", f"it has {len(operands)} operands, and takes {sources + tables}"
        return
    yield from _misfits(operands[sources:], (TABLE,))
    if _common_shape([operand.type.shape for operand in operands[:sources]]) != node.type.shape:
        yield "E0823", f"{' and '.join(operand.type.brief for operand in operands[:sources])} don't give {node.type.brief}"
    if any(_value(operand) is None for operand in operands[sources:]):
        yield "E0823", "its table must be a constant"
    if not all(0 < scale < float("inf") for scale in (layer.scale_a, layer.scale_b)):
        yield "E0825", "its multipliers must be positive and finite"
    yield from _clamp_faults(layer, (layer.zero, layer.zero_a, layer.zero_b))


def _sources(layer: Vector) -> int:
    return 1 if layer.function == "table" else 2


def _misfits(operands: Sequence[Node], expected: Sequence[TensorType]) -> list[Fault]:
    pairs = zip(operands, expected, strict=False)
    return [("E0823", f"{o.name} is {o.type.brief}, and the layer takes {wanted.brief}") for o, wanted in pairs if o.type.plain() != wanted]


def _clamp_faults(layer: Fc | Vector, zeros: Sequence[int]) -> Iterator[Fault]:
    if not INT8_LOW <= layer.low <= layer.high <= INT8_HIGH:
        yield "E0824", f"it clamps to {layer.low}…{layer.high}, outside {INT8_LOW}…{INT8_HIGH}"
    if not all(INT8_LOW <= zero <= INT8_HIGH for zero in zeros):
        yield "E0824", f"its zero points must be in {INT8_LOW}…{INT8_HIGH}"


def _common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """NumPy's common shape, on Python's unbounded integers; None when there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    sizes = [set(axis) - {1} for axis in zip(*padded, strict=True)]
    return tuple(next(iter(axis), 1) for axis in sizes) if all(len(axis) <= 1 for axis in sizes) else None


def _value(node: Node) -> AnyArray | None:
    """The array of a constant. It is the attribute's own, whatever the class: layers know nothing of operators."""
    value = getattr(node.attributes, "value", None)
    return value.data if node.op == "constant" and isinstance(value, Array) else None


def _labels(node: Node) -> tuple[Label, ...]:
    return tuple(Label(span) for span in node.origin.spans[:1])
