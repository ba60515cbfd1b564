"""Sums, means and largest values along axes; softmax."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product

from tpucc.interop.onnx.reading.building.call import Call, Result, Rule, normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Tensor
from tpucc.interop.onnx.reading.files.problems import COMPUTED, Unsupported
from tpucc.interop.onnx.reading.rules.places import part

MOST_FACTORS = 8
"""Of a product along axes."""


def reduced(net: Network, op: str, t: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """A reduction along axes of the file, which stay with size 1 or go."""
    gone = sorted(part for axis in axes for part in t.axes[axis])
    node = t.node
    kept = list(range(node.type.rank))
    if op == "mean" and gone == [1, 2] and node.type.rank == 4:
        node = net.add("global_avg_pool", node)
        kept = [0, 3]
    elif gone:
        every = len(gone) == node.type.rank
        node = net.add(op, node) if every else net.add(op, node, axis=gone[0] if len(gone) == 1 else tuple(gone))
        kept = [part for part in kept if part not in gone]
    places = {part: place for place, part in enumerate(kept)}
    found = [() if axis in axes else tuple(places[part] for part in parts) for axis, parts in enumerate(t.axes) if keep or axis not in axes]
    return Tensor(node, tuple(found))


def _kept(net: Network, op: str, t: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """As `reduced`, with the axes of size 1 in the node, as a source has them."""
    gone = sorted(part for axis in axes for part in t.axes[axis])
    if not gone:
        return reduced(net, op, t, axes, keep)
    axis = None if len(gone) == t.node.type.rank else gone[0] if len(gone) == 1 else tuple(gone)
    return Tensor(net.add(op, t.node, axis=axis, keepdims=True), t.axes)


def _axes(c: Call, x: Tensor) -> list[int] | None:
    """The axes of a reduction; None where it changes nothing."""
    found = c.axes(1, x.rank)
    if found:
        return found
    return None if c.attribute("noop_with_empty_axes", 0) else list(range(x.rank))


def _reduction(op: str, before: str = "", after: str = "") -> Rule:
    def rule(c: Call) -> Result:
        net, x = c.network, c.network.unsplit(c.tensor(0))
        if x.kind == "int":
            raise Unsupported("a reduction of integers that are computed", COMPUTED)
        axes = _axes(c, x)
        if before == "square":
            x = Tensor(net.add("mul", x.node, x.node), x.axes)
        elif before:
            x = net.map(x, before)
        keep = bool(c.attribute("keepdims", 1))
        found = x if axes is None else (_kept if keep and net.ours else reduced)(net, op, x, axes, keep)
        return net.map(found, after) if after else found

    return rule


def _log_sum_exp(c: Call) -> Result:
    """m + log(Σ exp(x - m)), m the largest value: nothing overflows."""
    net, x = c.network, c.tensor(0)
    axes = _axes(c, x)
    if axes is None:
        return x
    largest = reduced(net, "max", x, axes, True)
    total = reduced(net, "sum", net.map(net.elementwise("sub", x, largest), "exp"), axes, True)
    found = net.elementwise("add", largest, net.map(total, "log"))
    return found if c.attribute("keepdims", 1) else Tensor(found.node, tuple(a for axis, a in enumerate(found.axes) if axis not in axes))


def _along(c: Call) -> tuple[Tensor, int, tuple[int, ...]]:
    """The operand of a softmax, the axis, and the shape of the result. Before opset 13 all axes from that one on are one."""
    x = c.tensor(0)
    axis = c.axis(-1 if c.opset >= 13 else 1, x.rank)
    if c.opset >= 13 or axis == x.rank - 1 or all(size == 1 for size in x.shape[axis + 1 :]):
        return x, axis, x.shape
    rest = 1
    for size in x.shape[axis:]:
        rest *= size
    return c.network.reshaped(x, (*x.shape[:axis], rest)), axis, x.shape


def _softmax(c: Call) -> Result:
    x, axis, shape = _along(c)
    return c.network.reshaped(softmax(c.network, x, axis), shape)


def softmax(net: Network, x: Tensor, axis: int) -> Tensor:
    """softmax along an axis of the file."""
    if len(x.axes[axis]) != 1:
        x = net.single(x)
    place = x.axes[axis][0]
    last = place == x.node.type.rank - 1
    return Tensor(net.add("softmax", x.node) if last else net.add("softmax", x.node, axis=place), x.axes)


def _log_softmax(c: Call) -> Result:
    """x - m - log(Σ exp(x - m)), m the largest value."""
    net = c.network
    x, axis, shape = _along(c)
    centred = net.elementwise("sub", x, reduced(net, "max", x, [axis], True))
    total = reduced(net, "sum", net.map(centred, "exp"), [axis], True)
    return net.reshaped(net.elementwise("sub", centred, net.map(total, "log")), shape)


def _product(c: Call) -> Result:
    """Of few values along the axes: one after the other."""
    net, x = c.network, c.tensor(0)
    if (axes := _axes(c, x)) is None:
        return x
    count = math.prod(x.shape[axis] for axis in axes)
    if count > MOST_FACTORS:
        raise Unsupported(f"a product of {count:,} values", f"up to {MOST_FACTORS} are multiplied, one after the other")
    places = product(*(range(x.shape[axis]) for axis in axes))
    factors = [part(net, x, {axis: range(place, place + 1) for axis, place in zip(axes, chosen, strict=True)}) for chosen in places]
    made = reduce(lambda a, b: net.elementwise("mul", a, b), factors)
    shape = [size for axis, size in enumerate(made.shape) if axis not in axes]
    return made if c.attribute("keepdims", 1) else net.reshaped(made, shape)


def _arg_max(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    if c.attribute("select_last_index", 0):
        raise Unsupported("of equal values it takes the last", "tpucc takes the first")
    axis = c.axis(0, x.rank)
    return argmax(net, net.affine(x, -1.0) if c.node.op == "ArgMin" else x, axis, bool(c.attribute("keepdims", 1)))


def argmax(net: Network, x: Tensor, axis: int, keep: bool) -> Tensor:
    """The place of the largest value along an axis of the file, which stays with size 1 or goes."""
    if len(x.axes[axis]) != 1:
        x = net.single(x)
    place = x.axes[axis][0]
    node = net.add("argmax", x.node, axis=place if place < x.node.type.rank - 1 else -1)
    axes = [tuple(part - (part > place) for part in parts) if index != axis else () for index, parts in enumerate(x.axes)]
    return Tensor(node, tuple(parts for index, parts in enumerate(axes) if keep or index != axis), "int")


def _hardmax(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    axis = normal(int(c.attribute("axis", -1 if c.opset >= 13 else 1)), x.rank)
    if axis != x.rank - 1:
        raise Unsupported("along an axis other than the last", "Transpose before and behind it puts the axis last")
    whole = net.plain(x)
    return net.laid(Tensor(net.add("one_hot", net.add("argmax", whole.node), n=x.shape[-1]), whole.axes), range(x.rank))


RULES: Mapping[str, Rule] = {
    "ArgMax": _arg_max,
    "ArgMin": _arg_max,
    "Hardmax": _hardmax,
    "LogSoftmax": _log_softmax,
    "ReduceL1": _reduction("sum", "abs"),
    "ReduceL2": _reduction("sum", "square", "sqrt"),
    "ReduceLogSum": _reduction("sum", "", "log"),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _reduction("max"),
    "ReduceMean": _reduction("mean"),
    "ReduceMin": _reduction("min"),
    "ReduceProd": _product,
    "ReduceSum": _reduction("sum"),
    "ReduceSumSquare": _reduction("sum", "square"),
    "Softmax": _softmax,
}
