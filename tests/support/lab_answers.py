"""What the solutions of labs 1, 2 and 3 must answer, written apart from them: a second program for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpucc.ir import Constant, Graph, Node, TensorType, f32
from tpucc.labs.front_end.rules import FUNCTIONS, Given
from tpucc.labs.front_end.rules import Rules as Lag
from tpucc.labs.passes.comparing import ANY
from tpucc.labs.passes.comparing import Rules as Passes
from tpucc.labs.quantisation.rules import SMALLEST
from tpucc.labs.quantisation.rules import Rules as Arithmetic
from tpucc.numerics import ZERO_SCALE, AnyArray, Float32, Float64, Int64
from tpucc.ops import OPS, opdef
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.fused import with_activation
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.opdef import Array, RuleError


def type_of_lag(rules: Lag, given: Given, types: Sequence[TensorType]) -> TensorType | RuleError:
    """The type of `lag` of operands of these types, or the error of the rule that doesn't hold."""
    for index, type_ in enumerate(types):
        if type_.dtype != "f32":
            return RuleError("E0305", "refused", about=(index,))
    by, axis = given["by"], given["axis"]
    for name, value in (("by", by), ("axis", axis)):
        if type(value) is not int:
            return RuleError("E0306", "refused", about=(name,))
    assert isinstance(by, int)
    assert isinstance(axis, int)
    shape = common(types[0].shape, types[1].shape)
    if shape is None:
        return RuleError("E0302", "refused", about=(0, 1))
    if not -len(shape) <= axis < len(shape):
        return RuleError("E0304", "refused", about=("axis",))
    sizes = {_size(type_.shape, shape, axis % len(shape)) for type_ in types}
    if len(sizes) > 1 and not rules.repeats:
        return RuleError("E0302", "refused", about=(0, 1))
    if by < 0:
        return RuleError("E0307", "refused", about=("by",))
    if by >= shape[axis]:
        return RuleError("E0308", "refused", about=("by",))
    axis %= len(shape)
    return f32(*shape[:axis], shape[axis] - by, *shape[axis + 1 :])
    # lab 1 end


def common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape to which two shapes are repeated by NumPy's rule, or None."""
    rank = max(len(a), len(b))
    pairs = [sorted((_size(a, (1,) * rank, k), _size(b, (1,) * rank, k))) for k in range(rank)]
    return tuple(high for _, high in pairs) if all(low in (1, high) for low, high in pairs) else None


def _size(shape: tuple[int, ...], whole: tuple[int, ...], axis: int) -> int:
    """The size that a shape has at an axis of the common shape; 1 where it lacks it."""
    place = axis - (len(whole) - len(shape))
    return shape[place] if place >= 0 else 1


def values_of_lag(rules: Lag, by: int, axis: int, a: Array, b: Array) -> Array:
    """The values of `lag`, for what `type_of_lag` accepts."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    places = np.arange(shape[axis] - by)
    both = [np.take(np.broadcast_to(x, shape), places + by * (name == rules.ahead), axis) for name, x in (("a", a), ("b", b))]
    return np.asarray(FUNCTIONS[rules.function][2](both[0], both[1]))
    # lab 1 end


Wanted = Mapping[str, Node]
"""The nodes that a pass leaves, by name; a constant that it may have made stands as the operand `ANY`."""


def fold_constants(graph: Graph, rules: Passes) -> Wanted:
    """Every operator of which all operands are constants is one itself, up to the limit."""
    now: dict[str, Node] = {}
    for node in graph:
        values = [value for name in node.operands if (value := constant(now[name])) is not None]
        folds = len(values) == len(node.operands) and _computes(node) and not is_pinned(node)
        if folds and node.type.size <= max(rules.limit, sum(value.data.size for value in values)):
            node = replace(node, op="constant", operands=(), attributes=ConstantAttributes(_nothing(node.type)))
        now[node.name] = node
    return now


def _computes(node: Node) -> bool:
    return node.op in OPS and not isinstance(OPS[node.op].legalisation, opdef.Given)


def _nothing(type_: TensorType) -> Constant:
    """Stands for a value that isn't compared here."""
    return Constant(np.zeros(type_.shape, type_.numpy))


def fuse_bias(graph: Graph, rules: Passes) -> Wanted:
    """Every constant that is added to a product that nothing else reads is part of it."""
    return _rewritten(graph, lambda node, now, reads: _biased(node, now, reads, rules))


def fuse_activation(graph: Graph, rules: Passes) -> Wanted:
    """Every function of the term's that is applied to a product that nothing else reads is part of it."""
    return _rewritten(graph, lambda node, now, reads: _activated(node, now, reads, rules))


Step = Callable[[Node, Mapping[str, Node], Counter[str]], tuple[Node, str] | None]
"""What a node becomes, and the name of the product that it takes in; None where it stays."""


