"""Functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from tpucc.floating import double
from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor
from tpucc.interop.onnx.reading.files import names as keys
from tpucc.interop.onnx.reading.files.problems import COMPUTED, INDICES, INTEGERS, Unsupported
from tpucc.interop.onnx.reading.files.tensors import BOOL, FLOATS, TYPES
from tpucc.interop.onnx.reading.rules.shapes import expanded
from tpucc.ir.node import Node
from tpucc.ops import OPS

MOST_FACTORS = 8
"""The largest exponent that becomes products."""


def _direct(op: str) -> Rule:
    return lambda c: c.network.map(c.tensor(0), op)


def _binary(op: str, kind: str = "float") -> Rule:
    def rule(c: Call) -> Result:
        a, b = c.value(0), c.value(1)
        if kind == "bool" and isinstance(a, Tensor) and a.kind == "int" and isinstance(b, Static) and b.array.size == 1:
            return _compared(c, op, a, b)
        return c.network.elementwise(op, a, b, kind=kind)  # type: ignore[arg-type]

    return rule


def _compared(c: Call, op: str, rows: Tensor, number: Static) -> Tensor:
    """Numbers of rows compared with one number, as padding tokens are: the rows of a table of ones and zeros."""
    net, limits = c.network, rows.node.type.range
    if limits is None:
        raise Unsupported("it compares numbers of rows, whose largest isn't known", INDICES)
    places, known = np.arange(limits.high + 1, dtype=np.float32), number.array.astype(np.float32).reshape(1)
    table = OPS[op].reference(OPS[op].attributes(), (places, known))
    node = net.add("embedding", rows.node, net.weight(table[:, np.newaxis], "", "table"))
    return net.reshaped(Tensor(node, (*rows.axes, (node.type.rank - 1,)), "bool"), rows.shape)


def _many(op: str) -> Rule:
    def rule(c: Call) -> Result:
        first, *others = c.values()
        return c.network.tensor(reduce(lambda a, b: c.network.elementwise(op, a, b), others, first))

    return rule


def _composed(function: Callable[[Network, Node, Call], Node]) -> Rule:
    return lambda c: c.network.apply(c.tensor(0), lambda x: function(c.network, x, c))


def _subtracted(c: Call) -> Result:
    return c.network.elementwise("sub", c.value(0), c.value(1))


def _divided(c: Call) -> Result:
    """By a known number it is a product with the reciprocal, as the language has it. A weight of the source keeps its values."""
    divisor = c.value(1)
    if isinstance(divisor, Static) and c.network.is_number(divisor):
        with np.errstate(divide="ignore"):
            inverse = np.reciprocal(divisor.array.astype(np.float64))
        if np.isfinite(inverse).all():
            return c.network.elementwise("mul", c.value(0), Static(inverse.astype(np.float32), divisor.name))
    return c.network.elementwise("div", c.value(0), divisor)


def _mean(c: Call) -> Result:
    total = c.network.tensor(_many("add")(c))  # type: ignore[arg-type]
    return c.network.affine(total, 1 / len(c.inputs))


def _negated(net: Network, x: Node, _: Call) -> Node:
    return net.add("mul", x, net.scalar(-1.0))


def _inverse(net: Network, x: Node, _: Call) -> Node:
    return net.add("div", net.scalar(1.0), x)


def _not(c: Call) -> Result:
    """What isn't equal is another comparison; not so what isn't less, for NaN is neither less nor greater."""
    x = c.tensor(0)
    net = c.network
    if x.node.op == "equal":
        return Tensor(net.add("not_equal", *(net.builder.nodes[name] for name in x.node.operands)), x.axes, "bool")
    return Tensor(net.add("sub", net.scalar(1.0), x.node), x.axes, "bool")


def softplus(net: Network, x: Node) -> Node:
    """log(1 + exp(x)), which doesn't overflow: max(x, 0) + log(1 + exp(-|x|))."""
    small = net.add("exp", net.add("mul", net.add("abs", x), net.scalar(-1.0)))
    return net.add("add", net.add("maximum", x, net.scalar(0.0)), net.add("log", net.add("add", small, net.scalar(1.0))))


def _softsign(net: Network, x: Node, _: Call) -> Node:
    return net.add("div", x, net.add("add", net.add("abs", x), net.scalar(1.0)))


