"""What ONNX demands of the operands that are sizes, counts and steps: a file in which they are something else is damaged.

What is sound and too much for tpucc is another matter, and the rules' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.values import Value
from tpucc.interop.onnx.reading.checks.fits import require_fit
from tpucc.interop.onnx.reading.checks.lists import LISTS, require_lists, require_rank
from tpucc.interop.onnx.reading.checks.operands import Operands
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import shortened
from tpucc.interop.onnx.reading.files.tensors import MAX_SIZE

MOST_STEPS = 1e18
"""Of a range, that are counted."""


def require_sound(node: OnnxNode, operands: Sequence[Value | None], opset: int) -> None:
    """Raises `ProgramError` for a node whose known operands can't be what they stand for: E1001, or E1003 for a result past all memory.

    Raises `Misfit` for shapes that can't be together, and `Unsupported` for more axes than a tensor has here.
    """
    found = Operands(node, operands, opset)
    require_lists(found)
    if (demand := DEMANDS.get(node.kind)) is not None:
        demand(found)
    require_fit(found)
    require_rank(found)


def _constant_of_shape(o: Operands) -> None:
    sizes = o.integers(0, "the sizes", 0)
    value = o.node.attributes.get("value")
    if isinstance(value, np.ndarray) and value.size != 1:
        o.refuse(f"its value has {counted(value.size, 'element')}, and ONNX has one")
    o.require_memory(sizes or ())


def _expand(o: Operands) -> None:
    sizes = o.integers(1, "the sizes", 0) or []
    o.require_memory([max(pair) for pair in zip_longest(reversed(sizes), reversed(o.shape(0)), fillvalue=1)])


def _one_hot(o: Operands) -> None:
    depth = o.number(1, "the depth")
    if depth is not None and depth < 1:
        o.refuse(f"the depth is {depth:g}, and it is at least 1")
    values = o.known(2)
    if values is not None and values.size != 2:
        o.refuse(f"it has {counted(values.size, 'value')}, and ONNX has two: off and on")
    o.require_memory((*o.shape(0), int(depth or 0)))


def _pad(o: Operands) -> None:
    if not o.has(1) and "pads" not in o.node.attributes:
        o.refuse("it has no pads")
    pads, shape = o.integers(1, "the pads", None), o.shape(0)
    if pads is None:
        return
    axes = o.known(3)
    if axes is None and o.has(3):
        return
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


def _range(o: Operands) -> None:
    start, stop, step = (o.number(index, what) for index, what in enumerate(("the start", "the limit", "the step")))
    if step == 0:
        o.refuse("the step is 0")
    if start is not None and stop is not None and step is not None:
        o.require_memory((max(0, math.ceil(min((stop - start) / step, MOST_STEPS))),))


def _recurrent(gates: int, functions: int) -> Callable[[Operands], None]:
    """Weights [directions, gates · units, …] of an LSTM, GRU or RNN, whose units are those that it names, and its first states. A direction
    has so many functions."""

    def demand(o: Operands) -> None:
        attributes, x, shape = o.node.attributes, o.shape(0), o.shape(2)
        if len(x) != 3:
            o.refuse(f"a sequence {list(x)}, and ONNX has three axes: steps, examples and features")
        if len(shape) != 3:
            o.refuse(f"the recurrent weights have the shape {list(shape)}, and ONNX has three axes: directions, gates and units")
        directions = 2 if attributes.get("direction") == "bidirectional" else 1
        if (names := attributes.get("activations", ())) and len(names) < functions * directions:
            o.refuse(f"it has {counted(len(names), 'function')}, and {counted(directions, 'direction')} of it {functions * directions}")
        units = attributes.get("hidden_size", shape[2])
        wanted = (directions, gates * units, units)
        if shape != wanted:
            named = f"of hidden_size {shortened(units)} in {counted(directions, 'direction')}"
            o.refuse(f"the recurrent weights have the shape {list(shape)}, and {named} they have {list(wanted)}")
        first = (x[0], directions, units) if attributes.get("layout") else (directions, x[1], units)
        for index, what, known in (
            (1, f"the weights of {counted(x[2], 'feature')} and", (*wanted[:2], x[2])),
            (3, "the bias of", (directions, 2 * gates * units)),
            (5, "the first state of", first),
            (6, "the first state of the cell of", first),
        ):
            found = o.shape(index)
            if o.has(index) and found != known:
                o.misfit(f"{what} {counted(units, 'unit')}: the shape is {list(found)}, and ONNX has {list(known)} there")

    return demand


def _reshape(o: Operands) -> None:
    sizes = o.integers(1, "the sizes", -1)
    if sizes is not None and sizes.count(-1) > 1:
        o.refuse(f"the sizes are {shortened(sizes)}, and only one may be left open by -1")
    o.require_memory([size for size in sizes or () if size > 0])


def _resize(o: Operands) -> None:
    places = (1, len(o.values)) if o.node.op == "Upsample" or o.opset < 11 else (2, 3)
    shape, scales, sizes = o.shape(0), o.known(places[0]), o.integers(places[1], "the sizes", 1)
    if scales is not None and scales.size:
        if scales.dtype.kind != "f":
            o.refuse(f"the scales are {scales.dtype.name}, and ONNX has them as float32")
        factors = [float(scale) for scale in scales.reshape(-1)]
        if not all(math.isfinite(scale) and scale > 0 for scale in factors):
            o.refuse(f"the scales are {shortened(factors)}, and each is a finite number above 0")
        if len(factors) not in (len(shape), len(o.node.attributes.get("axes", shape))):
            o.refuse(f"the scales are {shortened(factors)}, of {counted(len(shape), 'axis', 'axes')}")
        o.require_memory([*shape, *factors])
    if scales is not None and scales.size and sizes:
        o.refuse("it has scales and sizes, and ONNX has one of them")
    if sizes and len(sizes) not in (len(shape), len(o.node.attributes.get("axes", shape))):
        o.refuse(f"the sizes are {shortened(sizes)}, of {counted(len(shape), 'axis', 'axes')}")
    o.require_memory(sizes or ())


def _slice(o: Operands) -> None:
    for index, what in LISTS["Slice"].items():
        numbers = o.integers(index, what, None)
        if index == 4 and numbers is not None and 0 in numbers:
            o.refuse("a step is 0")


def _split(o: Operands) -> None:
    o.integers(1, "the sizes", 0)


def _tile(o: Operands) -> None:
    counts, shape = o.integers(1, "the repeats", 0), o.shape(0)
    if counts is not None:
        o.require_count(counts, len(shape), "repeat")
        o.require_memory([*shape, *counts])


DEMANDS: Mapping[str, Callable[[Operands], None]] = {
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "GRU": _recurrent(3, 2),
    "LSTM": _recurrent(4, 3),
    "OneHot": _one_hot,
    "Pad": _pad,
    "RNN": _recurrent(1, 1),
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _resize,
}
"""The checks by operator."""
