"""GatherElements and ScatterElements: fixed places of one axis, which may be others in each row of other axes, as of relative positions."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Tensor, Value
from tpucc.interop.onnx.reading.files.problems import Unsupported, require
from tpucc.interop.onnx.reading.operators.places import MOST_PICKS, part, taken
from tpucc.interop.onnx.reading.operators.rows import Axis, Fact, operator
from tpucc.interop.onnx.reading.operators.shapes import joined
from tpucc.numerics import AnyArray


def _places(net: Network, indices: AnyArray, size: int) -> AnyArray:
    """The places of an axis, counted from 0."""
    net.require_room(indices.size)
    require(indices.dtype.kind in "iu" and bool(((indices >= -size) & (indices < size)).all()))
    return indices.astype(np.int64) % size


@operator("GatherElements", Fact.EXACT, Fact.KEEPS, size=lambda _, arrays: arrays[1].size)
def gather_elements(c: Call, x: Tensor, indices: AnyArray, *, axis: Axis = 0) -> Result:
    return _gathered(c.net, x, _places(c.net, indices, x.shape[axis]), axis)


@operator("Scatter", Fact.WHOLE)
def scatter(c: Call, x: Value, indices: AnyArray, updates: Value, *, axis: Axis = 0) -> Result:
    return scatter_elements(c, x, indices, updates, axis=axis)


@operator("ScatterElements", Fact.WHOLE)
def scatter_elements(
    c: Call,
    x: Value,
    indices: AnyArray,
    updates: Value,
    *,
    axis: Axis = 0,
    reduction: Literal["none", "add", "mul", "max", "min"] = "none",
) -> Result:
    """GatherElements of the values with the new ones behind them. Of several for a place the last one is there."""
    places, size = _places(c.net, indices, x.shape[axis]), x.shape[axis]
    if reduction not in ("none", ""):
        raise Unsupported(f"the reduction {reduction}", "without one it is read")
    if updates.shape != places.shape or (*places.shape[:axis], size, *places.shape[axis + 1 :]) != x.shape:
        raise Unsupported(f"places {list(places.shape)} of {list(x.shape)}", f"places for all of each axis but axis {axis} are read")
    c.net.require_room(math.prod(x.shape))
    behind = [1] * (len(x.shape) - axis - 1)
    sources = np.broadcast_to(np.arange(size).reshape(-1, *behind), x.shape).copy()
    np.put_along_axis(sources, places, np.arange(size, size + places.shape[axis]).reshape(-1, *behind), axis)
    return _gathered(c.net, joined(c.net, [c.net.tensor(x), updates], axis), sources, axis)


def _gathered(net: Network, x: Tensor, places: AnyArray, axis: int) -> Tensor:
    """Axes along which the places are the same stay. The others are rows, which are joined to one axis, [rows, places before]."""
    x = part(net, x, {other: range(size) for other, size in enumerate(places.shape) if other != axis})
    others = [other for other in range(x.rank) if other != axis]
    rows = [other for other in others if not (places == places.take([0], other)).all()]
    same = [other for other in others if other not in rows]
    order = [*same, *rows, axis]
    by_row = places.transpose(order)[(0,) * len(same)].reshape(-1, places.shape[axis])
    sizes = [x.shape[other] for other in same]
    moved = net.reshaped(x.turned(order), (*sizes, len(by_row), x.shape[axis]))
    made = net.reshaped(_of_rows(net, moved, by_row), [places.shape[other] for other in order])
    return made.turned([order.index(other) for other in range(x.rank)])


def _of_rows(net: Network, x: Tensor, places: AnyArray) -> Tensor:
    """[…, rows, places before] with the places of each row: all rows as one axis, or each by itself where its matrix would be too large."""
    *sizes, rows, before = x.shape
    after = places.shape[1]
    if rows * before * rows * after <= MOST_PICKS:
        whole = net.reshaped(x, (*sizes, rows * before))
        return taken(net, whole, whole.rank - 1, (places + before * np.arange(rows)[:, np.newaxis]).reshape(-1).tolist())
    pieces = [taken(net, part(net, x, {x.rank - 2: range(row, row + 1)}), x.rank - 1, places[row].tolist()) for row in range(rows)]
    return joined(net, pieces, x.rank - 2)
