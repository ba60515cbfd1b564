"""From grammar rules to the syntax tree: one method a rule of model.lark, called while parsing, from the inside out.

Calling them while parsing keeps everything free of recursion: a tree is never walked here. Each method gets the children that its rule
keeps: tokens, and nodes of `ast` made before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import msgspec
from lark import Token

from tpucc.diagnostics import Span
from tpucc.language import ast, literals
from tpucc.language.layout import span_of
from tpucc.language.problem import LimitReached, Limits, Problem
from tpucc.language.words import advice

Children = list[Any]
"""The argument that lark gives to a rule's method; its type follows from the grammar."""


@dataclass(frozen=True)
class Missing:
    """Stands for a statement that an earlier round has reported; no module that has one leaves the parser."""


def _node(kind: Callable[..., ast.Node], *, nests: bool = False) -> Callable[[Builder, Children], ast.Node]:
    """The method of a rule whose children are the fields of a node in their order, among tokens that only say how far it reaches.

    With `nests` the node may stand in others of its kind without brackets, and is checked not to do so too deeply.
    """

    def method(builder: Builder, children: Children) -> ast.Node:
        fields = [_identifier(c) if isinstance(c, Token) else c for c in children if not isinstance(c, Token) or c.type == "NAME"]
        made = kind(_whole(children), *fields)
        return builder.shallow(made) if nests else made

    return method


@dataclass(frozen=True)
class Builder:
    """The methods, by the names of the grammar's rules and aliases."""

    limits: Limits
    hole: literals.Hole

    def several(self, children: Children) -> tuple[Any, ...]:
        return tuple(children)

    inputs = types = sizes = indices = several

    def only(self, children: Children) -> Any:
        return children[0]

    expression = results = else_branch = only

    def complete(self, children: Children) -> tuple[Any, ...]:
        return tuple(child for child in children if not isinstance(child, Missing))

    block = complete

    def broken(self, children: Children) -> Missing:
        return Missing()

    # The file

    def module(self, children: Children) -> ast.Module:
        return ast.Module(self.complete(children))

    param = _node(ast.Param)
    definition = _node(ast.Def)
    parameter = _node(ast.Parameter)
    model = _node(ast.ModelDef)
    train = _node(ast.TrainDef)
    model_input = _node(ast.Input)
    typed = _node(ast.Type)
    bounds = _node(ast.Bounds)

    def directive(self, children: Children) -> ast.Directive:
        keyword, value, _ = children
        return ast.Directive(_whole(children), str(keyword), value)

    def parameters(self, children: Children) -> tuple[ast.Parameter, ...]:
        for before, parameter in pairwise(children):
            if before.default is not None and parameter.default is None:
                message = f"{parameter.name.text} needs a default, or must stand before {before.name.text}"
                raise Problem("E0120", message, parameter.span, "no default, after one that has", "arguments with defaults come last")
        return tuple(children)

    def declared(self, children: Children) -> tuple[ast.Type, ...] | None:
        return children[-1] if children else None

    # Statements

    for_statement = _node(ast.For)
    pass_statement = _node(ast.Pass)

    def weight(self, children: Children) -> ast.Weight:
        _, name, _, type_, *rest = children
        fixed = span_of(rest.pop()) if rest and isinstance(rest[-1], Token) else None
        return ast.Weight(_whole(children), _identifier(name), type_, rest[-1] if rest else None, fixed)

    def assign(self, children: Children) -> ast.Assign:
        target, value = children
        return ast.Assign(_whole(children), _target(target), "", value)

    def augmented(self, children: Children) -> ast.Assign:
        target, operator, value = children
        if not isinstance(target, ast.Name):
            raise Problem("E0118", f"{operator} changes one name", target.span, "expected a name here")
        return ast.Assign(_whole(children), _target(target), str(operator)[:-1], value)

    def alone(self, children: Children) -> ast.Statement:
        raise _unused(children[0])

    def return_statement(self, children: Children) -> ast.Return:
        """A `return` of a list of one value returns the value."""
        _, *values = children
        if values and isinstance(values[0], ast.Items) and len(values[0].items) < 2:
            values = list(values[0].items)
        return ast.Return(_whole(children), *values)

    def targets(self, children: Children) -> ast.Target:
        return cast(ast.Target, children[0]) if len(children) == 1 else ast.Pattern(_whole(children), tuple(children))

    def identifier(self, children: Children) -> ast.Identifier:
        return _identifier(children[0])

    def if_statement(self, children: Children) -> ast.If:
        _, condition, _, body, *rest = children
        otherwise = rest.pop() if rest and isinstance(rest[-1], tuple) else ()
        return ast.If(_whole(children[:3]), (ast.Branch(condition, body), *rest), otherwise)

    def elif_branch(self, children: Children) -> ast.Branch:
        return ast.Branch(*children)

    # Expressions

    conditional = _node(ast.Conditional, nests=True)
    attribute = _node(ast.Attribute, nests=True)
    call = _node(ast.Call, nests=True)
    subscript = _node(ast.Subscript, nests=True)
    argument = _node(ast.Argument)
    bracketed_list = _node(ast.Items)

    def bare_tuple(self, children: Children) -> ast.Items:
        return ast.Items(_whole(children), tuple(children))

    def disjunction(self, children: Children) -> ast.Logical:
        return ast.Logical(_whole(children), "or", self._short(children))

    def conjunction(self, children: Children) -> ast.Logical:
        return ast.Logical(_whole(children), "and", self._short(children))

    def comparison(self, children: Children) -> ast.Comparison:
        return ast.Comparison(_whole(children), self._short(children[::2]), tuple(children[1::2]))

    def comparator(self, children: Children) -> str:
        return " ".join(children)

    def terms(self, children: Children) -> ast.Chain:
        return ast.Chain(_whole(children), self._short(children[::2]), tuple(map(str, children[1::2])))

    factors = terms

    def unary(self, children: Children) -> ast.Node:
        operator, operand = children
        return self.shallow(ast.Unary(_whole(children), str(operator), operand))

    def arguments(self, children: Children) -> tuple[ast.Argument, ...]:
        for before, argument in pairwise(children):
            if before.name is not None and argument.name is None:
                raise Problem("E0120", "positional arguments come before keyword arguments", argument.span, "this one has no name")
        return tuple(children)

    def keyword_argument(self, children: Children) -> ast.Argument:
        name, value = children
        return ast.Argument(_whole(children), value, _identifier(name))

    def slicing(self, children: Children) -> ast.Slice:
        parts: list[ast.Expression | None] = [None]
        for child in children:
            if isinstance(child, Token):
                parts.append(None)
            else:
                parts[-1] = child
        return ast.Slice(_whole(children), *parts, *[None] * (3 - len(parts)))

    def name(self, children: Children) -> ast.Name:
        return ast.Name(span_of(children[0]), str(children[0]))

    def number(self, children: Children) -> ast.Number:
        return literals.number(children[0], self.limits)

    def text(self, children: Children) -> ast.Text:
        return literals.text(children[0], self.hole)

    def boolean(self, children: Children) -> ast.Boolean:
        return ast.Boolean(_whole(children), children[0] == "True")

    def brackets(self, children: Children) -> ast.Expression:
        """`(x)` is x, underlined with its brackets; `(x, y)` and `()` are tuples."""
        span = _whole(children)
        return msgspec.structs.replace(children[1], span=span) if len(children) == 3 else ast.Items(span, ())

    def shallow(self, node: ast.Node) -> ast.Node:
        """`node`, if it isn't nested too deeply without brackets: these are counted where they stand."""
        inner: ast.Node | None = node
        for _ in range(self.limits.brackets):
            inner = _inner(inner)
            if inner is None:
                return node
        message = f"more than {self.limits.brackets} operations inside each other"
        raise LimitReached("E0602", message, node.span, "", "name parts of the expression")

    def _short(self, operands: Sequence[ast.Expression]) -> tuple[ast.Expression, ...]:
        if len(operands) - 1 > self.limits.operators:
            message = f"this expression has {len(operands) - 1:,} operators; {self.limits.operators:,} are the most"
            raise LimitReached("E0602", message, _whole(operands), "", "name parts of it")
        return tuple(operands)


