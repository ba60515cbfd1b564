"""Quantised networks: QuantizeLinear and DequantizeLinear, and operators on integers.

A quantised tensor is an f32 one here whose values lie on a grid: `dequantize(quantize(x))`. So an operator on integers is the operator on
real values between such pairs, and the compiler makes integers of them again, with the file's scales. Unsigned integers are signed ones
with a zero point that is smaller by 128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, Rule, normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.remarks import Remark
from tpucc.interop.onnx.reading.building.values import Grid, Static, Tensor, Value
from tpucc.interop.onnx.reading.checks.usable_scales import SMALLEST, require_finite, require_usable
from tpucc.interop.onnx.reading.files.problems import Damaged, Unsupported
from tpucc.interop.onnx.reading.rules import elements, products, reductions, shapes, windows
from tpucc.interop.onnx.scales import largest_weights
from tpucc.numerics import WEIGHT_MAX, AnyArray

BITS: Mapping[str, tuple[int, int]] = {"int8": (8, 0), "uint8": (8, 128), "int16": (16, 0), "uint16": (16, 32768)}
"""The bits of integers, and what is taken from unsigned ones."""
UNKNOWN = "integers have a scale from QuantizeLinear, or from the first operator that reads them, and it is a constant of the file"
FARTHEST = 1e9
"""How often one scale of the same integers may be another one: what is between them stays within float32."""
BY_NUMBER: Mapping[int, str] = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16"}


def _grid(c: Call, scale: int, zero: int, type_: str = "uint8") -> Grid:
    """The grid that a scale and a zero point say; both must be known, and one for the whole tensor."""
    size = c.number(scale, "the scale")
    require_usable(size, c.node.inputs[scale])
    point = c.value(zero).shape if c.has(zero) else ()
    array = c.array(zero, "the zero point") if c.has(zero) else None
    if array is not None and array.size != 1:
        raise Unsupported(f"zero points of the shape {list(point)}", "values have one scale and one zero point")
    name = array.dtype.name if array is not None else type_
    if name not in BITS:
        raise Unsupported(f"values of the type {name}", f"there are {', '.join(BITS)}")
    bits, less = BITS[name]
    return Grid(size, (int(array.reshape(())) if array is not None else 0) - less, bits, less)


def _on(c: Call, t: Tensor, grid: Grid) -> Tensor:
    """The tensor's values on a grid."""
    return t if t.kind == grid else on_grid(c.network, t, grid)


def on_grid(net: Network, t: Tensor, grid: Grid) -> Tensor:
    """The tensor's values on a grid."""
    return Tensor(net.on(t.node, grid), t.axes, grid)


def _quantize(c: Call) -> Result:
    if c.attribute("block_size", 0):
        raise Unsupported("blocks with scales of their own", "quantise it with one scale for each tensor, or for each column of a weight")
    given = BY_NUMBER.get(c.attribute("output_dtype", 0), "uint8")
    if isinstance(x := c.value(0), Static):
        scale = c.array(1, "the scale")
        zero = c.array(2, "the zero point") if c.has(2) else np.zeros((), given)
        limits = np.iinfo(zero.dtype)
        axis = normal(int(c.attribute("axis", 1)), x.array.ndim) if scale.size > 1 else 0
        rounded = np.rint(x.array.astype(np.float32) / _along(scale, x.array, axis)) + _along(zero, x.array, axis).astype(np.float32)
        return Static(np.clip(rounded, limits.min, limits.max).astype(zero.dtype), x.name)
    return _on(c, c.tensor(0), _grid(c, 1, 2, given))


