"""Values in other places: slices, transposes, joins and padding.

Rows are walked in another way, which costs nothing, or copied. Lanes go through the matrix unit: a product with a matrix of zeros and
ones picks, places and joins them, and the sums of its sources meet in the accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tpucc.ir import Node, Quantisation
from tpucc.layers.kinds import Fc, Move, MoveFunction, Requantise
from tpucc.layers.parameters import scaling
from tpucc.numerics import Int8
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.pad import PadAttributes
from tpucc.ops.shuffle_lanes import ShuffleLanesAttributes, lanes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.layering.elementwise import requantised
from tpucc.passes.layering.graph import LayerGraph, parameters_of, reshaped

Placed = tuple[Node, Sequence[int], int]
"""A value, the lanes of it that are taken, and the lane of the result at which they begin."""


def rearranged(layers: LayerGraph, node: Node) -> Node:
    """The layers of slice, transpose, concat, pad or shuffle_lanes."""
    match node.attributes:
        case SliceAttributes():
            return _sliced(layers, node, node.attributes)
        case ShuffleLanesAttributes() as shuffle:
            x = layers.for_device(node.operands[0])
            return _placed(layers, node, [(x, lanes(shuffle), 0)], node.type.shape, parameters_of(x))
        case TransposeAttributes():
            x = layers.for_device(node.operands[0])
            return layers.layer(node, (x,), node.attributes, parameters_of(x))
        case ConcatAttributes(axis):
            return _joined(layers, node, axis % node.type.rank)
        case PadAttributes(pads):
            return _padded(layers, node, pads)
    raise AssertionError(f"{node.op} rearranges nothing")


def _sliced(layers: LayerGraph, node: Node, attributes: SliceAttributes) -> Node:
    """Rows first, then lanes, then the axes that are dropped."""
    x = layers.for_device(node.operands[0])
    steps = (*attributes.steps[:-1], 1) if any(step != 1 for step in attributes.steps[:-1]) else ()
    rows = SliceAttributes((*attributes.starts[:-1], 0), (*attributes.stops[:-1], x.type.columns), (), steps)
    held, taken = parameters_of(x), attributes.ranges[-1]
    if rows.shape != x.type.shape:
        x = layers.layer(node, (x,), rows, held, shape=rows.shape)
    if taken != range(x.type.columns):
        x = _placed(layers, node, [(x, taken, 0)], (*rows.shape[:-1], len(taken)), held)
    return reshaped(layers, node, x) if node.type.shape != x.type.shape else x


def _joined(layers: LayerGraph, node: Node, axis: int) -> Node:
    y = layers.quantisation_of(node)
    values = [_value(layers, name, y) for name in node.operands]
    if axis == node.type.rank - 1:
        offsets = accumulate((value.type.columns for value in values), initial=0)
        sources = [(value, range(value.type.columns), at) for value, at in zip(values, offsets, strict=False)]
        return _placed(layers, node, sources, node.type.shape, y)
    alike = [requantised(layers, node, value, y) for value in values]
    return layers.layer(node, alike, Move(MoveFunction.CONCAT, axis), y)


def _padded(layers: LayerGraph, node: Node, pads: Sequence[tuple[int, int]]) -> Node:
    x, y = layers.for_device(node.operands[0]), layers.quantisation_of(node)
    if pads and pads[-1] != (0, 0):
        x = _placed(layers, node, [(x, range(x.type.columns), pads[-1][0])], (*x.type.shape[:-1], node.type.columns), y)
    x = requantised(layers, node, x, y)
    if not any(map(any, pads[:-1])):
        return x
    rows = tuple((before, after) for before, after in (*pads[:-1], (0, 0)))
    return layers.layer(node, (x,), Move(MoveFunction.PAD, pads=rows, value=y.zero_point), y)


def _value(layers: LayerGraph, name: str, y: Quantisation) -> Node:
    """A value, or a constant in integers with the parameters `y`."""
    return layers.for_device(name) if layers.array(name) is None else layers.held_constant(name, y)


def _placed(layers: LayerGraph, node: Node, sources: Sequence[Placed], shape: tuple[int, ...], y: Quantisation) -> Node:
    """Lanes of the sources side by side, in a value of `shape`; lanes of the result that nothing is placed in are zero.

    Each lane of the result is one of a source less its zero point, times the ratio of scales: what requantising it would give.
    """
    width = shape[-1]
    bias, multiplier = np.zeros(width, np.int32), np.ones(width, np.float32)
    matrices = []
    for x, taken, at in sources:
        place = slice(at, at + len(taken))
        matrices.append(_selection(layers, node, (x.type.columns, width), taken, at))
        bias[place] = -parameters_of(x).zero_point
        multiplier[place] = scaling(parameters_of(x).scale, 1.0, y.scale)
    constants = (layers.constant(f"{node.name}.{part}", value, node.origin) for part, value in (("bias", bias), ("multiplier", multiplier)))
    operands = (*(x for x, _, _ in sources), *matrices, *constants)
    layer = Fc(Requantise(y.zero_point), len(sources), moves=True)
    return layers.layer(node, operands, layer, y, shape=shape)


def _selection(layers: LayerGraph, node: Node, shape: tuple[int, int], taken: Sequence[int], at: int) -> Node:
    """The matrix [depth, width] that puts the lanes `taken` side by side, from lane `at` on."""
    matrix: Int8 = np.zeros(shape, np.int8)
    matrix[np.asarray(taken), np.arange(at, at + len(taken))] = 1
    return layers.constant(f"{node.name}.lanes", matrix, node.origin)
