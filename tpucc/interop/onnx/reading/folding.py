"""Constants are computed while a model is read: shapes, indices, masks, and what exporters leave to be folded.

A rule gets the node, NumPy arrays, and the version of the operators. Repetition is a view that takes no memory; the sizes of all other
results are bounded before they are computed, all results of a file together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tpucc.floating import double
from tpucc.floating.exact import matmul
from tpucc.interop.onnx.reading.building.call import normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import CHECKER, Unsupported
from tpucc.interop.onnx.reading.files.tensors import TYPES
from tpucc.interop.onnx.reading.rules.places import require_places
from tpucc.interop.onnx.reading.rules.shapes import resolved
from tpucc.numerics import AnyArray

Arrays = Sequence[AnyArray | None]
Fold = Callable[[OnnxNode, Any, int], Any]


def folded(network: Network, node: OnnxNode, operands: Arrays, opset: int) -> tuple[AnyArray, ...] | None:
    """The results of a node whose operands are all known; None for an operator that isn't computed here.

    Raises `Unsupported` for operands that don't fit.
    """
    if (fold := FOLDS.get(node.kind)) is None:
        return None
    try:
        network.require_room(math.prod(_bound(node, operands)))
        with np.errstate(all="ignore"):
            made = fold(node, operands, opset)
    except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError, AttributeError):
        raise Unsupported("constants that don't fit each other, or the operator", CHECKER) from None
    results = made if isinstance(made, tuple) else (made,)
    arrays = tuple(np.asarray(result) for result in results)
    if any(array.dtype == object for array in arrays):
        raise Unsupported("an operand is missing")
    if node.op == "Constant":
        network.allow(arrays)
    return arrays


def _bound(node: OnnxNode, operands: Arrays) -> tuple[int, ...]:
    """A shape at least as large as the result's; of views, which take no memory, none."""
    if node.op in VIEWS:
        return (0,)
    if node.op == "Pad":
        return _of_pad(node, operands)
    arrays = [array for array in operands if array is not None]
    if node.op in BROADCASTING:
        try:
            return np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            raise Unsupported("constants whose shapes don't broadcast") from None
    if bound := BOUNDS.get(node.op):
        return bound(node, arrays)
    return (max((array.size for array in arrays), default=0),)


def _of_range(_: OnnxNode, arrays: Sequence[AnyArray]) -> tuple[int, ...]:
    start, stop, step = (float(array.reshape(-1)[0]) for array in arrays)
    return (max(0, int((stop - start) / step)),)


