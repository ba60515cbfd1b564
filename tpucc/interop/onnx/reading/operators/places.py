"""Places of values: slices, parts, rows, what stands around a value, and products with matrices that pick places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, normal, normal_axes
from tpucc.interop.onnx.reading.building.network import NO_VALUES, Network
from tpucc.interop.onnx.reading.building.values import Axes, Grid, Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import COMPUTED, Misfit, Unsupported, require
from tpucc.interop.onnx.reading.operators.products import product
from tpucc.interop.onnx.reading.operators.rows import Axis, Fact, Ints, Number, nothing, operator
from tpucc.interop.onnx.reading.operators.shapes import joined, require_memory
from tpucc.ir import Node
from tpucc.numerics import AnyArray
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.slice import SliceAttributes

AXES, EXACT, KEEPS, VIEW, WHOLE = Fact.AXES, Fact.EXACT, Fact.KEEPS, Fact.VIEW, Fact.WHOLE
MOST_PIECES = 8
"""More pieces than these are picked by a product with a matrix of zeros and ones."""
MOST_PLACES = 2**16
"""Of an axis that is put together of its own places."""
MOST_PICKS = 2**24
"""Numbers of a matrix that makes places of an axis of others."""


def part(net: Network, t: Tensor, places: Mapping[int, range], dropped: Sequence[int] = ()) -> Tensor:
    """A part of some axes of the file; those that are `dropped` have one place. What a concatenation has put there is taken itself."""
    _require_there(t, places)
    t = t if all(_ranges(t, axis, taken) is not None for axis, taken in places.items()) else net.single(t)
    sizes = t.node.type.shape
    ranges = [range(size) for size in sizes]
    for axis, taken in places.items():
        for place, own in zip(t.axes[axis], _ranges(t, axis, taken) or (), strict=True):
            ranges[place] = own
    gone = tuple(sorted(place for axis in dropped for place in t.axes[axis]))
    axes = tuple(parts for axis, parts in enumerate(t.axes) if axis not in dropped)
    if all(taken == range(size) for taken, size in zip(ranges, sizes, strict=True)) and not gone:
        return Tensor(t.node, axes, t.kind)
    changed = [place for place, (taken, size) in enumerate(zip(ranges, sizes, strict=True)) if taken != range(size)]
    if len(changed) == 1 and {*gone} <= {*changed}:
        piece = _piece(net, t.node, changed[0], ranges[changed[0]])
        if piece is not None:
            return Tensor(piece, _without(axes, changed) if piece.type.rank < len(sizes) else axes, t.kind)
    renamed = _without(axes, gone)
    if (columns := _columns(net, t.node, ranges, gone)) is not None:
        return Tensor(columns, renamed, t.kind)
    return Tensor(_cut(net, *_of_whole(net, t.node, ranges), gone), renamed, t.kind)


def _of_whole(net: Network, node: Node, ranges: Sequence[range]) -> tuple[Node, Sequence[range]]:
    """A part of a slice of neighbours as that of what the slice is of."""
    inner = node.attributes
    if not isinstance(inner, SliceAttributes) or inner.squeeze or any(each.step != 1 for each in (*inner.ranges, *ranges)):
        return node, ranges
    whole = [places[taken.start : taken.stop] for places, taken in zip(inner.ranges, ranges, strict=True)]
    return net.builder.nodes[node.operands[0]], whole


def _require_there(t: Tensor, places: Mapping[int, range]) -> None:
    """Raises `Unsupported` for places that an axis hasn't, or none."""
    for axis, taken in places.items():
        if not taken or min(taken[0], taken[-1]) < 0 or max(taken[0], taken[-1]) >= t.shape[axis]:
            raise Unsupported(f"a slice of axis {axis} of {list(t.shape)} that takes nothing", NO_VALUES)


def _cut(net: Network, node: Node, ranges: Sequence[range], gone: tuple[int, ...]) -> Node:
    """A slice of a node, without the axes that are gone."""
    starts, stops, steps = zip(*((taken.start, taken.stop, taken.step) for taken in ranges), strict=True)
    return net.add("slice", node, starts=starts, stops=stops, squeeze=gone, steps=() if set(steps) == {1} else steps)


def _without(axes: Sequence[tuple[int, ...]], gone: Sequence[int]) -> Axes:
    """The axes on a node without some of its own."""
    return tuple(tuple(place - sum(other < place for other in gone) for place in parts if place not in gone) for parts in axes)


