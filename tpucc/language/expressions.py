"""Evaluating expressions: static values are computed at once, tensors become nodes of the graph.

A wrong expression is reported where it is, and its value is `POISON` from there on: so one run finds the errors of independent expressions.
Code that needs the value of a wrong expression raises `Unknown`. `evaluate` catches that, and the expression around becomes `POISON`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tpucc.diagnostics import Span, did_you_mean
from tpucc.language import ast
from tpucc.language.apply import BINARY, COMPARISONS, Operand, combined, operand, reciprocal, scalar
from tpucc.language.frame import Frame, Hint, as_integer, hints_for_each
from tpucc.language.problem import Problem, Unknown
from tpucc.language.slices import static_part, tensor_part
from tpucc.language.static import ARITHMETIC, arithmetic, bounded, compared, negated, require_static, truth
from tpucc.language.values import POISON, Items, Poison, Tensor, Value, describe, has_tensor, items, poisoned, written
from tpucc.language.words import advice
from tpucc.ops import OPS

CHOICE = "where(mask, a, b) chooses between tensors, element by element"
LOGIC = "of two masks, a * b is 1 where both are, and maximum(a, b) where one is"
OPPOSITE = "1 - mask is the opposite of a mask"


def evaluate(frame: Frame, node: ast.Expression, hint: Hint = ()) -> Value:
    """The value of an expression; `POISON` when it is wrong, which is then reported. `hint`: names for the node that it makes."""
    frame.run.spend(1, node.span)
    try:
        return _RULES[type(node)](frame, node, hint)
    except (Problem, Unknown) as wrong:
        frame.report(wrong)
        return POISON


def required_value(frame: Frame, node: ast.Expression) -> Value:
    """The value of an expression. Raises `Unknown` when it, or a part of it, is wrong."""
    return required_values(frame, (node,))[0]


def required_values(frame: Frame, nodes: Iterable[ast.Expression]) -> list[Value]:
    """The values of expressions, each of which is evaluated. Raises `Unknown` when one is wrong."""
    values = [evaluate(frame, node) for node in nodes]
    if any(map(poisoned, values)):
        raise Unknown
    return values


def integer(frame: Frame, node: ast.Expression, what: str) -> int:
    """The value of a static integer. Raises `Problem` and `Unknown`."""
    return as_integer(frame, required_value(frame, node), node, what)


def condition(frame: Frame, node: ast.Expression, mend: str = CHOICE) -> bool:
    """Whether a static condition holds. Raises `Problem` and `Unknown`."""
    value = required_value(frame, node)
    require_static(value, "a condition", node.span, mend)
    return truth(value)


def joined(frame: Frame, symbol: str, a: tuple[Value, ast.Expression], b: tuple[Value, ast.Expression], span: Span, hint: Hint) -> Value:
    """`a symbol b`. `a` and `b` are pairs: the value of an operand and its expression. Raises `Problem`."""
    (left, left_node), (right, right_node) = a, b
    if poisoned(left) or poisoned(right):
        return POISON
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        frame.run.spend_on(left, left_node.span)
        frame.run.spend_on(right, right_node.span)
        if symbol not in ARITHMETIC and (has_tensor(left) or has_tensor(right)):
            mend = "take one of its tensors by an index, or unpack it: a, b = ..."
            raise Problem("E0217", f"`{symbol}` doesn't work on {describe(left)} and {describe(right)}", span, "", mend)
        return arithmetic(symbol, left, right, span, frame.run.limits)
    if symbol == "/" and isinstance(left, Tensor) and not isinstance(right, Tensor):  # it is a scale then
        factor = scalar(frame, reciprocal(right, right_node.span), right_node.span)
        return combined(frame, BINARY["*"], operand(frame, left, left_node), Operand(factor, right_node.span), span, hint)
    if BINARY.get(symbol) not in OPS:
        message, label = f"`{symbol}` works on static values, not on tensors", f"{describe(left)} and {describe(right)}"
        raise Problem("E0217", message, span, label, "tensors have + - * / and @")
    return combined(frame, BINARY[symbol], operand(frame, left, left_node), operand(frame, right, right_node), span, hint)


def _text(frame: Frame, node: ast.Text, _: Hint) -> Value:
    parts = [part if isinstance(part, str) else _hole(frame, part) for part in node.parts]
    if any(part is None for part in parts):
        raise Unknown
    return bounded("".join(part for part in parts if part), node.span, frame.run.limits)


def _hole(frame: Frame, node: ast.Expression) -> str | None:
    value = evaluate(frame, node)
    if poisoned(value):
        return None
    if has_tensor(value):
        raise Problem("E0215", f"a string holds static values, and this is {describe(value)}", node.span, "known only when the model runs")
    frame.run.spend_on(value, node.span)
    return written(value)


def _items(frame: Frame, node: ast.Items, hint: Hint) -> Value:
    values = [evaluate(frame, item, wanted) for item, wanted in zip(node.items, hints_for_each(hint, len(node.items)), strict=True)]
    return bounded(items(tuple(values)), node.span, frame.run.limits)


def _unary(frame: Frame, node: ast.Unary, hint: Hint) -> Value:
    if node.operator == "not":
        return not condition(frame, node.operand, OPPOSITE)
    value = required_value(frame, node.operand)
    if not isinstance(value, Tensor):
        return negated(value, node.operator, node.span)
    if node.operator == "+":
        return value
    minus = Operand(scalar(frame, -1, node.span), node.span, "-1")
    return combined(frame, BINARY["*"], operand(frame, value, node.operand), minus, node.span, hint)


def _chain(frame: Frame, node: ast.Chain, hint: Hint) -> Value:
    left_node: ast.Expression = node.operands[0]
    left = evaluate(frame, left_node)
    last = len(node.operators) - 1
    for index, symbol in enumerate(node.operators):
        right_node = node.operands[index + 1]
        right = evaluate(frame, right_node)
        span = node.span if index == last else node.operands[0].span.to(right_node.span)
        left = joined(frame, symbol, (left, left_node), (right, right_node), span, hint if index == last else ())
        left_node = ast.Chain(span, (), ())  # where the value so far comes from: of an expression only its span is asked here
    return left


def _comparison(frame: Frame, node: ast.Comparison, hint: Hint) -> Value:
    left = evaluate(frame, node.operands[0])
    for index, symbol in enumerate(node.operators):
        left_node, right_node = node.operands[index], node.operands[index + 1]
        right = evaluate(frame, right_node)
        if poisoned(left) or poisoned(right):
            raise Unknown
        if (isinstance(left, Tensor) or isinstance(right, Tensor)) and COMPARISONS.get(symbol) in OPS:
            return _mask(frame, node, index, left, right, hint)
        for value, place in ((left, left_node), (right, right_node)):
            require_static(value, "what is compared", place.span)
            frame.run.spend_on(value, place.span)
        if not compared(symbol, left, right, left_node.span.to(right_node.span)):
            return False
        left = right
    return True


def _mask(frame: Frame, node: ast.Comparison, index: int, left: Value, right: Value, hint: Hint) -> Value:
    """A comparison of which a side is a tensor: 1.0 where it holds, and 0.0 elsewhere. Raises `Problem`."""
    if len(node.operators) > 1:
        raise Problem("E0217", "tensors are compared two at a time", node.span, "", "multiply the results: (a < b) * (b < c)")
    a, b = operand(frame, left, node.operands[index]), operand(frame, right, node.operands[index + 1])
    return combined(frame, COMPARISONS[node.operators[index]], a, b, node.span, hint)


def _logical(frame: Frame, node: ast.Logical, _: Hint) -> Value:
    """As in Python, the value of the operand that decides; those after it aren't evaluated."""
    for inner in node.operands:
        value = required_value(frame, inner)
        require_static(value, "a condition", inner.span, LOGIC)
        if truth(value) == (node.operator == "or"):
            break
    return value


