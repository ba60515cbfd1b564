"""The syntax tree of a `.tpu` file: what was written, and where; nothing is checked beyond grammar.

The fields of a node are in the order of the source. Chains of one level of precedence (`a + b - c`) are flat, so that the
depth of a tree is bounded by its brackets and not by its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar, assert_never

import msgspec

from tpucc.diagnostics import Span


class Node(msgspec.Struct, frozen=True):
    """The base of all nodes: the span of the source that they cover."""

    span: Span


class Identifier(Node, frozen=True):
    """A name where it is defined: a target, an argument, a param."""

    text: str


class Name(Node, frozen=True):
    """A name where it is used."""

    text: str


class Number(Node, frozen=True):
    value: int | float


class Boolean(Node, frozen=True):
    value: bool


class Text(Node, frozen=True):
    """A string: literal pieces (escapes done) and the expressions of its holes, in order."""

    parts: tuple[str | Expression, ...]


class Items(Node, frozen=True):
    """A tuple `a, b` or a list `[a, b]`."""

    items: tuple[Expression, ...]


class Unary(Node, frozen=True):
    """`-x`, `+x`, `not x`."""

    operator: str
    operand: Expression


class Chain(Node, frozen=True):
    """Operands joined from the left by operators of one level: `a @ b * c` or `a + b - c`."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


class Comparison(Node, frozen=True):
    """`a < b <= c` means `a < b and b <= c`, as in Python."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


class Logical(Node, frozen=True):
    """`a and b and c`, or `a or b`."""

    operator: str
    operands: tuple[Expression, ...]


class Conditional(Node, frozen=True):
    """`value if condition else otherwise`."""

    value: Expression
    condition: Expression
    otherwise: Expression


class Attribute(Node, frozen=True):
    """`x.shape`."""

    value: Expression
    name: Identifier


class Slice(Node, frozen=True):
    """`start:stop:step` between the brackets of a subscript."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None


class Subscript(Node, frozen=True):
    """`x[:, t]`."""

    value: Expression
    indices: tuple[Expression | Slice, ...]


class Argument(Node, frozen=True):
    """An argument of a call; `name` when it is given by keyword."""

    value: Expression
    name: Identifier | None = None


class Call(Node, frozen=True):
    function: Expression
    arguments: tuple[Argument, ...]


Expression = Name | Number | Boolean | Text | Items | Unary | Chain | Comparison | Logical | Conditional | Attribute | Subscript | Call


def parts(node: Expression, count: int) -> tuple[Expression, ...]:
    """The expressions of the parts of a list: its items, if it has `count` of them; otherwise the expression itself, `count` times."""
    return node.items if isinstance(node, Items) and len(node.items) == count else (node,) * count


class Bounds(Node, frozen=True):
    """`in [low, high]` after a type."""

    low: Expression
    high: Expression


class Type(Node, frozen=True):
    """`f32[batch, 4] in [0.0, 8.0]`."""

    dtype: Identifier
    sizes: tuple[Expression, ...]
    bounds: Bounds | None = None


class Pattern(Node, frozen=True):
    """Several targets of one assignment, `a, (b, c)`."""

    targets: tuple[Target, ...]


Target = Identifier | Pattern


class Assign(Node, frozen=True):
    """`target = value`; with `operator` (`+`, …) it is `target += value`."""

    target: Target
    operator: str
    value: Expression


class Weight(Node, frozen=True):
    """`weight name: type = "key" fixed`; without a key it is the name. `fixed` is the place of this word, if it stands there."""

    name: Identifier
    type: Type
    key: Expression | None = None
    fixed: Span | None = None


class For(Node, frozen=True):
    target: Target
    values: Expression
    body: tuple[Statement, ...]


class Branch(msgspec.Struct, frozen=True):
    condition: Expression
    body: tuple[Statement, ...]


class If(Node, frozen=True):
    """`if`, each `elif`, and what stands under `else` (nothing without one)."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Statement, ...]


class Return(Node, frozen=True):
    """`return value`, where several values are an `Items`; None for a `return` without one, which is an error."""

    value: Expression | None = None


class Pass(Node, frozen=True):
    """`pass`."""


Statement = Assign | Weight | For | If | Return | Pass


def statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement of a block, in order; a statement comes before the statements of its own blocks."""
    for statement in block:
        yield statement
        for inner in blocks(statement):
            yield from statements(inner)


def blocks(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks inside a statement; of an `if` without `else`, the last is empty."""
    match statement:
        case For(body=body):
            return (body,)
        case If(branches=branches, otherwise=otherwise):
            return (*(branch.body for branch in branches), otherwise)
        case Assign() | Weight() | Return() | Pass():
            return ()
        case _:
            assert_never(statement)


class Param(Node, frozen=True):
    name: Identifier
    value: Expression


class Directive(Node, frozen=True):
    """`weights …`, `calibration …`, `activations …`, `examples …` or `optimizer …`: `keyword` says which."""

    keyword: str
    value: Expression


class Parameter(Node, frozen=True):
    """An argument of a `def`, with its default if it has one."""

    name: Identifier
    default: Expression | None = None


class Def(Node, frozen=True):
    name: Identifier
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]


class Input(Node, frozen=True):
    name: Identifier
    type: Type


class ModelDef(Node, frozen=True):
    """`model name(inputs) -> results:`; `results` is None when they aren't declared."""

    name: Identifier
    inputs: tuple[Input, ...]
    results: tuple[Type, ...] | None
    body: tuple[Statement, ...]


class TrainDef(Node, frozen=True):
    """`train(inputs) -> results:`; `results` is None when they aren't declared."""

    inputs: tuple[Input, ...]
    results: tuple[Type, ...] | None
    body: tuple[Statement, ...]


Kind = TypeVar("Kind")
TopLevel = Param | Directive | Def | ModelDef | TrainDef


class Module(msgspec.Struct, frozen=True):
    """A whole file."""

    items: tuple[TopLevel, ...]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The items of one kind."""
        return [item for item in self.items if isinstance(item, kind)]