def _rewritten(graph: Graph, step: Step) -> Wanted:
    now: dict[str, Node] = {}
    reads = Counter(name for node in graph for name in node.operands) + Counter(output.node for output in graph.outputs)
    for node in graph:
        made = step(node, now, reads)
        if made is not None:
            node, taken = made
            del now[taken]
        now[node.name] = node
    return now


def _biased(node: Node, now: Mapping[str, Node], reads: Counter[str], rules: Passes) -> tuple[Node, str] | None:
    orders = {"add": ((0, 1), (1, 0)), "sub": ((0, 1),)}.get(node.op, ())
    for left, right in orders:
        product, other = (now[node.operands[index]] for index in (left, right))
        added = constant(other)
        if added is None or not _is_open(product, now, reads) or node.type.shape != product.type.shape:
            continue
        if _is_row(added, product.type) and (rules.second or len(product.operands) == 2):
            return replace(node, op="linear", operands=(*product.operands[:2], ANY), attributes=LinearAttributes()), product.name
    return None


def _activated(node: Node, now: Mapping[str, Node], reads: Counter[str], rules: Passes) -> tuple[Node, str] | None:
    if node.op not in rules.functions or not _is_open(before := now[node.operands[0]], now, reads):
        return None
    attributes = with_activation(LinearAttributes(), node.op, node.attributes, before.type.range)
    return replace(node, op="linear", operands=before.operands, attributes=attributes), before.name


def _is_open(node: Node, now: Mapping[str, Node], reads: Counter[str]) -> bool:
    """Whether the node is a product with constant weights that takes in what follows it."""
    if node.op not in ("matmul", "linear") or reads[node.name] != 1 or is_pinned(node):
        return False
    if isinstance(node.attributes, LinearAttributes) and node.attributes.activation:
        return False
    return all(name == ANY or constant(now[name]) is not None for name in node.operands[1:])


def _is_row(value: Constant, type_: TensorType) -> bool:
    """Whether a constant has one value for each column of a type, or one for all."""
    return value.data.size == 1 or (value.data.size == type_.columns and value.shape[-1:] == type_.shape[-1:])


def constant(node: Node) -> Constant | None:
    """The value of a constant that isn't pinned."""
    return node.attributes.value if isinstance(node.attributes, ConstantAttributes) and not is_pinned(node) else None


def is_pinned(node: Node) -> bool:
    """Whether the source fixes how the value is quantised."""
    return node.type.quantisation is not None


PASSES: Mapping[str, Callable[[Graph, Passes], Wanted]] = {
    "fold_constants": fold_constants,
    "fuse_bias": fuse_bias,
    "fuse_activation": fuse_activation,
}


def parameters(rules: Arithmetic, low: float, high: float) -> tuple[float, float]:
    """Scale and zero point of a range, in float64: the zero point before it is rounded."""
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    steps = rules.high if rules.symmetric else rules.high - rules.low
    scale = float(np.float32((max(-low, high) if rules.symmetric else high - low) / steps))
    if scale < SMALLEST:
        return ZERO_SCALE, 0.0
    return scale, 0.0 if rules.symmetric else min(max(rules.low - low / scale, rules.low), rules.high)


def quantise(rules: Arithmetic, x: AnyArray, scale: float, zero_point: int) -> Int64:
    """`saturate(round(float32(x) / float32(scale)) + zero_point)`."""
    with np.errstate(over="ignore"):
        return _saturated(rules, x.astype(np.float32) / np.float32(scale), zero_point)


def requantise(rules: Arithmetic, accumulators: AnyArray, multiplier: AnyArray | float, zero_point: int) -> Int64:
    """`saturate(round(float32(accumulator) * float32(multiplier)) + zero_point)`."""
    with np.errstate(over="ignore"):
        return _saturated(rules, accumulators.astype(np.float32) * np.asarray(multiplier, np.float32), zero_point)


def quantise_weights(rules: Arithmetic, weights: Float32) -> tuple[Int64, Float32]:
    """Symmetric integers of weights [K, N], and the scale of each column; 1 for a column of nothing but zeros."""
    scales = np.abs(weights).max(axis=0, initial=0) / np.float32(rules.high)
    scales = np.where(scales < SMALLEST, np.float32(1), scales)
    return np.clip(rounded(rules, weights / scales), -rules.high, rules.high).astype(np.int64), scales


def rounded(rules: Arithmetic, x: AnyArray) -> Float64:
    """To the nearest integer, in float64: there the half of a float32 value is exact."""
    wide = x.astype(np.float64)
    if rules.ties == "even":
        return np.rint(wide)
    size = np.floor(np.abs(wide) + 0.5) if rules.ties == "away" else np.ceil(np.abs(wide) - 0.5)
    nearest: Float64 = np.copysign(size, wide)
    return nearest


def _saturated(rules: Arithmetic, x: AnyArray, zero_point: int) -> Int64:
    whole: Int64 = np.clip(rounded(rules, x) + zero_point, rules.low, rules.high).astype(np.int64)
    return whole
    # lab 3 end
