"""Shapes that must fit each other: those of operands, and the numbers of windows that a node's attributes say of them.

A file without open sizes in which they don't is damaged. Where sizes are open, those that were given may be why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.arrays import own_sizes
from tpucc.interop.onnx.reading.building.call import normal
from tpucc.interop.onnx.reading.checks.operands import Operands
from tpucc.interop.onnx.reading.files.problems import shortened

Fit = Callable[[Operands], None]
Shape = tuple[int, ...]


def require_fit(o: Operands) -> None:
    """Raises `Misfit` for shapes that can't be together, and `ProgramError` E1001 for attributes that no shapes have."""
    if (fit := FITS.get(o.node.kind)) is not None:
        fit(o)


def _broadcast(shapes: Sequence[Shape]) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _unlike(shapes: Sequence[Shape]) -> Sequence[object]:
    """The sizes, counted from the last axis, that keep shapes from being repeated to one."""
    return [(place, sizes) for place, sizes in enumerate(zip_longest(*map(reversed, shapes), fillvalue=1)) if len({*sizes} - {1}) > 1]


def _one_shape(o: Operands) -> None:
    """Operands, each of whose axes has one size or 1."""
    shapes = [value.shape for value in o.values if value is not None]
    if _broadcast(shapes) is None:
        o.misfit(f"shapes that don't broadcast: {', '.join(str(list(shape)) for shape in shapes)}", _unlike(shapes))


def _require_within(o: Operands, index: int, shape: Shape, what: str) -> None:
    """An operand that is repeated to a shape, and doesn't make it larger."""
    if _broadcast([o.shape(index), shape]) != shape:
        found = o.shape(index)
        beyond = [(size, there) for size, there in zip_longest(found[::-1], shape[::-1]) if size not in (None, 1, there)]
        o.misfit(f"{what} has the shape {list(found)}, which doesn't broadcast to {list(shape)}", beyond)


def _slope(o: Operands) -> None:
    _require_within(o, 1, o.shape(0), "the slope")


def _expand(o: Operands) -> None:
    sizes = o.integers(1, "the sizes", 0)
    if sizes is not None and _broadcast([o.shape(0), own_sizes(tuple(sizes))]) is None:
        o.misfit(f"{list(o.shape(0))} doesn't broadcast to {shortened(sizes)}")


def _product(second: int) -> Fit:
    """A product of operands 1 and `second` + 1."""

    def fit(o: Operands) -> None:
        a, b = o.shape(0), o.shape(second)
        if not a or not b:
            o.misfit(f"a product of {list(a)} and {list(b)}: one of them is a single number", (len(a), len(b)))
        if a[-1] != b[-2:][0] or _broadcast([a[:-2], b[:-2]]) is None:
            which = "the inner sizes" if a[-1] != b[-2:][0] else "the axes before the last two"
            o.misfit(f"a product of {list(a)} and {list(b)}: {which} differ", (a[-1], b[-2:][0], _unlike([a[:-2], b[:-2]])))

    return fit


def _gemm(o: Operands) -> None:
    a, b = (
        shape[::-1] if o.node.attributes.get(turned, 0) else shape for shape, turned in ((o.shape(0), "transA"), (o.shape(1), "transB"))
    )
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        o.misfit(
            f"a product of {list(a)} and {list(b)}, where ONNX has two matrices with equal inner sizes", (len(a), len(b), a[-1:], b[:1])
        )
    if o.has(2):
        _require_within(o, 2, (a[0], b[1]), "what is added")


def _windows(o: Operands, count: int) -> None:
    """The numbers of windows over an image with so many axes of pixels."""
    for name, each, least in (("kernel_shape", 1, 1), ("strides", 1, 1), ("dilations", 1, 1), ("pads", 2, 0), ("output_padding", 1, 0)):
        numbers = o.node.attributes.get(name) or ()
        if numbers and len(numbers) != each * count:
            o.misfit(f"{name} is {shortened(list(numbers))}, of {counted(count, 'axis', 'axes')} of pixels")
        if any(number < least for number in numbers):
            o.refuse(f"{name} is {shortened(list(numbers))}, and each is at least {least}")


