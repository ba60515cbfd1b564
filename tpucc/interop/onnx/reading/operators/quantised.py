"""Quantised networks: QuantizeLinear and DequantizeLinear, and operators on integers.

A quantised tensor is an f32 one here whose values lie on a grid: `dequantize(quantize(x))`. So an operator on integers is the operator on
real values between such pairs, and the compiler makes integers of them again, with the file's scales. Unsigned integers are signed ones
with a zero point that is smaller by 128.
"""

from __future__ import annotations

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, as_tensor, normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import BITS, Grid, Static, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import Unsupported, named, require
from tpucc.interop.onnx.reading.files.tensors import TYPES
from tpucc.interop.onnx.reading.operators import convolutions, products
from tpucc.interop.onnx.reading.operators.convolutions import WindowAttributes
from tpucc.interop.onnx.reading.operators.rows import Fact, Positive, operator
from tpucc.interop.onnx.scales import largest_weights
from tpucc.numerics import WEIGHT_MAX, AnyArray

AXES, INTEGERS, REAL = Fact.AXES, Fact.INTEGERS, Fact.REAL
UNKNOWN = "integers have a scale from QuantizeLinear, or from the first operator that reads them, and it is a constant of the file"
FARTHEST = 1e9
"""How often one scale of the same integers may be another one: what is between them stays within float32."""
SMALLEST = float(np.finfo(np.float32).tiny)
"""The smallest scale that integers have here."""
ALWAYS_ZERO = (
    "a quantiser writes such a scale where what it measured is always 0: measure with other examples, or leave these values in float32"
)
INFINITE = (
    "its quantiser saw an infinite value or NaN there. Let the network mask by -30 in the place of -inf, and quantise it again; or leave "
    "out the nodes that add the mask and take the softmax of it, by nodes_to_exclude of quantize_static"
)


def require_usable(scale: AnyArray, name: str) -> None:
    """Raises `Unsupported` for scales that values can't have, though ONNX allows any number: infinite ones, NaN, and 0."""
    if (wrong := scale[~np.isfinite(scale)]).size:
        raise Unsupported(f"the scale {named(name)} is {wrong.flat[0]}", INFINITE)
    if scale.size == 1 and float(scale.reshape(())) < SMALLEST:
        raise Unsupported(
            f"the scale {named(name)} is {float(scale.reshape(())):g}, and the smallest one here is {SMALLEST:g}", ALWAYS_ZERO
        )


def _number(array: AnyArray, what: str) -> float:
    if array.size != 1:
        raise Unsupported(f"{what} is no single number", "one number for the whole tensor is read")
    return float(array.reshape(()))


def _grid(scale: AnyArray, zero: AnyArray | None, name: str, type_: str) -> Grid:
    """The grid that a scale and a zero point say, which must be one for the whole tensor. `name` is that of the scale."""
    point = np.zeros((), type_) if zero is None else zero
    require(scale.dtype.kind == "f")
    require_usable(np.asarray(_number(scale, "the scale")), name)
    if point.size != 1:
        raise Unsupported(f"zero points of the shape {list(point.shape)}", "values have one scale and one zero point")
    if point.dtype.name not in BITS:
        raise Unsupported(f"values of the type {point.dtype.name}", f"there are {', '.join(BITS)}")
    return Grid.of(scale, point)


def on_grid(net: Network, t: Tensor, grid: Grid) -> Tensor:
    """The tensor's values on a grid."""
    return t if t.kind == grid else Tensor(net.on(t.node, grid), t.axes, grid)


def _require_scales(x: Value, scale: AnyArray, zero: AnyArray | None, axis: int, block_size: int) -> None:
    """Raises `Misfit` for scales that are neither one nor one for each place of an axis."""
    scales = scale.shape
    require(zero is None or zero.shape in (scales, (), (1,)))
    if block_size:
        raise Unsupported("blocks with scales of their own", "quantise it with one scale for each tensor, or for each column of a weight")
    require(scales in ((), (1,)) or scales == x.shape[normal(axis, len(x.shape)) :][:1])


