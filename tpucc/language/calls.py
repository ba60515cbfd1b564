"""Calls: of operators, which make nodes; of `def`s, which are inlined; of functions on static values. Arguments are bound as in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from tpucc.diagnostics import Label, Span, counted, did_you_mean, listed
from tpucc.language import ast
from tpucc.language.apply import Application, applied, converted, declared, inferred, operand, operands
from tpucc.language.expressions import evaluate
from tpucc.language.frame import Frame, Hint, function_names, is_function, is_operator
from tpucc.language.problem import LimitReached, Problem, Unknown
from tpucc.language.slices import split
from tpucc.language.statements import run_body
from tpucc.language.static import STATIC
from tpucc.language.types import tensor_type
from tpucc.language.values import POISON, ArgumentValue, Poison, Tensor, Value, describe, poisoned
from tpucc.language.words import advice
from tpucc.ops import OPS
from tpucc.ops.opdef import OpDef

IDENTITY_OUTSIDE_TRAINING = frozenset({"dropout"})
"""Operators that do something in `train` alone; elsewhere their value is their first operand, once the arguments are checked."""
Each = TypeVar("Each")


@dataclass(frozen=True, slots=True)
class Callee:
    """The callee of a call: its name, its parameters with whether each is required, its place if the source defines it, else its
    signature for messages, and its kind."""

    name: str
    formals: tuple[tuple[str, bool], ...]
    definition: Span | None
    signature: str
    kind: str = "operator"

    @property
    def notes(self) -> tuple[Label, ...]:
        return (Label(self.definition, f"{self.name} is defined here"),) if self.definition else ()

    @property
    def help(self) -> tuple[str, ...]:
        return () if self.definition else (f"the {self.kind} is {self.signature}",)


def bind(callee: Callee, arguments: Sequence[ast.Argument], values: Sequence[Each], span: Span) -> dict[str, Each]:
    """The value of each parameter's argument. Raises `Problem` when a parameter has none or two, or an argument has no parameter."""
    positional = [argument for argument in arguments if argument.name is None]
    if len(positional) > len(callee.formals):
        raise _too_many(callee, positional, len(positional))
    bound = {name: number for number, (name, _) in enumerate(callee.formals[: len(positional)])}
    for number, argument in enumerate(arguments):
        if argument.name is not None:
            name = argument.name.text
            _require_parameter(callee, argument.name)
            if name in bound:
                first = Label(arguments[bound[name]].span, "it already gets its value here")
                raise Problem(
                    "E0212", f"{callee.name} gets its argument {name} twice", argument.name.span, "", *callee.help, notes=(first,)
                )
            bound[name] = number
    missing = [name for name, required in callee.formals if required and name not in bound]
    if missing:
        what = f"the argument {missing[0]}" if len(missing) == 1 else f"the arguments {listed(missing)}"
        raise Problem("E0209", f"{callee.name} needs {what}", span, "missing in this call", *callee.help, notes=callee.notes)
    return {name: values[number] for name, number in bound.items()}


def _too_many(callee: Callee, positional: Sequence[ast.Argument], found: int) -> Problem:
    most = len(callee.formals)
    takes = f"at most {counted(most, 'argument')}" if not all(required for _, required in callee.formals) else counted(most, "argument")
    message = f"{callee.name} takes {takes if most else 'no arguments'}, found {found}"
    return Problem("E0210", message, positional[most].span, "one too many", *callee.help, notes=callee.notes)


def _require_parameter(callee: Callee, name: ast.Identifier) -> None:
    names = [name for name, _ in callee.formals]
    if name.text not in names:
        near = did_you_mean(name.text, names)
        known = f"its arguments are {listed(names)}" if names else "it takes none"
        instead = "" if callee.definition else _instead(name.text, names)
        mends = (instead, known) if instead else (near or known,)
        raise Problem("E0211", f"{callee.name} has no argument {name.text}", name.span, "", *mends, notes=callee.notes)


def _instead(name: str, names: Sequence[str]) -> str:
    """Our argument for another framework's argument `name`, of an operator with the arguments `names`; empty when unknown."""
    here = advice("renamed", name)
    return f"the argument is called {here} here" if here in names else advice("arguments", name)


SPLIT = Callee("split", (("x", True), ("parts", True), ("axis", True)), None, "split(x, parts, axis)", "function")


