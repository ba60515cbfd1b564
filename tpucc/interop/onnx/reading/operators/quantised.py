"""Quantised networks: QuantizeLinear and DequantizeLinear, and operators on integers.

A quantised tensor is an f32 one here whose values lie on a grid: `dequantize(quantize(x))`. So an operator on integers is the operator on
real values between such pairs, and the compiler makes integers of them again, with the file's scales. Unsigned integers are signed ones
with a zero point that is smaller by 128.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, as_tensor, known, normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import BITS, Grid, Static, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import Unsupported, named, require
from tpucc.interop.onnx.reading.files.tensors import TYPES
from tpucc.interop.onnx.reading.operators import convolutions, elements, products, reductions, shapes
from tpucc.interop.onnx.reading.operators.convolutions import WindowAttributes
from tpucc.interop.onnx.reading.operators.rows import Fact, Joined, Positive, operator
from tpucc.interop.onnx.scales import largest_weights
from tpucc.numerics import WEIGHT_MAX, AnyArray

AXES, REAL = Fact.AXES, Fact.REAL
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


def _number(value: Value, what: str) -> float:
    array = known(value, what)
    if array.size != 1:
        raise Unsupported(f"{what} is no single number", "one number for the whole tensor is read")
    return float(array.reshape(()))


def grid_of(scale: Value, zero: Value | None, name: str, type_: str = "uint8") -> Grid:
    """The grid that a scale and a zero point say; both must be known, and one for the whole tensor. `name` is that of the scale."""
    require(known(scale, "the scale").dtype.kind == "f")
    size = _number(scale, "the scale")
    require_usable(np.asarray(size), name)
    array = None if zero is None else known(zero, "the zero point")
    if array is not None and array.size != 1:
        raise Unsupported(f"zero points of the shape {list(array.shape)}", "values have one scale and one zero point")
    found = array.dtype.name if array is not None else type_
    if found not in BITS:
        raise Unsupported(f"values of the type {found}", f"there are {', '.join(BITS)}")
    bits, less = BITS[found]
    return Grid(size, (int(array.reshape(())) if array is not None else 0) - less, bits, less)


@dataclass(frozen=True)
class Scale(Joined):
    """A scale and its zero point, which may be missing. `name` is the file's name of the scale."""

    width = 2
    scale: Value
    zero: Value | None
    name: str

    @classmethod
    def of(cls, call: Call, index: int) -> Self:
        zero = call.value(index + 1) if call.has(index + 1) else None
        return cls(call.value(index), zero, call.node.inputs[index])

    @property
    def sizes(self) -> AnyArray:
        return known(self.scale, "the scale")

    @property
    def zeros(self) -> AnyArray | None:
        return None if self.zero is None else known(self.zero, "the zero point")

    def grid(self, type_: str = "uint8") -> Grid:
        """The grid of integers, of a type where there is no zero point."""
        return grid_of(self.scale, self.zero, self.name, type_)

    def put(self, net: Network, made: Result, type_: str = "uint8") -> Tensor:
        """A result on the grid."""
        return on_grid(net, as_tensor(made), self.grid(type_))


@dataclass(frozen=True)
class Quantised(Joined):
    """Integers with their scale and zero point."""

    width = 3
    net: Network
    value: Value
    scale: Scale

    @classmethod
    def of(cls, call: Call, index: int) -> Self:
        return cls(call.net, call.value(index), Scale.of(call, index + 1))

    @property
    def type(self) -> str:
        """The type of the integers, which is the result's, too, where no zero point says one."""
        if isinstance(self.value, Static):
            return self.value.array.dtype.name
        return self.value.kind.type if isinstance(self.value.kind, Grid) else "uint8"

    @property
    def real(self) -> Value:
        """The real values."""
        return self.known() if isinstance(self.value, Static) else real_of(self.net, self.value, self.scale)

    @property
    def tensor(self) -> Tensor:
        """The real values, as a tensor."""
        return self.net.tensor(self.real)

    def known(self, axis: int = 0) -> Static:
        """The real values of a constant, which may have a scale for each place of an axis."""
        if not isinstance(self.value, Static):
            raise Unsupported("its second factor is computed", "weights are constants")
        return _real_values(self.net, self.value, self.scale.sizes, self.scale.zeros, axis)


def on_grid(net: Network, t: Tensor, grid: Grid) -> Tensor:
    """The tensor's values on a grid."""
    return t if t.kind == grid else Tensor(net.on(t.node, grid), t.axes, grid)


def _require_scales(x: Value, by: Scale, axis: int, block_size: int) -> None:
    """Raises `Misfit` for scales that are neither one nor one for each place of an axis."""
    scales = by.scale.shape
    require(by.zero is None or by.zero.shape in (scales, (), (1,)))
    if block_size:
        raise Unsupported("blocks with scales of their own", "quantise it with one scale for each tensor, or for each column of a weight")
    require(scales in ((), (1,)) or scales == x.shape[normal(axis, len(x.shape)) :][:1])


