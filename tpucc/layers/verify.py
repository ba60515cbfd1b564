"""The rules of layer graphs: only layers that the target has, every edge quantised, every constant of the kind that its layer needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, assert_never

import numpy as np

from tpucc.diagnostics import Diagnostic, ProgramError, counted, listed
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, TensorType, f32
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, I8, DeviceFormat
from tpucc.layers.kinds import (
    FUNCTIONS_OF_TWO,
    LAYERS,
    VIEWS,
    Conv,
    ConvUnit,
    Epilogue,
    Fc,
    Layer,
    Move,
    MoveFunction,
    Pool,
    PoolFunction,
    Vector,
    VectorFunction,
    fits_vector_unit,
    is_layer,
    is_written,
    looks_up,
    weights_of,
)
from tpucc.layers.parameters import UnfitError, require_accumulators
from tpucc.numerics import AnyArray
from tpucc.ops import quantizes
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.constant import OP as constant
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.names import add, concat, conv2d, matmul, max_pool, pad
from tpucc.ops.opdef import OpDef, RuleError
from tpucc.ops.pad import PadAttributes
from tpucc.ops.parts import Shape
from tpucc.ops.windows import PoolAttributes

TABLES = {name: TensorType(name, (format.table_entries,)) for name, format in DEVICE_FORMATS.items()}
"""Of the functions of values of these types."""
REPORTED = 20
"""Problems that one error shows."""


def verify_layers(graph: Graph, changed: Collection[str] | None = None) -> None:
    """Raises `ProgramError` with the faults of the layers of a graph, or of those in `changed` only.

    E0820 a layer reads a value that isn't the device's; E0821 number of operands, attributes of another kind, or an epilogue that isn't the
    layer's; E0822 an edge without scale and zero point, or of another type than the result; E0823 operands whose types or shapes don't fit;
    E0824 zero points and clamps outside the integers; E0825 multipliers that aren't positive and finite; E0803 accumulators that could
    overflow; E0749 nodes with places. Host operators have their own check.
    """
    if not any(node.op in LAYERS for node in graph):
        return
    if placed := next((node for node in graph if node.place is not None), None):
        message = f"{placed.name} has a place, as nodes of operator graphs have: in a layer graph, layers are the device's"
        raise ProgramError(Diagnostic("E0749", message, placed.origin.labels()))
    layers = (node for node in graph if node.op in LAYERS and (changed is None or node.name in changed))
    faults = ((node, fault) for node in layers for fault in (*_faults(graph, node), *_misread(graph, node)))
    found = [Diagnostic(code, f"{node.name}: {text}", node.origin.labels()) for node, (code, text) in faults]
    if found:
        raise ProgramError(found[:REPORTED])


Fault = tuple[str, str]


def _faults(graph: Graph, node: Node) -> Iterator[Fault]:
    layer, operands = node.attributes, graph.operands(node)
    if not isinstance(layer, Layer) or not isinstance(layer, LAYERS[node.op]):
        yield "E0821", f"a layer {node.op} has the attributes {LAYERS[node.op].__name__}, not {type(layer).__name__}"
        return
    yield from _edge_faults(node, operands[: _sources(layer, operands)]) or _layer_faults(node, layer, operands)


def _misread(graph: Graph, node: Node) -> Iterator[Fault]:
    """Weights that the host writes to weight memory are in no other memory."""
    for name in weights_of(node):
        if not is_written(graph[name]):
            continue
        others = [user.name for user in graph.users[name] if user.operands.count(name) > weights_of(user).count(name)]
        if others:
            yield "E0820", f"it reads {name} from weight memory, and {others[0]} reads it elsewhere"


def _sources(layer: Layer, operands: Sequence[Node]) -> int:
    """How many of the operands are values; the others are the layer's constants."""
    match layer:
        case Fc():
            return layer.sources
        case Vector():
            return 1 if layer.function == VectorFunction.TABLE else 2
        case Move():
            return len(operands)
        case Conv() | Pool():
            return 1
        case _:
            assert_never(layer)


