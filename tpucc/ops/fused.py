"""Activations that were fused into the operator before them: `linear`, `convolution`, `transposed_convolution` and `arithmetic`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import Attributes, Range, TensorType, f32
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Clamp, Defined, OpDef, RuleError, Table, Types
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


def fused(attributes: type[F], base: Callable[[F], OpDef[Any]], onnx: Form, **parts: Any) -> OpDef[F]:
    """The operator `activation(f(a, b) + bias)`, which fusion makes. The bias is an optional third operand.

    `base` gives the operator f, whose attributes have the same names among `attributes`. `onnx` is the form of all before the activation.
    `parts` are the other fields of `OpDef`.
    """

    def unfused(attributes: F) -> tuple[OpDef[Any], Attributes]:
        operator = base(attributes)
        return operator, operator.attributes(**{each.name: getattr(attributes, each.name) for each in fields(operator.attributes)})

    def infer(attributes: F, types: Types) -> TensorType:
        operator, own = unfused(attributes)
        return _inferred(attributes, operator.infer(own, types[:2]), types[2:])

    def defined(attributes: F, operands: Arrays, arithmetic: Arithmetic) -> Array:
        """One operator after the other, each as it is computed alone: bit for bit what they give unfused."""
        operator, own = unfused(attributes)
        result = _with_bias(defined_alone(operator, own, operands[:2], arithmetic), operands[2:])
        activation = activation_of(attributes)
        return result if activation is None else defined_alone(*activation, (result,), arithmetic)

    def form(g: Call) -> str:
        result, activation = onnx.function(g), activation_of(g.attributes)
        return result if activation is None else g.applied(activation[0].onnx, activation[1], result)

    return OpDef(
        attributes=attributes,
        infer=infer,
        reference=in_plain(defined),
        gradient=Missing("made by fusion, after differentiation"),
        floats=Defined(defined),
        onnx=Form(form, onnx.layout),
        **parts,
    )


def _inferred(attributes: Fused, result: TensorType, biases: Types) -> TensorType:
    """The type of `activation(result + bias)`, for at most one bias: its operand is the third. Raises `RuleError`."""
    _require_range(attributes.pre)
    for bias in biases:
        if bias.plain() != f32(result.columns):
            raise RuleError("E0302", f"the bias must be f32[{result.columns}], found {bias.brief}", about=(2,))
    activation = activation_of(attributes)
    return result if activation is None else activation[0].infer(activation[1], (result,))


def _require_range(pre: tuple[float, float] | None) -> None:
    if pre is None:
        return
    pair = isinstance(pre, tuple) and len(pre) == 2 and all(isinstance(bound, int | float) for bound in pre)
    if not pair or not -FLOAT32_MAX <= pre[0] <= pre[1] <= FLOAT32_MAX:
        raise RuleError("E0307", "pre must be a finite range (low, high)", about=("pre",))


def _with_bias(result: Array, biases: Arrays) -> Array:
    """The sum of the result and its bias, if it has one."""
    return np.asarray(np.add(result, *biases)) if biases else result


def defined_alone(operator: OpDef[Any], attributes: Any, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """What a machine for floats computes for an operator that it has."""
    floats = operator.floats
    return floats.function(attributes, operands, arithmetic) if isinstance(floats, Defined) else operator.reference(attributes, operands)
