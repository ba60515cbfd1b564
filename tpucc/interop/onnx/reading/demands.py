"""What ONNX demands of the operands that are sizes, counts and steps: a file in which they are something else is damaged.

What is sound and too much for tpucc is another matter, and the rules' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from tpucc.diagnostics import counted, printable
from tpucc.interop.onnx.reading.model import OnnxNode
from tpucc.interop.onnx.reading.problems import CHECKER, malformed, shortened
from tpucc.interop.onnx.reading.tensors import MAX_SIZE
from tpucc.interop.onnx.reading.values import Static, Value
from tpucc.numerics import AnyArray

MOST_STEPS = 1e18
"""Of a range, that are counted."""


def require_sound(node: OnnxNode, operands: Sequence[Value | None], opset: int) -> None:
    """Raises `ProgramError` for a node whose known operands can't be what they stand for: E1001, or E1003 for a result past all memory."""
    found = _Operands(node, operands, opset)
    if node.kind in ONE_TYPE:
        _one_type(found)
    if (demand := DEMANDS.get(node.kind)) is not None:
        demand(found)


class _Operands:
    """The operands of a node, for its checks. Those that the network computes, and those that aren't there, are None."""

    def __init__(self, node: OnnxNode, values: Sequence[Value | None], opset: int) -> None:
        self.node, self.values, self.opset = node, values, opset

    def known(self, index: int) -> AnyArray | None:
        value = self.values[index] if index < len(self.values) else None
        return value.array if isinstance(value, Static) else None

    def shape(self, index: int) -> tuple[int, ...]:
        value = self.values[index] if index < len(self.values) else None
        return () if value is None else value.shape

    def integers(self, index: int, what: str, least: int | None) -> list[int] | None:
        """A known operand that ONNX has as integers, none below the least one."""
        found = self.known(index)
        if found is None:
            return None
        if found.dtype.kind not in "iu":
            self.refuse(f"{what} are {found.dtype.name}, and ONNX has them as int64")
        numbers = [int(number) for number in found.reshape(-1)]
        if least is not None and any(number < least for number in numbers):
            self.refuse(f"{what} are {shortened(numbers)}, and none may be below {least}")
        return numbers

    def number(self, index: int, what: str) -> float | None:
        """A known operand that is one finite number."""
        found = self.known(index)
        if found is None:
            return None
        if found.size != 1 or found.dtype.kind not in "iuf":
            self.refuse(f"{what} is of the type {found.dtype.name} and the shape {list(found.shape)}, and ONNX has one number there")
        number = float(found.reshape(()))
        if not math.isfinite(number):
            self.refuse(f"{what} is {number}")
        return number

    def require_count(self, numbers: Sequence[object], wanted: int, what: str) -> None:
        if len(numbers) != wanted:
            self.refuse(f"it has {counted(len(numbers), what)} for {counted(wanted, 'axis', 'axes')}")

    def require_memory(self, sizes: Sequence[int | float]) -> None:
        """Refuses a result that no memory has."""
        size = math.prod(sizes)
        if size > MAX_SIZE:
            self.refuse(f"its result has {size:,} values; the limit is {MAX_SIZE:,}", "E1003")

    def refuse(self, message: str, code: str = "E1001") -> None:
        raise malformed(f"{self.node.title} ({printable(self.node.op)}): {message}", CHECKER, code)


def _one_type(o: _Operands) -> None:
    """Refuses floats beside integers."""
    found = {"floats": False, "integers": False}
    for value in o.values:
        kind = value.array.dtype.kind if isinstance(value, Static) else "" if value is None else value.kind
        found["floats"] |= kind in ("f", "float")
        found["integers"] |= kind in ("i", "u", "whole", "int")
    if all(found.values()):
        o.refuse("it has floats and integers as operands, and ONNX has one type for all of them")


def _constant_of_shape(o: _Operands) -> None:
    sizes = o.integers(0, "the sizes", 0)
    value = o.node.attributes.get("value")
    if isinstance(value, np.ndarray) and value.size != 1:
        o.refuse(f"its value has {counted(value.size, 'element')}, and ONNX has one")
    o.require_memory(sizes or ())


def _concat(o: _Operands) -> None:
    if "axis" not in o.node.attributes:
        o.refuse("it has no axis")


def _conv(o: _Operands) -> None:
    """The attributes that the weights [outputs, inputs / group, …] say, too."""
    group, kernel, weights = o.node.attributes.get("group", 1), o.node.attributes.get("kernel_shape"), o.shape(1)
    if not isinstance(group, int) or group < 1:
        o.refuse(f"group is {shortened(group)}, and it is at least 1")
    if isinstance(kernel, tuple) and len(weights) > 2 and kernel != weights[2:]:
        o.refuse(f"kernel_shape is {shortened(list(kernel))}, and the weights have the shape {list(weights)}")


def _conv_transpose(o: _Operands) -> None:
    padded, *steps = (o.node.attributes.get(name) or () for name in ("output_padding", "strides", "dilations"))
    strides, dilations = (numbers or (1,) * len(padded) for numbers in steps)
    for more, stride, apart in zip(padded, strides, dilations, strict=False):
        if not 0 <= more < max(stride, apart):
            o.refuse(f"output_padding has {more:,}, and less than the stride {stride:,} or the dilation {apart:,} is possible")


def _expand(o: _Operands) -> None:
    sizes = o.integers(1, "the sizes", 0) or []
    o.require_memory([max(pair) for pair in zip_longest(reversed(sizes), reversed(o.shape(0)), fillvalue=1)])


