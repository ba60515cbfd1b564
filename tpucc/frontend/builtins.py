"""The functions on static values: `len`, `min`, `max`, `ceil_div`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tpucc.diagnostics import Span, counted
from tpucc.frontend.problem import Problem
from tpucc.frontend.static import require_static
from tpucc.frontend.values import Items, Tensor, Value, describe, is_integer


def call(name: str, arguments: Sequence[Value], spans: Sequence[Span], span: Span) -> Value:
    """`name(arguments)`. Raises `Problem`."""
    return STATIC[name](arguments, spans, span)


def _length(arguments: Sequence[Value], spans: Sequence[Span], span: Span) -> Value:
    _require_count("len", arguments, 1, span)
    match arguments[0]:
        case Items(values=values):
            return len(values)
        case str() as text:
            return len(text)
        case Tensor(node=node) if node.type.shape:
            return node.type.shape[0]
    raise Problem("E0217", f"{describe(arguments[0])} has no length", spans[0])


def _ceil_div(arguments: Sequence[Value], spans: Sequence[Span], span: Span) -> Value:
    _require_count("ceil_div", arguments, 2, span)
    for value, place in zip(arguments, spans, strict=True):
        require_static(value, "an argument of ceil_div", place)
        if not is_integer(value):
            raise Problem("E0216", f"ceil_div takes integers, found {describe(value)}", place)
    a, b = arguments
    assert isinstance(a, int)
    assert isinstance(b, int)
    if b == 0:
        raise Problem("E0218", "division by zero", span, "the divisor is 0")
    return -(-a // b)


def _extreme(name: str, choose: Callable[[Sequence[int | float]], int | float]) -> Callable[[Sequence[Value], Sequence[Span], Span], Value]:
    def extreme(arguments: Sequence[Value], spans: Sequence[Span], span: Span) -> Value:
        values = arguments
        if len(arguments) == 1 and isinstance(arguments[0], Items):
            values, spans = arguments[0].values, [spans[0]] * len(arguments[0].values)
        if not values:
            raise Problem("E0209", f"{name} of nothing", span, "", f"give it numbers: {name}(a, b), or a list of them")
        numbers = [_number(name, value, place) for value, place in zip(values, spans, strict=True)]
        return choose(numbers)

    return extreme


def _number(name: str, value: Value, span: Span) -> int | float:
    if isinstance(value, Tensor):
        mend = f"{name}imum(a, b) works on tensors, element by element, and {name}(x) on the elements of one"
        raise Problem("E0215", f"{name} works on static numbers, and this is {describe(value)}", span, "", mend)
    if not isinstance(value, int | float):
        raise Problem("E0217", f"{name} takes numbers, found {describe(value)}", span)
    return value


def _require_count(name: str, arguments: Sequence[Value], count: int, span: Span) -> None:
    if len(arguments) != count:
        code = "E0209" if len(arguments) < count else "E0210"
        raise Problem(code, f"{name} takes {counted(count, 'argument')}, found {len(arguments)}", span)


Function = Callable[[Sequence[Value], Sequence[Span], Span], Value]
STATIC: Mapping[str, Function] = MappingProxyType(
    {"len": _length, "min": _extreme("min", min), "max": _extreme("max", max), "ceil_div": _ceil_div}
)