def _layer_faults(node: Node, layer: Layer, operands: Sequence[Node]) -> Iterator[Fault]:
    match layer:
        case Fc() | Conv():
            yield from _product_faults(node, layer, operands)
        case Pool():
            yield from _pool_faults(node, layer, operands)
        case Vector():
            yield from _vector_faults(node, layer, operands)
        case Move():
            yield from _move_faults(node, layer, operands)
        case _:
            assert_never(layer)


def _is_entrance(node: Node) -> bool:
    """Whether an operator beside the layers holds what the device reads."""
    return node.is_input or constant.made(node) or quantizes(node.op) or node.op in VIEWS


def _edge_faults(node: Node, sources: Sequence[Node]) -> list[Fault]:
    """The faults of the values that the layer reads, and of its result; constants may stand for values."""
    hosts = [edge for edge in sources if not (is_layer(edge) or _is_entrance(edge))]
    bare = [edge for edge in (*sources, node) if _is_bare(edge) and edge not in hosts]
    held = listed([*DEVICE_FORMATS], "or")
    return [
        *(("E0822", f"{edge.name} is {edge.type}, and the device holds {held} with scale and zero point") for edge in bare),
        *(("E0822", f"{edge.name} is {edge.type.dtype}, and the result {node.type.dtype}") for edge in sources if _differs(edge, node)),
        *(("E0820", f"it reads {edge.name}, which {edge.op} computes on the host: only quantize leads to the device") for edge in hosts),
    ]


def _is_bare(node: Node) -> bool:
    return node.type.dtype not in DEVICE_FORMATS or node.type.quantisation is None


def _differs(edge: Node, node: Node) -> bool:
    return not _is_bare(edge) and not _is_bare(node) and edge.type.dtype != node.type.dtype


def _format(node: Node) -> DeviceFormat:
    return DEVICE_FORMATS.get(node.type.dtype, DEFAULT_FORMAT)


def _product_faults(node: Node, layer: Fc | Conv, operands: Sequence[Node]) -> Iterator[Fault]:
    """The faults of values, as many weights, and their constants: bias, multiplier, and a table if the layer looks up."""
    count, tables = _sources(layer, operands), looks_up(layer)
    if count < 1 or len(operands) != 2 * count + 2 + tables:
        pairs = "x, weights" if count == 1 else f"{count} values, as many weights"
        yield "E0821", f"it has {len(operands)} operands, and takes {pairs}, bias, multiplier{', table' if tables else ''}"
        return
    weights, tail = operands[count : 2 * count], operands[2 * count :]
    misfits = _misfits(tail, _tail_types(node.type.columns, node))
    if isinstance(layer, Fc):
        shapes = _fc_faults(node, operands[:count], weights)
    else:
        shapes = _conv_faults(node, layer, operands[0].type, weights[0].type)
    yield from [*shapes, *misfits] or _product_constants(node, weights, tail)
    yield from _epilogue_faults(node, layer.epilogue, (0, 0))


def _fc_faults(node: Node, values: Sequence[Node], weights: Sequence[Node]) -> Iterator[Fault]:
    """The faults of the shapes of values and their weights."""
    n = node.type.columns
    for x, w in zip(values, weights, strict=True):
        yield from _misfits([w], [TensorType(_format(node).weights, (*w.type.shape[:-2], x.type.columns, n))])
        several = len(w.type.shape) > 2 and len(x.type.shape) < 2
        if several or _shape(matmul, NoAttributes(), x.type.shape, w.type.shape) != node.type.shape:
            yield "E0823", f"{x.type.brief} times {w.type.brief} isn't {node.type.brief}"


def _conv_faults(node: Node, layer: Conv, x: TensorType, weights: TensorType) -> Iterator[Fault]:
    """The faults of the windows' shape, of the pixels around the image, and of the unit."""
    if weights.dtype != _format(node).weights or conv_shape(layer, x.shape, weights.shape) != node.type.shape:
        yield "E0823", f"{x.brief} under the kernel {weights.brief} isn't {node.type.brief}"
    held = x.quantisation
    if held is not None and layer.outside != held.zero_point:
        yield "E0824", f"pixels outside the image are {layer.outside}, and zero is {held.zero_point}"
    if layer.unit not in tuple(ConvUnit) or (layer.unit == ConvUnit.VECTOR and not fits_vector_unit(layer, weights.shape, node.type.dtype)):
        yield "E0821", f"the {layer.unit} unit doesn't compute {x.brief} under the kernel {weights.brief}"


