"""Functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Literal

import numpy as np

from tpucc.floating.double import log
from tpucc.interop import folded_functions as folded
from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Classes, Grid, Kind, Static, Tensor, Value, broadcast, is_count
from tpucc.interop.onnx.reading.files import names as keys
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import COMPUTED, Unsupported, require
from tpucc.interop.onnx.reading.files.tensors import BFLOAT16, BOOL, FLOATS, TYPES
from tpucc.interop.onnx.reading.operators.rows import Fact, add_row, nothing, of_constants, operator
from tpucc.interop.onnx.reading.operators.shapes import expanded
from tpucc.ir import Node
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.onnx_form import Form

AXES, EXACT, WHOLE = Fact.AXES, Fact.EXACT, Fact.WHOLE
MOST_FACTORS = 8
"""The largest exponent that becomes products."""
Function = Callable[[Network, Node], Node]


def same(op: str, *facts: Fact) -> None:
    """Adds the row of the operator of ONNX that is the operator of tpucc, as the form of the latter says."""
    form = OPS[op].onnx
    assert isinstance(form, Form)

    def of_one(c: Call, x: Tensor) -> Result:
        return c.net.map(x, op)

    def of_two(c: Call, a: Value, b: Value) -> Result:
        return c.net.elementwise(op, a, b)

    add_row(form.same, of_one if len(OPS[op].operands) == 1 else of_two, (AXES, *facts))


for name in ("abs", "add", "mul", "relu", "sign", "sub"):
    same(name, EXACT, WHOLE)
same("sqrt", EXACT)
for name in ("exp", "hard_swish", "log", "sigmoid", "tanh"):
    same(name)


@operator("Identity", AXES, EXACT, WHOLE, Fact.KEEPS, Fact.VIEW, size=nothing)
def identity(c: Call, x: Value) -> Result:
    return x


@operator("Dropout", AXES, ignored="ratio seed")
def dropout(c: Call, x: Value, ratio: Value | None, training: Value | None) -> Result:
    if isinstance(training, Static) and training.array.any():
        c.net.note("Dropout changes nothing here, as outside of training")
    c.alone()
    return x


COMPARISONS = {"Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less", "LessOrEqual": "less_equal"}
CONDITIONS = {"And": "mul", "Or": "maximum", "Xor": "not_equal"}
"""Operators whose results are booleans, and those of tpucc."""


def _boolean(name: str, op: str) -> None:
    def compared(c: Call, a: Value, b: Value) -> Result:
        for rows, known in ((a, b), (b, a)) if op == "equal" else ():
            is_counted = isinstance(known, Static) and is_count(known.array) and known.rank <= rows.rank
            if is_counted and isinstance(rows, Tensor) and rows.kind == "int" and rows.shape[-1:] == (1,):
                node = c.net.add("one_hot", rows.node, n=known.shape[-1])
                return Tensor(node, (*rows.axes[:-1], (node.type.rank - 1,)), "bool")
        return c.net.elementwise(op, a, b, kind="bool")

    add_row(name, compared, (EXACT, Fact.CONDITION))


for name, op in (COMPARISONS | CONDITIONS).items():
    _boolean(name, op)


@operator("Not", EXACT, Fact.CONDITION)
def negation(c: Call, x: Tensor) -> Result:
    """What isn't equal is another comparison; not so what isn't less, for NaN is neither less nor greater."""
    if x.node.op == "equal":
        return Tensor(c.net.add("not_equal", *(c.net.builder.nodes[name] for name in x.node.operands)), x.axes, "bool")
    return Tensor(c.net.add("sub", c.net.scalar(1.0), x.node), x.axes, "bool")


def _joined(op: str, c: Call, values: tuple[Value, ...]) -> Tensor:
    first, *others = values
    return c.net.tensor(reduce(lambda a, b: c.net.elementwise(op, a, b), others, first))


@operator("Max", AXES, EXACT, WHOLE)
def largest(c: Call, *values: Value) -> Result:
    return _joined("maximum", c, values)


@operator("Min", AXES, EXACT, WHOLE)
def least(c: Call, *values: Value) -> Result:
    return _joined("minimum", c, values)


@operator("Sum", AXES, EXACT, WHOLE)
def total(c: Call, *values: Value) -> Result:
    return _joined("add", c, values)


@operator("Mean")
def mean(c: Call, *values: Value) -> Result:
    return c.net.affine(_joined("add", c, values), 1 / len(values))


def _require_divisible(a: AnyArray, b: AnyArray) -> None:
    """Raises `Unsupported` for integers whose quotient is no integer of their type."""
    if a.dtype.kind == "f":
        return
    if (b == 0).any():
        raise Unsupported("it divides integers by 0", "what comes out differs from machine to machine")
    if a.dtype.kind == "i" and ((a == np.iinfo(a.dtype).min) & (b == -1)).any():
        raise Unsupported(f"it divides the smallest {a.dtype.name} by -1, and the quotient isn't one")


def _quotient(_: OnnxNode, arrays: Sequence[AnyArray]) -> AnyArray:
    """Integers are divided towards zero."""
    a, b = arrays
    _require_divisible(a, b)
    return np.asarray(a / b if a.dtype.kind == "f" else a // b + ((a % b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def _remainder(node: OnnxNode, arrays: Sequence[AnyArray]) -> AnyArray:
    _require_divisible(*arrays)
    found: AnyArray = (np.fmod if node.attributes.get("fmod", 0) else np.mod)(*arrays)
    return found


@operator("Div", AXES, EXACT, fold=_quotient)
def divided(c: Call, a: Value, b: Value) -> Result:
    """By a known number it is a product with the reciprocal, as the language has it. A weight of the source keeps its values."""
    if isinstance(b, Static) and c.net.is_number(b):
        with np.errstate(divide="ignore"):
            inverse = np.reciprocal(b.array.astype(np.float64))
        if np.isfinite(inverse).all():
            return c.net.elementwise("mul", a, Static(inverse.astype(np.float32), b.name))
    return c.net.elementwise("div", a, b)


of_constants("Mod", EXACT, fold=_remainder)
of_constants("Ceil", "CumSum", "EyeLike", "Floor", "IsInf", "IsNaN", "Round", EXACT)
of_constants("Cos", AXES, fold=lambda _, arrays: folded.cos(arrays[0]).astype(arrays[0].dtype))
of_constants("Sin", AXES, fold=lambda _, arrays: folded.sin(arrays[0]).astype(arrays[0].dtype))


def _of_element(name: str, function: Function, *facts: Fact) -> None:
    """Adds the row of a function of one value, without attributes, that is made of several nodes."""

    def applied(c: Call, x: Tensor) -> Result:
        return c.net.apply(x, partial(function, c.net))

    add_row(name, applied, (AXES, *facts))


def softplus(net: Network, x: Node) -> Node:
    """log(1 + exp(x)), which doesn't overflow: max(x, 0) + log(1 + exp(-|x|))."""
    small = net.add("exp", net.add("mul", net.add("abs", x), net.scalar(-1.0)))
    return net.add("add", net.add("maximum", x, net.scalar(0.0)), net.add("log", net.add("add", small, net.scalar(1.0))))