def _conv(weights: int, bias: int | None, *, transposed: bool = False) -> Fit:
    """A convolution of operand 1 with the weights [filters, channels / group, …]; of a transposed one [channels, filters / group, …]."""

    def fit(o: Operands) -> None:
        x, w, group, attributes = o.shape(0), o.shape(weights), o.node.attributes.get("group", 1), o.node.attributes
        if attributes.get("auto_pad") not in (None, "", "NOTSET") and attributes.get("pads"):
            o.refuse("it has auto_pad and pads, and ONNX has one of them")
        if len(x) < 3 or len(w) != len(x):
            o.misfit(f"an image {list(x)} and weights {list(w)}, where ONNX has [N, C, …] and as many axes of weights", (len(x), len(w)))
        if attributes.get("kernel_shape", w[2:]) not in ((), w[2:]):
            o.misfit(f"kernel_shape is {shortened(list(attributes['kernel_shape']))}, and the weights have the shape {list(w)}")
        _windows(o, len(x) - 2)
        channels, filters = (w[0], w[1] * group) if transposed else (w[1] * group, w[0])
        if x[1] != channels or (channels if transposed else filters) % group:
            o.misfit(
                f"weights {list(w)} in {counted(group, 'group')}, of an image {list(x)} with {counted(x[1], 'channel')}", (x[1], w, group)
            )
        if bias is not None and o.has(bias) and o.shape(bias) != (filters,):
            o.misfit(f"the bias has the shape {list(o.shape(bias))}, and the result {counted(filters, 'channel')}")
        if transposed:
            _more_at_the_end(o)
            if len(wanted := attributes.get("output_shape") or ()) not in (0, len(x) - 2, len(x)):
                o.misfit(f"output_shape is {shortened(list(wanted))}, of {counted(len(x) - 2, 'axis', 'axes')} of pixels")

    return fit


def _more_at_the_end(o: Operands) -> None:
    """`output_padding` adds less than a step."""
    padded, *steps = (o.node.attributes.get(name) or () for name in ("output_padding", "strides", "dilations"))
    strides, dilations = (numbers or (1,) * len(padded) for numbers in steps)
    for more, stride, apart in zip(padded, strides, dilations, strict=False):
        if more >= max(stride, apart):
            o.refuse(f"output_padding has {more:,}, and less than the stride {stride:,} or the dilation {apart:,} is possible")


def _pool(o: Operands) -> None:
    if len(o.shape(0)) < 3:
        o.misfit(f"an image {list(o.shape(0))}, where ONNX has [N, C, …]", len(o.shape(0)))
    _windows(o, len(o.shape(0)) - 2)


def _blocks(divided: Callable[[Shape], Sequence[int]], power: int) -> Fit:
    """A block of pixels that becomes channels, or channels that become one."""

    def fit(o: Operands) -> None:
        size, shape = o.node.attributes["blocksize"], o.shape(0)
        if len(shape) != 4 or any(part % size**power for part in divided(shape)):
            parts = " and ".join(f"{part:,}" for part in divided(shape)) if len(shape) == 4 else ""
            why = f": {parts} isn't divisible by {size**power:,}" if parts else ", where ONNX has [N, C, H, W]"
            o.misfit(f"blocks of the size {size:,} in an image {list(shape)}{why}")

    return fit