@operator("QuantizeLinear", "com.microsoft.QuantizeLinear", AXES, ignored="precision saturate")
def quantize(c: Call, x: Value, by: Scale, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0) -> Result:
    _require_scales(x, by, axis, block_size)
    given = TYPES[output_dtype].name if output_dtype in TYPES else "uint8"
    require(not output_dtype or not isinstance(by.zero, Static) or by.zero.array.dtype.name == given)
    require(isinstance(x, Static) or not isinstance(x.kind, Grid))
    if not isinstance(x, Static):
        return on_grid(c.net, x, by.grid(given))
    sizes, zeros = by.sizes, np.zeros((), given) if by.zeros is None else by.zeros
    limits = np.iinfo(zeros.dtype)
    place = normal(axis, x.array.ndim) if sizes.size > 1 else 0
    rounded = np.rint(x.array.astype(np.float32) / _along(sizes, x.array, place)) + _along(zeros, x.array, place).astype(np.float32)
    return Static(np.clip(rounded, limits.min, limits.max).astype(zeros.dtype), x.name)


@operator("DequantizeLinear", "com.microsoft.DequantizeLinear", AXES, REAL, ignored="output_dtype")
def dequantize(c: Call, x: Value, by: Scale, *, axis: int = 1, block_size: int = 0) -> Result:
    _require_scales(x, by, axis, block_size)
    if isinstance(x, Static):
        return _real_values(c.net, x, by.sizes, by.zeros, axis)
    if x.kind in ("int", "whole"):
        unit, point = _number(by.scale, "the scale"), 0.0 if by.zero is None else _number(by.zero, "the zero point")
        return c.net.affine(Tensor(x.node, x.axes), unit, -point * unit)
    return real_of(c.net, x, by)


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
        largest = np.abs(centred).max(axis=tuple(range(integers.ndim)) if scale.size == 1 else _others(integers.ndim, axis))
        if (scale == scale.flat[0]).all() and (offset == offset.flat[0]).all() and not (largest == WEIGHT_MAX).all():
            scale, offset = scale.flat[0], offset.flat[0]  # one for all columns, which a source can say
        if scale.size == 1 and float(scale.reshape(())) < SMALLEST:
            net.note(f"{{}}, whose scale is {float(scale.reshape(())):g}, is quantised anew", name)
        elif scale.size == 1 and not (by_column and (largest == WEIGHT_MAX).all()):
            bits, less = BITS[integers.dtype.name]
            net.grids[name] = Grid(float(scale.reshape(())), int(offset.reshape(())) - less, bits, less)
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


