"""Sums, means and largest values along axes; softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

from tpucc.interop.onnx.reading.building.call import Call, Result, normal, normal_axes
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Tensor
from tpucc.interop.onnx.reading.files.problems import COMPUTED, Unsupported
from tpucc.interop.onnx.reading.operators.places import part
from tpucc.interop.onnx.reading.operators.rows import Axis, Fact, Ints, add_row, operator

EXACT, KEEPS, WHOLE = Fact.EXACT, Fact.KEEPS, Fact.WHOLE
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


def reduced_axes(x: Tensor, axes: Ints | None, nothing: bool) -> list[int] | None:
    """The axes of a reduction; None where it changes nothing, as of an empty list where that means `nothing`."""
    if x.kind == "int":
        raise Unsupported("a reduction of integers that are computed", COMPUTED)
    if axes:
        return normal_axes(axes, x.rank)
    return None if nothing else list(range(x.rank))


Reduction = str | Callable[[Network, Tensor, Sequence[int], bool], Tensor]


def _reduction(name: str, op: Reduction, *facts: Fact, before: str = "", after: str = "") -> None:
    """Adds the row of a reduction, an operator or a function, with functions of elements before and after it."""

    def row(c: Call, x: Tensor, axes: Ints | None, *, keepdims: bool = True, noop_with_empty_axes: bool = False) -> Result:
        found = reduced_axes(x, axes, noop_with_empty_axes)
        x = c.net.unsplit(x)
        if before == "square":
            x = Tensor(c.net.add("mul", x.node, x.node), x.axes)
        elif before:
            x = c.net.map(x, before)
        if found is not None:
            x = reduced(c.net, op, x, found, keepdims) if isinstance(op, str) else op(c.net, x, found, keepdims)
        return c.net.map(x, after) if after else x

    add_row(name, row, facts)


def _log_sum_exp(net: Network, x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """m + log(Σ exp(x - m)), m the largest value: nothing overflows."""
    largest = reduced(net, "max", x, axes, True)
    total = reduced(net, "sum", net.map(net.elementwise("sub", x, largest), "exp"), axes, True)
    return _kept(net, net.elementwise("add", largest, net.map(total, "log")), axes, keep)


def _multiplied(net: Network, x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """Of few values along the axes: one after the other."""
    count = math.prod(x.shape[axis] for axis in axes)
    if count > MOST_FACTORS:
        raise Unsupported(f"a product of {count:,} values", f"up to {MOST_FACTORS} are multiplied, one after the other")
    places = product(*(range(x.shape[axis]) for axis in axes))
    factors = [part(net, x, {axis: range(place, place + 1) for axis, place in zip(axes, chosen, strict=True)}) for chosen in places]
    return _kept(net, reduce(lambda a, b: net.elementwise("mul", a, b), factors), axes, keep)


def _kept(net: Network, x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """A tensor of size 1 along axes that stay or go."""
    return x if keep else net.reshaped(x, [size for axis, size in enumerate(x.shape) if axis not in axes])


_reduction("ReduceL1", "sum", WHOLE, before="abs")
_reduction("ReduceL2", "sum", EXACT, before="square", after="sqrt")
_reduction("ReduceLogSum", "sum", after="log")
_reduction("ReduceLogSumExp", _log_sum_exp)
_reduction("ReduceMax", "max", EXACT, KEEPS, WHOLE)
_reduction("ReduceMean", "mean", EXACT)
_reduction("ReduceMin", "min", EXACT, KEEPS, WHOLE)
_reduction("ReduceProd", _multiplied, EXACT, WHOLE)
_reduction("ReduceSum", "sum", EXACT, WHOLE)
_reduction("ReduceSumSquare", "sum", EXACT, WHOLE, before="square")


def _along(c: Call, x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """The operand of a softmax, and its axis. Before opset 13 all axes from that one on are one."""
    place = normal((-1 if c.opset >= 13 else 1) if axis is None else axis, x.rank)
    if c.opset >= 13 or place == x.rank - 1 or all(size == 1 for size in x.shape[place + 1 :]):
        return x, place
    return c.net.reshaped(x, (*x.shape[:place], math.prod(x.shape[place:]))), place


@operator("Softmax", Fact.AXES)
def softmax_of(c: Call, x: Tensor, *, axis: int | None = None) -> Result:
    return c.net.reshaped(softmax(c.net, *_along(c, x, axis)), x.shape)


def softmax(net: Network, x: Tensor, axis: int) -> Tensor:
    """softmax along an axis of the file."""
    if len(x.axes[axis]) != 1:
        x = net.single(x)
    place = x.axes[axis][0]
    last = place == x.node.type.rank - 1
    return Tensor(net.add("softmax", x.node) if last else net.add("softmax", x.node, axis=place), x.axes)


@operator("LogSoftmax", Fact.AXES)
def log_softmax(c: Call, x: Tensor, *, axis: int | None = None) -> Result:
    """x - m - log(Σ exp(x - m)), m the largest value."""
    net, (t, place) = c.net, _along(c, x, axis)
    centred = net.elementwise("sub", t, reduced(net, "max", t, [place], True))
    total = reduced(net, "sum", net.map(centred, "exp"), [place], True)
    return net.reshaped(net.elementwise("sub", centred, net.map(total, "log")), x.shape)


@operator("ArgMax", "ArgMin", Fact.INTEGERS)
def place_of_largest(c: Call, x: Tensor, *, axis: Axis = 0, keepdims: bool = True, select_last_index: bool = False) -> Result:
    if select_last_index:
        raise Unsupported("of equal values it takes the last", "tpucc takes the first")
    return argmax(c.net, c.net.affine(x, -1.0) if c.node.op == "ArgMin" else x, axis, keepdims)


def argmax(net: Network, x: Tensor, axis: int, keep: bool) -> Tensor:
    """The place of the largest value along an axis of the file, which stays with size 1 or goes."""
    if len(x.axes[axis]) != 1:
        x = net.single(x)
    place = x.axes[axis][0]
    node = net.add("argmax", x.node, axis=place if place < x.node.type.rank - 1 else -1)
    axes = [tuple(part - (part > place) for part in parts) if index != axis else () for index, parts in enumerate(x.axes)]
    return Tensor(node, tuple(parts for index, parts in enumerate(axes) if keep or index != axis), "int")


@operator("Hardmax")
def hardmax(c: Call, x: Tensor, *, axis: int | None = None) -> Result:
    net, place = c.net, normal((-1 if c.opset >= 13 else 1) if axis is None else axis, x.rank)
    if place != x.rank - 1:
        raise Unsupported("along an axis other than the last", "Transpose before and behind it puts the axis last")
    whole = net.plain(x)
    return net.laid(Tensor(net.add("one_hot", net.add("argmax", whole.node), n=x.shape[-1]), whole.axes), range(x.rank))