def _mish(net: Network, x: Node, _: Call) -> Node:
    return net.add("mul", x, net.add("tanh", softplus(net, x)))


def _erf(net: Network, x: Node, _: Call) -> Node:
    """With y = √2·x, gelu(y) is y/2 · (1 + erf(x)): so erf(x) is 2 · gelu(y) / y - 1, and 0 where y is 0.

    In integers y may be 0 where x isn't.
    """
    y = net.add("mul", x, net.scalar(math.sqrt(2)))
    share = net.add("div", net.add("gelu", y), y)
    found = net.add("sub", net.add("mul", share, net.scalar(2.0)), net.scalar(1.0))
    made = net.add("where", net.add("equal", y, net.scalar(0.0)), net.scalar(0.0), found)
    net.erf[made.name] = x.name
    return made


def _elu(net: Network, x: Node, c: Call) -> Node:
    return net.add("elu", x, alpha=c.attribute("alpha", 1.0))


def _selu(net: Network, x: Node, c: Call) -> Node:
    alpha, gamma = c.attribute("alpha", 1.6732632423543772), c.attribute("gamma", 1.0507009873554805)
    return net.add("mul", net.add("elu", x, alpha=alpha), net.scalar(gamma))


def _celu(net: Network, x: Node, c: Call) -> Node:
    alpha = c.attribute("alpha", 1.0)
    if alpha == 1:
        return net.add("elu", x)
    return net.add("mul", net.add("elu", net.add("mul", x, net.scalar(1 / alpha))), net.scalar(alpha))


def _leaky(net: Network, x: Node, c: Call) -> Node:
    return net.add("leaky_relu", x, alpha=c.attribute("alpha", 0.01))


def _thresholded(net: Network, x: Node, c: Call) -> Node:
    return net.add("where", net.add("greater", x, net.scalar(c.attribute("alpha", 1.0))), x, net.scalar(0.0))


def _gelu(net: Network, x: Node, c: Call) -> Node:
    return net.add("gelu", x, approximate=True) if c.attribute("approximate", "none") == "tanh" else net.add("gelu", x)


def _silu(net: Network, x: Node, c: Call) -> Node:
    alpha = c.attribute("alpha", 1.0)
    if alpha == 1:
        return net.add("silu", x)
    return net.add("mul", x, net.add("sigmoid", net.add("mul", x, net.scalar(alpha))))


def _hard_sigmoid(net: Network, x: Node, c: Call) -> Node:
    alpha, beta = c.attribute("alpha", 0.2), c.attribute("beta", 0.5)
    if math.isclose(alpha, 1 / 6, rel_tol=2e-6) and beta == 0.5:
        return net.add("hard_sigmoid", x)
    return net.add("clip", net.add("add", net.add("mul", x, net.scalar(alpha)), net.scalar(beta)), low=0.0, high=1.0)


def _prelu(c: Call) -> Result:
    """max(x, 0) + slope · min(x, 0); one slope for all is a leaky ReLU."""
    net, x, slope = c.network, c.tensor(0), c.value(1)
    if isinstance(slope, Static) and slope.array.size == 1:
        return net.map(x, "leaky_relu", alpha=float(slope.array.reshape(())))
    if isinstance(slope, Static):
        slope = Static(slope.array, keys.key(slope.name, net.path, "weight"))
    below = net.elementwise("mul", net.apply(x, lambda node: net.add("minimum", node, net.scalar(0.0))), slope)
    return net.elementwise("add", net.map(x, "relu"), below)


def _clip(c: Call) -> Result:
    net, x = c.network, c.value(0)
    low, high = _bound(c, 1, c.attribute("min")), _bound(c, 2, c.attribute("max"))
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


def _bound(c: Call, index: int, given: float | None) -> float | Tensor | None:
    """A bound, an operand or else the attribute that is given; None where there is none, or none that a float32 reaches."""
    value = c.inputs[index] if c.has(index) else None
    if isinstance(value, Tensor):
        return value
    number = float(str(value.array.reshape(()).astype(np.float32))) if value is not None else given  # with the digits that it has
    return None if number is None or abs(number) >= float(np.finfo(np.float32).max) else float(number)


def _power(c: Call) -> Result:
    net, base, exponent = c.network, c.value(0), c.value(1)
    if isinstance(base, Static) and base.array.size == 1 and float(base.array.reshape(())) > 0:
        logarithm = float(double.log(base.array.reshape(())))
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