def call(frame: Frame, node: ast.Call, hint: Hint) -> Value:
    """The value of a call. Raises `Problem` and `Unknown`."""
    function = node.function
    if not isinstance(function, ast.Name):
        raise _not_a_name(frame, function)
    name = function.text
    if name in frame.run.functions:
        return _inlined(frame, frame.run.functions[name], node, hint)
    if not is_operator(name) and name not in STATIC and name != SPLIT.name:
        raise _unknown(frame, function, node.span)
    given = [ArgumentValue(evaluate(frame, argument.value), argument) for argument in node.arguments]
    for each in given:
        frame.run.spend_on(each.value, each.span)
    if name == SPLIT.name:
        bound = bind(SPLIT, node.arguments, given, node.span)
        _require_right(given)
        return split(frame, bound, node.span, hint)
    if name in STATIC and not (is_operator(name) and given and isinstance(given[0].value, Tensor)):
        if is_operator(name):
            _require_right(given[:1])  # else it isn't known whether the operator or the function of numbers was meant
        return _static(name, given, node.span)
    return _applied(frame, OPS[name], node, given, hint)


def _require_right(given: Sequence[ArgumentValue]) -> None:
    """Raises `Unknown` when a value is wrong, which is reported."""
    if any(poisoned(each.value) for each in given):
        raise Unknown


def _static(name: str, given: Sequence[ArgumentValue], span: Span) -> Value:
    for each in given:
        if each.argument.name is not None:
            raise Problem("E0211", f"{name} takes no keyword arguments", each.argument.name.span)
    _require_right(given)
    return STATIC[name](given, span)


def _applied(frame: Frame, operator: OpDef[Any], node: ast.Call, given: Sequence[ArgumentValue], hint: Hint) -> Value:
    """The node of an operator."""
    name, fields = operator.name, declared(cast(Any, operator.attributes))
    formals = (*((place.name, not place.optional) for place in operator.operands), *((field, required) for field, _, required in fields))
    bound = bind(Callee(name, formals, None, operator.signature), node.arguments, given, node.span)
    _require_right(given)
    tensors = [x for place in operator.operands if place.name in bound for x in operands(frame, bound[place.name], place.many, name)]
    places = {field: bound[field].expression.span for field, _, _ in fields if field in bound}
    limits = frame.run.limits
    values = {field: converted(field, bound[field].value, kind, places[field], limits) for field, kind, _ in fields if field in bound}
    made = Application(frame, name, tensors, operator.attributes(**values), node.span, places)
    if name in IDENTITY_OUTSIDE_TRAINING and not frame.run.training:
        inferred(made)
        return tensors[0].tensor
    return applied(made, hint)


def _inlined(frame: Frame, definition: ast.Def | ast.ModelDef, node: ast.Call, hint: Hint) -> Value:
    """The value of a call of a `def`, or of the model where `train` calls it: its body runs in a frame of its own."""
    name = definition.name.text
    if isinstance(definition, ast.ModelDef) and name in frame.functions:
        raise _of_model(name, node.span)
    given = [ArgumentValue(_argument(frame, definition, number, argument), argument) for number, argument in enumerate(node.arguments)]
    _require_call(frame, name, node.span)
    parameters = definition.parameters if isinstance(definition, ast.Def) else definition.inputs
    formals = tuple((each.name.text, isinstance(each, ast.Input) or each.default is None) for each in parameters)
    bound = bind(Callee(name, formals, definition.span, ""), node.arguments, given, node.span)
    inner = Frame(frame.run, definition.body, calls=(node.span, *frame.calls), functions=(name, *frame.functions), hint=hint)
    inner.caller, inner.arguments = frame, bound
    frame.run.called.add(name)
    for each in parameters:
        inner.variables[each.name.text] = _received(inner, each, bound.get(each.name.text))
    try:
        return inner.result if run_body(inner, name, definition.span) else POISON
    except LimitReached as reached:
        reached.calls = inner.calls if reached.calls is None else reached.calls
        raise


def _require_call(frame: Frame, name: str, span: Span) -> None:
    """Raises `Problem` for a `def` that calls itself, and `LimitReached` for too many calls."""
    run = frame.run
    if name in frame.functions:
        cycle = [*reversed(frame.functions[: frame.functions.index(name) + 1]), name]
        message = f"{name} calls itself" if len(cycle) == 2 else f"{name} calls itself: {' → '.join(cycle)}"
        raise Problem("E0208", message, span, "", "a def is inlined at each call, which would never end; write a loop")
    if len(frame.calls) >= run.limits.calls:
        raise LimitReached("E0602", f"more than {run.limits.calls} calls inside each other", span)
    run.calls += 1
    if run.calls > run.limits.all_calls:
        message = f"defs are called more than {run.limits.all_calls:,} times in all"
        help = "a def is inlined at each call: if each of 20 calls the one before it twice, the first is called a million times"
        raise LimitReached("E0608", message, span, "the last of these calls", help)


