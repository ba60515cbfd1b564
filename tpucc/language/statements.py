"""Running statements: loops are unrolled, conditions decided, weights declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpucc.diagnostics import Label, Span, counted
from tpucc.ir import Node, TensorType
from tpucc.language import ast
from tpucc.language.expressions import condition, evaluate, joined, required_values
from tpucc.language.frame import Declared, Frame, Hint, as_integer, assigned, identifiers, sanitised
from tpucc.language.problem import LimitReached, Problem, Unknown
from tpucc.language.static import require_static
from tpucc.language.types import tensor_type
from tpucc.language.values import POISON, Items, Poison, Tensor, Value, describe, is_integer, items, poisoned
from tpucc.ops.weight import WeightAttributes


def run_block(frame: Frame, block: tuple[ast.Statement, ...]) -> bool:
    """Runs statements in order; True when one of them returned."""
    return any(_run(frame, statement) for statement in block)


def run_body(frame: Frame, what: str, span: Span) -> bool:
    """Runs the body of a frame; True when it returned. One that doesn't is reported, unless it has an error, which may be why."""
    reported = len(frame.run.reports.found)
    run_block(frame, frame.body)
    if not frame.has_returned and len(frame.run.reports.found) == reported:
        frame.report(Problem("E0213", f"{what} ends without returning a value", span, "", "end it with: return …"))
    return frame.has_returned


def returned(frame: Frame) -> tuple[tuple[Value, ...], tuple[ast.Expression, ...]]:
    """The values that a body returned, and the expression of each; a call or a variable that is a list stands for all of its parts."""
    assert frame.returned is not None
    if not isinstance(frame.result, Items):
        return (frame.result,), (frame.returned,)
    return frame.result.values, ast.parts(frame.returned, len(frame.result.values))


def _run(frame: Frame, statement: ast.Statement) -> bool:
    frame.run.spend(1, statement.span)
    try:
        return _RULES[type(statement)](frame, statement)
    except (Problem, Unknown) as wrong:
        frame.report(wrong)
        _poison(frame, (statement,))
        if isinstance(statement, ast.If) and any(isinstance(inner, ast.Return) for inner in ast.statements((statement,))):
            frame.has_returned = True
            return True
        return False
    except RecursionError:
        raise LimitReached("E0602", "too many operations, blocks and calls inside each other", statement.span) from None


def _poison(frame: Frame, block: tuple[ast.Statement, ...]) -> None:
    """After an error: what a block would have assigned is unknown."""
    for name in assigned(block):
        frame.variables[name.text] = POISON


def _assign(frame: Frame, node: ast.Assign) -> bool:
    if node.operator:
        assert isinstance(node.target, ast.Identifier)
        name = ast.Name(node.target.span, node.target.text)
        before, value = evaluate(frame, name), evaluate(frame, node.value)
        value = joined(frame, node.operator, (before, name), (value, node.value), node.span, _hint(node.target))
    else:
        value = evaluate(frame, node.value, _hint(node.target))
    _bind(frame, node.target, value)
    return False


def _hint(target: ast.Target) -> Hint:
    return tuple(name.text for name in identifiers(target))


def _bind(frame: Frame, target: ast.Target, value: Value) -> None:
    """Gives a target its value. Raises `Problem` when they don't have the same number of parts."""
    if isinstance(target, ast.Identifier):
        frame.variables[target.text] = value
        return
    count = len(target.targets)
    if isinstance(value, Poison):
        value = items((POISON,) * count)
    if not isinstance(value, Items):
        mend = "take its parts by index: x[0]" if isinstance(value, Tensor) else ""
        raise Problem("E0214", f"{counted(count, 'name')} for one value, {describe(value)}", target.span, "", mend)
    if len(value.values) != count:
        message = f"{counted(count, 'name')} for {counted(len(value.values), 'value')}"
        raise Problem("E0214", message, target.span, "the right side has more" if len(value.values) > count else "the right side has fewer")
    for inner, part in zip(target.targets, value.values, strict=True):
        _bind(frame, inner, part)


def _weight(frame: Frame, node: ast.Weight) -> bool:
    type_ = tensor_type(frame, node.type, bounded_for="a weight")
    key = evaluate(frame, node.key) if node.key is not None else node.name.text
    frame.variables[node.name.text] = POISON
    if isinstance(type_, Poison) or poisoned(key):
        return False
    place = node.key.span if node.key is not None else node.name.span
    require_static(key, "the key of a weight", place)
    if not isinstance(key, str):
        raise Problem("E0216", f"the key of a weight must be a string, found {describe(key)}", place)
    if not key:
        raise Problem("E0402", "the key of a weight is empty", place, "", "it names an array of the weight file")
    if node.key is None and node.span in frame.declared:
        frame.run.repeated.add(node.span)
    frame.declared.add(node.span)
    frame.variables[node.name.text] = _declared(frame, node, key, type_)
    return False


