"""The syntax tree of a `.tpu` file: what was written, and where; nothing is checked beyond grammar.

Every node is frozen and has the `Span` of all that it covers. Chains of one level of precedence (`a + b - c`) are flat, so that the
depth of a tree is bounded by its brackets and not by its length.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name where it is defined: a target, an argument, a param."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name where it is used."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    value: int | float
    span: Span


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Text:
    """A string: literal pieces (escapes done) and the expressions of its holes, in order."""

    parts: tuple[str | Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple `a, b` or a list `[a, b]`."""

    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `+x`, `not x`."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands joined from the left by operators of one level: `a @ b * c` or `a + b - c`."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a < b <= c` means `a < b and b <= c`, as in Python."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Logical:
    """`a and b and c`, or `a or b`."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """`value if condition else otherwise`."""

    condition: Expression
    value: Expression
    otherwise: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Attribute:
    """`x.shape`."""

    value: Expression
    name: Identifier
    span: Span


@dataclass(frozen=True, slots=True)
class Slice:
    """`start:stop:step` between the brackets of a subscript."""

    start: Expression | None
    stop: Expression | None
    step: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Subscript:
    """`x[:, t]`."""

    value: Expression
    indices: tuple[Expression | Slice, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call; `name` when it is given by keyword."""

    name: Identifier | None
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    function: Expression
    arguments: tuple[Argument, ...]
    span: Span


Expression = Name | Number | Boolean | Text | Items | Unary | Chain | Comparison | Logical | Conditional | Attribute | Subscript | Call


def parts(node: Expression, count: int) -> tuple[Expression, ...]:
    """The expressions of the parts of a list: its items, if as many are written; what else has `count` parts stands for each of them."""
    return node.items if isinstance(node, Items) and len(node.items) == count else (node,) * count


@dataclass(frozen=True, slots=True)
class Bounds:
    """`in [low, high]` after a type."""

    low: Expression
    high: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Type:
    """`f32[batch, 4] in [0.0, 8.0]`."""

    dtype: Identifier
    sizes: tuple[Expression, ...]
    bounds: Bounds | None
    span: Span


@dataclass(frozen=True, slots=True)
class Pattern:
    """Several targets of one assignment, `a, (b, c)`."""

    targets: tuple[Target, ...]
    span: Span


Target = Identifier | Pattern


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`; with `operator` (`+`, …) it is `target += value`."""

    target: Target
    operator: str
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Weight:
    """`weight name: type = "key"`; without a key it is the name."""

    name: Identifier
    type: Type
    key: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class For:
    target: Target
    values: Expression
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Branch:
    condition: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    """`if`, each `elif`, and what stands under `else` (nothing without one)."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Return:
    values: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Pass:
    span: Span


Statement = Assign | Weight | For | If | Return | Pass


@dataclass(frozen=True, slots=True)
class Param:
    name: Identifier
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Directive:
    """`weights …`, `calibration …` or `activations …`: `keyword` says which."""

    keyword: str
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a `def`, with its default if it has one."""

    name: Identifier
    default: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Def:
    name: Identifier
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Input:
    name: Identifier
    type: Type
    span: Span


@dataclass(frozen=True, slots=True)
class ModelDef:
    """`model name(inputs) -> results:`; `results` is None when they aren't declared."""

    name: Identifier
    inputs: tuple[Input, ...]
    results: tuple[Type, ...] | None
    body: tuple[Statement, ...]
    span: Span


TopLevel = Param | Directive | Def | ModelDef


@dataclass(frozen=True, slots=True)
class Module:
    """A whole file."""

    items: tuple[TopLevel, ...]
