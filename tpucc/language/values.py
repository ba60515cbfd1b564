"""The values that an expression may have while compiling, and their names in messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard, assert_never

from tpucc.diagnostics import Span, printable
from tpucc.ir import Node
from tpucc.language import ast

Scalar = int | float | bool | str


Tensor = Node
"""A value that the model computes: the node of the graph that stands for it."""


@dataclass(frozen=True, slots=True)
class Poison:
    """The value of an expression that is wrong, and reported; whatever is computed from it is silently wrong too."""


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple or a list, of values of any kind.

    `elements` counts the scalars and tensors inside; it is at least the number of values, so that empty lists count. `depth` is 1 for a
    flat one.
    """

    values: tuple[Value, ...]
    elements: int
    depth: int


Value = Scalar | Tensor | Items | Poison
POISON = Poison()


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """The value of an argument of a call."""

    value: Value
    argument: ast.Argument

    @property
    def expression(self) -> ast.Expression:
        return self.argument.value

    @property
    def span(self) -> Span:
        """The place of the argument, with its name if it has one."""
        return self.argument.span


def items(values: tuple[Value, ...]) -> Items:
    """A tuple of values, measured."""
    inner = [value for value in values if isinstance(value, Items)]
    elements = len(values) - len(inner) + sum(value.elements for value in inner)
    return Items(values, max(elements, len(values)), 1 + max((value.depth for value in inner), default=0))


def poisoned(value: Value) -> bool:
    """Whether the value is wrong, or a list with a wrong value in it. A list in a list is asked when it is used itself."""
    return value is POISON or (isinstance(value, Items) and any(item is POISON for item in value.values))


def is_integer(value: Value) -> TypeGuard[int]:
    """Whether the value is an integer. True and False are no integers."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Value) -> TypeGuard[int | float]:
    """Whether the value is a number. True and False are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def describe(value: Value) -> str:
    """`the integer 3`, `the string "a"`, `a list of 2 values`, `a tensor f32[2, 3]`."""
    match value:
        case bool():
            return str(value)
        case int():
            return f"the integer {value}"
        case float():
            return f"the number {value!r}"
        case str():
            return f'the string "{_cut(value)}"'
        case Items(values=values):
            return f"a list of {len(values)} value{'' if len(values) == 1 else 's'}"
        case Tensor():
            return f"a tensor {value.type.brief}"
        case Poison():
            return "an unknown value"
        case _:
            assert_never(value)


def written(value: Value) -> str:
    """A value without tensors, as `{value}` in a string prints it."""
    if isinstance(value, Items):
        inner = ", ".join(f'"{item}"' if isinstance(item, str) else written(item) for item in value.values)
        return f"({inner},)" if len(value.values) == 1 else f"({inner})"
    return value if isinstance(value, str) else repr(value)


def has_tensor(value: Value) -> bool:
    """Whether a tensor is the value, or lies in it. Lists lie in each other no deeper than `Limits` allow."""
    if isinstance(value, Items):
        return any(map(has_tensor, value.values))
    return isinstance(value, Tensor)


def _cut(text: str) -> str:
    return printable(text if len(text) <= 40 else text[:39] + "…")