def _of_gather(node: OnnxNode, arrays: Sequence[AnyArray]) -> tuple[int, ...]:
    table, indices = arrays
    return (table.size // max(1, table.shape[_first_axis(node, table)]) * indices.size,) if table.ndim else ()


def _of_pad(node: OnnxNode, arrays: Arrays) -> tuple[int, ...]:
    shape = arrays[0].shape if arrays[0] is not None else ()
    return tuple(max(0, size + sum(pair)) for size, pair in zip(shape, _pads(node, arrays), strict=True))


def _pads(node: OnnxNode, arrays: Arrays) -> list[tuple[int, int]]:
    """What is added before and after each axis of the first operand."""
    x, given = arrays[0], arrays[1] if len(arrays) > 1 else None
    assert x is not None
    pads = given.reshape(-1) if given is not None else np.array(node.attributes["pads"])
    axes = arrays[3] if len(arrays) > 3 else None
    pairs = [(0, 0)] * x.ndim
    for index, axis in enumerate(range(x.ndim) if axes is None else axes.reshape(-1)):
        pairs[int(axis)] = int(pads[index]), int(pads[len(pads) // 2 + index])
    return pairs


def _of_gather_nd(_: OnnxNode, arrays: Sequence[AnyArray]) -> tuple[int, ...]:
    table, indices = arrays
    count = indices.shape[-1]
    return *indices.shape[:-1], *table.shape[count:]


def _of_matmul(_: OnnxNode, arrays: Sequence[AnyArray]) -> tuple[int, ...]:
    a, b = arrays
    return *np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())


BOUNDS: Mapping[str, Callable[[OnnxNode, Sequence[AnyArray]], tuple[int, ...]]] = {
    "Concat": lambda _, arrays: (sum(array.size for array in arrays),),
    "Gather": _of_gather,
    "GatherElements": lambda _, arrays: arrays[1].shape,
    "GatherND": _of_gather_nd,
    "MatMul": _of_matmul,
    "NonZero": lambda _, arrays: (arrays[0].ndim, arrays[0].size),
    "OneHot": lambda _, arrays: (arrays[0].size, int(arrays[1].reshape(-1)[0])),
    "Range": _of_range,
    "Tile": lambda _, arrays: (arrays[0].size * math.prod(max(0, int(count)) for count in arrays[1].reshape(-1)),),
}
"""Shapes at least as large as the results', by operator."""


def _first_axis(node: OnnxNode, array: AnyArray) -> int:
    return normal(int(node.attributes.get("axis", 0)), array.ndim)


def _binary(function: Callable[[Any, Any], Any]) -> Fold:
    def fold(_: OnnxNode, arrays: Any, __: int) -> Any:
        return function(arrays[0], arrays[1])

    return fold


def _unary(function: Callable[[Any], Any]) -> Fold:
    return lambda _, arrays, __: function(arrays[0]).astype(arrays[0].dtype)


def _predicate(function: Callable[[Any], Any]) -> Fold:
    return lambda _, arrays, __: function(arrays[0])


def _many(function: Callable[[Any, Any], Any]) -> Fold:
    def fold(_: OnnxNode, arrays: Any, __: int) -> Any:
        made = arrays[0]
        for array in arrays[1:]:
            made = function(made, array)
        return made

    return fold


def _divide(a: AnyArray, b: AnyArray) -> AnyArray:
    """Integers are divided towards zero."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    _require_divisible(a, b)
    return np.asarray(a // b + ((a % b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def _require_divisible(a: AnyArray, b: AnyArray) -> None:
    """Raises `Unsupported` for integers whose quotient is no integer of their type."""
    if a.dtype.kind == "f":
        return
    if (b == 0).any():
        raise Unsupported("it divides integers by 0", "what comes out differs from machine to machine")
    if a.dtype.kind == "i" and ((a == np.iinfo(a.dtype).min) & (b == -1)).any():
        raise Unsupported(f"it divides the smallest {a.dtype.name} by -1, and the quotient isn't one")


def _axes(node: OnnxNode, arrays: Any, index: int) -> list[int] | None:
    if len(arrays) > index and arrays[index] is not None:
        return [int(axis) for axis in arrays[index].reshape(-1)]
    found = node.attributes.get("axes")
    return None if found is None else [int(axis) for axis in found]


def _reduction(function: Callable[..., Any]) -> Fold:
    def fold(node: OnnxNode, arrays: Any, _: int) -> Any:
        axes = _axes(node, arrays, 1)
        if not axes and node.attributes.get("noop_with_empty_axes", 0):
            return arrays[0]
        made = function(arrays[0], axis=tuple(axes) if axes else None, keepdims=bool(node.attributes.get("keepdims", 1)))
        return np.asarray(made).astype(arrays[0].dtype)

    return fold


def _cast(node: OnnxNode, arrays: Any, _: int) -> Any:
    return arrays[0].astype(TYPES[node.attributes["to"]] if node.attributes["to"] != 16 else np.float32)


def _concat(node: OnnxNode, arrays: Any, _: int) -> Any:
    return np.concatenate(arrays, axis=int(node.attributes.get("axis", 0)))


def _constant(node: OnnxNode, _: Any, __: int) -> Any:
    names = ("value", "value_float", "value_int", "value_floats", "value_ints")
    found = next((node.attributes[name] for name in names if name in node.attributes), None)
    if found is None or isinstance(found, str):
        raise Unsupported("a constant that isn't a number", "the model's weights are damaged, or it was never trained")
    if isinstance(found, np.ndarray):
        return found
    return np.array(found, np.int64 if "int" in next(name for name in names if name in node.attributes) else np.float32)


def _constant_of_shape(node: OnnxNode, arrays: Any, _: int) -> Any:
    value = node.attributes.get("value", np.zeros(1, np.float32))
    return _repeated(value.reshape(()), arrays[0])


def _expand(_: OnnxNode, arrays: Any, __: int) -> Any:
    return _repeated(*arrays)


def _repeated(array: AnyArray, shape: AnyArray) -> AnyArray:
    """A view of the shape that both have together."""
    return np.broadcast_to(array, np.broadcast_shapes(array.shape, tuple(int(size) for size in shape.reshape(-1))))


def _flatten(node: OnnxNode, arrays: Any, _: int) -> Any:
    x, axis = arrays[0], int(node.attributes.get("axis", 1))
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def _gather(node: OnnxNode, arrays: Any, _: int) -> Any:
    return np.take(arrays[0], arrays[1].astype(np.int64), axis=int(node.attributes.get("axis", 0)))


def _gather_elements(node: OnnxNode, arrays: Any, _: int) -> Any:
    axis = _first_axis(node, arrays[0])
    return np.take_along_axis(arrays[0], arrays[1] % arrays[0].shape[axis], axis)


def _gather_nd(node: OnnxNode, arrays: Any, _: int) -> Any:
    if node.attributes.get("batch_dims", 0):
        raise Unsupported("batch_dims", "one list of places for all items is read: batch_dims=0")
    require_places(arrays[1], arrays[0].shape[: arrays[1].shape[-1]])
    return arrays[0][tuple(np.moveaxis(arrays[1], -1, 0))]


def _scatter_nd(node: OnnxNode, arrays: Any, _: int) -> Any:
    if node.attributes.get("reduction", "none") != "none":
        raise Unsupported("a reduction", "the values are set, not added: reduction=none")
    made = arrays[0].copy()
    made[tuple(np.moveaxis(arrays[1], -1, 0))] = arrays[2]
    return made


def _pad(node: OnnxNode, arrays: Any, _: int) -> Any:
    x, mode, pairs = arrays[0], node.attributes.get("mode", "constant"), _pads(node, arrays)
    if mode == "constant":
        value = arrays[2] if len(arrays) > 2 and arrays[2] is not None else node.attributes.get("value", 0)
        return np.pad(x, pairs, constant_values=value)
    return np.pad(x, pairs, mode=mode)


def _range(_: OnnxNode, arrays: Any, __: int) -> Any:
    start, stop, step = (array.reshape(()) for array in arrays)
    return np.arange(start, stop, step, dtype=start.dtype)


def _reshape(node: OnnxNode, arrays: Any, _: int) -> Any:
    wanted = [int(size) for size in (arrays[1].reshape(-1) if len(arrays) > 1 else node.attributes["shape"])]
    if 0 in arrays[0].shape:
        return arrays[0].reshape(wanted)
    return arrays[0].reshape(resolved(arrays[0].shape, wanted, bool(node.attributes.get("allowzero", 0))))


def _slice(node: OnnxNode, arrays: Any, _: int) -> Any:
    x = arrays[0]
    if len(arrays) > 1:
        starts, ends = arrays[1].reshape(-1), arrays[2].reshape(-1)
        steps = arrays[4].reshape(-1) if len(arrays) > 4 and arrays[4] is not None else np.ones(len(starts), np.int64)
    else:
        starts, ends = node.attributes["starts"], node.attributes["ends"]
        steps = np.ones(len(starts), np.int64)
    axes = _axes(node, arrays, 3) or range(len(starts))
    taken = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        low, high, pace = slice(int(start), int(end), int(step)).indices(x.shape[axis])
        taken[axis] = slice(low, high if high >= 0 else None, pace)
    return x[tuple(taken)]


def _split(node: OnnxNode, arrays: Any, _: int) -> Any:
    x, axis = arrays[0], _first_axis(node, arrays[0])
    if len(arrays) > 1 and arrays[1] is not None:
        sizes = arrays[1].reshape(-1)
    elif "split" in node.attributes:
        sizes = np.array(node.attributes["split"])
    else:
        each = -(-x.shape[axis] // len(node.outputs))
        sizes = np.full(len(node.outputs), each)
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def _squeeze(node: OnnxNode, arrays: Any, _: int) -> Any:
    axes = _axes(node, arrays, 1)
    return np.squeeze(arrays[0], axis=None if axes is None else tuple(axes))


def _unsqueeze(node: OnnxNode, arrays: Any, _: int) -> Any:
    return np.expand_dims(arrays[0], tuple(_axes(node, arrays, 1) or ()))


def _transpose(node: OnnxNode, arrays: Any, _: int) -> Any:
    return arrays[0].transpose(node.attributes.get("perm"))


def _trilu(node: OnnxNode, arrays: Any, _: int) -> Any:
    k = int(arrays[1].reshape(-1)[0]) if len(arrays) > 1 and arrays[1] is not None else 0
    return (np.triu if node.attributes.get("upper", 1) else np.tril)(arrays[0], k)


def _one_hot(node: OnnxNode, arrays: Any, _: int) -> Any:
    ids, depth, values = arrays[0], int(arrays[1].reshape(-1)[0]), arrays[2]
    axis = int(node.attributes.get("axis", -1)) % (ids.ndim + 1)
    there = np.expand_dims(ids % depth, axis) == np.arange(depth).reshape(-1, *(1,) * (ids.ndim - axis))
    return np.where(there, values[1], values[0])


def _clip(node: OnnxNode, arrays: Any, _: int) -> Any:
    low, high = (
        arrays[index] if len(arrays) > index and arrays[index] is not None else node.attributes.get(name)
        for index, name in ((1, "min"), (2, "max"))
    )
    return np.clip(arrays[0], low, high).astype(arrays[0].dtype)


def _mod(node: OnnxNode, arrays: Any, _: int) -> Any:
    _require_divisible(arrays[0], arrays[1])
    return (np.fmod if node.attributes.get("fmod", 0) else np.mod)(arrays[0], arrays[1])


def _cum_sum(node: OnnxNode, arrays: Any, _: int) -> Any:
    if node.attributes.get("exclusive", 0) or node.attributes.get("reverse", 0):
        raise Unsupported(
            "a cumulative sum that is exclusive or in reverse", "a product with a triangular matrix of ones is such a sum, too"
        )
    return np.cumsum(arrays[0], axis=int(arrays[1].reshape(-1)[0])).astype(arrays[0].dtype)


def _eye(node: OnnxNode, arrays: Any, _: int) -> Any:
    dtype = TYPES[node.attributes["dtype"]] if "dtype" in node.attributes else arrays[0].dtype
    rows, columns = arrays[0].shape
    return np.eye(rows, columns, int(node.attributes.get("k", 0))).astype(dtype)


def _power(x: AnyArray, y: AnyArray) -> AnyArray:
    return double.power(x, y) if x.dtype.kind == "f" else np.asarray(np.power(x, y))


FOLDS: Mapping[str, Fold] = {
    "Abs": _unary(np.abs),
    "Add": _binary(np.add),
    "And": _binary(np.logical_and),
    "Cast": _cast,
    "Ceil": _unary(np.ceil),
    "Clip": _clip,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Cos": _unary(double.cos),
    "CumSum": _cum_sum,
    "Div": _binary(_divide),
    "Equal": _binary(np.equal),
    "Exp": _unary(double.exp),
    "Expand": _expand,
    "EyeLike": _eye,
    "Flatten": _flatten,
    "Floor": _unary(np.floor),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "Identity": lambda _, arrays, __: arrays[0],
    "IsInf": _predicate(np.isinf),
    "IsNaN": _predicate(np.isnan),
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "Log": _unary(double.log),
    "MatMul": _binary(matmul),
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Mod": _mod,
    "Mul": _binary(np.multiply),
    "Neg": _unary(np.negative),
    "NonZero": lambda _, arrays, __: np.array(np.nonzero(arrays[0]), np.int64),
    "Not": _predicate(np.logical_not),
    "OneHot": _one_hot,
    "Or": _binary(np.logical_or),
    "Pad": _pad,
    "Pow": lambda _, arrays, __: _power(*arrays).astype(arrays[0].dtype),
    "Range": _range,
    "Reciprocal": _unary(np.reciprocal),
    "ReduceL2": _reduction(lambda x, **k: np.sqrt(np.sum(x * x, **k))),
    "ReduceMax": _reduction(np.max),
    "ReduceMean": _reduction(np.mean),
    "ReduceMin": _reduction(np.min),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "ReduceSumSquare": _reduction(lambda x, **k: np.sum(x * x, **k)),
    "Relu": _unary(lambda x: np.maximum(x, 0)),
    "Reshape": _reshape,
    "Round": _unary(np.rint),
    "ScatterND": _scatter_nd,
    "Shape": lambda node, arrays, _: np.array(
        arrays[0].shape[slice(node.attributes.get("start", 0), node.attributes.get("end"))], np.int64
    ),
    "Sigmoid": _unary(double.sigmoid),
    "Sign": _unary(np.sign),
    "Sin": _unary(double.sin),
    "Size": lambda _, arrays, __: np.int64(arrays[0].size),
    "Slice": _slice,
    "Split": _split,
    "Sqrt": _unary(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _binary(np.subtract),
    "Sum": _many(np.add),
    "Tanh": _unary(double.tanh),
    "Tile": lambda _, arrays, __: np.tile(arrays[0], arrays[1].reshape(-1)),
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
    "Where": lambda _, arrays, __: np.where(*arrays),
    "Xor": _binary(np.logical_xor),
}
"""The operators that are computed of constants."""
VIEWS = frozenset(
    ["Constant", "ConstantOfShape", "Expand", "Identity", "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"]
)
"""Those whose results are views of their operands, or are in the file."""
BROADCASTING = frozenset(
    [
        "Add",
        "And",
        "Clip",
        "Div",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Or",
        "Pow",
        "Sub",
        "Sum",
        "Where",
        "Xor",
    ]
)
