"""Arithmetic and functions on values that are known while compiling: Python's meaning, with bounds instead of growth."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tpucc.diagnostics import Span, counted
from tpucc.language.problem import LimitReached, Limits, Problem
from tpucc.language.values import ArgumentValue, Items, Tensor, Value, describe, is_integer, items

Number = int | float
Static = TypeVar("Static", int, float, str, Items, int | float)
Function = Callable[[Sequence[ArgumentValue], Span], Value]
"""A function on static values: of its arguments, and the place of the call."""
ARITHMETIC: Mapping[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def arithmetic(symbol: str, a: Value, b: Value, span: Span, limits: Limits) -> Value:
    """`a symbol b` for static values. Raises `Problem`, or `LimitReached` for results beyond the bounds."""
    if isinstance(a, int | float) and isinstance(b, int | float) and symbol in ARITHMETIC:
        return _number(symbol, a, b, span, limits)
    if symbol == "+" and isinstance(a, str) and isinstance(b, str):
        return bounded(a + b, span, limits)
    if symbol == "+" and isinstance(a, Items) and isinstance(b, Items):
        return bounded(items(a.values + b.values), span, limits)
    if symbol == "*":
        times, repeated = (a, b) if is_integer(a) else (b, a)
        if is_integer(times) and isinstance(repeated, str | Items):
            return _repeated(repeated, times, span, limits)
    raise Problem("E0217", f"`{symbol}` doesn't work on {describe(a)} and {describe(b)}", span, "", _mend(symbol, a, b))


def _mend(symbol: str, a: Value, b: Value) -> str:
    if symbol == "@":
        return "@ is the product of tensors"
    if symbol == "+" and isinstance(a, str) != isinstance(b, str):
        return 'a string takes values in holes: "layer{i}"'
    return ""


def _number(symbol: str, a: Number, b: Number, span: Span, limits: Limits) -> Number:
    try:
        result = ARITHMETIC[symbol](a, b)
    except ZeroDivisionError:
        raise Problem("E0218", "division by zero", span, "the right side is 0") from None
    except OverflowError:
        raise _too_large(span) from None
    return bounded(result, span, limits)


def _repeated(value: str | Items, times: int, span: Span, limits: Limits) -> Value:
    size = len(value) if isinstance(value, str) else max(1, value.elements)
    if size * times > limits.static_elements:
        raise _too_long(span, limits)
    return value * times if isinstance(value, str) else items(value.values * times)


def bounded(value: Static, span: Span, limits: Limits) -> Static:
    """`value`, when it is within the bounds of static values. Raises `LimitReached`."""
    if isinstance(value, str):
        if len(value) > limits.static_elements:
            raise _too_long(span, limits)
    elif isinstance(value, Items):
        if value.depth > limits.brackets:
            raise LimitReached("E0607", f"the lists of this value are more than {limits.brackets} deep", span)
        if value.elements > limits.static_elements:
            raise _too_long(span, limits)
    elif not math.isfinite(value) or (isinstance(value, int) and abs(value) >= limits.integer):
        raise _too_large(span)
    return value


def _too_large(span: Span) -> LimitReached:
    return LimitReached("E0603", "this number is too large", span, "", "integers lie below 2^63, and numbers with a point below 1.8e308")


def _too_long(span: Span, limits: Limits) -> LimitReached:
    return LimitReached("E0607", f"this value has more than {limits.static_elements:,} elements", span)


def negated(value: Value, symbol: str, span: Span) -> Value:
    """`-value` or `+value`. Raises `Problem`."""
    if not isinstance(value, int | float):
        raise Problem("E0217", f"`{symbol}` doesn't work on {describe(value)}", span)
    return -value if symbol == "-" else +value


def compared(symbol: str, a: Value, b: Value, span: Span) -> bool:
    """`a symbol b` for static values. Raises `Problem`."""
    match symbol:
        case "==":
            return a == b
        case "!=":
            return a != b
        case "in" | "not in":
            return _contains(b, a, span) == (symbol == "in")
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if not numbers and not (isinstance(a, str) and isinstance(b, str)):
        raise Problem("E0217", f"`{symbol}` can't order {describe(a)} and {describe(b)}", span)
    return ORDER[symbol](a, b)


def _contains(container: Value, value: Value, span: Span) -> bool:
    if isinstance(container, Items):
        return value in container.values
    if isinstance(container, str) and isinstance(value, str):
        return value in container
    raise Problem("E0217", f"`in` looks into lists and strings, not into {describe(container)}", span)


def truth(value: Value) -> bool:
    """Whether a static value counts as true, as in Python: zero and what is empty don't."""
    return bool(value.values) if isinstance(value, Items) else bool(value)