def _dequantize(c: Call) -> Result:
    if c.attribute("block_size", 0):
        raise Unsupported("blocks with scales of their own", "quantise it with one scale for each tensor, or for each column of a weight")
    x = c.value(0)
    if isinstance(x, Static):
        zero = c.array(2, "the zero point") if c.has(2) else None
        return _real_values(c.network, x, c.array(1, "the scale"), zero, int(c.attribute("axis", 1)))
    if x.kind in ("int", "whole"):
        unit, point = c.number(1, "the scale"), c.number(2, "the zero point") if c.has(2) else 0.0
        return c.network.affine(Tensor(x.node, x.axes), unit, -point * unit)
    return _real_of(c, x, 0)


def _along(array: AnyArray, of: AnyArray, axis: int) -> AnyArray:
    """A scale or a zero point, one or one for each place of an axis, beside a tensor."""
    return array.reshape(()) if array.size == 1 else array.reshape(*(size if index == axis else 1 for index, size in enumerate(of.shape)))


def _real_values(net: Network, x: Static, scale: AnyArray, zero: AnyArray | None, given: int) -> Static:
    """Integers of the file as real values, which remember one scale; columns whose largest integer is 127 give their scale again."""
    integers, name = x.array, x.name if x.name in net.said else x.name.removesuffix("_quantized")

    def remark(before: str, after: str) -> None:
        net.notes[Remark(before, name, x.name, after)] = None

    scale = scale.astype(np.float32)
    require_finite(scale, f"of {x.name}")
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
            remark("", f", whose scale is {float(scale.reshape(())):g}, is quantised anew")
        elif scale.size == 1 and not (by_column and (largest == WEIGHT_MAX).all()):
            bits, less = BITS[integers.dtype.name]
            net.grids[name] = Grid(float(scale.reshape(())), int(offset.reshape(())) - less, bits, less)
            if net.grids[name].zero_point:
                remark("", ", whose zero point isn't 0, is quantised anew where it is a weight of a layer")
            elif (centred < -WEIGHT_MAX).any():
                remark(f"The integers {-WEIGHT_MAX - 1} of ", f" are {-WEIGHT_MAX} here where they are weights of a layer")
        elif (largest == WEIGHT_MAX).all():
            exact = largest_weights(scale.reshape(-1))
            values = np.where(np.abs(centred) == WEIGHT_MAX, np.sign(centred) * _along(exact, integers, axis), values).astype(np.float32)
        else:
            remark("Columns of ", f" whose largest integer isn't {WEIGHT_MAX} are quantised anew")
    return Static(values, name)


def _others(rank: int, axis: int) -> tuple[int, ...]:
    return tuple(index for index in range(rank) if index != axis)


def _weight(c: Call, index: int, axis: int) -> Static:
    """A constant of an operator on integers, with its scale and zero point in the next two operands, as real values."""
    value = c.value(index)
    if not isinstance(value, Static):
        raise Unsupported("its second factor is computed", "weights are constants")
    return _known(c, value, index, axis)


def _known(c: Call, x: Static, index: int, axis: int = 0) -> Static:
    """The real values of a constant operand, whose scale and zero point are the next two."""
    zero = c.array(index + 2, "the zero point") if c.has(index + 2) else None
    return _real_values(c.network, x, c.array(index + 1, "the scale"), zero, axis)


def _called(c: Call, rule: Rule, inputs: Sequence[Value | None], **attributes: object) -> Tensor:
    """The result of another operator's rule."""
    node = replace(c.node, attributes={**c.node.attributes, **attributes}, outputs=c.node.outputs[:1])
    made = rule(replace(c, node=node, inputs=inputs))
    assert isinstance(made, Tensor)
    return made


def _real(c: Call, index: int) -> Value:
    """A quantised operand, whose scale and zero point are the next two, as real values."""
    x = c.value(index)
    return _known(c, x, index) if isinstance(x, Static) else _real_of(c, x, index)