def _error_function(net: Network, x: Node) -> Node:
    """With y = √2·x, gelu(y) is y/2 · (1 + erf(x)): so erf(x) is 2 · gelu(y) / y - 1, and 0 where y is 0.

    In integers y may be 0 where x isn't.
    """
    y = net.add("mul", x, net.scalar(math.sqrt(2)))
    share = net.add("div", net.add("gelu", y), y)
    found = net.add("sub", net.add("mul", share, net.scalar(2.0)), net.scalar(1.0))
    return net.add("where", net.add("equal", y, net.scalar(0.0)), net.scalar(0.0), found)


_of_element("Erf", _error_function)
_of_element("Mish", lambda net, x: net.add("mul", x, net.add("tanh", softplus(net, x))))
_of_element("Neg", lambda net, x: net.add("mul", x, net.scalar(-1.0)), EXACT, WHOLE)
_of_element("Reciprocal", lambda net, x: net.add("div", net.scalar(1.0), x), EXACT)
_of_element("Softplus", softplus)
_of_element("Softsign", lambda net, x: net.add("div", x, net.add("add", net.add("abs", x), net.scalar(1.0))))


@operator("Elu", AXES)
def elu(c: Call, x: Tensor, *, alpha: float = 1.0) -> Result:
    return c.net.map(x, "elu", alpha=alpha)


@operator("LeakyRelu", AXES)
def leaky_relu(c: Call, x: Tensor, *, alpha: float = 0.01) -> Result:
    return c.net.map(x, "leaky_relu", alpha=alpha)


