"""The ONNX forms of the device's layers: nodes with which ONNX Runtime computes the same integers, bit for bit.

Every step is one that is exact, or rounded as the device rounds:

- Products of int8 values and int8 weights: MatMulInteger, QLinearMatMul and QLinearConv. ONNX Runtime has exact kernels for signed values
  and weights on every processor; those for unsigned values saturate where there is no VNNI.
- Products of int16 values: ONNX has none. A matrix is multiplied in float64, which holds every accumulator; a convolution goes over the
  values' high and low bytes, each unsigned with unsigned weights, for which there are exact kernels too.
- Requantisation: QLinearMatMul and QLinearConv multiply the accumulator by `x_scale * w_scale / y_scale` in float32, as the device does by
  its multiplier. The file has the real scales where their quotient is the multiplier; otherwise the multiplier, and 1 for both others.
  Elsewhere it is written out, and QuantizeLinear with the scale 1 rounds, adds the zero point and saturates.
- Tables are Gather; sums of a window are float32 while all of them are below 2^24, and int32 over whole images.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import numpy as np

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.interop.onnx.scales import Use, real_scales
from tpucc.ir import Graph, Node
from tpucc.ir.dtypes import DEVICE_FORMATS, IntegerFormat
from tpucc.layers.kinds import (
    FUNCTIONS_OF_TWO,
    Conv,
    Fc,
    Layer,
    Move,
    MoveFunction,
    Pool,
    PoolFunction,
    Requantise,
    Sides,
    Vector,
    VectorFunction,
    epilogue_of,
    is_written,
)
from tpucc.numerics import EXACT, AnyArray, Float32, Int64
from tpucc.ops.axis import Axis
from tpucc.ops.onnx_form import Call, Form, Layout

BYTE = 256


def layer_form(node: Node, graph: Graph) -> Form:
    """The ONNX form of a layer of a graph."""
    layer = node.attributes
    assert isinstance(layer, Layer)
    match layer:
        case Fc(sources=count) if is_written(graph[node.operands[count]]):
            return Form(_fc_of_computed)
        case Fc():
            return Form(_fc, Layout.ANY if DEVICE_FORMATS[node.type.dtype].has_exact_tables else Layout.OWN)
        case Conv():
            return Form(_conv, Layout.IMAGES)
        case Pool():
            return Form(_pool, Layout.IMAGES)
        case Vector():
            return Form(_vector, Layout.ANY)
        case Move():
            return Form(_move, Layout.ANY)
        case _:
            assert_never(layer)


def _format(g: Call) -> IntegerFormat:
    return DEVICE_FORMATS[g.result.dtype]


def _known(g: Call, operand: int) -> AnyArray:
    """The array of an operand that is a constant of the layer."""
    value = g.values[operand]
    assert value is not None
    return value


def _fc(g: Call) -> str:
    """The bias is the device's, into which the zero points are folded: so the products are of the integers as they are."""
    if g.channels_first:
        return _fc_of_images(g)
    layer: Fc = g.attributes
    count, exact = layer.sources, _format(g).has_exact_tables
    bias, multiplier = (_known(g, 2 * count + index) for index in range(2))
    pairs = [(g.operands[index], _known(g, count + index), g.operands[count + index]) for index in range(count)]
    if exact and count == 1 and not _unfolded(g, bias, pairs[0][1]).any():
        return _qlinear_matmul(g, multiplier)
    if exact:
        sums = _added(g, [g.node("MatMulInteger", x, weights) for x, _, weights in pairs])
        sums = g.node("Cast", g.node("Add", sums, g.operands[2 * count]), to="f32")
    else:
        wide = [g.node("MatMul", g.node("Cast", x, to="f64"), g.node("Cast", weights, to="f64")) for x, _, weights in pairs]
        sums = g.node("Cast", g.node("Add", _added(g, wide), g.node("Cast", g.operands[2 * count], to="f64")), to="f32")
    return _requantised(g, layer.epilogue, g.node("Mul", sums, g.operands[2 * count + 1]))


def _fc_of_computed(g: Call) -> str:
    """Rows times matrices that the host computes, for each item of the batch, in 8 bits. Both have the zero point 0: nothing is folded."""
    layer: Fc = g.attributes
    x, weights, bias, multiplier = g.operands[:4]
    sums = g.node("Cast", g.node("Add", g.node("MatMulInteger", x, weights), bias), to="f32")
    return _requantised(g, layer.epilogue, g.node("Mul", sums, multiplier))