def _ranges(t: Tensor, axis: int, taken: range) -> tuple[range, ...] | None:
    """The part of an axis of the file in the axes of the node that it is made of; None where it isn't a part of each, and where it is
    several places of the first, as a half of channels that are shuffled: the shuffle is one operator only if the axes are one."""
    sizes = t.atoms(axis)
    if len(taken) == 1:
        return tuple(range(int(place), int(place) + 1) for place in np.unravel_index(taken[0], sizes)) if sizes else ()
    each = math.prod(sizes[1:])
    if len(sizes) > 1 and (taken.step != 1 or taken.start % each or taken.stop % each):
        return None
    first = taken if len(sizes) == 1 else range(taken.start // each, taken.stop // each)
    if len(sizes) > 1 and 1 < len(first) < sizes[0]:
        return None
    return first, *map(range, sizes[1:])


def _piece(net: Network, node: Node, axis: int, taken: range) -> Node | None:
    """A part of an axis that concatenations have put there, as steps of a sequence; one place is without the axis. None for other nodes and
    other parts."""
    sizes, operands = node.type.shape, [net.builder.nodes[name] for name in node.operands]
    shape = (*sizes[:axis], *([len(taken)] if len(taken) > 1 else []), *sizes[axis + 1 :])
    if taken == range(sizes[axis]):
        return net.in_shape(node, shape)
    if isinstance(node.attributes, ConcatAttributes):
        along = node.attributes.axis % node.type.rank
        if along != axis:
            pieces = [piece for operand in operands if (piece := _piece(net, operand, axis, taken)) is not None]
            return net.add("concat", *pieces, axis=along - (len(taken) == 1 and along > axis)) if len(pieces) == len(operands) else None
        for operand in operands:
            size = operand.type.shape[axis]
            if taken.start < size:
                return _piece(net, operand, axis, taken)
            taken = range(taken.start - size, taken.stop - size, taken.step)
    if node.op == "reshape" and operands[0].type.shape[: axis + 1] == sizes[: axis + 1]:
        piece = _piece(net, operands[0], axis, taken)
        return None if piece is None else net.in_shape(piece, shape)
    return None


def _columns(net: Network, node: Node, ranges: Sequence[range], gone: tuple[int, ...]) -> Node | None:
    """A part of an axis that a reshape has made of the last one, as neighbouring columns of what it reads. So queries, keys and values are
    parts of the columns of one product, which cost nothing."""
    if node.op != "reshape":
        return None
    x, sizes = net.builder.nodes[node.operands[0]], node.type.shape
    split = x.type.rank - 1
    whole = all(taken == range(size) for axis, (taken, size) in enumerate(zip(ranges, sizes, strict=True)) if axis != split)
    if len(sizes) <= x.type.rank or sizes[:split] != x.type.shape[:-1] or not whole or ranges[split].step != 1 or not {*gone} <= {split}:
        return None
    each = math.prod(sizes[split + 1 :])
    first, last = ranges[split].start * each, ranges[split].stop * each
    starts, stops = (*(0 for _ in sizes[:split]), first), (*sizes[:split], last)
    made = _piece(net, x, split, range(first, last)) or net.add("slice", x, starts=starts, stops=stops)
    shape = (*sizes[:split], *(() if gone else (len(ranges[split]),)), *sizes[split + 1 :])
    return made if made.type.shape == shape else net.add("reshape", made, shape=shape)


@operator("Slice", AXES, EXACT, KEEPS, VIEW, WHOLE, size=nothing)
def slice_of(c: Call, x: Tensor, starts: Ints, ends: Ints | None, axes: Ints | None, steps: Ints | None) -> Result:
    if ends is None:
        raise Misfit
    lists = [numbers for numbers in (starts, ends, axes, steps) if numbers is not None]
    require(len({*map(len, lists)}) == 1 and len(starts) <= x.rank and 0 not in (steps or ()))
    cut = range(len(starts)) if axes is None else normal_axes(axes, x.rank)
    paces = steps or (1,) * len(starts)
    return part(c.net, x, {a: range(*slice(s, e, d).indices(x.shape[a])) for a, s, e, d in zip(cut, starts, ends, paces, strict=True)})


@operator("Split", AXES, EXACT, KEEPS, WHOLE, size=nothing)
def split_in_parts(c: Call, x: Tensor, split: Ints | None, *, axis: Axis = 0, num_outputs: int | None = None) -> Result:
    count, size = len(c.node.outputs), x.shape[axis]
    require(num_outputs in (None, count) and (c.opset < 18 or (split is None) == (num_outputs is not None)))
    require(split is not None or c.opset >= 18 or size % count == 0)
    if split is None:
        each = -(-size // count)
        split = tuple(min(each, size - each * index) for index in range(count))
    require(min(split) >= 0 and sum(split) == size and len(split) == count)
    if min(split) < 1:
        raise Unsupported(f"parts of {list(split)}, of an axis of {size}", NO_VALUES)
    starts = np.cumsum([0, *split]).tolist()
    return tuple(part(c.net, x, {axis: range(low, high)}) for low, high in pairwise(starts))


def _gathered(node: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    table, indices = arrays
    size = table.shape[normal(node.attributes.get("axis", 0), table.ndim)]
    _require_within(indices, size)
    return int(table.size // max(1, size) * indices.size)


def _require_within(indices: AnyArray, size: int) -> None:
    """Raises `Misfit` for places that an axis of this size hasn't."""
    require(indices.dtype.kind in "iu" and bool(((indices >= -size) & (indices < size)).all()))


@operator("Gather", EXACT, KEEPS, WHOLE, size=_gathered)
def gather(c: Call, data: Value, indices: Value, *, axis: Axis = 0) -> Result:
    if isinstance(indices, Tensor):
        return rows_of(c.net, data, indices, axis)
    net, x = c.net, c.net.tensor(data)
    size = x.shape[axis]
    net.require_room(indices.array.size)
    places = indices.array.astype(np.int64).reshape(-1)
    if not len(places):
        raise Unsupported("it takes no places", NO_VALUES)
    _require_within(places, size)
    places = places % size
    if indices.array.ndim == 0:
        return part(net, x, {axis: range(places[0], places[0] + 1)}, [axis])
    made = taken(net, x, axis, places.tolist())
    return net.reshaped(made, (*made.shape[:axis], *indices.array.shape, *made.shape[axis + 1 :]))


def _gathered_nd(_: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    table, indices = arrays
    require_places(indices, table.shape[: indices.shape[-1]])
    return math.prod(indices.shape[:-1]) * math.prod(table.shape[indices.shape[-1] :])


@operator("GatherND", EXACT, KEEPS, size=_gathered_nd)
def gather_nd(c: Call, x: Tensor, indices: AnyArray, *, batch_dims: int = 0) -> Result:
    """Fixed places of several axes, which are joined to one."""
    net, first, count = c.net, normal(batch_dims, x.rank), indices.shape[-1]
    indices = indices.astype(np.int64)
    if first:
        same = indices.reshape(-1, *indices.shape[first:])
        if not (same == same[:1]).all():
            raise Unsupported("other places for each item of the batch", "one list of places for all items is read: batch_dims=0")
        indices = same[0]
    sizes = x.shape[first : first + count]
    require_places(indices, sizes)
    places = np.ravel_multi_index(tuple(np.moveaxis(indices % np.array(sizes), -1, 0)), sizes)
    rest = x.shape[first + count :]
    net.require_room(places.size * math.prod(rest))
    joined_axes = net.reshaped(x, (*x.shape[:first], int(np.prod(sizes)), *rest))
    made = taken(net, joined_axes, first, places.reshape(-1).tolist())
    return net.reshaped(made, (*x.shape[:first], *places.shape, *rest))


def require_places(indices: AnyArray, sizes: Sequence[int]) -> None:
    """Raises `Misfit` for lists of places, one for each of some axes, that aren't there."""
    require(indices.dtype.kind in "iu" and indices.shape[-1:] == (len(sizes),))
    require(bool(((indices >= -np.array(sizes)) & (indices < np.array(sizes))).all()))


def rows_of(net: Network, data: Value, indices: Tensor, axis: int) -> Tensor:
    """The rows of a table that an input, or what only moves its numbers, names."""
    _require_numbers(indices)
    if isinstance(data, Tensor) and axis == 0 and data.rank == 2 and data.node.name in net.known:
        node = net.add("embedding", indices.node, net.plain(data).node)
        return Tensor(node, (*indices.axes, (node.type.rank - 1,)))
    if not isinstance(data, Static) or axis != 0 or data.array.ndim > 2 or data.array.ndim == 0:
        raise Unsupported(
            "places that the network computes",
            "rows of a constant table are taken by an input of integers, along its first axis; of other tensors constant places are",
        )
    table = data.array if data.array.ndim == 2 else data.array[:, np.newaxis]
    node = net.add("embedding", indices.node, net.weight(table, data.name))
    made = Tensor(node, (*indices.axes, (node.type.rank - 1,)))
    return made if data.array.ndim == 2 else net.reshaped(made, indices.shape)


def _require_numbers(t: Tensor) -> None:
    """Raises `Unsupported` for numbers of rows or classes that aren't those of an input of integers."""
    if t.node.type.dtype != "i32":
        raise Unsupported("the network computes its numbers of rows or classes", COMPUTED)


def taken(net: Network, t: Tensor, axis: int, places: Sequence[int]) -> Tensor:
    """The places of an axis of the file in this order: a slice, a few slices put together, or a product with zeros and ones."""
    runs = _runs(places)
    if len(runs) <= MOST_PIECES:
        pieces = [part(net, t, {axis: run}) for run in runs]
        return pieces[0] if len(pieces) == 1 else joined(net, pieces, axis)
    require_few_picks(t.shape[axis], len(places))
    picks = np.zeros((t.shape[axis], len(places)), np.float32)
    picks[list(places), range(len(places))] = 1
    made, grid = mixed(net, t, axis, picks), net.held.get(t.node.name)
    return Tensor(made.node if grid is None else net.on(made.node, grid), made.axes, t.kind)


def require_few_picks(before: int, after: int) -> None:
    """Raises `Unsupported` where the matrix that makes places of an axis of others would be too large."""
    if before * after > MOST_PICKS:
        help = f"a matrix makes the new places of the old ones, and has at most {MOST_PICKS:,} numbers"
        raise Unsupported(f"an axis of {before:,} places becomes one of {after:,}", help)


def mixed(net: Network, t: Tensor, axis: int, matrix: np.ndarray) -> Tensor:
    """Each place of the axis becomes the sum of all, weighted by a column of `matrix`: [places before, places after]."""
    single = net.single(t)
    order = sorted(range(t.rank), key=lambda index: single.axes[index])
    place = order.index(axis)
    name = f"{net.name}.matrix"
    if place == t.rank - 1:
        others = (parts for index, parts in enumerate(single.axes) if index != axis)
        moved = Tensor(single.node, (*others, single.axes[axis]))
        made = product(net, moved, Static(matrix, name))
        back = [*range(axis), t.rank - 1, *range(axis, t.rank - 1)]
        return made.turned(back)
    sizes = single.node.type.shape
    behind = int(np.prod(sizes[place + 1 :]))
    flat = net.add("reshape", single.node, shape=(*sizes[: place + 1], behind)) if place < t.rank - 2 else single.node
    node = net.add("matmul", net.weight(matrix.T, name), flat)
    if place < t.rank - 2:
        node = net.add("reshape", node, shape=(*sizes[:place], matrix.shape[1], *sizes[place + 1 :]))
    return Tensor(node, single.axes)


def _runs(places: Sequence[int]) -> list[range]:
    """The places as ranges, as long as possible."""
    runs: list[range] = []
    for place in places:
        if runs and len(runs[-1]) == 1 and place != runs[-1][0]:
            step = place - runs[-1][0]
            runs[-1] = range(runs[-1][0], place + (1 if step > 0 else -1), step)
        elif runs and len(runs[-1]) > 1 and place == runs[-1][-1] + runs[-1].step:
            run = runs[-1]
            runs[-1] = range(run.start, place + (1 if run.step > 0 else -1), run.step)
        else:
            runs.append(range(place, place + 1))
    return runs


def _padded(_: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    x, pads = arrays[0], [abs(int(number)) for number in arrays[1].reshape(-1)] if len(arrays) > 1 else [0]
    both = zip(pads[: x.ndim], pads[x.ndim :], strict=False)
    ends = [before + after for before, after in both] if len(pads) == 2 * x.ndim else [2 * max(pads)] * x.ndim
    require_memory(sizes := [size + end for size, end in zip(x.shape, ends, strict=True)])
    return math.prod(sizes)


@operator("Pad", AXES, EXACT, KEEPS, WHOLE, size=_padded)
def pad(
    c: Call,
    x: Tensor,
    pads: Ints | None,
    value: Number | None,
    axes: Ints | None,
    *,
    mode: Literal["constant", "edge", "reflect", "wrap"] = "constant",
) -> Result:
    net = c.net
    if pads is None:
        raise Misfit
    around = range(x.rank) if axes is None else normal_axes(axes, x.rank)
    require(len(pads) == 2 * len(around))
    pairs = {axis: (pads[index], pads[len(around) + index]) for index, axis in enumerate(around)}
    sizes = [size + sum(pairs.get(axis, (0, 0))) for axis, size in enumerate(x.shape)]
    require(min(sizes, default=0) >= 0)
    require_memory(sizes)
    for axis, (before, after) in pairs.items():
        if min(before, after) < 0:
            x = part(net, x, {axis: range(max(0, -before), x.shape[axis] - max(0, -after))})
            pairs[axis] = max(0, before), max(0, after)
    if mode not in ("constant", ""):
        for axis, ends in pairs.items():
            if x.shape[axis] + sum(ends) > MOST_PLACES:
                raise Unsupported(f"{mode} padding to {x.shape[axis] + sum(ends):,} places", f"an axis has at most {MOST_PLACES:,} then")
            if any(ends):
                x = taken(net, x, axis, np.pad(np.arange(x.shape[axis]), ends, mode).tolist())
        return x
    filled = float(x.kind.real(np.asarray(value or 0.0))) if isinstance(x.kind, Grid) else value or 0.0
    return _surrounded(net, x, pairs, filled)


def _surrounded(net: Network, x: Tensor, pairs: Mapping[int, tuple[int, int]], value: float) -> Tensor:
    """Zeros around by `pad`; another value is put beside by concatenations."""
    if not any(map(any, pairs.values())):
        return x
    x = net.single(x)
    if value == 0:
        around = [(0, 0)] * x.rank
        for axis, ends in pairs.items():
            around[x.axes[axis][0]] = ends
        return Tensor(net.add("pad", x.node, pads=tuple(around)), x.axes, x.kind)
    for axis, ends in pairs.items():
        sides = [_block(x, axis, count, value) for count in ends]
        if any(ends):
            x = joined(net, [sides[0], x, sides[1]], axis)
    return x


def _block(x: Tensor, axis: int, count: int, value: float) -> Static:
    shape = tuple(count if index == axis else size for index, size in enumerate(x.shape))
    return Static(np.broadcast_to(np.float32(value), shape), "padding")


def _require_classes(depth: float, values: AnyArray, count: int) -> None:
    """Raises `Misfit` for classes that aren't as many as one, and for other values than those of off and on."""
    require(math.isfinite(depth) and depth >= 1 and values.size == 2)
    require_memory((count, depth))


def _ones(_: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    ids, depth, values = arrays
    _require_classes(float(depth.reshape(-1)[0]), values, ids.size)
    return ids.size * int(depth.reshape(-1)[0])


@operator("OneHot", EXACT, size=_ones)
def one_hot(c: Call, indices: Tensor, depth: Number, values: AnyArray, *, axis: int = -1) -> Result:
    _require_classes(depth, values, math.prod(indices.shape))
    _require_numbers(indices)
    off, on = (float(number) for number in values.reshape(-1))
    node = c.net.add("one_hot", indices.node, n=int(depth))
    made = Tensor(node, (*indices.axes, (node.type.rank - 1,)))
    axis = normal(axis, indices.rank + 1)
    places = [*range(axis), indices.rank, *range(axis, indices.rank)]
    made = c.net.affine(made.turned(places), on - off, off)
    return Tensor(made.node, made.axes, "bool") if values.dtype == np.bool_ else made


@operator("ReverseSequence")
def reverse_sequence(c: Call, x: Tensor, lengths: Ints, *, time_axis: Axis = 0, batch_axis: Axis = 1) -> Result:
    """The first values of each sequence of a batch in reverse order, as many as its length says."""
    steps, count = x.shape[time_axis], x.shape[batch_axis]
    require(len(lengths) == count and 0 <= min(lengths) <= max(lengths) <= steps)
    parts, start = list[Value](), 0
    for length, same in groupby(lengths):
        stop = start + len(list(same))
        sequences = part(c.net, x, {batch_axis: range(start, stop)})
        parts.append(taken(c.net, sequences, time_axis, [*reversed(range(length)), *range(length, steps)]))
        start = stop
    return joined(c.net, parts, batch_axis) if len(parts) > 1 else parts[0]