def _real_of(c: Call, x: Tensor, index: int) -> Tensor:
    """The real values of integers by the scale and the zero point that an operator says of its operand `index`. If another node has said
    others of the same integers, the real values here lie on that one's grid, and are put on this one's: n stays n."""
    if not isinstance(x.kind, Grid):
        raise Unsupported("an operand that isn't quantised", UNKNOWN)
    if x.kind.measured:
        raise Unsupported("integers whose scale the file finds anew in each run", "MatMulInteger and ConvInteger of them are read")
    own = _grid(c, index + 1, index + 2, _type_name(x.kind))
    made = integers_read(c.network, x, own)
    return Tensor(made.node, made.axes)


def integers_read(net: Network, x: Tensor, grid: Grid) -> Tensor:
    """The same integers by another scale and zero point."""
    if not isinstance(x.kind, Grid) or grid == x.kind:
        return x
    if (grid.bits, grid.shift) != (x.kind.bits, x.kind.shift):
        raise Damaged(f"integers of the types {_type_name(x.kind)} and {_type_name(grid)}, which are the same ones")
    ratio = grid.scale / x.kind.scale
    if not 1 / FARTHEST <= ratio <= FARTHEST:
        raise Unsupported(f"the scale {grid.scale:g} of integers that have the scale {x.kind.scale:g} elsewhere", "no network needs both")
    made = net.affine(Tensor(x.node, x.axes), ratio, (x.kind.zero_point - grid.zero_point) * grid.scale)
    return on_grid(net, made, grid)


def table_of(net: Network, table: Static, grid: Grid) -> Static:
    """A table of integers of the file as the real values that a grid says."""
    return _real_values(net, table, np.array(grid.scale, np.float32), np.array(grid.zero_point + grid.shift, table.array.dtype), 0)


def _type_of(c: Call, index: int) -> str:
    """The type of an operand's integers, which is the result's, too, where no zero point says one."""
    x = c.value(index)
    if isinstance(x, Static):
        return x.array.dtype.name
    return _type_name(x.kind) if isinstance(x.kind, Grid) else "uint8"


def _type_name(grid: Grid) -> str:
    """ONNX's name of the integers of a grid."""
    return next(name for name, found in BITS.items() if found == (grid.bits, grid.shift))


def _bias(c: Call, index: int, factor: float = 1.0) -> Static:
    """A bias as real values: its scale is the product of those of both factors, operands 1 and 4."""
    scale = np.float32(c.number(1, "the scale")) * c.array(4, "the scale").astype(np.float32) * np.float32(factor)
    bias, array = c.value(index), c.array(index, "the bias")
    name = bias.name if isinstance(bias, Static) else ""
    return _real_values(c.network, Static(array, name), scale, None, 0)


def _linear_conv(c: Call) -> Result:
    w = _weight(c, 3, 0)
    inputs: list[Value | None] = [_real(c, 0), w]
    if c.has(8):
        inputs.append(_bias(c, 8))
    return _on(c, _called(c, windows.RULES["Conv"], inputs), _grid(c, 6, 7))


def _linear_product(c: Call) -> Result:
    w = _real(c, 3) if isinstance(c.value(3), Tensor) else _weight(c, 3, -1)
    return _on(c, products.product(c.network, _real(c, 0), w), _grid(c, 6, 7))


def _gemm(c: Call) -> Result:
    """com.microsoft.QGemm: its result is real where no scale of it is given."""
    turned = bool(c.attribute("transB", 0))
    inputs: list[Value | None] = [_real(c, 0), _weight(c, 3, 0 if turned else -1)]
    if c.has(6):
        inputs.append(_bias(c, 6, c.attribute("alpha", 1.0)))
    made = _called(c, products.RULES["Gemm"], inputs)
    return _on(c, made, _grid(c, 7, 8, _type_of(c, 0))) if c.has(7) else made


def _binary(op: str) -> Rule:
    """com.microsoft.QLinearAdd and QLinearMul."""

    def rule(c: Call) -> Result:
        return _on(c, c.network.elementwise(op, _real(c, 0), _real(c, 3)), _grid(c, 6, 7, _type_of(c, 0)))

    return rule