def _one_hot(o: _Operands) -> None:
    depth = o.number(1, "the depth")
    if depth is not None and depth < 1:
        o.refuse(f"the depth is {depth:g}, and it is at least 1")
    values = o.known(2)
    if values is not None and values.size != 2:
        o.refuse(f"it has {counted(values.size, 'value')}, and ONNX has two: off and on")
    o.require_memory((*o.shape(0), int(depth or 0)))


def _pad(o: _Operands) -> None:
    pads, shape = o.integers(1, "the pads", None), o.shape(0)
    if pads is None:
        return
    axes = o.known(3)
    count = len(shape) if axes is None else axes.size
    if len(pads) != 2 * count:
        o.refuse(f"it has {len(pads)} pads for {counted(count, 'axis', 'axes')}, and each has two")
    ends = [before + after for before, after in zip(pads[:count], pads[count:], strict=True)]
    if axes is not None:
        o.require_memory([size for size in (*shape, *(sum(shape) + end for end in ends)) if size > MAX_SIZE])
        return
    if any(size + end < 0 for size, end in zip(shape, ends, strict=True)):
        o.refuse(f"the pads {shortened(pads)} leave nothing of {list(shape)}")
    o.require_memory([size + end for size, end in zip(shape, ends, strict=True)])


def _range(o: _Operands) -> None:
    start, stop, step = (o.number(index, what) for index, what in enumerate(("the start", "the limit", "the step")))
    if step == 0:
        o.refuse("the step is 0")
    if start is not None and stop is not None and step is not None:
        o.require_memory((max(0, math.ceil(min((stop - start) / step, MOST_STEPS))),))


def _recurrent(gates: int) -> Callable[[_Operands], None]:
    """Weights [directions, gates · units, …] of an LSTM, GRU or RNN, whose units are those that it names, and its first states."""

    def demand(o: _Operands) -> None:
        attributes, shape = o.node.attributes, o.shape(2)
        if len(shape) != 3:
            o.refuse(f"the recurrent weights have the shape {list(shape)}, and ONNX has three axes: directions, gates and units")
        directions = 2 if attributes.get("direction") == "bidirectional" else 1
        units = attributes.get("hidden_size", shape[2])
        if not isinstance(units, int):
            o.refuse(f"hidden_size is {shortened(units)}, and ONNX has one integer")
        wanted = (directions, gates * units, units)
        if shape != wanted:
            named = f"of hidden_size {shortened(units)} in {counted(directions, 'direction')}"
            o.refuse(f"the recurrent weights have the shape {list(shape)}, and {named} they have {list(wanted)}")
        for index, what, known in ((1, "the weights", wanted[:2]), (3, "the bias", (directions, 2 * gates * units))):
            found = o.shape(index)
            if found and found[:2] != known:
                o.refuse(f"{what} of {units:,} units have the shape {list(found)}, and their first axes are {list(known)}")
        if len(x := o.shape(0)) != 3:
            return
        first = (x[0], directions, units) if attributes.get("layout") else (directions, x[1], units)
        for index, what in ((5, "the first state"), (6, "the first state of the cell")):
            if (found := o.shape(index)) and found != first:
                o.refuse(f"{what} has the shape {list(found)}, and of {units:,} units it has {list(first)}")

    return demand


def _reshape(o: _Operands) -> None:
    sizes = o.integers(1, "the sizes", -1)
    if sizes is not None and sizes.count(-1) > 1:
        o.refuse(f"the sizes are {shortened(sizes)}, and only one may be left open by -1")
    o.require_memory([size for size in sizes or () if size > 0])


def _resize(o: _Operands) -> None:
    places = (1, len(o.values)) if o.node.op == "Upsample" or o.opset < 11 else (2, 3)
    shape, scales, sizes = o.shape(0), o.known(places[0]), o.integers(places[1], "the sizes", 1)
    if scales is not None and scales.size:
        if scales.dtype.kind != "f":
            o.refuse(f"the scales are {scales.dtype.name}, and ONNX has them as float32")
        factors = [float(scale) for scale in scales.reshape(-1)]
        if not all(math.isfinite(scale) and scale > 0 for scale in factors):
            o.refuse(f"the scales are {shortened(factors)}, and each is a finite number above 0")
        o.require_memory([*shape, *factors])
    o.require_memory(sizes or ())


def _slice(o: _Operands) -> None:
    for index, what in enumerate(("the starts", "the ends", "the axes", "the steps"), 1):
        numbers = o.integers(index, what, None)
        if index == 4 and numbers is not None and 0 in numbers:
            o.refuse("a step is 0")


def _split(o: _Operands) -> None:
    o.integers(1, "the sizes", 0)


def _tile(o: _Operands) -> None:
    counts, shape = o.integers(1, "the repeats", 0), o.shape(0)
    if counts is not None:
        o.require_count(counts, len(shape), "repeat")
        o.require_memory([*shape, *counts])


ONE_TYPE = frozenset(
    [
        "Add",
        "Concat",
        "Conv",
        "ConvTranspose",
        "Div",
        "Einsum",
        "Equal",
        "Gemm",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "MatMul",
        "Max",
        "Mean",
        "Min",
        "Mod",
        "Mul",
        "Sub",
        "Sum",
    ]
)
"""Operators all of whose operands have one type."""
DEMANDS: Mapping[str, Callable[[_Operands], None]] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Expand": _expand,
    "GRU": _recurrent(3),
    "LSTM": _recurrent(4),
    "OneHot": _one_hot,
    "Pad": _pad,
    "RNN": _recurrent(1),
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _resize,
}
"""The checks by operator."""
