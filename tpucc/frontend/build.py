"""From grammar rules to the syntax tree: one method a rule of model.lark, called while parsing, from the inside out.

Calling them while parsing keeps everything free of recursion: a tree is never walked here. Each method gets the children that its rule
keeps: tokens, and nodes of `ast` made before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from lark import Token

from tpucc.diagnostics import Span
from tpucc.frontend import ast, literals
from tpucc.frontend.limits import Limits
from tpucc.frontend.problem import limit, problem, span_of
from tpucc.frontend.words import PYTHON_ONLY

Children = list[Any]
"""What lark hands to a rule's method; the grammar says what it is."""

Located = Token | ast.Expression | ast.Slice | ast.Type | ast.Bounds | ast.Target
Nested = TypeVar("Nested", ast.Unary, ast.Conditional, ast.Attribute, ast.Subscript, ast.Call)


@dataclass(frozen=True)
class Missing:
    """Stands for a statement that an earlier round has reported; no module that has one leaves the parser."""


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

    # The file

    def module(self, children: Children) -> ast.Module:
        return ast.Module(self.complete(children))

    def param(self, children: Children) -> ast.Param:
        keyword, name, _, value, _ = children
        return ast.Param(_identifier(name), value, _over(keyword, value))

    def directive(self, children: Children) -> ast.Directive:
        keyword, value, _ = children
        return ast.Directive(str(keyword), value, _over(keyword, value))

    def definition(self, children: Children) -> ast.Def:
        keyword, name, *rest, colon, body = children
        parameters = rest[1] if len(rest) == 3 else ()
        return ast.Def(_identifier(name), parameters, body, span_of(keyword, colon))

    def parameters(self, children: Children) -> tuple[ast.Parameter, ...]:
        _require_defaults_last(children)
        return tuple(children)

    def parameter(self, children: Children) -> ast.Parameter:
        name, default = children[0], children[1] if len(children) > 1 else None
        return ast.Parameter(_identifier(name), default, _over(name, default) if default else span_of(name))

    def model(self, children: Children) -> ast.ModelDef:
        keyword, name, _, *rest = children
        inputs: tuple[ast.Input, ...] = rest[0] if isinstance(rest[0], tuple) else ()
        results = rest[-3] if len(rest) > 4 and str(rest[-4]) == "->" else None
        return ast.ModelDef(_identifier(name), inputs, results, rest[-1], span_of(keyword, rest[-2]))

    def model_input(self, children: Children) -> ast.Input:
        name, type_ = children
        return ast.Input(_identifier(name), type_, _over(name, type_))

    def typed(self, children: Children) -> ast.Type:
        dtype, _, *rest = children
        bounds = rest.pop() if isinstance(rest[-1], ast.Bounds) else None
        sizes = rest[0] if isinstance(rest[0], tuple) else ()
        return ast.Type(_identifier(dtype), sizes, bounds, _over(dtype, bounds or rest[-1]))

    def bounds(self, children: Children) -> ast.Bounds:
        keyword, _, low, _, high, closer = children
        return ast.Bounds(low, high, span_of(keyword, closer))

    def broken(self, children: Children) -> Missing:
        return Missing()

    # Statements

    def assign(self, children: Children) -> ast.Assign:
        target, value = children
        return ast.Assign(_target(target), "", value, _over(target, value))

    def augmented(self, children: Children) -> ast.Assign:
        target, operator, value = children
        if not isinstance(target, ast.Name):
            raise problem("E0118", f"{operator} changes one name", target.span, "expected a name here")
        return ast.Assign(_target(target), str(operator)[:-1], value, _over(target, value))

    def alone(self, children: Children) -> ast.Statement:
        value: ast.Expression = children[0]
        raise _unused(value)

    def weight(self, children: Children) -> ast.Weight:
        keyword, name, _, type_, *rest = children
        key = rest[1] if rest else None
        return ast.Weight(_identifier(name), type_, key, _over(keyword, key or type_))

    def return_statement(self, children: Children) -> ast.Return:
        keyword, *rest = children
        values: ast.Expression | None = rest[0] if rest else None
        if values is None:
            return ast.Return((), span_of(keyword))
        items = values.items if isinstance(values, ast.Items) else (values,)
        return ast.Return(items, _over(keyword, values))

    def pass_statement(self, children: Children) -> ast.Pass:
        return ast.Pass(span_of(children[0]))

    def for_statement(self, children: Children) -> ast.For:
        keyword, target, _, values, colon, body = children
        return ast.For(target, values, body, span_of(keyword, colon))

    def targets(self, children: Children) -> ast.Target:
        first, last = children[0], children[-1]
        return cast(ast.Target, first) if len(children) == 1 else ast.Pattern(tuple(children), _over(first, last))

    def identifier(self, children: Children) -> ast.Identifier:
        return _identifier(children[0])

    def if_statement(self, children: Children) -> ast.If:
        keyword, condition, colon, body, *rest = children
        otherwise = rest.pop() if rest and isinstance(rest[-1], tuple) else ()
        return ast.If((ast.Branch(condition, body), *rest), otherwise, span_of(keyword, colon))

    def elif_branch(self, children: Children) -> ast.Branch:
        return ast.Branch(*children)

    # Expressions

    def bare_tuple(self, children: Children) -> ast.Items:
        return ast.Items(tuple(children), _over(children[0], children[-1]))

    def conditional(self, children: Children) -> ast.Conditional:
        value, condition, otherwise = children
        return self._shallow(ast.Conditional(condition, value, otherwise, _over(value, otherwise)))

    def disjunction(self, children: Children) -> ast.Logical:
        return ast.Logical("or", self._short(children), _over(children[0], children[-1]))

    def conjunction(self, children: Children) -> ast.Logical:
        return ast.Logical("and", self._short(children), _over(children[0], children[-1]))

    def comparison(self, children: Children) -> ast.Comparison:
        operands = self._short(children[::2])
        return ast.Comparison(operands, tuple(children[1::2]), _over(children[0], children[-1]))

    def comparator(self, children: Children) -> str:
        return " ".join(children)

    def terms(self, children: Children) -> ast.Chain:
        operands = self._short(children[::2])
        return ast.Chain(operands, tuple(map(str, children[1::2])), _over(children[0], children[-1]))

    factors = terms

    def unary(self, children: Children) -> ast.Unary:
        operator, operand = children
        return self._shallow(ast.Unary(str(operator), operand, _over(operator, operand)))

    def attribute(self, children: Children) -> ast.Attribute:
        value, name = children
        return self._shallow(ast.Attribute(value, _identifier(name), _over(value, name)))

    def call(self, children: Children) -> ast.Call:
        function, *rest, closer = children
        return self._shallow(ast.Call(function, rest[0] if rest else (), _over(function, closer)))

    def arguments(self, children: Children) -> tuple[ast.Argument, ...]:
        _require_keywords_last(children)
        return tuple(children)

    def argument(self, children: Children) -> ast.Argument:
        value = children[0]
        return ast.Argument(None, value, value.span)

    def keyword_argument(self, children: Children) -> ast.Argument:
        name, value = children
        return ast.Argument(_identifier(name), value, _over(name, value))

    def subscript(self, children: Children) -> ast.Subscript:
        value, indices, closer = children
        return self._shallow(ast.Subscript(value, indices, _over(value, closer)))

    def slicing(self, children: Children) -> ast.Slice:
        parts: list[ast.Expression | None] = [None, None, None]
        place = 0
        for child in children:
            if isinstance(child, Token):
                place += 1
            else:
                parts[place] = child
        return ast.Slice(parts[0], parts[1], parts[2], _over(children[0], children[-1]))

    def name(self, children: Children) -> ast.Name:
        return ast.Name(str(children[0]), span_of(children[0]))

    def number(self, children: Children) -> ast.Number:
        return literals.number(children[0], self.limits)

    def text(self, children: Children) -> ast.Text:
        return literals.text(children[0], self.hole)

    def boolean(self, children: Children) -> ast.Boolean:
        return ast.Boolean(children[0] == "True", span_of(children[0]))

    def brackets(self, children: Children) -> ast.Expression:
        """`(x)` is x, underlined with its brackets; `(x, y)` and `()` are tuples."""
        opener, *rest, closer = children
        span = span_of(opener, closer)
        inner: ast.Expression = rest[0] if rest else ast.Items((), span)
        return replace(inner, span=span)

    def bracketed_list(self, children: Children) -> ast.Items:
        opener, *rest, closer = children
        return ast.Items(rest[0] if rest else (), span_of(opener, closer))

    def _shallow(self, node: Nested) -> Nested:
        """`node`, if it isn't nested too deeply without brackets: these are counted where they stand."""
        inner: ast.Expression | None = node
        for _ in range(self.limits.brackets):
            inner = _inner(inner)
            if inner is None:
                return node
        message = f"more than {self.limits.brackets} operations inside each other"
        raise limit("E0602", message, node.span, "name parts of the expression")

    def _short(self, operands: Sequence[ast.Expression]) -> tuple[ast.Expression, ...]:
        if len(operands) - 1 > self.limits.operators:
            message = f"this expression has {len(operands) - 1:,} operators; {self.limits.operators:,} are the most"
            raise limit("E0602", message, _over(operands[0], operands[-1]), "name parts of it")
        return tuple(operands)


