"""arithmetic: add, sub or mul with the activation after it. Internal: fusion makes it, and it becomes one vector layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.ir import NoAttributes, f32
from tpucc.ops import OPS
from tpucc.ops.facts import of_two_values
from tpucc.ops.fused import Fused, fused
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Arithmetic, Example, OpDef, Operand, RuleError


@dataclass(frozen=True, slots=True)
class ArithmeticAttributes(Fused):
    """The activation fused into the operator `of`, one of `fusible`."""

    of: str = "add"


def unfused(attributes: ArithmeticAttributes) -> OpDef[Any]:
    """The operator alone. Raises `RuleError` when it is none of `fusible`."""
    operator = OPS.get(attributes.of)
    if operator is None or not _is_fusible(operator):
        raise RuleError("E0307", f"of must be one of {', '.join(fusible())}", about=("of",))
    return operator


def fusible() -> Sequence[str]:
    """The operators of two values that take in an activation."""
    return [name for name, operator in OPS.items() if _is_fusible(operator)]


def _is_fusible(operator: OpDef[Any]) -> bool:
    return isinstance(operator.legalisation, Arithmetic) and operator.name != OP.name


def _function(attributes: ArithmeticAttributes) -> str:
    """The operator's name as a function of the vector unit."""
    legalisation = unfused(attributes).legalisation
    assert isinstance(legalisation, Arithmetic)
    return legalisation.function(NoAttributes())


def onnx(g: Call) -> str:
    form = unfused(g.attributes).onnx
    assert isinstance(form, Form)
    return form.function(g)


OP = fused(
    ArithmeticAttributes,
    unfused,
    Form(onnx, Layout.ANY),
    name="arithmetic",
    summary="activation(a + b), activation(a - b) or activation(a * b)",
    documentation=(
        "An addition, a subtraction or a multiplication fused with the activation after it, as in the residual connections of He et "
        "al., arXiv 1512.03385: relu(x + shortcut). It becomes one vector layer. ONNX: Add, then Relu."
    ),
    operands=(Operand("a"), Operand("b")),
    legalisation=Arithmetic(_function),
    facts=of_two_values(
        commutative=lambda attributes: unfused(attributes).facts.commutative(NoAttributes()), signs=(), fuses_into="arithmetic"
    ),
    examples=(
        Example("one whole tile", ArithmeticAttributes("relu"), (f32(8, 256), f32(8, 256))),
        Example("ragged", ArithmeticAttributes("tanh", of="mul"), (f32(3, 5, 257), f32(3, 1, 257))),
        Example("nothing fused", ArithmeticAttributes(of="sub"), (f32(3, 5), f32(5))),
    ),
)