def _concat(o: Operands) -> None:
    shapes = [value.shape for value in o.values if value is not None]
    axis = normal(o.node.attributes["axis"], len(shapes[0]))
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or len({len(shape) for shape in shapes}) > 1:
        o.misfit(
            f"shapes that differ beside axis {axis}: {', '.join(str(list(shape)) for shape in shapes[:8])}",
            _unlike([(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]),
        )


def _axes(o: Operands) -> Sequence[int] | None:
    """The axes that an attribute names in old versions, an operand in new ones."""
    return o.integers(1, "the axes", None) if o.has(1) else o.node.attributes.get("axes")


def _squeeze(o: Operands) -> None:
    shape, axes = o.shape(0), _axes(o)
    sizes = [shape[normal(axis, len(shape))] for axis in axes or ()]
    if any(size != 1 for size in sizes):
        o.misfit(f"the axes {shortened(list(axes or ()))} of {list(shape)} are dropped, and their sizes aren't 1", sizes)


def _unsqueeze(o: Operands) -> None:
    if not o.has(1) and "axes" not in o.node.attributes:
        o.refuse("it has no axes")


def _reshape(o: Operands) -> None:
    shape, sizes = o.shape(0), o.integers(1, "the sizes", -1)
    if sizes is None:
        return
    copies = not o.node.attributes.get("allowzero", 0)
    if copies and any(size == 0 and axis >= len(shape) for axis, size in enumerate(sizes)):
        o.misfit(f"the sizes {shortened(sizes)} copy one that {list(shape)} hasn't")
    named = [shape[axis] if size == 0 and copies else size for axis, size in enumerate(sizes)]
    count, known = math.prod(shape), math.prod(size for size in named if size != -1)
    if (-1 not in named and known != count) or (-1 in named and (known == 0 or count % known)):
        o.misfit(f"{list(shape)} in the shape {shortened(sizes)}")


def _split(o: Operands) -> None:
    shape, count = o.shape(0), len(o.node.outputs)
    size = shape[normal(o.node.attributes.get("axis", 0), len(shape))]
    sizes = o.integers(1, "the sizes", 0) if o.has(1) else o.node.attributes.get("split")
    if (said := o.node.attributes.get("num_outputs", count)) != count:
        o.refuse(f"num_outputs is {said:,}, and it has {counted(count, 'result')}")
    if o.opset >= 18 and (sizes is None and not o.has(1)) != ("num_outputs" in o.node.attributes):
        o.refuse("ONNX has the sizes of its parts, or num_outputs, from opset 18 on")
    if sizes is None and not o.has(1) and o.opset < 18 and size % count:
        o.misfit(f"{counted(count, 'part')} of one size, of an axis of {size:,}")
    if sizes is not None and (sum(sizes) != size or len(sizes) != count):
        o.misfit(f"{counted(count, 'part')} of the sizes {shortened(list(sizes))}, of an axis of {size:,}")


def _slice(o: Operands) -> None:
    named = {name: o.node.attributes[name] for name in ("starts", "ends", "axes") if name in o.node.attributes}
    counts = {len(numbers) for numbers in named.values()} if named else {math.prod(o.shape(index)) for index in range(1, 5) if o.has(index)}
    if len(counts) > 1:
        o.refuse("its starts, ends, axes and steps are lists of different lengths")
    if not named and not o.has(2):
        o.refuse("it has no ends")
    if counts and max(counts) > len(o.shape(0)):
        o.refuse(f"it cuts {counted(max(counts), 'axis', 'axes')} of {list(o.shape(0))}")


def _triangle(o: Operands) -> None:
    if len(o.shape(0)) < 2:
        o.misfit(f"a triangle of {list(o.shape(0))}, where ONNX has matrices")


def _of_channels(*operands: int) -> Fit:
    """Operands that have one number for each channel, the second axis of operand 1."""

    def fit(o: Operands) -> None:
        shape = o.shape(0)
        if not o.node.attributes.get("spatial", 1):  # one number for each value of an item
            return
        channels = shape[1] if len(shape) > 1 else 1
        for index in operands:
            if o.shape(index) != (channels,):
                found = o.shape(index)
                o.misfit(
                    f"operand {index + 1} has the shape {list(found)}, and {list(shape)} {counted(channels, 'channel')}", (found, channels)
                )

    return fit


def _group_norm(o: Operands) -> None:
    shape, groups = o.shape(0), o.node.attributes["num_groups"]
    if len(shape) < 2 or shape[1] % groups:
        o.misfit(f"{counted(groups, 'group')} of the channels of {list(shape)}")
    for index in (1, 2):
        if o.shape(index) != (shape[1] if o.opset >= 21 else groups,):
            o.misfit(f"operand {index + 1} has the shape {list(o.shape(index))}, and {list(shape)} {counted(shape[1], 'channel')}")


def _layer_norm(o: Operands) -> None:
    for index in range(1, 3):
        if o.has(index):
            _require_within(o, index, o.shape(0), f"operand {index + 1}")


def _local_norm(o: Operands) -> None:
    size = o.node.attributes["size"]
    if size % 2 == 0:
        o.refuse(f"size is {size}, and ONNX has an odd number there")


def _scales(o: Operands) -> None:
    """One scale, or one for each place of an axis."""
    shape, scales = o.shape(0), o.shape(1)
    if o.has(2) and math.prod(o.shape(2)) != math.prod(scales):
        o.refuse(f"zero points of the shape {list(o.shape(2))}, and scales of the shape {list(scales)}: ONNX has as many of both")
    if scales in ((), (1,)) or o.node.attributes.get("block_size", 0):
        return
    axis = normal(o.node.attributes.get("axis", 1), len(shape))
    if scales != shape[axis : axis + 1]:
        o.misfit(f"scales of the shape {list(scales)} along axis {axis} of {list(shape)}", (scales, shape[axis]))


def _einsum(o: Operands) -> None:
    equation = o.node.attributes["equation"]
    given, _, result = equation.replace(" ", "").partition("->")
    words = given.split(",")
    if len(words) != len(o.values):
        o.refuse(f"the equation {shortened(equation)} has {counted(len(words), 'operand')}, and the node {len(o.values)}")
    if not {*result.replace("...", "")} <= {*given}:
        o.refuse(f"the equation {shortened(equation)} has letters in its result that stand in no operand")
    sizes: dict[str, set[int]] = {}
    for index, word in enumerate(words):
        before, dots, after = word.partition("...")
        shape = o.shape(index)
        if len(before + after) > len(shape) or (not dots and len(before) < len(shape)):
            o.misfit(f"the equation {shortened(equation)} names axes of operand {index + 1} that {list(shape)} hasn't, or too few")
        for letter, size in (*zip(before, shape, strict=False), *zip(after[::-1], shape[::-1], strict=False)):
            sizes.setdefault(letter, set()).add(size)
    if apart := next((letter for letter, found in sizes.items() if len(found - {1}) > 1), ""):
        o.misfit(f"the axes {apart} of the equation {shortened(equation)} have the sizes {sorted(sizes[apart])}")


ALIKE = "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where Xor"
"""Operators of as many operands as they like, or two, that are repeated to one shape."""
FITS: Mapping[str, Fit] = dict.fromkeys(ALIKE.split(), _one_shape) | {
    "AveragePool": _pool,
    "BatchNormalization": _of_channels(1, 2, 3, 4),
    "Concat": _concat,
    "Conv": _conv(1, 2),
    "ConvInteger": _conv(1, None),
    "ConvTranspose": _conv(1, 2, transposed=True),
    "DepthToSpace": _blocks(lambda shape: shape[1:2], 2),
    "DequantizeLinear": _scales,
    "Einsum": _einsum,
    "Expand": _expand,
    "Gemm": _gemm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _of_channels(1, 2),
    "LRN": _local_norm,
    "LayerNormalization": _layer_norm,
    "MatMul": _product(1),
    "MatMulInteger": _product(1),
    "MaxPool": _pool,
    "PRelu": _slope,
    "QLinearConv": _conv(3, 8),
    "QLinearMatMul": _product(3),
    "QuantizeLinear": _scales,
    "Reshape": _reshape,
    "Slice": _slice,
    "SpaceToDepth": _blocks(lambda shape: shape[2:], 1),
    "Split": _split,
    "Squeeze": _squeeze,
    "Trilu": _triangle,
    "Unsqueeze": _unsqueeze,
}
"""The checks by operator."""
