"""Calls: of operators, which make nodes; of `def`s, which are inlined; of the functions on static values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tpucc.diagnostics import Label, Span, did_you_mean
from tpucc.frontend import ast, builtins, splitting
from tpucc.frontend.apply import Application, Operand, applied, inferred, operand, tensors_of
from tpucc.frontend.attributes import converted, declared
from tpucc.frontend.binding import Callee, bind
from tpucc.frontend.expressions import evaluate
from tpucc.frontend.frame import Frame, Hint, function_names, is_function, is_operator
from tpucc.frontend.problem import LimitReached, Problem
from tpucc.frontend.statements import run_body
from tpucc.frontend.training import IDENTITY_OUTSIDE_TRAINING
from tpucc.frontend.types import tensor_type
from tpucc.frontend.values import POISON, Poison, Tensor, Value, describe, poisoned
from tpucc.ops import OPS
from tpucc.ops.opdef import OpDef

PYTHON_FUNCTIONS = {
    "print": "tpucc shows shapes in its reports; nothing is printed while compiling",
    **dict.fromkeys(("int", "round"), "// divides without a remainder"),
    **dict.fromkeys(("enumerate", "zip"), "count with range: for i in range(len(values)):"),
    **dict.fromkeys(("Dense", "Linear"), "a dense layer is a product with a weight: x @ w + b"),
    **dict.fromkeys(("dense", "linear"), "write it as a def: return x @ w + b"),
    "convolution": "write it as a def: return conv2d(x, w) + b",
    "arithmetic": "write + - * between tensors",
    **dict.fromkeys(("weight", "Parameter", "Variable"), "a weight is declared in a line of its own: weight w: f32[16, 4]"),
    "dot": "the product of tensors is a @ b",
    "super": "there are no classes: a def makes the layers of a model",
    "random": "weights random(seed=0), at the top level, draws the weights",
    "str": 'a string takes values in holes: "layer{i}"',
    **dict.fromkeys(("LayerNorm", "LayerNormalization"), "layer_norm(x, gamma, beta) normalises rows, with weights for gamma and beta"),
    "depthwise_conv2d": "conv2d(x, w, groups=x.shape[3]), with a kernel [height, width, 1, filters]",
    **dict.fromkeys(("upsample", "interpolate", "UpSampling2D"), "resize(x, (height, width)) makes images larger"),
    "Conv2DTranspose": "conv_transpose2d(x, w), with a kernel [height, width, channels in, filters]",
    "conv1d": "write it as conv2d of an image that is one pixel high",
    **dict.fromkeys(("lstm", "LSTM", "gru", "GRU"), "write it as a def of one step, called in a loop over x[:, t]"),
    "attention": "write it out: softmax(q @ transpose(k, (0, 2, 1))) @ v; the host multiplies computed values",
    **dict.fromkeys(("squeeze", "unsqueeze", "expand_dims"), "reshape adds and removes axes of size 1"),
    "stack": "reshape adds the axis, and concat joins along it",
    "chunk": "split(x, parts, axis) gives the parts as a tuple",
}


def call(frame: Frame, node: ast.Call, hint: Hint) -> Value:
    """The value of a call. Raises `Problem`."""
    function = node.function
    if not isinstance(function, ast.Name):
        raise _not_a_name(frame, function)
    name = function.text
    if name in frame.run.functions:
        return _call_defined(frame, frame.run.functions[name], node, hint)
    if not is_operator(name) and name not in builtins.STATIC and name != splitting.NAME:
        raise _unknown(frame, function, node.span)
    values = _read(frame, node.arguments)
    if name == splitting.NAME:
        return splitting.split(frame, node, values, hint)
    first = next(iter(values.values()), None)
    if name in builtins.STATIC and is_operator(name) and first is not None and poisoned(first):
        return POISON  # whether the operator or the function of numbers was meant isn't known
    static = name in builtins.STATIC and not isinstance(first, Tensor)
    if static or not is_operator(name):
        return _call_static(name, node, values)
    return _call_operator(frame, OPS[name], node, values, hint)


def _evaluated(frame: Frame, arguments: Sequence[ast.Argument]) -> dict[int, Value]:
    """The values of all arguments, by identity: each is evaluated once, and reports its own errors."""
    return {id(argument): evaluate(frame, argument.value) for argument in arguments}


def _read(frame: Frame, arguments: Sequence[ast.Argument]) -> dict[int, Value]:
    """The values of the arguments of what reads the whole of them."""
    values = _evaluated(frame, arguments)
    for argument in arguments:
        frame.run.spend_on(values[id(argument)], argument.span)
    return values


def _call_static(name: str, node: ast.Call, arguments: Mapping[int, Value]) -> Value:
    for argument in node.arguments:
        if argument.name is not None:
            raise Problem("E0211", f"{name} takes no keyword arguments", argument.name.span)
    values = list(arguments.values())
    if any(map(poisoned, values)):
        return POISON
    return builtins.call(name, values, [argument.span for argument in node.arguments], node.span)


def _call_operator(frame: Frame, operator: OpDef[Any], node: ast.Call, values: Mapping[int, Value], hint: Hint) -> Value:
    fields = declared(cast(Any, operator.attributes))
    formals = [(place.name, not place.optional) for place in operator.operands] + [(name, required) for name, _, required in fields]
    callee = Callee(operator.name, tuple(formals), None, operator.signature)
    bound = bind(callee, node.arguments, node.span)
    if any(poisoned(value) for value in values.values()):
        return POISON
    operands = _operands(frame, operator, bound, values)
    if operands is None:
        return POISON
    given = {
        name: converted(name, values[id(bound[name])], annotation, bound[name].value.span, frame.run.limits)
        for name, annotation, _ in fields
        if name in bound
    }
    places = {name: bound[name].value.span for name in given}
    made = Application(frame, operator.name, operands, operator.attributes(**given), node.span, places)
    if operator.name in IDENTITY_OUTSIDE_TRAINING and not frame.run.training:
        inferred(made)
        return operands[0].tensor
    return applied(made, hint)


def _operands(frame: Frame, operator: OpDef[Any], bound: Mapping[str, ast.Argument], values: Mapping[int, Value]) -> list[Operand] | None:
    found: list[Operand] = []
    for place in operator.operands:
        if place.name not in bound:
            continue
        argument = bound[place.name]
        value = values[id(argument)]
        if not place.many:
            found.append(operand(frame, value, argument.value))
        elif (tensors := tensors_of(frame, value, argument.value, operator.name)) is not None:
            found.extend(tensors)
        else:
            return None
    return found


def _call_defined(frame: Frame, definition: ast.Def | ast.ModelDef, node: ast.Call, hint: Hint) -> Value:
    """Inlines a `def`, or the model where `train` calls it."""
    name = definition.name.text
    if isinstance(definition, ast.ModelDef) and name in frame.functions:
        raise _of_model(name, node.span)
    values = {id(argument): _given(frame, definition, number, argument) for number, argument in enumerate(node.arguments)}
    if name in frame.functions:
        cycle = [*reversed(frame.functions[: frame.functions.index(name) + 1]), name]
        message = f"{name} calls itself" if len(cycle) == 2 else f"{name} calls itself: {' → '.join(cycle)}"
        raise Problem("E0208", message, node.span, "", "a def is inlined at each call, which would never end; write a loop")
    if len(frame.calls) >= frame.run.limits.calls:
        raise LimitReached("E0602", f"more than {frame.run.limits.calls} calls inside each other", node.span)
    _count_call(frame, node)
    parameters = definition.parameters if isinstance(definition, ast.Def) else definition.inputs
    formals = tuple((each.name.text, isinstance(each, ast.Input) or each.default is None) for each in parameters)
    bound = bind(Callee(name, formals, definition.span, ""), node.arguments, node.span)
    inner = Frame(frame.run, definition.body, calls=(node.span, *frame.calls), functions=(name, *frame.functions), hint=hint)
    inner.caller, inner.arguments = frame, bound
    frame.run.called.add(name)
    for each in parameters:
        argument = bound.get(each.name.text)
        if isinstance(each, ast.Input):
            assert argument is not None
            inner.variables[each.name.text] = _taken(frame, name, each, argument, values[id(argument)])
        else:
            inner.variables[each.name.text] = values[id(argument)] if argument is not None else _default(inner, each)
    try:
        return inner.result if run_body(inner, name, definition.span) else POISON
    except LimitReached as reached:
        reached.calls = inner.calls if reached.calls is None else reached.calls
        raise


def _given(frame: Frame, definition: ast.Def | ast.ModelDef, number: int, argument: ast.Argument) -> Value:
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


def _count_call(frame: Frame, node: ast.Call) -> None:
    run = frame.run
    run.calls += 1
    if run.calls > run.limits.all_calls:
        message = f"defs are called more than {run.limits.all_calls:,} times in all"
        help = "a def is inlined at each call: if each of 20 calls the one before it twice, the first is called a million times"
        raise LimitReached("E0608", message, node.span, "the last of these calls", help)


def _default(inner: Frame, parameter: ast.Parameter) -> Value:
    """A default's value: it sees the params, and nothing of the call."""
    assert parameter.default is not None
    return evaluate(Frame(inner.run, calls=inner.calls, functions=inner.functions), parameter.default)


def _taken(frame: Frame, model: str, input_: ast.Input, argument: ast.Argument, value: Value) -> Value:
    """The tensor for an input of the model; `POISON` when it isn't of the input's type, or its range reaches further, which is reported."""
    type_ = tensor_type(Frame(frame.run), input_.type)
    if isinstance(type_, Poison) or poisoned(value):
        return POISON
    tensor = operand(frame, value, argument.value).tensor
    wanted, found, name = type_.range, tensor.type.range, input_.name.text
    outside = wanted is not None and found is not None and not wanted.low <= found.low <= found.high <= wanted.high
    if tensor.type.plain() != type_.plain() or outside:
        declared, given = (type_, tensor.type) if outside else (type_.plain(), tensor.type.plain())
        shown = frame.run.excerpt(argument.value.span) or "this"
        notes = (Label(input_.span, f"{name} is declared here"),)
        frame.report(Problem("E0929", f"{model} takes {declared} for {name}, and {shown} is {given}", argument.span, notes=notes))
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
    return Problem("E0203", f"no function is named {name}", function.span, "not known here", PYTHON_FUNCTIONS.get(name) or near)