def _inner(node: ast.Node | None) -> ast.Expression | None:
    """The operand that nests without brackets."""
    match node:
        case ast.Unary(operand=inner) | ast.Conditional(otherwise=inner) | ast.Attribute(value=inner):
            return inner
        case ast.Subscript(value=inner) | ast.Call(function=inner):
            return inner
    return None


def _whole(children: Sequence[Any]) -> Span:
    """The span of all that stands in a line; the end of the line, and the block under it, don't."""
    last = children[-1]
    if isinstance(last, tuple) or (isinstance(last, Token) and last.type == "_NEWLINE"):
        return _whole(children[:-1])
    first, last = (span_of(item) if isinstance(item, Token) else item.span for item in (children[0], last))
    return first.to(last)


def _identifier(token: Token) -> ast.Identifier:
    return ast.Identifier(span_of(token), str(token))


def _target(value: ast.Expression) -> ast.Target:
    """The left side of `=` as a target: names only, in tuples nested as the brackets are."""
    if isinstance(value, ast.Name):
        return ast.Identifier(value.span, value.text)
    if isinstance(value, ast.Items) and value.items:
        return ast.Pattern(value.span, tuple(map(_target, value.items)))
    mend = "tensors don't change: give the new value a name of its own" if isinstance(value, ast.Subscript) else ""
    raise Problem("E0118", "only names can be assigned to", value.span, "expected a name here", mend)


def _unused(value: ast.Expression) -> Exception:
    if isinstance(value, ast.Text):
        return Problem("E0119", "a string alone does nothing", value.span, "", "comments begin with #")
    if isinstance(value, ast.Name) and (instead := advice("words", value.text)):
        return Problem("E0114", f"`{value.text}` is not in the language", value.span, "", instead)
    mend = _meant(value.function) if isinstance(value, ast.Call) else ""
    if isinstance(value, ast.Comparison):
        mend = "a single = gives a name its value"
    mend = mend or "name it, as in y = …, or return it"
    return Problem("E0119", "the value of this line is not used", value.span, "computed and dropped", mend)


def _meant(function: ast.Expression) -> str:
    """The correction for a call that a Python programmer makes for its effect, such as `append` or `print`; else empty."""
    if isinstance(function, ast.Attribute) and function.name.text in ("append", "extend", "insert"):
        name = function.value.text if isinstance(function.value, ast.Name) else "values"
        return f"lists don't change: {name} = {name} + [y]"
    return advice("words", function.text) if isinstance(function, ast.Name) else ""
