"""Where a value comes from: through names and the arguments of calls, to the expression that made it."""

from __future__ import annotations

from tpucc.frontend import ast
from tpucc.frontend.frame import Frame, assigned
from tpucc.frontend.values import Value

HOPS = 100
"""Names that are followed at most."""


def origin(frame: Frame, node: ast.Expression) -> tuple[Frame, ast.Expression]:
    """The expression that made a value, and the call that it stands in: a name leads to its only assignment, or to the argument that it
    was given as. A param's name and one whose value may have several origins stay as they are."""
    for _ in range(HOPS):
        if not isinstance(node, ast.Name) or node.text not in frame.variables:
            break
        places = [found for found in assigned(frame.body) if found.text == node.text]
        if not places and frame.caller is not None and node.text in frame.arguments:
            frame, node = frame.caller, frame.arguments[node.text].value
        elif (made := _assignment(frame, node.text)) is not None and len(places) == 1 and node.text not in frame.arguments:
            node = made
        else:
            break
    return frame, node


def param_of(frame: Frame, node: ast.Expression) -> ast.Param | None:
    """The param whose value an expression has, by its name or handed over to a call."""
    frame, made = origin(frame, node)
    is_param = isinstance(made, ast.Name) and made.text not in frame.variables
    return frame.run.params.get(made.text) if is_param and isinstance(made, ast.Name) else None


def integer_mend(frame: Frame, node: ast.Expression, value: Value) -> str:
    """What makes an integer of a number with a point: of a quotient another division, of 3.0 the digits alone; else nothing."""
    if not isinstance(value, float):
        return ""
    param = param_of(frame, node)
    made = param.value if param is not None else origin(frame, node)[1]
    if _divides(made):
        return "divide with //, which rounds down to an integer; / gives a number with a point"
    whole = value.is_integer() and abs(value) < 2**53
    return f"write {value:.0f} without a point" if whole else ""


def _assignment(frame: Frame, name: str) -> ast.Expression | None:
    statements = (each for each in ast.statements(frame.body) if isinstance(each, ast.Assign) and not each.operator)
    return next((each.value for each in statements if isinstance(each.target, ast.Identifier) and each.target.text == name), None)


def _divides(node: ast.Expression) -> bool:
    if isinstance(node, ast.Unary):
        return _divides(node.operand)
    if isinstance(node, ast.Items):
        return any(map(_divides, node.items))
    return isinstance(node, ast.Chain) and ("/" in node.operators or any(map(_divides, node.operands)))
