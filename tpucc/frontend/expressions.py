"""Evaluating expressions: static values are computed at once, tensors become nodes of the graph.

A wrong expression is reported where it is and is worth `POISON` from there on, so that one run finds every independent error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.diagnostics import Span, counted, did_you_mean
from tpucc.frontend import ast
from tpucc.frontend.apply import BINARY, COMPARISONS, Application, Operand, applied, combined, operand, reciprocal, scalar
from tpucc.frontend.frame import Frame, Hint
from tpucc.frontend.origins import integer_mend
from tpucc.frontend.problem import Problem
from tpucc.frontend.static import ARITHMETIC, arithmetic, bounded, compared, negated, require_integer, require_static, truth
from tpucc.frontend.values import POISON, Items, Poison, Tensor, Value, describe, has_tensor, items, poisoned, written
from tpucc.ops import OPS
from tpucc.ops.slice import SliceAttributes

UNNAMED: Hint = ()
CHOICE = "where(mask, a, b) chooses between tensors, element by element"
LOGIC = "of two masks, a * b is 1 where both are, and maximum(a, b) where one is"
OPPOSITE = "1 - mask is the opposite of a mask"


@dataclass(frozen=True, slots=True)
class Part:
    """The places of one axis that are taken; `dropped` when the axis was indexed by an integer."""

    places: range
    dropped: bool = False


class PoisonedIndex(Exception):
    """An index is wrong, and reported."""


def evaluate(frame: Frame, node: ast.Expression, hint: Hint = UNNAMED) -> Value:
    """The value of an expression; `POISON` when it is wrong, which is then reported."""
    frame.run.spend(1, node.span)
    try:
        return _RULES[type(node)](frame, node, hint)
    except Problem as problem:
        frame.report(problem)
    except PoisonedIndex:
        pass
    return POISON


def condition(frame: Frame, node: ast.Expression, mend: str = CHOICE) -> bool | Poison:
    """Whether a static condition holds; `POISON` when it is wrong, which is then reported."""
    value = evaluate(frame, node)
    try:
        require_static(value, "a condition", node.span, mend)
    except Problem as problem:
        frame.report(problem)
        return POISON
    assert not isinstance(value, Tensor)
    return value if isinstance(value, Poison) else truth(value)


def joined(frame: Frame, symbol: str, a: tuple[Value, ast.Expression], b: tuple[Value, ast.Expression], span: Span, hint: Hint) -> Value:
    """`a symbol b`: each a value with the expression that it comes from. Raises `Problem`."""
    (left, left_node), (right, right_node) = a, b
    if poisoned(left) or poisoned(right):
        return POISON
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        frame.run.spend_on(left, left_node.span)
        frame.run.spend_on(right, right_node.span)
        if has_tensor(left) or has_tensor(right):
            return _list_of_tensors(symbol, left, right, span, frame)
        return arithmetic(symbol, left, right, span, frame.run.limits)
    if symbol == "/" and isinstance(left, Tensor) and not isinstance(right, Tensor):
        factor = scalar(frame, reciprocal(right, right_node.span), right_node.span)
        return combined(frame, BINARY["*"], operand(frame, left, left_node), Operand(factor, right_node.span), span, hint)
    if BINARY.get(symbol) not in OPS:
        message, label = f"`{symbol}` works on static values, not on tensors", f"{describe(left)} and {describe(right)}"
        raise Problem("E0217", message, span, label, "tensors have + - * / and @")
    return combined(frame, BINARY[symbol], operand(frame, left, left_node), operand(frame, right, right_node), span, hint)


def _list_of_tensors(symbol: str, left: Value, right: Value, span: Span, frame: Frame) -> Value:
    if symbol in ARITHMETIC:
        return arithmetic(symbol, left, right, span, frame.run.limits)
    mend = ("take one of its tensors by an index, or unpack it: a, b = ...",)
    raise Problem("E0217", f"`{symbol}` doesn't work on {describe(left)} and {describe(right)}", span, "", *mend)


def _text(frame: Frame, node: ast.Text, _: Hint) -> Value:
    parts = [part if isinstance(part, str) else _hole(frame, part) for part in node.parts]
    if any(part is None for part in parts):
        return POISON
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
    hints = [(name,) for name in hint] if len(hint) == len(node.items) else [UNNAMED] * len(node.items)
    values = tuple([evaluate(frame, item, wanted) for item, wanted in zip(node.items, hints, strict=True)])
    return bounded(items(values), node.span, frame.run.limits)


def _unary(frame: Frame, node: ast.Unary, hint: Hint) -> Value:
    if node.operator == "not":
        held = condition(frame, node.operand, OPPOSITE)
        return held if isinstance(held, Poison) else not held
    value = evaluate(frame, node.operand)
    if poisoned(value):
        return POISON
    if not isinstance(value, Tensor):
        return negated(value, node.operator, node.span)
    if node.operator == "+":
        return value
    return combined(
        frame, BINARY["*"], operand(frame, value, node.operand), Operand(scalar(frame, -1, node.span), node.span, "-1"), node.span, hint
    )


def _chain(frame: Frame, node: ast.Chain, hint: Hint) -> Value:
    left_node: ast.Expression = node.operands[0]
    left = evaluate(frame, left_node)
    last = len(node.operators) - 1
    for index, symbol in enumerate(node.operators):
        right_node = node.operands[index + 1]
        right = evaluate(frame, right_node)
        span = node.span if index == last else node.operands[0].span.to(right_node.span)
        left = joined(frame, symbol, (left, left_node), (right, right_node), span, hint if index == last else UNNAMED)
        left_node = ast.Chain(span, (), ())
    return left


def _comparison(frame: Frame, node: ast.Comparison, hint: Hint) -> Value:
    left = evaluate(frame, node.operands[0])
    for index, symbol in enumerate(node.operators):
        left_node, right_node = node.operands[index], node.operands[index + 1]
        right = evaluate(frame, right_node)
        if poisoned(left) or poisoned(right):
            return POISON
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
    for index, inner in enumerate(node.operands):
        value = evaluate(frame, inner)
        if isinstance(value, Poison):
            return POISON
        require_static(value, "a condition", inner.span, LOGIC)
        assert not isinstance(value, Tensor)
        if index == len(node.operands) - 1 or truth(value) == (node.operator == "or"):
            return value
    return POISON


def _conditional(frame: Frame, node: ast.Conditional, hint: Hint) -> Value:
    held = condition(frame, node.condition)
    if isinstance(held, Poison):
        return POISON
    return evaluate(frame, node.value if held else node.otherwise, hint)


def _attribute(frame: Frame, node: ast.Attribute, _: Hint) -> Value:
    value = evaluate(frame, node.value)
    if poisoned(value):
        return POISON
    name = node.name.text
    if not isinstance(value, Tensor):
        raise Problem("E0223", f"{describe(value)} has no .{name}", node.name.span, "only tensors have a .shape")
    if name != "shape":
        known = {"T": "write transpose(x, (1, 0))", "ndim": "write len(x.shape)", "size": "multiply the sizes of x.shape"}
        raise Problem("E0223", f"a tensor has no .{name}", node.name.span, "", known.get(name) or did_you_mean(name, ["shape"]))
    return items(value.type.shape)


def _subscript(frame: Frame, node: ast.Subscript, hint: Hint) -> Value:
    value = evaluate(frame, node.value)
    if isinstance(value, Poison):
        return POISON
    if isinstance(value, Tensor):
        return _tensor_part(frame, value, node, hint)
    if isinstance(value, Items | str):
        return _static_part(frame, value, node)
    raise Problem("E0217", f"{describe(value)} can't be indexed", node.span, "", "lists, strings and tensors have elements")


def _tensor_part(frame: Frame, tensor: Tensor, node: ast.Subscript, hint: Hint) -> Tensor:
    """A part of a tensor. Raises `Problem`, or `PoisonedIndex`."""
    variable = node.value.text if isinstance(node.value, ast.Name) else ""
    name = variable or frame.run.excerpt(node.value.span) or "the tensor"
    indices = [_index(frame, index) for index in node.indices]
    type_ = tensor.type
    if len(indices) > type_.rank:
        message = f"{counted(len(indices), 'index', 'indices')} for {counted(type_.rank, 'dimension')}"
        raise Problem("E0303", message, node.span, f"{name} is {type_.brief}")
    parts = [
        _part(index, place.span, axis, type_.shape[axis], name)
        for axis, (index, place) in enumerate(zip(indices, node.indices, strict=True))
    ]
    parts += [Part(range(size)) for size in type_.shape[len(parts) :]]
    if all(part == Part(range(size)) for part, size in zip(parts, type_.shape, strict=True)):
        return tensor
    squeeze = tuple(axis for axis, part in enumerate(parts) if part.dropped)
    starts, stops, steps = zip(*((part.places.start, part.places.stop, part.places.step) for part in parts), strict=True)
    attributes = SliceAttributes(starts, stops, squeeze, steps if set(steps) != {1} else ())
    operand = Operand(tensor, node.value.span, variable)
    return applied(Application(frame, "slice", (operand,), attributes, node.span), hint)


def _static_part(frame: Frame, value: Items | str, node: ast.Subscript) -> Value:
    """An element or a slice of a list or a string. Raises `Problem`, or `PoisonedIndex`."""
    if len(node.indices) != 1:
        raise Problem("E0216", f"{describe(value)} takes one index, found {len(node.indices)}", node.span)
    index = _index(frame, node.indices[0])
    values: Sequence[Value] = value.values if isinstance(value, Items) else value
    if isinstance(index, slice):
        frame.run.spend_on(value, node.span)
        return value[index] if isinstance(value, str) else items(value.values[index])
    if not -len(values) <= index < len(values):
        reach = _reach(frame.run.excerpt(node.value.span) or "the list", len(values))
        scalar = isinstance(node.value, ast.Attribute) and node.value.name.text == "shape" and not values
        mend = "the shape of a scalar has no sizes" if scalar else ""
        raise Problem("E0219", f"index {index} is out of range", node.indices[0].span, reach, mend)
    return values[index]


def _index(frame: Frame, node: ast.Expression | ast.Slice) -> int | slice:
    if not isinstance(node, ast.Slice):
        return _integer(frame, node, "an index")
    start, stop, step = (
        None if part is None else _integer(frame, part, "the bound of a slice") for part in (node.start, node.stop, node.step)
    )
    if step == 0:
        raise Problem("E0226", "the step of a slice can't be 0", node.step.span if node.step else node.span)
    return slice(start, stop, step)


def _integer(frame: Frame, node: ast.Expression, what: str) -> int:
    value = evaluate(frame, node)
    if isinstance(value, Poison):
        raise PoisonedIndex
    return require_integer(value, what, node.span, integer_mend(frame, node, value))


def _part(index: int | slice, span: Span, axis: int, size: int, name: str) -> Part:
    if isinstance(index, int):
        if not -size <= index < size:
            raise Problem("E0313", f"index {index} is out of range for axis {axis} of {name}", span, _reach(f"axis {axis}", size))
        return Part(range(index % size, index % size + 1), dropped=True)
    places = range(*index.indices(size))
    if not places:
        message = f"this slice takes nothing of axis {axis} of {name}"
        raise Problem("E0308", message, span, f"axis {axis} has {counted(size, 'element')}", "a tensor has at least one element")
    return Part(places if len(places) > 1 else range(places[0], places[0] + 1))


def _reach(name: str, size: int) -> str:
    if size == 0:
        return f"{name} is empty"
    return f"{name} has {counted(size, 'element')}: 0 to {size - 1}, or -{size} to -1"


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
