"""Activations that were fused into the operator before them: what `linear`, `convolution` and `arithmetic` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir.node import Attributes, NoAttributes
from tpucc.ir.types import Range, TensorType, f32
from tpucc.ops import add
from tpucc.ops.floats import Defined
from tpucc.ops.onnx_form import Call
from tpucc.ops.opdef import Array, Clamp, OpDef, RuleError, Table
from tpucc.ops.rules import FLOAT32_MAX

Parameter = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Fused:
    """The activation fused into an operator.

    `activation` is the name of a function of one value (an operator with a `Table` or a `Clamp`), or empty. `parameters` are the values of
    that operator's attributes in the order of their fields: `("leaky_relu", (0.01,))`. `pre` is the range (low, high) of the values before
    the activation, which its table needs; None where it isn't known, or not needed.
    """

    activation: str = ""
    parameters: tuple[Parameter, ...] = ()
    pre: tuple[float, float] | None = None


def fused_form(op: str, attributes: Attributes) -> tuple[str, Fused]:
    """The operator into which something that follows the operator `op` can be fused, and its attributes before it is.

    Attributes of one name are the same in both; `of` names the operator where several have one fused form.
    """
    from tpucc.ops import OPS  # when called: the package imports this file to fill OPS

    if isinstance(attributes, Fused):
        return op, attributes
    form = OPS[op].facts.fuses_into
    given = {field: getattr(attributes, field) for field in attributes.__dataclass_fields__}
    if "of" in OPS[form].attributes.__dataclass_fields__:
        given["of"] = op
    return form, OPS[form].attributes(**given)


F = TypeVar("F", bound=Fused)


def with_activation(attributes: F, op: str, of: Attributes, pre: Range | None = None) -> F:
    """`attributes` with the activation `op` and its attributes `of` fused in; `pre` is the range of the values that it gets."""
    parameters = tuple(getattr(of, field) for field in of.__dataclass_fields__)
    return replace(attributes, activation=op, parameters=parameters, pre=None if pre is None else (pre.low, pre.high))


def without_activation(attributes: F) -> F:
    """`attributes` of the operator as it was before its activation was fused in."""
    return replace(attributes, activation="", parameters=(), pre=None)


def activation_of(attributes: Fused) -> tuple[OpDef[Any], Attributes] | None:
    """The operator that was fused and its attributes; None when there is none. Raises `RuleError` when there is no such function."""
    from tpucc.ops import OPS  # when called: the package imports this file to fill OPS

    if not attributes.activation:
        return None
    operator = OPS.get(attributes.activation)
    if operator is None or not isinstance(operator.legalisation, Table | Clamp):
        raise RuleError("E0307", "activation must be a function of one value that the device has", about=("activation",))
    if not isinstance(attributes.parameters, tuple) or len(attributes.parameters) != len(fields(operator.attributes)):
        raise RuleError("E0307", f"parameters must be the attributes of {operator.name}", about=("parameters",))
    return operator, operator.attributes(*attributes.parameters)


def infer_fused(attributes: Fused, result: TensorType, biases: Sequence[TensorType] = ()) -> TensorType:
    """The type of `activation(result + bias)`, for at most one bias: its operand is the third. Raises `RuleError`."""
    _require_range(attributes.pre)
    for bias in biases:
        if bias.plain() != f32(result.columns):
            raise RuleError("E0302", f"the bias must be f32[{result.columns}], found {bias.brief}", about=(2,))
    if (fused := activation_of(attributes)) is None:
        return result
    operator, parameters = fused
    return operator.infer(parameters, (result,))


def _require_range(pre: tuple[float, float] | None) -> None:
    if pre is None:
        return
    pair = isinstance(pre, tuple) and len(pre) == 2 and all(isinstance(bound, int | float) for bound in pre)
    if not pair or not -FLOAT32_MAX <= pre[0] <= pre[1] <= FLOAT32_MAX:
        raise RuleError("E0307", "pre must be a finite range (low, high)", about=("pre",))


def reference_fused(attributes: Fused, result: Array, biases: Sequence[Array] = ()) -> Array:
    """`activation(result + bias)`, one operator after the other: bit for bit what they give unfused."""
    for bias in biases:
        result = add.reference(NoAttributes(), (result, bias))
    if (fused := activation_of(attributes)) is None:
        return result
    operator, parameters = fused
    return operator.reference(parameters, (result,))


def defined_alone(operator: OpDef[Any], attributes: Any, operands: Sequence[Array], arithmetic: Arithmetic) -> Array:
    """What a machine for floats computes for an operator that it has."""
    floats = operator.floats
    return floats.function(attributes, operands, arithmetic) if isinstance(floats, Defined) else operator.reference(attributes, operands)


def defined_fused(attributes: Fused, result: Array, biases: Sequence[Array], arithmetic: Arithmetic) -> Array:
    """As `reference_fused`, on a machine for floats."""
    for bias in biases:
        result = add.reference(NoAttributes(), (result, bias))
    if (fused := activation_of(attributes)) is None:
        return result
    operator, parameters = fused
    return defined_alone(operator, parameters, (result,), arithmetic)


def onnx_activated(g: Call, result: str) -> str:
    """The ONNX form of the activation after a result."""
    if (fused := activation_of(g.attributes)) is None:
        return result
    operator, parameters = fused
    return g.applied(operator.onnx, parameters, result)