def _fc_of_images(g: Call) -> str:
    """A convolution of single pixels, of all sources side by side. Without padding the zero points of x may stay in the bias."""
    layer: Fc = g.attributes
    count = layer.sources
    x = g.node("Concat", *g.operands[:count], axis=1) if count > 1 else g.operands[0]
    stacked = np.concatenate([_known(g, count + index) for index in range(count)])
    bias, multiplier = (_known(g, 2 * count + index) for index in range(2))
    turned = stacked.T.reshape(*stacked.T.shape, 1, 1)
    kernel = g.nodes.made_of(count, turned) if count == 1 else g.constant(turned, "weights")
    weights = (kernel, g.constant(multiplier, "w_scale"), g.constant(np.zeros(len(multiplier), np.int8), "w_zero"))
    ends = _parameters(g, "x", (1.0, 0)), _parameters(g, "y", (1.0, layer.epilogue.zero))
    made = g.node("QLinearConv", x, *ends[0], *weights, *ends[1], g.nodes.made_of(2 * count, bias), kernel_shape=[1, 1])
    return _ended(g, layer.epilogue, made)


def _added(g: Call, terms: list[str]) -> str:
    total, *rest = terms
    for term in rest:
        total = g.node("Add", total, term)
    return total


def _unfolded(g: Call, bias: AnyArray, weights: AnyArray) -> Int64:
    """The bias without the zero point of the first operand, which ONNX takes off each value. It fits int32 as the accumulators do."""
    held = g.types[0].quantisation
    assert held is not None
    unfolded: Int64 = bias.astype(np.int64) + held.zero_point * weights.reshape(-1, weights.shape[-1]).sum(axis=0, dtype=np.int64)
    return unfolded


def _qlinear_matmul(g: Call, multiplier: AnyArray) -> str:
    layer: Fc = g.attributes
    x, w, y = _qlinear_scales(g, layer.epilogue, multiplier)
    inputs = (
        g.operands[0],
        *_parameters(g, "x", x),
        g.operands[1],
        g.constant(w, "w_scale"),
        g.constant(np.zeros(len(w), np.int8), "w_zero"),
    )
    return _ended(g, layer.epilogue, g.node("QLinearMatMul", *inputs, *_parameters(g, "y", y)))


def _conv(g: Call) -> str:
    layer: Conv = g.attributes
    weights, bias, multiplier = (_known(g, operand) for operand in (1, 2, 3))
    if not _format(g).has_exact_tables:
        return _wide_conv(g, layer, bias, multiplier)
    x, w, y = _qlinear_scales(g, layer.epilogue, multiplier)
    kernel = (g.nodes.permuted(1, (3, 2, 0, 1)), g.constant(w, "w_scale"), g.constant(np.zeros(len(w), np.int8), "w_zero"))
    unfolded = g.nodes.made_of(2, _unfolded(g, bias, weights).astype(np.int32))
    inputs = (g.operands[0], *_parameters(g, "x", x), *kernel, *_parameters(g, "y", y), unfolded)
    return _ended(g, layer.epilogue, g.node("QLinearConv", *inputs, **_conv_attributes(layer, weights.shape)))


def _conv_attributes(layer: Conv, weights: tuple[int, ...]) -> dict[str, object]:
    windows = _windows(weights[:2], layer.stride, layer.sides)
    return windows | {"dilations": list(layer.dilation), "group": layer.groups}


def _windows(size: tuple[int, ...], stride: tuple[int, int], sides: Sides) -> dict[str, list[int]]:
    top, bottom, left, right = sides
    return {"kernel_shape": list(size), "strides": list(stride), "pads": [top, left, bottom, right]}