@operator("Selu", AXES)
def selu(c: Call, x: Tensor, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Result:
    return c.net.apply(x, lambda x: c.net.add("mul", c.net.add("elu", x, alpha=alpha), c.net.scalar(gamma)))


@operator("Celu", AXES)
def celu(c: Call, x: Tensor, *, alpha: float = 1.0) -> Result:
    if alpha == 1:
        return c.net.map(x, "elu")
    return c.net.affine(c.net.map(c.net.affine(x, 1 / alpha), "elu"), alpha)


@operator("ThresholdedRelu", AXES)
def thresholded_relu(c: Call, x: Tensor, *, alpha: float = 1.0) -> Result:
    return c.net.apply(x, lambda x: c.net.add("where", c.net.add("greater", x, c.net.scalar(alpha)), x, c.net.scalar(0.0)))


@operator("Gelu", AXES)
def gelu(c: Call, x: Tensor, *, approximate: Literal["none", "tanh"] = "none") -> Result:
    return c.net.map(x, "gelu", approximate=True) if approximate == "tanh" else c.net.map(x, "gelu")


@operator("Swish", AXES)
def swish(c: Call, x: Tensor, *, alpha: float = 1.0) -> Result:
    if alpha == 1:
        return c.net.map(x, "silu")
    return c.net.apply(x, lambda x: c.net.add("mul", x, c.net.add("sigmoid", c.net.add("mul", x, c.net.scalar(alpha)))))


@operator("HardSigmoid", AXES)
def hard_sigmoid(c: Call, x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Result:
    if math.isclose(alpha, 1 / 6, rel_tol=2e-6) and beta == 0.5:
        return c.net.map(x, "hard_sigmoid")
    return c.net.apply(c.net.affine(x, alpha, beta), partial(clipped, c.net, 0.0, 1.0))


@operator("PRelu", AXES)
def prelu(c: Call, x: Tensor, slope: Value) -> Result:
    """max(x, 0) + slope · min(x, 0); one slope for all is a leaky ReLU."""
    net = c.net
    require(broadcast([slope.shape, x.shape]) == x.shape)
    if isinstance(slope, Static) and slope.array.size == 1:
        return net.map(x, "leaky_relu", alpha=float(slope.array.reshape(())))
    if isinstance(slope, Static):
        slope = Static(slope.array, keys.key(slope.name, net.path, "weight"))
    below = net.elementwise("mul", net.apply(x, lambda node: net.add("minimum", node, net.scalar(0.0))), slope)
    return net.elementwise("add", net.map(x, "relu"), below)


@operator("Clip", AXES, EXACT, WHOLE)
def clip(c: Call, x: Value, min_: Value | None, max_: Value | None, *, min: float | None = None, max: float | None = None) -> Result:
    net = c.net
    low, high = _bound(min_, min), _bound(max_, max)
    if isinstance(low, float | None) and isinstance(high, float | None):
        return net.apply(net.tensor(x), partial(clipped, net, low, high))
    for op, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            x = net.elementwise(op, x, Static(np.array(bound, np.float32), "") if isinstance(bound, float) else bound)
    return x


def clipped(net: Network, low: float | None, high: float | None, x: Node) -> Node:
    """A clamp between two bounds, of which one or both may be missing. If the lower one is above the other, all values are the upper one:
    Min(high, Max(x, low)), as ONNX's Clip says."""
    if low is None:
        return x if high is None else net.add("minimum", x, net.scalar(high))
    if high is None:
        return net.add("relu", x) if low == 0 else net.add("maximum", x, net.scalar(low))
    if low == 0 and high == 6:
        return net.add("relu6", x)
    return net.add("clip", x, low=min(low, high), high=high)


def _bound(value: Value | None, given: float | None) -> float | Tensor | None:
    """A bound, an operand or else the attribute that is given; None where there is none, or none that a float32 reaches."""
    require(value is None or value.shape in ((), (1,)))
    if isinstance(value, Tensor):
        return value
    number = float(str(value.array.reshape(()).astype(np.float32))) if value is not None else given  # with the digits that it has
    return None if number is None or abs(number) >= float(np.finfo(np.float32).max) else float(number)


def _power(_: OnnxNode, arrays: Sequence[AnyArray]) -> AnyArray:
    x, y = arrays
    return (folded.power(x, y) if x.dtype.kind == "f" else np.asarray(np.power(x, y))).astype(x.dtype)


@operator("Pow", AXES, EXACT, fold=_power)
def raised(c: Call, base: Value, exponent: Value) -> Result:
    net = c.net
    if isinstance(base, Static) and base.array.size == 1 and float(base.array.reshape(())) > 0:
        logarithm = float(log(base.array.reshape(())))
        made = net.map(net.affine(net.tensor(exponent), logarithm), "exp")
        return expanded(net, made, np.broadcast_shapes(base.shape, exponent.shape))
    if not isinstance(exponent, Static) or not (exponent.array == exponent.array.reshape(-1)[:1]).all():
        raise Unsupported("the exponent isn't one known number", "tpucc has products, square roots, exp and log")
    x, number = net.tensor(base), float(exponent.array.reshape(-1)[0])
    return expanded(net, net.apply(x, partial(power, net, number)), np.broadcast_shapes(x.shape, exponent.shape))


def power(net: Network, number: float, x: Node) -> Node:
    """x to a power. Those that products, square roots and a reciprocal make are made so; others are exp(number · log(x)), which has no real
    value below 0 either. Raises `Unsupported` for whole numbers that would be too many products."""
    whole, rest = divmod(_near_quarter(abs(number)), 1)
    if rest == 0 and whole > MOST_FACTORS:
        raise Unsupported(f"the exponent {number:g}", f"whole exponents are products, of up to {MOST_FACTORS} factors")
    if number < 0:
        return net.add("div", net.scalar(1.0), power(net, -number, x))
    if rest not in (0, 0.25, 0.5, 0.75) or whole > MOST_FACTORS:
        return net.add("exp", net.add("mul", net.add("log", x), net.scalar(number)))
    factors = [x] * int(whole)
    if rest:
        root = net.add("sqrt", x)
        factors += [root] * (rest >= 0.5) + ([net.add("sqrt", root)] if rest != 0.5 else [])
    if not factors:
        return net.add("add", net.add("mul", x, net.scalar(0.0)), net.scalar(1.0))
    return reduce(lambda a, b: net.add("mul", a, b), factors)


def _near_quarter(number: float) -> float:
    """The number, or the quarter that is meant: exporters write 1/2 as 0.49999976 (`pairwise_distance` by TorchScript)."""
    quarter = round(number * 4) / 4
    return quarter if math.isclose(number, quarter, rel_tol=2e-6) else number


@operator("Where", AXES, EXACT, WHOLE)
def chosen(c: Call, condition: Value, a: Value, b: Value) -> Result:
    if isinstance(a, Tensor) and a.kind == "int":
        raise Unsupported("it chooses among integers that are computed", COMPUTED)
    return c.net.elementwise("where", condition, a, b)


WIDE = (6, 7, 12, 13)
"""Integers of 32 and 64 bits, signed and unsigned."""
MASKS = frozenset({"equal", "greater", "greater_equal", "less", "less_equal", "not_equal"})
"""Operators whose results are 0 and 1."""


def _converted(node: OnnxNode, arrays: Sequence[AnyArray]) -> AnyArray:
    to = node.attributes["to"]
    return arrays[0].astype(np.float32 if to == BFLOAT16 else TYPES[to])


@operator("Cast", AXES, EXACT, Fact.INTEGERS, Fact.REAL, fold=_converted, ignored="saturate round_mode")
def cast(c: Call, x: Tensor, *, to: int) -> Result:
    """The values in ONNX's type of this number. Raises `Unsupported` where they would change."""
    if isinstance(x.kind, Classes):
        return x
    if isinstance(x.kind, Grid):  # PyTorch writes one behind each QuantizeLinear
        if to in TYPES and TYPES[to].name == x.kind.type:
            return x
        raise Unsupported("it computes with the integers of quantised values", "DequantizeLinear before it makes real values of them")
    if x.kind == "int":
        if to in WIDE:
            return x
        raise Unsupported("it makes other values of numbers of rows", COMPUTED)
    if to in FLOATS:
        return Tensor(x.node, x.axes)
    if to == BOOL:
        is_mask = x.kind == "bool" or x.node.op in MASKS
        return Tensor(x.node if is_mask else c.net.add("not_equal", x.node, c.net.scalar(0.0)), x.axes, "bool")
    if x.kind == "bool" or (x.kind == "whole" and to in WIDE):
        return Tensor(x.node, x.axes, "whole")
    raise Unsupported("it makes integers of computed values", COMPUTED)


KIND_TYPES: Mapping[Kind, type] = {"float": np.float32, "bool": np.bool_}
"""NumPy's types of computed values by their kinds; those of the other kinds are integers."""


@operator("CastLike", AXES, Fact.INTEGERS, Fact.REAL, ignored="saturate round_mode")
def cast_like(c: Call, x: Value, like: Value) -> Result:
    """The values in the other operand's type; of one that the network computes, only the kind is known."""
    type_ = (
        like.array.dtype
        if isinstance(like, Static)
        else np.dtype(like.kind.type if isinstance(like.kind, Grid) else KIND_TYPES.get(like.kind, np.int64))
    )
    if isinstance(x, Static):
        return replace(x, array=x.array.astype(type_))
    return cast(c, x, to=next(number for number, known in TYPES.items() if known == type_))
