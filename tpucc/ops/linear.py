"""linear: product, bias and activation in one. Internal: fusion makes it, and it becomes one FC layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tpucc.ir.graph import Attributes, NoAttributes
from tpucc.ir.types import Range, TensorType, f32
from tpucc.ops import add, matmul
from tpucc.ops.opdef import Array, Clamp, Example, Matrix, OpDef, Operand, RuleError, Table

Parameter = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class LinearAttributes:
    """What was fused into the product.

    `activation` is the name of a function of one value (an operator with a `Table` or a `Clamp`), or empty. `parameters` are the values of
    that operator's attributes in the order of their fields: `("leaky_relu", (0.01,))`. `pre` is the range (low, high) of the values before
    the activation, which its table needs; None where it isn't known, or not needed.
    """

    activation: str = ""
    parameters: tuple[Parameter, ...] = ()
    pre: tuple[float, float] | None = None


def with_activation(attributes: LinearAttributes, op: str, of: Attributes, pre: Range | None = None) -> LinearAttributes:
    """`attributes` with the activation `op` and its attributes `of` fused in; `pre` is the range of the values that it gets."""
    parameters = tuple(getattr(of, field) for field in of.__dataclass_fields__)
    return replace(attributes, activation=op, parameters=parameters, pre=None if pre is None else (pre.low, pre.high))


def activation_of(attributes: LinearAttributes) -> tuple[OpDef[Any], Attributes] | None:
    """The operator that was fused and its attributes; None when there is none. Raises `RuleError` when there is no such function."""
    from tpucc.ops import OPS  # when called: the package imports this file to fill OPS

    if not attributes.activation:
        return None
    operator = OPS.get(attributes.activation)
    if operator is None or not isinstance(operator.legalisation, Table | Clamp):
        raise RuleError("E0307", "activation must be a function of one value that the device has", about=("activation",))
    if len(attributes.parameters) != len(fields(operator.attributes)):
        raise RuleError("E0307", f"parameters must be the attributes of {operator.name}", about=("parameters",))
    return operator, operator.attributes(*attributes.parameters)


def infer(attributes: LinearAttributes, types: Sequence[TensorType]) -> TensorType:
    """`[..., K] @ [K, N] + [N]` is `[..., N]`."""
    result = matmul.infer(NoAttributes(), types[:2])
    _require_range(attributes.pre)
    for bias in types[2:]:
        if bias.plain() != f32(result.columns):
            raise RuleError("E0302", f"the bias must be f32[{result.columns}], found {bias.brief}", about=(2,))
    if (fused := activation_of(attributes)) is None:
        return result
    operator, parameters = fused
    return operator.infer(parameters, (result,))


def _require_range(pre: tuple[float, float] | None) -> None:
    if pre is not None and not (len(pre) == 2 and -math.inf < pre[0] <= pre[1] < math.inf):
        raise RuleError("E0307", "pre must be a finite range (low, high)", about=("pre",))


def reference(attributes: LinearAttributes, operands: Sequence[Array]) -> Array:
    """The three operators one after the other: bit for bit what they give unfused."""
    result = matmul.reference(NoAttributes(), operands[:2])
    for bias in operands[2:]:
        result = add.reference(NoAttributes(), (result, bias))
    if (fused := activation_of(attributes)) is None:
        return result
    operator, parameters = fused
    return operator.reference(parameters, (result,))


OP = OpDef(
    name="linear",
    summary="activation(x @ w + b)",
    documentation=(
        "Made by fusing a product with the bias and the activation after it; the bias may be missing. It becomes one FC layer, whose "
        "activation unit adds the bias and applies the function. ONNX: Gemm, then the activation. Keras: Dense."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    attributes=LinearAttributes,
    infer=infer,
    reference=reference,
    legalisation=Matrix(),
    examples=(
        Example("one whole tile", LinearAttributes(), (f32(8, 256), f32(256, 256))),
        Example("ragged, with bias", LinearAttributes(), (f32(3, 257), f32(257, 5), f32(5))),
        Example("with a clamp", LinearAttributes("relu"), (f32(2, 3, 4), f32(4, 5), f32(5))),
        Example("with a table", LinearAttributes("leaky_relu", (0.1,), (-4.0, 4.0)), (f32(3, 7), f32(7, 6), f32(6))),
    ),
)