def _wide_conv(g: Call, layer: Conv, bias: AnyArray, multiplier: AnyArray) -> str:
    """256 times the convolution of the high bytes plus that of the low ones, int32. Bytes and weights are unsigned: see above. A zero point
    around the image is written out: ConvInteger's padding would be other bytes."""
    kernel = g.nodes.made_of(1, (_known(g, 1).transpose(3, 2, 0, 1).astype(np.int16) + 128).astype(np.uint8))
    shift, none = g.constant(np.asarray(128, np.uint8), "shift"), g.constant(np.asarray(0, np.uint8), "no_shift")
    values = g.node("Cast", g.operands[0], to="f32")
    if layer.outside and any(layer.sides):
        top, bottom, left, right = layer.sides
        values = g.node("Pad", values, g.integers((0, 0, top, left, 0, 0, bottom, right), "pads"), g.number(layer.outside, "outside"))
        layer = replace(layer, sides=(0, 0, 0, 0))
    attributes = _conv_attributes(layer, _known(g, 1).shape)
    high, low = _bytes(g, values)
    shifted = g.node("Cast", g.node("Add", high, g.number(128.0, "shift")), to="u8")
    above = g.node("ConvInteger", shifted, kernel, shift, shift, **attributes)
    below = g.node("ConvInteger", g.node("Cast", low, to="u8"), kernel, none, shift, **attributes)
    sums = g.node("Add", g.node("Mul", above, g.constant(np.asarray(BYTE, np.int32), "byte")), below)
    sums = g.node("Cast", g.node("Add", sums, g.nodes.made_of(2, bias.reshape(-1, 1, 1))), to="f32")
    return _requantised(g, layer.epilogue, g.node("Mul", sums, _by_channel(g, multiplier, "multiplier")))


def _bytes(g: Call, values: str) -> tuple[str, str]:
    """The high byte of int16 values that were cast to float32, -128…127, and the low one, 0…255; float32."""
    high = g.node("Floor", g.node("Mul", values, g.number(1 / BYTE, "byte")))
    return high, g.node("Sub", values, g.node("Mul", high, g.number(BYTE, "byte")))


def _by_channel(g: Call, values: AnyArray, role: str) -> str:
    """One value for each channel of an image [N, C, H, W]."""
    return g.constant(values.reshape(-1, 1, 1), role)


def _pool(g: Call) -> str:
    layer: Pool = g.attributes
    exact = _format(g).has_exact_tables
    if layer.function == PoolFunction.MAX:
        windows = _windows(layer.size, layer.stride, layer.sides)
        if exact:
            return g.node("MaxPool", *g.operands, **windows)
        return g.node("Cast", g.node("MaxPool", g.node("Cast", *g.operands, to="f32"), **windows), to=g.result.dtype)
    end = epilogue_of(layer)
    factors = np.float32(end.scales[0]) / _counts(layer, g.types[0].shape).astype(np.float32)
    return _requantised(g, end, g.node("Mul", _window_sums(g, layer, end.zeros[0]), g.constant(factors, "factors")))


def _counts(layer: Pool, x: tuple[int, ...]) -> AnyArray:
    """How many pixels of each window count: int64 [H', W']."""
    (top, bottom, left, right), counted = layer.sides, layer.counted
    height = Axis(x[1], layer.size[0], layer.stride[0], top, bottom, counted=counted[:2])
    width = Axis(x[2], layer.size[1], layer.stride[1], left, right, counted=counted[2:])
    return np.multiply.outer(height.pixels(), width.pixels())


def _window_sums(g: Call, layer: Pool, zero: int) -> str:
    """The sums of the values of each window less their zero point, float32 [N, C, H', W']."""
    _, height, width, channels = g.types[0].shape
    if layer.size == (height, width) and not any(layer.sides):
        values = g.node("Sub", g.node("Cast", *g.operands, to="i32"), g.constant(np.asarray(zero, np.int32), "zero"))
        return g.node("Cast", g.node("ReduceSum", values, g.integers((2, 3), "axes"), keepdims=1), to="f32")
    largest = layer.size[0] * layer.size[1] * (_format(g).high - _format(g).low)
    if largest >= EXACT:
        text = f"windows of {layer.size[0]}×{layer.size[1]} pixels have sums up to {largest:,}, which float32 doesn't hold exactly"
        raise UsageError(Diagnostic("E1022", f"an average has no ONNX form: {text}"))
    centred = g.node("Sub", g.node("Cast", *g.operands, to="f32"), g.number(zero, "zero"))
    kernel = g.constant(np.ones((channels, 1, *layer.size), np.float32), "kernel")
    return g.node("Conv", centred, kernel, group=channels, **_windows(layer.size, layer.stride, layer.sides))