def _declared(frame: Frame, node: ast.Weight, key: str, type_: TensorType) -> Node:
    """The node of the weight `key`: one for all its declarations. Raises `Problem` when they differ."""
    known = frame.run.weights.get(key)
    if known is None:
        made = frame.add("weight", (), WeightAttributes(key), type_, node.span, (sanitised(key),))
        frame.run.weights[key] = Declared(made, node.type.span, node.fixed)
        return made
    if known.node.type != type_:
        message = f'the weight "{key}" is declared with two types'
        mend = "weights with one key are one array: give them different keys, or one type"
        if known.span == node.type.span:
            mend = 'this line runs more than once: put what differs into the key, as in "w{i}" in a loop, or "{name}.w" in a function'
        notes = (
            Label(known.span, f"{known.node.type.brief} here"),
            *(Label(call, "first by this call") for call in known.node.origin.calls[:1]),
        )
        raise Problem("E0401", message, node.type.span, f"{type_.brief} here", mend, notes=notes)
    if (known.fixed is None) != (node.fixed is None):
        message = f'the weight "{key}" is fixed in one declaration and not in another'
        label, other = ("fixed here", "not here") if node.fixed else ("not fixed here", "fixed here")
        mend = "weights with one key are one array: write fixed in both, or in none"
        raise Problem("E0927", message, node.span, label, mend, notes=(Label(known.fixed or known.span, other),))
    return known.node


def _for(frame: Frame, node: ast.For) -> bool:
    try:
        values = _values(frame, node.values)
    except Unknown:
        _poison(frame, (node,))
        return run_block(frame, node.body)
    limit = frame.run.limits.iterations
    is_too_long = bool(values[limit - frame.run.rounds :]) and not any(isinstance(inner, ast.Return) for inner in ast.statements(node.body))
    for number, value in enumerate(values):
        if frame.run.rounds >= limit or (is_too_long and number):  # the first round shows what else is wrong
            mend = "each round makes operations of its own: let it run fewer times, or let one operation compute a whole array"
            raise LimitReached("E0604", f"the loops run more than {limit:,} times", node.span, "", mend)
        frame.run.rounds += 1
        _bind(frame, node.target, value)
        if run_block(frame, node.body):
            return True
        if frame.run.reports:
            break  # more rounds would hardly find more, and there may be a million
    return False


def _values(frame: Frame, node: ast.Expression) -> Sequence[Value]:
    """The values that a loop runs over: a range, or a static list. Raises `Problem` and `Unknown`."""
    if isinstance(node, ast.Call) and isinstance(node.function, ast.Name) and node.function.text == "range":
        return _range(frame, node)
    value = evaluate(frame, node)
    if isinstance(value, Poison):
        raise Unknown
    if isinstance(value, Items):
        return value.values
    mend = "for i in range(n):, or a list: for units in [64, 32]:"
    if is_integer(value):
        mend = f"for i in range({value}):"
    if isinstance(value, Tensor):
        mend = "for t in range(x.shape[0]):, and take x[t]"
    raise Problem("E0225", f"a loop can't run over {describe(value)}", node.span, "", mend)


def _range(frame: Frame, node: ast.Call) -> range:
    arguments = node.arguments
    values = required_values(frame, [argument.value for argument in arguments])
    for argument in arguments:
        if argument.name is not None:
            raise Problem("E0211", "range takes no keyword arguments", argument.name.span)
    if not 1 <= len(values) <= 3:
        code, message = "E0210" if values else "E0209", f"range takes one to three arguments, found {len(values)}"
        raise Problem(code, message, node.span, "", "range(stop), range(start, stop) or range(start, stop, step)")
    bounds = [as_integer(frame, value, each.value, "the bound of a loop") for value, each in zip(values, arguments, strict=True)]
    if len(bounds) == 3 and bounds[2] == 0:
        raise Problem("E0225", "a loop with the step 0 never ends", arguments[2].span)
    return range(*bounds)


def _if(frame: Frame, node: ast.If) -> bool:
    chosen = next((branch.body for branch in node.branches if condition(frame, branch.condition)), node.otherwise)
    return run_block(frame, chosen)


def _return(frame: Frame, node: ast.Return) -> bool:
    frame.has_returned, frame.returned = True, node.value
    if node.value is None:
        raise Problem("E0213", "return needs a value", node.span, "", "write return y, or return a, b")
    frame.result = evaluate(frame, node.value, frame.hint)
    return True


_RULES: Mapping[type, Callable[[Frame, Any], bool]] = {
    ast.Assign: _assign,
    ast.Weight: _weight,
    ast.For: _for,
    ast.If: _if,
    ast.Return: _return,
    ast.Pass: lambda _frame, _node: False,
}