def require_integer(value: Value, what: str, span: Span, mend: str = "") -> int:
    """The value, which must be a static integer. `mend` is help for one that is none. Raises `Problem`."""
    require_static(value, what, span)
    if not is_integer(value):
        raise Problem("E0216", f"{what} must be an integer, found {describe(value)}", span, "", mend)
    return value


def require_static(value: Value, what: str, span: Span, mend: str = "sizes are static: x.shape[0]") -> None:
    """Raises `Problem` for a tensor where the compiler needs a value."""
    if isinstance(value, Tensor):
        message = f"{what} must be known while compiling, and this is {describe(value)}"
        raise Problem("E0215", message, span, "known only when the model runs", mend)


# The functions on static values: `len`, `min`, `max`, `ceil_div`


def _length(arguments: Sequence[ArgumentValue], span: Span) -> Value:
    _require_count("len", arguments, 1, span)
    match arguments[0].value:
        case Items(values=values):
            return len(values)
        case str() as text:
            return len(text)
        case Tensor(type=type_) if type_.shape:
            return type_.shape[0]
        case value:
            raise Problem("E0217", f"{describe(value)} has no length", arguments[0].span)


def _ceil_div(arguments: Sequence[ArgumentValue], span: Span) -> Value:
    _require_count("ceil_div", arguments, 2, span)
    a, b = (_whole_number(each) for each in arguments)
    if b == 0:
        raise Problem("E0218", "division by zero", span, "the divisor is 0")
    return -(-a // b)


def _whole_number(given: ArgumentValue) -> int:
    require_static(given.value, "an argument of ceil_div", given.span)
    if not is_integer(given.value):
        raise Problem("E0216", f"ceil_div takes integers, found {describe(given.value)}", given.span)
    return given.value


def _extreme(choose: Callable[[Sequence[Number]], Number]) -> Function:
    """`min` or `max`, of several numbers or of a list."""
    name = choose.__name__

    def extreme(arguments: Sequence[ArgumentValue], span: Span) -> Value:
        values = [(each.value, each.span) for each in arguments]
        if len(arguments) == 1 and isinstance(arguments[0].value, Items):
            values = [(value, arguments[0].span) for value in arguments[0].value.values]
        if not values:
            raise Problem("E0209", f"{name} of nothing", span, "", f"give it numbers: {name}(a, b), or a list of them")
        return choose([_comparable(name, value, place) for value, place in values])

    return extreme


def _comparable(name: str, value: Value, span: Span) -> Number:
    if isinstance(value, Tensor):
        mend = f"{name}imum(a, b) works on tensors, element by element, and {name}(x) on the elements of one"
        raise Problem("E0215", f"{name} works on static numbers, and this is {describe(value)}", span, "", mend)
    if not isinstance(value, int | float):
        raise Problem("E0217", f"{name} takes numbers, found {describe(value)}", span)
    return value


def _require_count(name: str, arguments: Sequence[ArgumentValue], count: int, span: Span) -> None:
    if len(arguments) != count:
        code = "E0209" if len(arguments) < count else "E0210"
        raise Problem(code, f"{name} takes {counted(count, 'argument')}, found {len(arguments)}", span)


STATIC: Mapping[str, Function] = {"len": _length, "min": _extreme(min), "max": _extreme(max), "ceil_div": _ceil_div}
"""The functions on static values, by their names. Each raises `Problem`."""