def _argument(frame: Frame, definition: ast.Def | ast.ModelDef, number: int, argument: ast.Argument) -> Value:
    """The value of an argument; of a name without one, where a weight's key takes it, the help is quotation marks."""
    value = argument.value
    if not isinstance(value, ast.Name) or value.text in frame.variables or value.text in frame.run.params:
        return evaluate(frame, value)
    positional = definition.parameters[number : number + 1] if isinstance(definition, ast.Def) else ()
    formal = argument.name.text if argument.name is not None else next((each.name.text for each in positional), "")
    mend = f'a string stands in quotation marks: "{value.text}"' if _is_in_key(definition, formal) else ""
    frame.report(frame.unknown(value, mend))
    return POISON


def _is_in_key(definition: ast.Def | ast.ModelDef, formal: str) -> bool:
    keys = (each.key for each in ast.statements(definition.body) if isinstance(each, ast.Weight))
    parts = (part for key in keys for part in (key.parts if isinstance(key, ast.Text) else (key,)))
    return any(isinstance(part, ast.Name) and part.text == formal for part in parts)


def _received(inner: Frame, formal: ast.Parameter | ast.Input, given: ArgumentValue | None) -> Value:
    """The value of a parameter. A default sees the params, and nothing of the call."""
    if isinstance(formal, ast.Input):
        assert given is not None
        return _input(inner, formal, given)
    if given is not None:
        return given.value
    assert formal.default is not None
    return evaluate(Frame(inner.run, calls=inner.calls, functions=inner.functions), formal.default)


def _input(inner: Frame, declared: ast.Input, given: ArgumentValue) -> Value:
    """The tensor for an input of the model; `POISON` when it isn't of the input's type, or its range reaches further, which is reported."""
    frame, type_ = inner.caller, tensor_type(Frame(inner.run), declared.type)
    assert frame is not None
    if isinstance(type_, Poison) or poisoned(given.value):
        return POISON
    tensor = operand(frame, given.value, given.expression).tensor
    wanted, found, name = type_.range, tensor.type.range, declared.name.text
    outside = wanted is not None and found is not None and not wanted.low <= found.low <= found.high <= wanted.high
    if tensor.type.plain() != type_.plain() or outside:
        takes, is_ = (type_, tensor.type) if outside else (type_.plain(), tensor.type.plain())
        message = f"{inner.functions[0]} takes {takes} for {name}, and {frame.run.excerpt(given.expression.span) or 'this'} is {is_}"
        frame.report(Problem("E0929", message, given.span, notes=(Label(declared.span, f"{name} is declared here"),)))
        return POISON
    return tensor


def _of_model(name: str, span: Span) -> Problem:
    return Problem("E0928", f"{name} is the model, which only train calls", span, "", "what two places compute belongs into a def")


def _not_a_name(frame: Frame, function: ast.Expression) -> Problem:
    if isinstance(function, ast.Attribute):
        value, name = function.value, function.name.text
        whole = frame.run.excerpt(value.span) or "x"
        mend = f"write {name}({whole}, …)" if is_function(name) and whole not in ("np", "tf", "nn", "torch", "F") else ""
        mend = mend or (f"write {name}(…)" if is_function(name) else "operators are called by their own names: relu(x)")
        return Problem("E0220", f".{name} can't be called: values have no methods", function.name.span, "", mend)
    value_ = evaluate(frame, function)
    shown = "this" if isinstance(value_, Poison) else describe(value_)
    return Problem("E0220", f"{shown} isn't a function", function.span, "", "only names of operators and defs are called")


def _unknown(frame: Frame, function: ast.Name, span: Span) -> Problem:
    name = function.text
    if name == "range":
        return Problem("E0225", "range stands only in a for", function.span, "", "for i in range(n):")
    if name in frame.variables or name in frame.run.params:
        value = frame.lookup(function)
        mend = f"a part of it is taken with square brackets: {name}[…]" if not isinstance(value, Poison) else ""
        return Problem("E0220", f"{name} is {describe(value)}, not a function", function.span, "", mend)
    if name == frame.run.model:
        return _of_model(name, span)
    near = did_you_mean(name, {*frame.run.functions, *function_names()})
    return Problem("E0203", f"no function is named {name}", function.span, "not known here", advice("functions", name) or near)