def _tail_types(n: int, node: Node) -> tuple[TensorType, TensorType, TensorType]:
    """Bias, multiplier and table."""
    format = _format(node)
    return TensorType(format.accumulator, (n,)), TensorType("f32", (n,)), TABLES[format.name]


def _product_constants(node: Node, weights: Sequence[Node], tail: Sequence[Node]) -> Iterator[Fault]:
    matrices, (bias, factors, *table) = [_matrix(weight, node) for weight in weights], [_value(constant) for constant in tail]
    known = [matrix for matrix in matrices if matrix is not None]
    if len(known) < len(matrices) or bias is None or factors is None or any(entries is None for entries in table):
        yield "E0823", "its weights, bias, multiplier and table must be constants; weights may be what quantize makes with zero point 0"
        return
    if not (np.isfinite(factors) & (factors > 0)).all():
        yield "E0825", "its multipliers must be positive and finite"
    try:
        require_accumulators(np.concatenate(known), bias, _format(node))
    except UnfitError as error:
        yield error.code, error.message


def _matrix(weights: Node, layer: Node) -> AnyArray | None:
    """Weights as a matrix [K, N] for the bounds of its sums: of those that the host computes the largest there can be; None of others."""
    value = _value(weights)
    if value is not None:
        return value.reshape(-1, value.shape[-1])
    held = weights.type.quantisation
    if not isinstance(layer.attributes, Fc) or not is_written(weights) or held is None or held.zero_point:
        return None
    return np.full(weights.type.shape[-2:], I8.low, np.int8)


def _pool_faults(node: Node, layer: Pool, operands: Sequence[Node]) -> Iterator[Fault]:
    if layer.function not in tuple(PoolFunction):
        yield "E0821", f"there is no pooling function {layer.function}"
    elif len(operands) != 1:
        yield "E0821", f"it has {len(operands)} operands, and takes 1"
    elif pool_shape(layer, operands[0].type.shape) != node.type.shape:
        yield "E0823", f"windows of {layer.size[0]}×{layer.size[1]} of {operands[0].type.brief} don't give {node.type.brief}"
    elif layer.function == PoolFunction.MAX and operands[0].type.quantisation != node.type.quantisation:
        yield "E0823", "a maximum has the scale and zero point of its operand"
    yield from _epilogue_faults(node, layer.epilogue, (1, 1) if layer.function == PoolFunction.AVERAGE else None)


def _vector_faults(node: Node, layer: Vector, operands: Sequence[Node]) -> Iterator[Fault]:
    sources, tables = _sources(layer, operands), int(looks_up(layer))
    if layer.function not in tuple(VectorFunction):
        yield "E0821", f"there is no vector function {layer.function}"
        return
    if len(operands) != sources + tables:
        yield "E0821", f"it has {len(operands)} operands, and takes {sources + tables}"
        return
    yield from _misfits(operands[sources:], (TABLES[_format(node).name],))
    shapes = [operand.type.shape for operand in operands[:sources]]
    if (shapes[0] if sources == 1 else _shape(add, NoAttributes(), *shapes)) != node.type.shape:
        yield "E0823", f"{' and '.join(operand.type.brief for operand in operands[:sources])} don't give {node.type.brief}"
    if any(_value(operand) is None for operand in operands[sources:]):
        yield "E0823", "its table must be a constant"
    of_two = FUNCTIONS_OF_TWO.get(layer.function)
    yield from _epilogue_faults(node, layer.epilogue, None if of_two is None else (1 if of_two.one_scale else 2, 2))


