"""GatherElements: fixed places of one axis, which may be others in each row of other axes, as of relative positions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Tensor
from tpucc.interop.onnx.reading.files.problems import Damaged
from tpucc.interop.onnx.reading.rules.places import MOST_PICKS, part, taken
from tpucc.interop.onnx.reading.rules.shapes import joined
from tpucc.numerics import AnyArray


def _gather_elements(c: Call) -> Result:
    """Axes along which the places are the same stay. The others are rows, which are joined to one axis, [rows, places before]."""
    net, x, indices = c.network, c.tensor(0), c.array(1, "the places").astype(np.int64)
    axis = c.axis(0, x.rank)
    net.require_room(indices.size)
    if (beyond := (indices < -x.shape[axis]) | (indices >= x.shape[axis])).any():
        raise Damaged(f"the index {indices[beyond][0]:,} of an axis of {x.shape[axis]:,}")
    x = part(net, x, {other: range(size) for other, size in enumerate(indices.shape) if other != axis})
    places = indices % x.shape[axis]
    others = [other for other in range(x.rank) if other != axis]
    rows = [other for other in others if not (places == places.take([0], other)).all()]
    same = [other for other in others if other not in rows]
    order = [*same, *rows, axis]
    by_row = places.transpose(order)[(0,) * len(same)].reshape(-1, places.shape[axis])
    sizes = [x.shape[other] for other in same]
    moved = net.reshaped(Tensor(x.node, tuple(x.axes[other] for other in order), x.kind), (*sizes, len(by_row), x.shape[axis]))
    made = net.reshaped(_of_rows(net, moved, by_row), [places.shape[other] for other in order])
    return Tensor(made.node, tuple(made.axes[order.index(other)] for other in range(x.rank)), made.kind)


def _of_rows(net: Network, x: Tensor, places: AnyArray) -> Tensor:
    """[…, rows, places before] with the places of each row: all rows as one axis, or each by itself where its matrix would be too large."""
    *sizes, rows, before = x.shape
    after = places.shape[1]
    if rows * before * rows * after <= MOST_PICKS:
        whole = net.reshaped(x, (*sizes, rows * before))
        return taken(net, whole, whole.rank - 1, (places + before * np.arange(rows)[:, np.newaxis]).reshape(-1).tolist())
    pieces = [taken(net, part(net, x, {x.rank - 2: range(row, row + 1)}), x.rank - 1, places[row].tolist()) for row in range(rows)]
    return joined(net, pieces, x.rank - 2)


RULES: Mapping[str, Rule] = {"GatherElements": _gather_elements}