@operator("QuantizeLinear", "com.microsoft.QuantizeLinear", AXES, INTEGERS, ignored="precision saturate")
def quantize(
    c: Call, x: Value, scale: AnyArray, zero: AnyArray | None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Result:
    _require_scales(x, scale, zero, axis, block_size)
    given = TYPES[output_dtype].name if output_dtype in TYPES else "uint8"
    require(not output_dtype or zero is None or zero.dtype.name == given)
    require(isinstance(x, Static) or not isinstance(x.kind, Grid))
    if not isinstance(x, Static):
        return on_grid(c.net, x, _grid(scale, zero, c.node.inputs[1], given))
    zeros = np.zeros((), given) if zero is None else zero
    limits = np.iinfo(zeros.dtype)
    place = normal(axis, x.array.ndim) if scale.size > 1 else 0
    rounded = np.rint(x.array.astype(np.float32) / _along(scale, x.array, place)) + _along(zeros, x.array, place).astype(np.float32)
    return Static(np.clip(rounded, limits.min, limits.max).astype(zeros.dtype), x.name)


@operator("DequantizeLinear", "com.microsoft.DequantizeLinear", AXES, INTEGERS, REAL, ignored="output_dtype")
def dequantize(c: Call, x: Value, scale: AnyArray, zero: AnyArray | None, *, axis: int = 1, block_size: int = 0) -> Result:
    _require_scales(x, scale, zero, axis, block_size)
    if isinstance(x, Static):
        return _real_values(c.net, x, scale, zero, axis)
    if x.kind in ("int", "whole"):
        unit, point = _number(scale, "the scale"), 0.0 if zero is None else _number(zero, "the zero point")
        return c.net.affine(Tensor(x.node, x.axes), unit, -point * unit)
    if not isinstance(x.kind, Grid):
        raise Unsupported("an operand that isn't quantised", UNKNOWN)
    made = integers_read(c.net, x, _grid(scale, zero, c.node.inputs[1], x.kind.type))
    return Tensor(made.node, made.axes)


def _along(array: AnyArray, of: AnyArray, axis: int) -> AnyArray:
    """A scale or a zero point, one or one for each place of an axis, beside a tensor."""
    return array.reshape(()) if array.size == 1 else array.reshape(*(size if index == axis else 1 for index, size in enumerate(of.shape)))


def _real_values(net: Network, x: Static, scale: AnyArray, zero: AnyArray | None, given: int) -> Static:
    """Integers of the file as real values, which remember one scale; columns whose largest integer is 127 give their scale again."""
    integers, name = x.array, x.name.removesuffix("_quantized")

    require(integers.dtype.kind in "iu" and scale.dtype.kind == "f")
    scale = scale.astype(np.float32)
    if not np.isfinite(scale).all():
        require_usable(scale, f"of {x.name}")
    axis = normal(given, integers.ndim) if scale.size > 1 else 0
    offset = np.zeros((), integers.dtype) if zero is None else zero
    centred = integers.astype(np.int64) - _along(offset.astype(np.int64), integers, axis)
    values = centred.astype(np.float32) * _along(scale, integers, axis)
    if integers.ndim > 1 and integers.dtype.name in ("int8", "uint8"):
        by_column = scale.ndim == 1 and scale.size == integers.shape[normal(given, integers.ndim)]
        largest = np.abs(centred).max(axis=tuple(other for other in range(integers.ndim) if scale.size == 1 or other != axis))
        if (scale == scale.flat[0]).all() and (offset == offset.flat[0]).all() and not (largest == WEIGHT_MAX).all():
            scale, offset = scale.flat[0], offset.flat[0]  # one for all columns, which a source can say
        if scale.size == 1 and float(scale.reshape(())) < SMALLEST:
            net.note(f"{{}}, whose scale is {float(scale.reshape(())):g}, is quantised anew", name)
        elif scale.size == 1 and not (by_column and (largest == WEIGHT_MAX).all()):
            net.grids[name] = Grid.of(scale, offset)
            if net.grids[name].zero_point:
                net.note("{}, whose zero point isn't 0, is quantised anew where it is a weight of a layer", name)
            elif (centred < -WEIGHT_MAX).any():
                net.note(f"The integers {-WEIGHT_MAX - 1} of {{}} are {-WEIGHT_MAX} here where they are weights of a layer", name)
        elif (largest == WEIGHT_MAX).all():
            exact = largest_weights(scale.reshape(-1))
            values = np.where(np.abs(centred) == WEIGHT_MAX, np.sign(centred) * _along(exact, integers, axis), values).astype(np.float32)
        else:
            net.note(f"Columns of {{}} whose largest integer isn't {WEIGHT_MAX} are quantised anew", name)
    return Static(values, name)


def integers_read(net: Network, x: Tensor, grid: Grid) -> Tensor:
    """The same integers by another scale and zero point: n stays n, on another grid of real values."""
    if not isinstance(x.kind, Grid) or grid == x.kind:
        return x
    require((grid.bits, grid.shift) == (x.kind.bits, x.kind.shift))
    ratio = grid.scale / x.kind.scale
    if not 1 / FARTHEST <= ratio <= FARTHEST:
        raise Unsupported(f"the scale {grid.scale:g} of integers that have the scale {x.kind.scale:g} elsewhere", "no network needs both")
    made = net.affine(Tensor(x.node, x.axes), ratio, (x.kind.zero_point - grid.zero_point) * grid.scale)
    return on_grid(net, made, grid)


def table_of(net: Network, table: Static, grid: Grid) -> Static:
    """A table of integers of the file as the real values that a grid says."""
    return _real_values(net, table, np.array(grid.scale, np.float32), np.array(grid.zero_point + grid.shift, table.array.dtype), 0)


@operator("DynamicQuantizeLinear", AXES, INTEGERS)
def measured(c: Call, x: Tensor) -> Result:
    """The scale of each run's own values: here calibration finds one, and what follows is computed with real values."""
    c.net.note("What the file quantises anew in each run is quantised here by calibration")
    names = (*c.node.outputs, "", "")
    return Tensor(x.node, x.axes), Static(np.ones((), np.float32), names[1]), Static(np.zeros((), np.uint8), names[2])


def _integer_product(x: Tensor, w: Value, x_zero: AnyArray | None, w_zero: AnyArray | None) -> tuple[Static, float]:
    """The weights of a product of integers as real values, and what the product of the real values is multiplied by: the sums of products
    of integers are those of real values divided by the scale of the first. Integers that the file has measured are the real values here."""
    grid = x.kind if isinstance(x.kind, Grid) else None
    if not isinstance(w, Static) or (grid is None and x.kind != "float"):
        raise Unsupported("factors that aren't a quantised tensor and a constant", "weights are constants of the file")
    own = 0 if x_zero is None else int(_number(x_zero, "the zero point"))
    if own != (0 if grid is None else grid.zero_point + grid.shift):
        raise Unsupported(
            "integers with another zero point than that of their QuantizeLinear", "both read one constant in what quantisers write"
        )
    zero = np.zeros((), np.float32) if w_zero is None else w_zero.astype(np.float32)
    if zero.size > 1:
        raise Unsupported("zero points for each column", "weights are symmetric, or have one zero point")
    centred = Static(w.array.astype(np.float32) - zero.reshape(()), w.name.removesuffix("_quantized"))
    return centred, 1.0 if grid is None else 1 / grid.scale


@operator("MatMulInteger", INTEGERS)
def integer_product(c: Call, x: Tensor, w: Value, x_zero: AnyArray | None, w_zero: AnyArray | None) -> Result:
    products.require_inner(x.shape, w.shape)
    factor, share = _integer_product(x, w, x_zero, w_zero)
    return c.net.affine(products.product(c.net, Tensor(x.node, x.axes), factor), share)


@operator("ConvInteger", Fact.IMAGES, INTEGERS)
def integer_conv(
    c: Call,
    x: Tensor,
    w: Value,
    x_zero: AnyArray | None,
    w_zero: AnyArray | None,
    *,
    group: Positive = 1,
    windows: WindowAttributes,
) -> Result:
    convolutions.require_channels(x, w, None, group, windows.kernel_shape)
    factor, share = _integer_product(x, w, x_zero, w_zero)
    made = convolutions.conv(c, Tensor(x.node, x.axes), factor, None, group=group, windows=windows)
    return c.net.affine(as_tensor(made), share)