def _inner(node: ast.Expression | None) -> ast.Expression | None:
    """The operand that nests without brackets."""
    match node:
        case ast.Unary(operand=inner) | ast.Conditional(otherwise=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return inner
        case ast.Call(function=inner):
            return inner
    return None


def _place(item: Located) -> Span:
    return span_of(item) if isinstance(item, Token) else item.span


def _over(first: Located, last: Located) -> Span:
    """The span from the start of one token or node to the end of another."""
    return _place(first).to(_place(last))


def _identifier(token: Token) -> ast.Identifier:
    return ast.Identifier(str(token), span_of(token))


def _target(value: ast.Expression) -> ast.Target:
    """What stands left of `=` as a target: names only, in tuples as deep as brackets go."""
    if isinstance(value, ast.Name):
        return ast.Identifier(value.text, value.span)
    if isinstance(value, ast.Items) and value.items:
        return ast.Pattern(tuple(map(_target, value.items)), value.span)
    mend = "tensors don't change: give the new value a name of its own" if isinstance(value, ast.Subscript) else ""
    raise problem("E0118", "only names can be assigned to", value.span, "expected a name here", mend)


def _unused(value: ast.Expression) -> Exception:
    if isinstance(value, ast.Text):
        return problem("E0119", "a string alone does nothing", value.span, "", "comments begin with #")
    mend = _meant(value.function) if isinstance(value, ast.Call) else ""
    if isinstance(value, ast.Comparison):
        mend = "a single = gives a name its value"
    mend = mend or "name it, as in y = …, or return it"
    return problem("E0119", "the value of this line is not used", value.span, "computed and dropped", mend)


def _meant(function: ast.Expression) -> str:
    """What a Python programmer who calls it for its effect writes instead."""
    if isinstance(function, ast.Attribute) and function.name.text in ("append", "extend", "insert"):
        name = function.value.text if isinstance(function.value, ast.Name) else "values"
        return f"lists don't change: {name} = {name} + [y]"
    return PYTHON_ONLY.get(function.text, "") if isinstance(function, ast.Name) else ""


def _require_defaults_last(parameters: Sequence[ast.Parameter]) -> None:
    optional = None
    for parameter in parameters:
        if parameter.default is not None:
            optional = parameter
        elif optional is not None:
            message = f"{parameter.name.text} needs a default, or must stand before {optional.name.text}"
            raise problem("E0120", message, parameter.span, "no default, after one that has", "arguments with defaults come last")


def _require_keywords_last(arguments: Sequence[ast.Argument]) -> None:
    named = None
    for argument in arguments:
        if argument.name is not None:
            named = argument
        elif named is not None:
            raise problem("E0120", "positional arguments come before keyword arguments", argument.span, "this one has no name")
