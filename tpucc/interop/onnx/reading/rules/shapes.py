"""Operators that move values and compute none: shapes, axes, copies, values that stand together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.call import Call, Result, Rule, normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Grid, Static, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import CHECKER, Damaged, Unsupported, shortened
from tpucc.ir.node import Node

MOST_COPIES = 1_000
"""Of a value along an axis."""


def _reshape(c: Call) -> Result:
    x = c.tensor(0)
    return c.network.reshaped(x, wanted_shape(c, x))


def wanted_shape(c: Call, x: Tensor) -> tuple[int, ...]:
    """The shape that a Reshape gives a tensor."""
    wanted = c.integers(1, "the shape") if c.has(1) else [int(size) for size in c.attribute("shape")]
    return resolved(x.shape, wanted, bool(c.attribute("allowzero", 0)))


def resolved(shape: Sequence[int], wanted: Sequence[int], zeros: bool = False) -> tuple[int, ...]:
    """A shape without -1, and without 0, which copies a size. Raises `Unsupported` for one that doesn't fit."""
    if not zeros and any(size == 0 and axis >= len(shape) for axis, size in enumerate(wanted)):
        raise Unsupported(f"the shape {list(wanted)} copies a size that isn't there")
    sizes = [shape[axis] if size == 0 and not zeros else size for axis, size in enumerate(wanted)]
    total = int(np.prod(shape, dtype=object))
    known = int(np.prod([size for size in sizes if size != -1], dtype=object))
    if sizes.count(-1) > 1 or known <= 0 or total % known or (-1 not in sizes and known != total):
        raise Unsupported(f"{list(shape)} in the shape {list(wanted)}", "with -D the sizes that the file leaves open are given")
    return tuple(total // known if size == -1 else size for size in sizes)


def _flatten(c: Call) -> Result:
    x = c.tensor(0)
    axis = c.attribute("axis", 1)
    axis = axis if axis == x.rank else normal(axis, x.rank)
    return c.network.reshaped(x, (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))))


def _squeeze(c: Call) -> Result:
    x = c.tensor(0)
    axes = c.axes(1, x.rank)
    dropped = [axis for axis, size in enumerate(x.shape) if size == 1] if axes is None else axes
    if any(x.shape[axis] != 1 for axis in dropped):
        raise Unsupported(f"an axis of {list(x.shape)} is dropped that isn't 1")
    return Tensor(x.node, tuple(parts for axis, parts in enumerate(x.axes) if axis not in dropped), x.kind)


def _unsqueeze(c: Call) -> Result:
    x = c.tensor(0)
    count = len(c.integers(1, "the list of axes") if c.has(1) else c.attribute("axes") or ())
    added = c.axes(1, x.rank + count) or []
    parts = iter(x.axes)
    return Tensor(x.node, tuple(() if axis in added else next(parts) for axis in range(x.rank + count)), x.kind)


def _transpose(c: Call) -> Result:
    x = c.tensor(0)
    return Tensor(x.node, tuple(x.axes[axis] for axis in permutation(c, x)), x.kind)


def permutation(c: Call, x: Tensor) -> tuple[int, ...]:
    """The axes of a Transpose in their new order."""
    perm = tuple(c.attribute("perm") or reversed(range(x.rank)))
    if sorted(perm) != list(range(x.rank)):
        raise Damaged(f"perm is {shortened(list(perm))}, of {counted(x.rank, 'axis', 'axes')}")
    return perm


def _expand(c: Call) -> Result:
    x, wanted = c.tensor(0), c.integers(1, "the shape")
    try:
        shape = np.broadcast_shapes(x.shape, tuple(wanted))
    except ValueError:
        raise Unsupported(f"{list(x.shape)} doesn't broadcast to {shortened(wanted)}") from None
    return expanded(c.network, x, shape)


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


def _tile(c: Call) -> Result:
    x, net, counts = c.tensor(0), c.network, c.integers(1, "the repeats")
    if len(counts) != x.rank or not all(1 <= count <= MOST_COPIES for count in counts):
        raise Unsupported(f"{counts} copies along the axes of {list(x.shape)}", f"there are at most {MOST_COPIES} along an axis")
    for axis, count in enumerate(counts):
        if count > 1:
            x = joined(net, [x] * count, axis)
    return x


def _concat(c: Call) -> Result:
    rank = len(c.value(0).shape)
    return joined(c.network, _on_one_grid(c.values()), c.axis(1, rank))


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
    nodes = [_arranged(net, value, order) for value in values]
    return Tensor(net.add("concat", *nodes, axis=order.index(axis)), main.axes, main.kind)


def _arranged(net: Network, value: Value, order: Sequence[int]) -> Node:
    return net.given(value.array.transpose(order), value.name) if isinstance(value, Static) else net.arranged(value, order)


def _blocks(c: Call) -> tuple[Tensor, int]:
    """An image, and the size of the blocks that become channels, or of those that channels become."""
    x, size = c.tensor(0), int(c.attribute("blocksize", 0))
    inside = x.shape[1:2] if c.node.op == "DepthToSpace" else x.shape[2:]
    parts = size**2 if c.node.op == "DepthToSpace" else size
    if x.rank != 4 or size < 1 or any(length % parts for length in inside):
        raise Unsupported(f"blocks of the size {size:,} in a tensor {list(x.shape)}", CHECKER)
    return x, size


def _depth_to_space(c: Call) -> Result:
    net, (x, size) = c.network, _blocks(c)
    n, channels, height, width = x.shape
    kept = channels // size**2
    if c.attribute("mode", "DCR") == "DCR":
        split, perm = (n, size, size, kept, height, width), (0, 3, 4, 1, 5, 2)
    else:
        split, perm = (n, kept, size, size, height, width), (0, 1, 4, 2, 5, 3)
    apart = net.reshaped(x, split)
    moved = Tensor(apart.node, tuple(apart.axes[axis] for axis in perm))
    return net.reshaped(moved, (n, kept, height * size, width * size))


def _space_to_depth(c: Call) -> Result:
    net, (x, size) = c.network, _blocks(c)
    n, channels, height, width = x.shape
    apart = net.reshaped(x, (n, channels, height // size, size, width // size, size))
    moved = Tensor(apart.node, tuple(apart.axes[axis] for axis in (0, 3, 5, 1, 2, 4)))
    return net.reshaped(moved, (n, channels * size**2, height // size, width // size))


def _shape(c: Call) -> Result:
    sizes = c.value(0).shape
    first, last = c.attribute("start", 0), c.attribute("end")
    return c.static(np.array(sizes[slice(first, last)], np.int64))


def _size(c: Call) -> Result:
    return c.static(np.int64(np.prod(c.value(0).shape)))


def _trilu(c: Call) -> Result:
    x = c.tensor(0)
    k = max(-x.shape[-2], min(x.shape[-1], int(c.number(1, "the diagonal")))) if c.has(1) else 0
    keep: Callable[..., np.ndarray] = np.triu if c.attribute("upper", 1) else np.tril
    mask = keep(np.ones(x.shape[-2:], np.float32), k)
    return c.network.elementwise("where", Static(mask, f"{c.network.name}.mask"), x, Static(np.zeros((), np.float32), ""))


RULES: Mapping[str, Rule] = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "SpaceToDepth": _space_to_depth,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
