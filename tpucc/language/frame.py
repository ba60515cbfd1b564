"""The state of an elaboration: what belongs to the whole run, and what to one call; and where a variable's value comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tpucc.diagnostics import Label, Origin, Source, Span, did_you_mean
from tpucc.ir import Attributes, GraphBuilder, Node, TensorType
from tpucc.language import ast
from tpucc.language.problem import LimitReached, Limits, Problem, Reports, Unknown
from tpucc.language.static import require_integer
from tpucc.language.values import POISON, ArgumentValue, Items, Tensor, Value
from tpucc.language.words import advice
from tpucc.ops import INTERNAL, OPS

Hint = tuple[str, ...]
"""The names that the statement around an expression gives to its results; from them come the names of nodes."""

STATIC_FUNCTIONS = ("len", "min", "max", "ceil_div", "range", "split")
HOPS = 100
"""Names that are followed at most, from a value to the expression that made it."""


def is_operator(name: str) -> bool:
    """Whether a call may make this operator."""
    return name in OPS and name not in INTERNAL


def is_function(name: str) -> bool:
    """Whether the language itself has a function of this name."""
    return is_operator(name) or name in STATIC_FUNCTIONS


def function_names() -> frozenset[str]:
    """The names that may be called without being defined."""
    return frozenset((*OPS, *STATIC_FUNCTIONS)) - INTERNAL


def hints_for_each(hint: Hint, count: int) -> Sequence[Hint]:
    """The names for each of several values, if there are as many."""
    return [(name,) for name in hint] if len(hint) == count else [()] * count


@dataclass(frozen=True, slots=True)
class Declared:
    """A weight as it was first declared."""

    node: Node
    span: Span
    fixed: Span | None
    """The place of the word `fixed`, if it stands there."""


@dataclass(eq=False)
class Run:
    """One elaboration, of the model or of `train`.

    `call` evaluates a call: calls run statements and statements evaluate expressions, and this ties the knot.
    """

    source: Source
    limits: Limits
    call: Callable[[Frame, ast.Call, Hint], Value]
    functions: Mapping[str, ast.Def | ast.ModelDef] = field(default_factory=dict)
    """The functions that calls may name; the model is one for `train` alone."""
    params: Mapping[str, ast.Param] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    """The texts of `-D`, by name."""
    param: Callable[[str], Value] = lambda _: POISON
    """The value of a declared param."""
    model: str = ""
    """The model's name."""
    training: bool = False
    """Whether `train` is elaborated."""
    reports: Reports = field(init=False)
    graph: GraphBuilder = field(default_factory=lambda: GraphBuilder(""))
    weights: dict[str, Declared] = field(default_factory=dict)
    repeated: set[Span] = field(default_factory=set)
    """The declarations of weights without a key that a loop has run more than once."""
    called: set[str] = field(default_factory=set)
    """The names of the `def`s that a call has run."""
    rounds: int = 0
    calls: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        self.reports = Reports(self.source, self.limits)

    @contextmanager
    def beside(self, **changes: Any) -> Iterator[Run]:
        """Another elaboration of the same source, with a graph, weights and counters of its own. Its errors are reported here, too."""
        other = replace(self, graph=GraphBuilder("train", self.source.name), weights={}, rounds=0, calls=0, steps=0, **changes)
        with self.reports.with_those_of(other.reports):
            yield other

    def spend(self, steps: int, span: Span) -> None:
        """Counts steps of evaluating. Raises `LimitReached` when they are too many in all."""
        self.steps += steps
        if self.steps > self.limits.steps:
            message = f"evaluating the model takes more than {self.limits.steps:,} steps"
            help = "loops are unrolled, and every operation on a list reads all of it: fewer rounds or shorter lists take fewer steps"
            raise LimitReached("E0609", message, span, "the last of them", help)

    def spend_on(self, value: Value, span: Span) -> None:
        """Counts what reading or making the whole of a value takes: a step for each element of a list, or for a hundred characters."""
        if isinstance(value, Items):
            self.spend(value.elements, span)
        elif isinstance(value, str):
            self.spend(len(value) // 100, span)

    def excerpt(self, span: Span) -> str:
        """The source text of a span when it is short enough to name something, else nothing."""
        if span.line != span.end_line or span.end_column - span.column > 40:
            return ""
        return self.source.stretch(span)


@dataclass(eq=False)
class Frame:
    """One call in progress, or the model, or the params: its variables, and the calls that led here, the innermost first."""

    run: Run
    body: tuple[ast.Statement, ...] = ()
    variables: dict[str, Value] = field(default_factory=dict)
    calls: tuple[Span, ...] = ()
    functions: tuple[str, ...] = ()
    """The names of the `def`s in progress, and of the model that `train` calls, the innermost first."""
    hint: Hint = ()
    caller: Frame | None = None
    arguments: Mapping[str, ArgumentValue] = field(default_factory=dict)
    """The arguments of the call, by the parameter's name."""
    result: Value = POISON
    has_returned: bool = False
    returned: ast.Expression | None = None
    """The expression of the `return` that ended this call; None where it has none, or isn't known."""
    declared: set[Span] = field(default_factory=set)
    """The declarations of weights without a key that it has run."""

    def report(self, wrong: Problem | Unknown) -> None:
        """Reports what is wrong, unless it is already."""
        if isinstance(wrong, Problem):
            self.run.reports.add(wrong, self.calls)

    def lookup(self, name: ast.Name) -> Value:
        """A variable's value, or a param's. Raises `Problem` for a name without one."""
        if name.text in self.variables:
            return self.variables[name.text]
        if name.text in self.run.params:
            return self.run.param(name.text)
        raise self.unknown(name)

    def known_names(self) -> set[str]:
        return {*self.variables, *self.run.params}

    def unknown(self, name: ast.Name, mend: str = "") -> Problem:
        """The error of a name without a value; `mend` is the help where no nearer one is known."""
        places = [found.span for found in assigned(self.body) if found.text == name.text]
        if places:
            note = Label(places[0], "it gets a value here" if places[0] > name.span else "it gets a value only here")
            mend = "give it a value on every way to this line"
            return Problem("E0202", f"{name.text} has no value yet", name.span, "used before it is assigned", mend, notes=(note,))
        own = name.text == self.run.model and name.text in self.functions
        if (name.text in self.run.functions and not own) or is_function(name.text):
            return Problem("E0222", f"{name.text} is a function, not a value", name.span, "", f"call it: {name.text}(…)")
        near = did_you_mean(name.text, self.known_names() | {"True", "False"})
        return Problem("E0201", f"nothing is named {name.text}", name.span, "not known here", near or advice("names", name.text) or mend)

    def add(self, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType, span: Span, hint: Hint) -> Tensor:
        """Adds a node to the graph, named after the variable that it is for, or its operator. Raises `LimitReached`."""
        limits = self.run.limits
        if len(self.run.graph.nodes) >= limits.nodes:
            help = "loops are unrolled: let one operator do the work of many rounds, or run fewer"
            raise LimitReached("E0605", f"the model has more than {limits.nodes:,} operations", span, "", help)
        require_elements(type_, span, limits)
        name = sanitised(hint[0] if len(hint) == 1 else op)
        return self.run.graph.add(Node(name, op, operands, attributes, type_, Origin((span,), self.calls)))


def require_elements(type_: TensorType, span: Span, limits: Limits) -> None:
    """Raises `LimitReached` for a tensor that no memory holds."""
    if type_.size >= limits.elements:
        raise LimitReached("E0606", f"{type_.brief} has {type_.size:,} elements; it must have fewer than {limits.elements:,}", span)


def sanitised(name: str) -> str:
    """`name` as a node's name: letters, digits, `_` and `.`, beginning with a letter or `_`."""
    cleaned = re.sub(r"[^A-Za-z0-9_.]", "_", name[:100])
    return cleaned if re.match(r"[A-Za-z_]", cleaned) else f"_{cleaned}"


def assigned(body: tuple[ast.Statement, ...]) -> Iterator[ast.Identifier]:
    """Every place of a block, blocks inside it included, that gives a name a value."""
    for statement in ast.statements(body):
        if isinstance(statement, ast.Assign | ast.For):
            yield from identifiers(statement.target)
        elif isinstance(statement, ast.Weight):
            yield statement.name


def identifiers(target: ast.Target) -> Iterator[ast.Identifier]:
    """The names of a target."""
    if isinstance(target, ast.Identifier):
        yield target
    else:
        for inner in target.targets:
            yield from identifiers(inner)


def origin(frame: Frame, node: ast.Expression) -> tuple[Frame, ast.Expression]:
    """The expression that made a value, and the call that it stands in: a name leads to its only assignment, or to the argument that it
    was given as. A param's name and one whose value may have several origins stay as they are."""
    for _ in range(HOPS):
        if not isinstance(node, ast.Name) or node.text not in frame.variables:
            break
        places = [found for found in assigned(frame.body) if found.text == node.text]
        if not places and frame.caller is not None and node.text in frame.arguments:
            frame, node = frame.caller, frame.arguments[node.text].expression
        elif (made := _assignment(frame, node.text)) is not None and len(places) == 1 and node.text not in frame.arguments:
            node = made
        else:
            break
    return frame, node


def _assignment(frame: Frame, name: str) -> ast.Expression | None:
    statements = (each for each in ast.statements(frame.body) if isinstance(each, ast.Assign) and not each.operator)
    return next((each.value for each in statements if isinstance(each.target, ast.Identifier) and each.target.text == name), None)


def param_of(frame: Frame, node: ast.Expression) -> ast.Param | None:
    """The param whose value an expression has, by its name or handed over to a call."""
    frame, made = origin(frame, node)
    return frame.run.params.get(made.text) if isinstance(made, ast.Name) and made.text not in frame.variables else None


def as_integer(frame: Frame, value: Value, node: ast.Expression, what: str) -> int:
    """The value of an expression, which must be a static integer. Raises `Problem`."""
    return require_integer(value, what, node.span, _integer_mend(frame, node, value))


def _integer_mend(frame: Frame, node: ast.Expression, value: Value) -> str:
    """The help that makes an integer of a number with a point: for a quotient another division, for 3.0 the digits alone; else empty."""
    if not isinstance(value, float):
        return ""
    param = param_of(frame, node)
    if _divides(param.value if param is not None else origin(frame, node)[1]):
        return "divide with //, which rounds down to an integer; / gives a number with a point"
    whole = value.is_integer() and abs(value) < 2**53
    return f"write {value:.0f} without a point" if whole else ""


def _divides(node: ast.Expression) -> bool:
    if isinstance(node, ast.Unary):
        return _divides(node.operand)
    if isinstance(node, ast.Items):
        return any(map(_divides, node.items))
    return isinstance(node, ast.Chain) and ("/" in node.operators or any(map(_divides, node.operands)))
