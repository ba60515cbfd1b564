"""Operators that a file of tpucc's export has where its source has them: those that only move values, and those that make equal ones.

Other files leave open where a value is moved, so that the import follows axes. The source says it, and calibration measures each value of
the source: here each of these operators is one of the graph, also where it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Tensor, plain
from tpucc.interop.onnx.reading.rules import places, resizing, shapes
from tpucc.interop.onnx.reading.rules.places import slice_places, whole_slice
from tpucc.interop.onnx.reading.rules.windows import channels_last, from_channels_last
from tpucc.ops.resize import nearest


def _concat(c: Call) -> Result:
    """Also of one value."""
    if len(c.values()) > 1:
        return shapes.RULES["Concat"](c)
    x = c.network.single(c.tensor(0))
    return Tensor(c.network.add("concat", x.node, axis=x.axes[c.axis(1, x.rank)][0]), x.axes, x.kind)


def _equal_values(c: Call) -> Result:
    sizes, value = c.integers(0, "the shape"), c.attribute("value")
    return plain(c.network.filled(tuple(sizes), 0.0 if value is None else float(value.reshape(()))))


def _flatten(c: Call) -> Result:
    x = c.network.plain(c.tensor(0))
    return plain(c.network.add("flatten", x.node), x.kind)


def _pad(c: Call) -> Result:
    """Also with nothing around."""
    if any(c.integers(1, "the padding")):
        return places.RULES["Pad"](c)
    x = c.network.single(c.tensor(0))
    return Tensor(c.network.add("pad", x.node, pads=((0, 0),) * x.rank), x.axes, x.kind)


def _resize(c: Call) -> Result:
    """Also to the size that is there, and of the rows and columns of pixels, which `own_forms.py` makes one node."""
    net, x = c.network, c.tensor(0)
    if taken := {axis: c.attribute(name) for axis, name in ((2, "rows"), (3, "columns")) if c.attribute(name)}:
        if any(tuple(nearest(x.shape[axis], len(pixels))) != pixels for axis, pixels in taken.items()):
            return places.taken(net, places.taken(net, x, 2, taken[2]), 3, taken[3])
        return _in_size(net, x, tuple(map(len, taken.values())), "nearest")
    if tuple(c.integers(3, "the sizes")) != x.shape:
        return resizing.RULES["Resize"](c)
    return _in_size(net, x, x.shape[2:], "nearest" if c.attribute("mode") == "nearest" else "bilinear")


def _in_size(net: Network, x: Tensor, size: tuple[int, ...], mode: str) -> Tensor:
    """Images in a height and a width."""
    return from_channels_last(net, net.add("resize", channels_last(net, x), size=size, mode=mode), x.rank)


def _reshape(c: Call) -> Result:
    x = c.network.plain(c.tensor(0))
    return plain(c.network.add("reshape", x.node, shape=shapes.wanted_shape(c, x)), x.kind)


def _slice(c: Call) -> Result:
    """Also of a slice and the Squeeze behind it, which `own_forms.py` makes one node."""
    x = c.tensor(0)
    return whole_slice(c.network, x, slice_places(c, x), c.attribute("squeezed", ()))


def _squeeze(c: Call) -> Result:
    x = c.tensor(0)
    return whole_slice(c.network, x, {}, c.axes(1, x.rank) or ())


def _transpose(c: Call) -> Result:
    x = c.network.plain(c.tensor(0))
    return plain(c.network.add("transpose", x.node, perm=shapes.permutation(c, x)), x.kind)


RULES: Mapping[str, Rule] = {
    "Concat": _concat,
    "ConstantOfShape": _equal_values,
    "Flatten": _flatten,
    "Pad": _pad,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
}
