"""Operators applied to tensors: from operands and attributes to a node of the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tpucc.diagnostics import Span
from tpucc.frontend import ast
from tpucc.frontend.blame import Application, Operand, blamed
from tpucc.frontend.frame import Frame, Hint
from tpucc.frontend.problem import Problem
from tpucc.frontend.values import POISON, Items, Tensor, Value, describe, has_tensor, is_number, poisoned
from tpucc.ir.constants import Constant
from tpucc.ir.graph import NoAttributes
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import RuleError

BINARY: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul", "@": "matmul"}
LARGEST = float(np.finfo(np.float32).max)


def applied(made: Application, hint: Hint) -> Tensor:
    """The node of an operator, its type inferred. Raises `Problem` for a rule that doesn't hold."""
    try:
        type_ = OPS[made.op].infer(made.attributes, made.types)
    except RuleError as error:
        raise blamed(error, made) from None
    operands = tuple(operand.tensor.node.name for operand in made.operands)
    return made.frame.add(made.op, operands, made.attributes, type_, made.span, hint)


def operand(frame: Frame, value: Value, node: ast.Expression) -> Operand:
    """A value in a tensor's place; a static number becomes a scalar constant. Raises `Problem` for anything else."""
    variable = node.text if isinstance(node, ast.Name) else ""
    if isinstance(value, Tensor):
        return Operand(value, node.span, variable)
    return Operand(scalar(frame, value, node.span), node.span, variable)


def scalar(frame: Frame, value: Value, span: Span) -> Tensor:
    """A static number as a constant f32[]."""
    if not is_number(value):
        mend = "constant([[1.0, 2.0]]) makes a tensor of a list of numbers" if isinstance(value, Items) and not has_tensor(value) else ""
        raise Problem("E0324", f"expected a tensor or a number, found {describe(value)}", span, "", mend)
    if abs(value) > LARGEST:
        raise Problem("E0307", "a number beyond the range of f32", span, f"f32 reaches to about {LARGEST:.3g}")
    attributes = ConstantAttributes(Constant(np.array(value, np.float32)))
    return applied(Application(frame, "constant", (), attributes, span), ("scalar",))


def combined(frame: Frame, symbol: str, a: Operand, b: Operand, span: Span, hint: Hint) -> Tensor:
    """`a + b`, `a - b`, `a * b`, `a @ b`."""
    return applied(Application(frame, BINARY[symbol], (a, b), NoAttributes(), span), hint)


def reciprocal(value: Value, span: Span) -> float:
    """1 / value, for the division of a tensor by a static number. Raises `Problem`."""
    if not is_number(value):
        mend = "only a static number divides a tensor" if isinstance(value, Tensor) else ""
        raise Problem("E0217", f"a tensor can't be divided by {describe(value)}", span, "", mend)
    if value == 0:
        raise Problem("E0218", "division by zero", span, "the right side is 0")
    result = 1 / value
    if not math.isfinite(result):
        raise Problem("E0307", "1 / this number is beyond the range of f32", span)
    return result


def tensors_of(frame: Frame, value: Value, node: ast.Expression, what: str) -> list[Operand] | None:
    """The tensors of a list, for an operator that takes one; None when one of them is wrong. Raises `Problem`."""
    if not isinstance(value, Items):
        raise Problem(
            "E0324", f"{what} takes a list of tensors, found {describe(value)}", node.span, "", f"write it as a list: {what}([a, b])"
        )
    if poisoned(value) or POISON in value.values:
        return None
    places = ast.parts(node, len(value.values))
    return [operand(frame, inner, place) for inner, place in zip(value.values, places, strict=True)]
