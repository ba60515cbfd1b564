"""Operators that move values and compute none: shapes, axes, copies, values that stand together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, normal, normal_axes
from tpucc.interop.onnx.reading.building.network import NO_VALUES, Network
from tpucc.interop.onnx.reading.building.values import Grid, Static, Tensor, Value, broadcast, own_sizes
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import ELSEWHERE, Misfit, TooLarge, Unsupported, require
from tpucc.interop.onnx.reading.files.tensors import MAX_RANK, MAX_SIZE
from tpucc.interop.onnx.reading.operators.rows import Fact, Ints, Number, Positive, nothing, of_constants, operator
from tpucc.numerics import AnyArray

AXES, EXACT, KEEPS, VIEW, WHOLE = Fact.AXES, Fact.EXACT, Fact.KEEPS, Fact.VIEW, Fact.WHOLE
MOVES = (EXACT, KEEPS, VIEW, WHOLE)
MOST_COPIES = 1_000
"""Of a value along an axis."""
Shape = tuple[int, ...]


def require_memory(sizes: Sequence[float]) -> None:
    """Raises `TooLarge` for a result that no memory has."""
    if (size := math.prod(sizes)) > MAX_SIZE:
        raise TooLarge(f"its result has {int(size):,} values; the limit is {MAX_SIZE:,}")


def require_rank(count: int) -> None:
    """Raises `Unsupported` for a result with more axes than a tensor has here."""
    if count > MAX_RANK:
        raise Unsupported(f"its result has {count:,} axes; the limit is {MAX_RANK}", ELSEWHERE)


@operator("Reshape", *MOVES)
def reshape(c: Call, x: Tensor, sizes: Ints, *, allowzero: bool = False) -> Result:
    return c.net.reshaped(x, resolved(x.shape, sizes, allowzero))


def resolved(shape: Shape, sizes: Ints, zeros: bool = False) -> Shape:
    """A shape without -1, and without 0, which copies a size unless `zeros` are sizes. Raises `Misfit` for one that doesn't fit."""
    require_memory([size for size in sizes if size > 0])
    require(min(sizes, default=1) >= -1 and sizes.count(-1) <= 1 and (zeros or 0 not in sizes[len(shape) :]))
    named = [shape[axis] if size == 0 and not zeros else size for axis, size in enumerate(sizes)]
    count, known = math.prod(shape), math.prod(size for size in named if size != -1)
    require(known == count if -1 not in named else known > 0 and count % known == 0)
    return tuple(count // known if size == -1 else size for size in named)


@operator("Flatten", *MOVES)
def flatten(c: Call, x: Tensor, *, axis: int = 1) -> Result:
    axis = axis if axis == x.rank else normal(axis, x.rank)
    return c.net.reshaped(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Squeeze", *MOVES, size=nothing)
def squeeze(c: Call, x: Tensor, axes: Ints | None) -> Result:
    dropped = [axis for axis, size in enumerate(x.shape) if size == 1] if axes is None else normal_axes(axes, x.rank)
    require(all(x.shape[axis] == 1 for axis in dropped))
    return Tensor(x.node, tuple(parts for axis, parts in enumerate(x.axes) if axis not in dropped), x.kind)


@operator("Unsqueeze", *MOVES, size=nothing)
def unsqueeze(c: Call, x: Tensor, axes: Ints | None) -> Result:
    if axes is None:
        raise Misfit
    added, parts = normal_axes(axes, x.rank + len(axes)), iter(x.axes)
    return Tensor(x.node, tuple(() if axis in added else next(parts) for axis in range(x.rank + len(axes))), x.kind)


@operator("Transpose", *MOVES, size=nothing)
def transpose(c: Call, x: Tensor, *, perm: Ints = ()) -> Result:
    return x.turned(permutation(perm, x.rank))


def permutation(perm: Ints, rank: int) -> Ints:
    """The axes of a Transpose in their new order."""
    perm = perm or tuple(reversed(range(rank)))
    require(sorted(perm) == list(range(rank)))
    return perm


def repeated(array: AnyArray, sizes: Sequence[int]) -> AnyArray:
    """A view of the shape that an array and these sizes have together, which takes no memory."""
    shape = broadcast([array.shape, own_sizes(tuple(sizes))])
    if min(sizes, default=0) < 0 or shape is None:
        raise Misfit
    require_memory(shape)
    return np.broadcast_to(array, broadcast([array.shape, tuple(sizes)]) or shape)


@operator("Expand", *MOVES, size=nothing, fold=lambda _, arrays: repeated(arrays[0], arrays[1].reshape(-1).tolist()))
def expand(c: Call, x: Tensor, sizes: Ints) -> Result:
    require_rank(len(sizes))
    require(min(sizes, default=0) >= 0)
    require_memory([max(pair) for pair in zip_longest(reversed(sizes), reversed(x.shape), fillvalue=1)])
    shape = broadcast([x.shape, sizes])
    if shape is None:
        raise Misfit
    return expanded(c.net, x, shape)


def expanded(net: Network, x: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor repeated along axes of size 1: a sum with zeros, which have one place for each repetition."""
    if x.shape == tuple(shape):
        return x
    missing = len(shape) - x.rank
    if math.prod(shape) == x.size:
        return Tensor(x.node, (*(() for _ in range(missing)), *x.axes), x.kind)
    whole = net.plain(x)
    own = (*[1] * missing, *x.shape)
    repeats = tuple(size if size != before else 1 for size, before in zip(shape, own, strict=True))
    net.require_room(math.prod(repeats))
    return Tensor(net.add("add", whole.node, net.filled(repeats, 0.0)), tuple((axis,) for axis in range(len(shape))), x.kind)


def _tiled(_: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    x, repeats = arrays
    require(bool((repeats >= 0).all()))
    require_memory(sizes := (x.size, *repeats.reshape(-1).tolist()))
    return math.prod(sizes)


@operator("Tile", EXACT, KEEPS, WHOLE, size=_tiled)
def tile(c: Call, x: Tensor, repeats: Ints) -> Result:
    require(len(repeats) == x.rank and min(repeats, default=0) >= 0)
    require_memory([*x.shape, *repeats])
    if not all(1 <= count <= MOST_COPIES for count in repeats):
        raise Unsupported(f"{list(repeats)} copies along the axes of {list(x.shape)}", f"there are at most {MOST_COPIES} along an axis")
    for axis, count in enumerate(repeats):
        if count > 1:
            x = joined(c.net, [x] * count, axis)
    return x


@operator("Concat", AXES, EXACT, KEEPS, WHOLE, size=lambda _, arrays: sum(array.size for array in arrays))
def concat(c: Call, *values: Value, axis: int) -> Result:
    shapes = [value.shape for value in values]
    axis = normal(axis, len(shapes[0]))
    others = [(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]
    require(len({*others}) == len({*map(len, shapes)}) == 1)
    return joined(c.net, _on_one_grid(values), axis)


def _on_one_grid(values: Sequence[Value]) -> Sequence[Value]:
    """Values that stand together; constants beside integers of a scale as the real values that they are then."""
    grids = {value.kind for value in values if isinstance(value, Tensor) and isinstance(value.kind, Grid)}
    if len(grids) > 1:
        raise Unsupported("it puts integers of several scales together", "DequantizeLinear before it makes values of one kind")
    return [
        Static(grid.real(value.array), value.name) if isinstance(value, Static) else value for value in values for grid in grids
    ] or values


def joined(net: Network, values: Sequence[Value], axis: int) -> Tensor:
    """The values behind one another along an axis of the file, in the axes of the largest tensor."""
    values = [value for value in values if 0 not in value.shape]
    if len(values) == 1:
        return net.tensor(values[0])
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors:
        raise Unsupported("only constants are put together")
    main = max(tensors, key=lambda t: t.size)
    if any(len(parts) != 1 for parts in main.axes) or len(main.axes) != main.node.type.rank:
        main = net.single(main)
    order = sorted(range(main.rank), key=lambda index: main.axes[index])
    nodes = [net.arranged(value, order) for value in values]
    return Tensor(net.add("concat", *nodes, axis=order.index(axis)), main.axes, main.kind)


def stacked(net: Network, values: Sequence[Value], name: str) -> Value:
    """The values behind one another along a new first axis."""
    if not values:
        raise Unsupported("a loop without steps puts values together", NO_VALUES)
    known = [value.array for value in values if isinstance(value, Static)]
    if len(known) == len(values):
        net.require_room(sum(array.size for array in known))
        return Static(np.stack(known), name)
    return joined(net, [net.reshaped(value, (1, *value.shape)) for value in values], 0)


def _blocks(x: Tensor, divided: Sequence[int], size: int, power: int) -> None:
    """Raises `Misfit` for an image in which sizes aren't those of whole blocks."""
    require(x.rank == 4 and not any(part % size**power for part in divided))


@operator("DepthToSpace", EXACT, KEEPS, Fact.IMAGES)
def depth_to_space(c: Call, x: Tensor, *, blocksize: Positive, mode: Literal["DCR", "CRD"] = "DCR") -> Result:
    _blocks(x, x.shape[1:2], blocksize, 2)
    n, channels, height, width = x.shape
    size, kept = blocksize, channels // blocksize**2
    if mode == "DCR":
        split, perm = (n, size, size, kept, height, width), (0, 3, 4, 1, 5, 2)
    else:
        split, perm = (n, kept, size, size, height, width), (0, 1, 4, 2, 5, 3)
    apart = c.net.reshaped(x, split)
    return c.net.reshaped(apart.turned(perm), (n, kept, height * size, width * size))


@operator("SpaceToDepth", EXACT, KEEPS, Fact.IMAGES, ignored="mode")
def space_to_depth(c: Call, x: Tensor, *, blocksize: Positive) -> Result:
    _blocks(x, x.shape[2:], blocksize, 1)
    n, channels, height, width = x.shape
    size = blocksize
    apart = c.net.reshaped(x, (n, channels, height // size, size, width // size, size))
    return c.net.reshaped(apart.turned((0, 3, 5, 1, 2, 4)), (n, channels * size**2, height // size, width // size))


@operator("Shape", EXACT, Fact.INTEGERS, size=nothing)
def shape_of(c: Call, x: Value, *, start: int = 0, end: int | None = None) -> Result:
    return c.static(np.array(x.shape[slice(start, end)], np.int64))


@operator("Size", EXACT, Fact.INTEGERS, size=nothing)
def size_of(c: Call, x: Value) -> Result:
    return c.static(np.int64(math.prod(x.shape)))


def _size_of_matrices(_: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    _require_matrices(arrays[0].shape)
    return arrays[0].size


def _require_matrices(shape: Shape) -> None:
    require(len(shape) > 1)


@operator("Trilu", EXACT, WHOLE, size=_size_of_matrices)
def triangle(c: Call, x: Tensor, diagonal: Number | None, *, upper: bool = True) -> Result:
    _require_matrices(x.shape)
    k = 0 if diagonal is None else max(-x.shape[-2], min(x.shape[-1], int(diagonal)))
    keep: Callable[..., AnyArray] = np.triu if upper else np.tril
    mask = keep(np.ones(x.shape[-2:], np.float32), k)
    return c.net.elementwise("where", Static(mask, f"{c.net.name}.mask"), x, Static(np.zeros((), np.float32), ""))


def _constant(node: OnnxNode, _: Sequence[AnyArray]) -> AnyArray:
    require(len(node.attributes) == 1)
    (name, found) = next(iter(node.attributes.items()))
    if isinstance(found, np.ndarray):
        return found
    if name not in ("value_float", "value_floats", "value_int", "value_ints"):
        raise Unsupported("a constant that isn't a number", "the model's weights are damaged, or it was never trained")
    return np.array(found, np.int64 if "int" in name else np.float32)


def _filled(node: OnnxNode, arrays: Sequence[AnyArray]) -> AnyArray:
    value = node.attributes.get("value", np.zeros(1, np.float32))
    require(value.size == 1)
    return repeated(value.reshape(()), arrays[0].reshape(-1).tolist())


def steps_of(arrays: Sequence[AnyArray]) -> int:
    """How many numbers a range has. Raises `Misfit` for one that has none, and `TooLarge`."""
    require(all(array.shape in ((), (1,)) and bool(np.isfinite(array).all()) for array in arrays))
    start, stop, step = (float(array.reshape(())) for array in arrays)
    require(step != 0)
    require_memory((count := max(0, math.ceil(min((stop - start) / step, 1e18))),))
    return count


of_constants("Constant", EXACT, size=nothing, fold=_constant)
of_constants("ConstantOfShape", EXACT, size=nothing, fold=_filled)
of_constants("NonZero", EXACT, size=lambda _, arrays: arrays[0].ndim * arrays[0].size)
of_constants("Range", EXACT, size=lambda _, arrays: steps_of(arrays))
of_constants("ScatterND", EXACT)