def _where(c: Call) -> Result:
    mask, a, b = c.value(0), c.value(1), c.value(2)
    if isinstance(a, Tensor) and a.kind == "int":
        raise Unsupported("it chooses among integers that are computed", COMPUTED)
    return c.network.elementwise("where", mask, a, b)


def _identity(c: Call) -> Result:
    return c.value(0)


def _dropout(c: Call) -> Result:
    if c.has(2) and isinstance(training := c.value(2), Static) and training.array.any():
        c.network.notes["Dropout changes nothing here, as outside of training"] = None
    c.alone()
    return c.value(0)


WIDE = (6, 7, 12, 13)
"""Integers of 32 and 64 bits, signed and unsigned."""


MASKS = frozenset({"equal", "greater", "greater_equal", "less", "less_equal", "not_equal"})
"""Operators whose results are 0 and 1."""


def _cast(c: Call) -> Result:
    return _as_type(c, c.tensor(0), c.attribute("to"))


def _as_type(c: Call, x: Tensor, to: int) -> Tensor:
    """The values in ONNX's type of this number. Raises `Unsupported` where they would change."""
    if x.kind == "int":
        if to in WIDE:
            return x
        raise Unsupported("it makes other values of numbers of rows", INDICES)
    if to in FLOATS:
        return Tensor(x.node, x.axes)
    if to == BOOL:
        is_mask = x.kind == "bool" or x.node.op in MASKS
        return Tensor(x.node if is_mask else c.network.add("not_equal", x.node, c.network.scalar(0.0)), x.axes, "bool")
    if x.kind == "bool" or (x.kind == "whole" and to in WIDE):
        return Tensor(x.node, x.axes, "whole")
    raise Unsupported("it makes integers of computed values", INTEGERS)


def _cast_like(c: Call) -> Result:
    """The values in the other operand's type; of one that the network computes, only the kind is known."""
    x, like = c.value(0), c.value(1)
    type_ = like.array.dtype if isinstance(like, Static) else np.dtype(_TYPES.get(like.kind, np.int64))
    if isinstance(x, Static):
        return replace(x, array=x.array.astype(type_))
    return _as_type(c, x, next(number for number, known in TYPES.items() if known == type_))


_TYPES: Mapping[object, type] = {"float": np.float32, "bool": np.bool_}
"""Of the kinds of computed values; those of the others are integers."""


RULES: Mapping[str, Rule] = {
    "Abs": _direct("abs"),
    "Add": _binary("add"),
    "And": _binary("mul", "bool"),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Celu": _composed(_celu),
    "Clip": _clip,
    "Div": _divided,
    "Dropout": _dropout,
    "Elu": _composed(_elu),
    "Equal": _binary("equal", "bool"),
    "Erf": _composed(_erf),
    "Exp": _direct("exp"),
    "Gelu": _composed(_gelu),
    "Greater": _binary("greater", "bool"),
    "GreaterOrEqual": _binary("greater_equal", "bool"),
    "HardSigmoid": _composed(_hard_sigmoid),
    "HardSwish": _direct("hard_swish"),
    "Identity": _identity,
    "LeakyRelu": _composed(_leaky),
    "Less": _binary("less", "bool"),
    "LessOrEqual": _binary("less_equal", "bool"),
    "Log": _direct("log"),
    "Max": _many("maximum"),
    "Mean": _mean,
    "Min": _many("minimum"),
    "Mish": _composed(_mish),
    "Mul": _binary("mul"),
    "Neg": _composed(_negated),
    "Not": _not,
    "Or": _binary("maximum", "bool"),
    "PRelu": _prelu,
    "Pow": _power,
    "Reciprocal": _composed(_inverse),
    "Relu": _direct("relu"),
    "Selu": _composed(_selu),
    "Sigmoid": _direct("sigmoid"),
    "Sign": _direct("sign"),
    "Softplus": _composed(lambda net, x, _: softplus(net, x)),
    "Softsign": _composed(_softsign),
    "Sqrt": _direct("sqrt"),
    "Sub": _subtracted,
    "Sum": _many("add"),
    "Swish": _composed(_silu),
    "Tanh": _direct("tanh"),
    "ThresholdedRelu": _composed(_thresholded),
    "Where": _where,
    "Xor": _binary("not_equal", "bool"),
}