def _conditional(frame: Frame, node: ast.Conditional, hint: Hint) -> Value:
    return evaluate(frame, node.value if condition(frame, node.condition) else node.otherwise, hint)


def _attribute(frame: Frame, node: ast.Attribute, _: Hint) -> Value:
    value = required_value(frame, node.value)
    name = node.name.text
    if not isinstance(value, Tensor):
        raise Problem("E0223", f"{describe(value)} has no .{name}", node.name.span, "only tensors have a .shape")
    if name != "shape":
        raise Problem("E0223", f"a tensor has no .{name}", node.name.span, "", advice("attributes", name) or did_you_mean(name, ["shape"]))
    return items(value.type.shape)


def _subscript(frame: Frame, node: ast.Subscript, hint: Hint) -> Value:
    value = evaluate(frame, node.value)
    if isinstance(value, Poison):
        raise Unknown
    if not isinstance(value, Tensor | Items | str):
        raise Problem("E0217", f"{describe(value)} can't be indexed", node.span, "", "lists, strings and tensors have elements")
    if not isinstance(value, Tensor) and len(node.indices) != 1:
        raise Problem("E0216", f"{describe(value)} takes one index, found {len(node.indices)}", node.span)
    indices = [_index(frame, index) for index in node.indices]
    return tensor_part(frame, value, node, indices, hint) if isinstance(value, Tensor) else static_part(frame, value, node, indices[0])


def _index(frame: Frame, node: ast.Expression | ast.Slice) -> int | slice:
    if not isinstance(node, ast.Slice):
        return integer(frame, node, "an index")
    parts = (node.start, node.stop, node.step)
    start, stop, step = (None if part is None else integer(frame, part, "the bound of a slice") for part in parts)
    if step == 0:
        raise Problem("E0226", "the step of a slice can't be 0", node.step.span if node.step else node.span)
    return slice(start, stop, step)


_RULES: Mapping[type, Callable[[Frame, Any, Hint], Value]] = {
    ast.Name: lambda frame, node, _: frame.lookup(node),
    ast.Number: lambda _frame, node, _: node.value,
    ast.Boolean: lambda _frame, node, _: node.value,
    ast.Text: _text,
    ast.Items: _items,
    ast.Unary: _unary,
    ast.Chain: _chain,
    ast.Comparison: _comparison,
    ast.Logical: _logical,
    ast.Conditional: _conditional,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: lambda frame, node, hint: frame.run.call(frame, node, hint),
}