def _unary(rule: Rule, scale: int = 3) -> Rule:
    """com.microsoft's functions of one quantised tensor: QLinearSigmoid, QLinearAveragePool."""

    def made(c: Call) -> Result:
        return _on(c, _called(c, rule, [_real(c, 0)]), _grid(c, scale, scale + 1, _type_of(c, 0)))

    return made


def _concat(c: Call) -> Result:
    parts = [_real(c, index) for index in range(2, len(c.inputs), 3)]
    return _on(c, shapes.joined(c.network, parts, c.axis(1, len(parts[0].shape))), _grid(c, 0, 1, _type_of(c, 2)))


def _where(c: Call) -> Result:
    made = _called(c, elements.RULES["Where"], [c.value(0), _real(c, 1), _real(c, 4)])
    return _on(c, made, _grid(c, 7, 8, _type_of(c, 1)))


def _dynamic(c: Call) -> Result:
    """The scale of each run's own values: here calibration finds one, and what follows is computed with real values."""
    x = c.tensor(0)
    c.network.notes["What the file quantises anew in each run is quantised here by calibration"] = None
    names = c.node.outputs
    return (
        Tensor(x.node, x.axes, Grid(1.0, 0, 8, measured=True)),
        Static(np.ones((), np.float32), names[1]),
        Static(np.zeros((), np.uint8), names[2]),
    )


def _integer_product(multiply: Callable[[Call, Tensor, Static], Tensor]) -> Rule:
    """The sums of products of integers: those of the real values, divided by the scale of the first."""

    def rule(c: Call) -> Result:
        x, w = c.tensor(0), c.value(1)
        if not isinstance(w, Static) or not isinstance(x.kind, Grid):
            raise Unsupported("factors that aren't a quantised tensor and a constant", "weights are constants of the file")
        own = int(c.number(2, "the zero point")) if c.has(2) else 0
        if not x.kind.measured and own - x.kind.shift != x.kind.zero_point:
            raise Unsupported(
                "integers with another zero point than that of their QuantizeLinear", "both read one constant in what quantisers write"
            )
        zero = c.array(3, "the zero point").astype(np.float32) if c.has(3) else np.zeros((), np.float32)
        if zero.size > 1:
            raise Unsupported("zero points for each column", "weights are symmetric, or have one zero point")
        centred = Static((w.array.astype(np.float32) - zero.reshape(())), w.name.removesuffix("_quantized"))
        made = multiply(c, Tensor(x.node, x.axes), centred)
        return made if x.kind.measured else c.network.affine(made, 1 / x.kind.scale)

    return rule


RULES: Mapping[str, Rule] = {
    "ConvInteger": _integer_product(lambda c, x, w: _called(c, windows.RULES["Conv"], [x, w])),
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "MatMulInteger": _integer_product(lambda c, x, w: products.product(c.network, x, w)),
    "QLinearConv": _linear_conv,
    "QLinearMatMul": _linear_product,
    "QuantizeLinear": _quantize,
    "com.microsoft.DequantizeLinear": _dequantize,
    "com.microsoft.QGemm": _gemm,
    "com.microsoft.QLinearAdd": _binary("add"),
    "com.microsoft.QLinearAveragePool": _unary(windows.RULES["AveragePool"]),
    "com.microsoft.QLinearConcat": _concat,
    "com.microsoft.QLinearGlobalAveragePool": _unary(windows.RULES["GlobalAveragePool"]),
    "com.microsoft.QLinearLeakyRelu": _unary(elements.RULES["LeakyRelu"]),
    "com.microsoft.QLinearMul": _binary("mul"),
    "com.microsoft.QLinearSigmoid": _unary(elements.RULES["Sigmoid"]),
    "com.microsoft.QLinearSoftmax": _unary(reductions.RULES["Softmax"]),
    "com.microsoft.QLinearWhere": _where,
    "com.microsoft.QuantizeLinear": _quantize,
}