def _others(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(index for index in range(rank) if index != axis)


def real_of(net: Network, x: Tensor, by: Scale) -> Tensor:
    """The real values of integers by the scale and the zero point that an operator says of them. If another node has said others of the
    same integers, the real values here lie on that one's grid, and are put on this one's: n stays n."""
    if not isinstance(x.kind, Grid):
        raise Unsupported("an operand that isn't quantised", UNKNOWN)
    if x.kind.measured:
        raise Unsupported("integers whose scale the file finds anew in each run", "MatMulInteger and ConvInteger of them are read")
    made = integers_read(net, x, by.grid(x.kind.type))
    return Tensor(made.node, made.axes)


def integers_read(net: Network, x: Tensor, grid: Grid) -> Tensor:
    """The same integers by another scale and zero point."""
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


def _bias(x: Quantised, w: Quantised, bias: Value | None, factor: float = 1.0) -> Static | None:
    """A bias as real values: its scale is the product of those of both factors. None where there is none."""
    if bias is None:
        return None
    scale = np.float32(_number(x.scale.scale, "the scale")) * w.scale.sizes.astype(np.float32) * np.float32(factor)
    name = bias.name if isinstance(bias, Static) else ""
    return _real_values(x.net, Static(known(bias, "the bias"), name), scale, None, 0)


@operator("QLinearConv", Fact.IMAGES)
def linear_conv(
    c: Call, x: Quantised, w: Quantised, y: Scale, bias: Value | None, *, group: Positive = 1, windows: WindowAttributes
) -> Result:
    return y.put(c.net, convolutions.conv(c, x.tensor, w.known(), _bias(x, w, bias), group=group, windows=windows))


@operator("QLinearMatMul")
def linear_product(c: Call, a: Quantised, b: Quantised, y: Scale) -> Result:
    products.require_inner(a.value.shape, b.value.shape)
    factor = b.real if isinstance(b.value, Tensor) else b.known(-1)
    return y.put(c.net, products.product(c.net, a.real, factor))


@operator("com.microsoft.QGemm")
def linear_gemm(
    c: Call,
    a: Quantised,
    b: Quantised,
    bias: Value | None,
    y: Scale | None,
    *,
    alpha: float = 1.0,
    transA: bool = False,
    transB: bool = False,
) -> Result:
    """Its result is real where no scale of it is given."""
    factor = b.known(0 if transB else -1)
    made = products.gemm(c, a.real, factor, _bias(a, b, bias, alpha), alpha=alpha, transA=transA, transB=transB)
    return made if y is None else y.put(c.net, made, a.type)


@operator("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def linear_of_two(c: Call, a: Quantised, b: Quantised, y: Scale) -> Result:
    return y.put(c.net, c.net.elementwise("add" if c.node.op == "QLinearAdd" else "mul", a.tensor, b.real), a.type)


@operator("com.microsoft.QLinearAveragePool")
def linear_average_pool(
    c: Call,
    x: Quantised,
    y: Scale,
    *,
    ceil_mode: bool = False,
    channels_last: bool = False,
    count_include_pad: bool = False,
    windows: WindowAttributes,
) -> Result:
    _require_channels_first(channels_last)
    made = convolutions.average_pool(c, x.tensor, ceil_mode=ceil_mode, count_include_pad=count_include_pad, windows=windows)
    return y.put(c.net, made, x.type)


def _require_channels_first(channels_last: bool) -> None:
    if channels_last:
        raise Unsupported("channels behind the pixels", "quantise the network with its channels first, as ONNX has them")


@operator("com.microsoft.QLinearGlobalAveragePool")
def linear_global_pool(c: Call, x: Quantised, y: Scale, *, channels_last: bool = False) -> Result:
    _require_channels_first(channels_last)
    return y.put(c.net, convolutions.global_pool(c, x.tensor, "mean"), x.type)


@operator("com.microsoft.QLinearLeakyRelu")
def linear_leaky_relu(c: Call, x: Quantised, y: Scale, *, alpha: float = 0.01) -> Result:
    return y.put(c.net, elements.leaky_relu(c, x.tensor, alpha=alpha), x.type)


@operator("com.microsoft.QLinearSigmoid")
def linear_sigmoid(c: Call, x: Quantised, y: Scale) -> Result:
    return y.put(c.net, c.net.map(x.tensor, "sigmoid"), x.type)


@operator("com.microsoft.QLinearSoftmax")
def linear_softmax(c: Call, x: Quantised, y: Scale, *, opset: int, axis: int | None = None) -> Result:
    return y.put(c.net, reductions.softmax_of(replace(c, opset=opset), x.tensor, axis=axis), x.type)


@operator("com.microsoft.QLinearConcat")
def linear_concat(c: Call, y: Scale, *values: Quantised, axis: int) -> Result:
    parts = [value.real for value in values]
    return y.put(c.net, shapes.joined(c.net, parts, normal(axis, len(parts[0].shape))), values[0].type)


@operator("com.microsoft.QLinearWhere")
def linear_where(c: Call, condition: Value, a: Quantised, b: Quantised, y: Scale) -> Result:
    return y.put(c.net, elements.chosen(c, condition, a.real, b.real), a.type)


@operator("DynamicQuantizeLinear", AXES)
def measured(c: Call, x: Tensor) -> Result:
    """The scale of each run's own values: here calibration finds one, and what follows is computed with real values."""
    c.net.note("What the file quantises anew in each run is quantised here by calibration")
    names = (*c.node.outputs, "", "")
    return (
        Tensor(x.node, x.axes, Grid(1.0, 0, 8, measured=True)),
        Static(np.ones((), np.float32), names[1]),
        Static(np.zeros((), np.uint8), names[2]),
    )


def _integer_product(x: Tensor, w: Value, x_zero: Value | None, w_zero: Value | None) -> tuple[Static, float]:
    """The weights of a product of integers as real values, and what the product of the real values is multiplied by: the sums of products
    of integers are those of real values divided by the scale of the first."""
    if not isinstance(w, Static) or not isinstance(x.kind, Grid):
        raise Unsupported("factors that aren't a quantised tensor and a constant", "weights are constants of the file")
    own = 0 if x_zero is None else int(_number(x_zero, "the zero point"))
    if not x.kind.measured and own - x.kind.shift != x.kind.zero_point:
        raise Unsupported(
            "integers with another zero point than that of their QuantizeLinear", "both read one constant in what quantisers write"
        )
    zero = np.zeros((), np.float32) if w_zero is None else known(w_zero, "the zero point").astype(np.float32)
    if zero.size > 1:
        raise Unsupported("zero points for each column", "weights are symmetric, or have one zero point")
    centred = Static(w.array.astype(np.float32) - zero.reshape(()), w.name.removesuffix("_quantized"))
    return centred, 1.0 if x.kind.measured else 1 / x.kind.scale


@operator("MatMulInteger")
def integer_product(c: Call, x: Tensor, w: Value, x_zero: Value | None, w_zero: Value | None) -> Result:
    products.require_inner(x.shape, w.shape)
    factor, share = _integer_product(x, w, x_zero, w_zero)
    return c.net.affine(products.product(c.net, Tensor(x.node, x.axes), factor), share)


@operator("ConvInteger", Fact.IMAGES)
def integer_conv(
    c: Call,
    x: Tensor,
    w: Value,
    x_zero: Value | None,
    w_zero: Value | None,
    *,
    group: Positive = 1,
    windows: WindowAttributes,
) -> Result:
    convolutions.require_channels(x, w, None, group, windows.kernel_shape)
    factor, share = _integer_product(x, w, x_zero, w_zero)
    made = convolutions.conv(c, Tensor(x.node, x.axes), factor, None, group=group, windows=windows)
    return c.net.affine(as_tensor(made), share)