def _vector(g: Call) -> str:
    """Steps of float32 in the order of the reference. DequantizeLinear would say less, and runtimes join it with what follows."""
    layer: Vector = g.attributes
    if layer.function == VectorFunction.TABLE:
        return _looked_up(g, g.operands[0])
    end = epilogue_of(layer)
    left, right = (
        g.node("Sub", g.node("Cast", x, to="f32"), g.number(zero, "zero")) for x, zero in zip(g.operands[:2], end.zeros, strict=True)
    )
    function = FUNCTIONS_OF_TWO[layer.function]
    if function.one_scale:
        return _requantised(g, end, g.node("Mul", g.node(function.onnx, left, right), g.number(end.scales[0], "scale")))
    left, right = (g.node("Mul", x, g.number(scale, "scale")) for x, scale in zip((left, right), end.scales, strict=True))
    return _requantised(g, end, g.node(function.onnx, left, right))


def _move(g: Call) -> str:
    layer: Move = g.attributes
    if layer.function == MoveFunction.CONCAT:
        return g.node("Concat", *g.operands, axis=g.axis(layer.axis))
    sides = g.integers([pair[end] for end in (0, 1) for pair in g.by_axis(layer.pads)], "pads")
    if _format(g).has_exact_tables:
        return g.node("Pad", *g.operands, sides, g.constant(np.asarray(layer.value, g.result.numpy), "value"))
    padded = g.node("Pad", g.node("Cast", *g.operands, to="f32"), sides, g.number(layer.value, "value"))  # which has no int16
    return g.node("Cast", padded, to=g.result.dtype)


def _requantised(g: Call, end: Requantise, real: str) -> str:
    """The end of a layer, from float32 values in units of the result: clamp, round, zero point, and the table if there is one."""
    of = _format(g)
    low, high = end.bounds(of)
    if (low, high) != (of.low, of.high):
        real = g.node("Clip", real, g.number(low - end.zero, "low"), g.number(high - end.zero, "high"))
    made = g.node("QuantizeLinear", real, *_parameters(g, "y", (1.0, end.zero)))
    return _looked_up(g, made) if end.table else made


def _ended(g: Call, end: Requantise, made: str) -> str:
    """The end of a layer, from its integers: the clamp and the table."""
    of = _format(g)
    low, high = end.bounds(of)
    if (low, high) != (of.low, of.high):
        made = g.node("Clip", made, *(g.constant(np.asarray(bound, of.numpy), role) for bound, role in ((low, "low"), (high, "high"))))
    return _looked_up(g, made) if end.table else made


def _looked_up(g: Call, values: str) -> str:
    """The entries of the table, which is the last operand: entry 0 is that of the lowest integer. Between the points of int16's tables, see
    `tpucc.numerics.interpolate`: every step is exact in float32."""
    of, table = _format(g), _known(g, len(g.operands) - 1)
    if of.has_exact_tables:
        places = g.node("Sub", g.node("Cast", values, to="i32"), g.constant(np.asarray(of.low, np.int32), "first"))
        return g.node("Gather", g.constant(table, "table"), places, axis=0)
    points = table.astype(np.float32)
    high, fraction = _bytes(g, g.node("Cast", values, to="f32"))
    places = g.node("Cast", g.node("Add", high, g.number(-of.low / of.table_step, "first")), to="i32")
    first, step = (g.node("Gather", g.constant(array, role), places) for array, role in ((points, "points"), (np.diff(points), "steps")))
    shares = g.node("Add", g.node("Mul", step, fraction), g.number(of.table_step / 2, "half"))
    rounded = g.node("Floor", g.node("Mul", shares, g.number(1 / of.table_step, "step")))
    return g.node("Cast", g.node("Add", first, rounded), to=g.result.dtype)


def _parameters(g: Call, name: str, held: tuple[float, int]) -> tuple[str, str]:
    """The scale and the zero point of a value, by its name in ONNX's documentation."""
    scale, zero = held
    return g.number(scale, f"{name}_scale"), g.constant(np.asarray(zero, g.result.numpy), f"{name}_zero")


def _qlinear_scales(g: Call, end: Requantise, multiplier: AnyArray) -> tuple[tuple[float, int], Float32, tuple[float, int]]:
    """Scale and zero point of x, the weights' scales [N], and scale and zero point of y: `x_scale * w_scale / y_scale` is the multiplier.

    They are the real ones where there are such weights' scales. Before a table the result has no scale of its own.
    """
    x, y = g.types[0].quantisation, g.result.quantisation
    assert x is not None
    assert y is not None
    scales = None if end.table else real_scales(Use(multiplier, np.float32(x.scale), np.float32(y.scale)))
    if scales is None:
        return (1.0, x.zero_point), multiplier, (1.0, end.zero)
    return (x.scale, x.zero_point), scales, (y.scale, end.zero)