def _move_faults(node: Node, layer: Move, operands: Sequence[Node]) -> Iterator[Fault]:
    if layer.function not in tuple(MoveFunction) or not operands or (layer.function == MoveFunction.PAD and len(operands) != 1):
        yield "E0821", f"there is no move {layer.function} of {len(operands)} operands"
        return
    if move_shape(layer, [operand.type.shape for operand in operands]) != node.type.shape:
        yield "E0823", f"{' and '.join(operand.type.brief for operand in operands)} don't give {node.type.brief}"
    if any(operand.type.quantisation != node.type.quantisation for operand in operands):
        yield "E0823", "its operands must have its scale and zero point"
    yield from _zero_faults(node, (layer.value,))


def _misfits(operands: Sequence[Node], expected: Sequence[TensorType]) -> list[Fault]:
    pairs = zip(operands, expected, strict=False)
    return [("E0823", f"{o.name} is {o.type.brief}, and the layer takes {wanted.brief}") for o, wanted in pairs if o.type.plain() != wanted]


def _epilogue_faults(node: Node, epilogue: Epilogue | None, takes: tuple[int, int] | None) -> Iterator[Fault]:
    """The faults of the epilogue of a layer, which `takes` so many scales and zero points of its operands, or has no epilogue."""
    if epilogue is None or takes is None:
        if epilogue is not None or takes is not None:
            yield "E0821", "it has an epilogue, and takes none" if takes is None else "it has no epilogue, and takes one"
        return
    scales, zeros = len(epilogue.scales), len(epilogue.zeros)
    if (scales, zeros) != takes:
        found = f"{counted(scales, 'scale')} and {counted(zeros, 'zero point')} of operands"
        yield "E0821", f"its epilogue has {found}, and the layer {takes[0]} and {takes[1]}"
    if not all(0 < scale < float("inf") for scale in epilogue.scales):
        yield "E0825", "its multipliers must be positive and finite"
    of = _format(node)
    low, high = epilogue.bounds(of)
    if not of.low <= low <= high <= of.high:
        yield "E0824", f"it clamps to {low}…{high}, outside {of.low}…{of.high}"
    yield from _zero_faults(node, (epilogue.zero, *epilogue.zeros))


def _zero_faults(node: Node, zeros: Sequence[int]) -> Iterator[Fault]:
    allowed = _format(node).zero_points
    if not all(zero in allowed for zero in zeros):
        yield "E0824", f"its zero points must be in {allowed[0]}…{allowed[-1]}"


def _shape(operator: OpDef[Any], attributes: Attributes, *shapes: Shape) -> Shape | None:
    """The shape of an operator's result, by the operator's own rule; None where it refuses the operands."""
    try:
        return operator.infer(attributes, [f32(*shape) for shape in shapes]).shape
    except RuleError:
        return None


def _value(node: Node) -> AnyArray | None:
    """The array of a constant. It is the attribute's own, whatever the class: layers know nothing of operators."""
    value = getattr(node.attributes, "value", None)
    return value.data if constant.made(node) and isinstance(value, Constant) else None


def conv_shape(layer: Conv, x: Shape, weights: Shape) -> Shape | None:
    """x [B, H, W, C] under a kernel [R, S, C / groups, F]."""
    return _shape(conv2d, Conv2dAttributes(layer.stride, layer.sides, layer.dilation, layer.groups), x, weights)


def pool_shape(layer: Pool, x: Shape) -> Shape | None:
    """x [B, H, W, C]. No window may lie outside the image: padding is smaller than the window. Of it some may count."""
    if any(not 0 <= some <= side for some, side in zip(layer.counted, layer.sides, strict=True)):
        return None
    return _shape(max_pool, PoolAttributes(layer.size, layer.stride, layer.sides), x)


def move_shape(layer: Move, shapes: Sequence[Shape]) -> Shape | None:
    """Operands joined along an axis that isn't the last, or one with rows around it."""
    if layer.function == MoveFunction.PAD:
        return _shape(pad, PadAttributes(layer.pads), *shapes) if layer.pads[-1:] == ((0, 0),) else None
    return _shape(concat, ConcatAttributes(layer.axis), *shapes) if 0 <= layer.axis < len(shapes[0]) - 1 else None
