"""Rules: a form that a pass looks for in a graph, and the form that it puts in its place.

```python
@rules_pass("fuse-bias", "makes one operator of a product and the constant that is added to it", level=1)
def fuse_bias() -> Iterator[Rule]:
    x, b = value("x"), columns("b")
    yield rule("added", add(once(matmul(x, constant("w"))), b), lambda m: linear(m.x, m.w, m.b))
```

An operator that is called gives an expression. In a pattern the operands of an expression are expressions and variables. A variable stands
for a node: any node (`value`), a constant (`constant`), a constant of one value a column (`columns`). Where a name stands twice, both are
the same node. Of a commutative operator both orders of the operands are tried.

A rule's other function, `build`, gets the match, in which each variable is an attribute. It returns

- an expression: that is computed under the name, type and place of the node that matched, which is called the root;
- a node of the root's name, as `moved` makes it: that is put in the root's place;
- another node, which is in the graph already: the readers of the root read that one;
- None: the rule doesn't hold here.

`when` asks, before, what the form doesn't say. At each node the rules are tried in their order, again and again until none fires. Each time
that one fires is noted in the new graph's `firings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import islice
from typing import Any

from tpucc.ir import Graph, Node
from tpucc.ir.node import Firing
from tpucc.numerics import AnyArray
from tpucc.ops import OPS, facts_of, legalisation_of
from tpucc.ops.facts import Values
from tpucc.ops.names import constant as constant_operator
from tpucc.ops.opdef import Clamp, Expression, Matrix, OpDef, Table, Term
from tpucc.passes.base import Context, GraphPass
from tpucc.passes.rewriter import Rewriter, as_constant, columns_of, constant_of, is_pinned

Found = Mapping[str, Node]
"""The nodes that matched, by the names of variables."""
Inner = tuple[Node, ...]
"""The nodes that matched the operators of a pattern, without the root."""


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Term):
    """A node for which `holds`, which gets the node and the node that reads it, is true; of an `operator` alone, if there is one."""

    name: str
    holds: Callable[[Node, Node], bool]
    operator: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Guarded(Term):
    """A form whose node must be as `holds` says."""

    form: Term
    holds: Callable[[Node, Rewriter], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Called(Term):
    """A form whose node has a name in the match."""

    name: str
    form: Term


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """All operators of which `holds`, which gets an operator's name, is true.

    It is called in a pattern as one operator is; without operands it stands for any operands.

    `when` asks what depends on the node. `in_any_order`: the operands may have the forms in either order, though the operator isn't
    commutative.
    """

    holds: Callable[[str], bool]
    when: Callable[[Node], bool] = lambda node: True
    in_any_order: bool = False

    def __call__(self, *operands: Term) -> Applied:
        """A node of the family whose operands have these forms."""
        return Applied(self, operands)


@dataclass(frozen=True, slots=True, eq=False)
class Applied(Term):
    """A node of a family of operators, and the forms of its operands."""

    family: Family
    operands: tuple[Term, ...]


def value(name: str) -> Variable:
    """Any node."""
    return Variable(name, lambda node, reader: True)


def variable(name: str, holds: Callable[[Node], bool]) -> Variable:
    """A node of which something is true."""
    return Variable(name, lambda node, reader: holds(node))


def constant(name: str) -> Variable:
    """A constant whose quantisation isn't fixed."""
    return Variable(name, lambda node, reader: constant_of(node) is not None, constant_operator.name)


def columns(name: str) -> Variable:
    """A constant that has one value for each column of the node that reads it, or one for all."""
    return Variable(name, lambda node, reader: columns_of(node, reader.type) is not None, constant_operator.name)


product = Family(lambda op: isinstance(legalisation_of(op), Matrix))
"""Products of rows or images with a second operand, fused with something or not."""
function = Family(lambda op: isinstance(legalisation_of(op), Table | Clamp))
"""Functions of one value, element by element."""
total = Family(lambda op: bool(facts_of(op).signs))
"""Sums and differences of two values."""
view = Family(lambda op: facts_of(op).values is Values.VIEWED)
"""Its operand in another shape."""


def in_any_order(operator: OpDef[Any]) -> Family:
    """An operator that isn't commutative, as a family whose operands may have the forms in either order."""
    return Family(lambda op: op == operator.name, in_any_order=True)


def once(form: Term) -> Guarded:
    """A form whose node has no reader but the one in the pattern, so that the rule's result can stand for both."""
    return Guarded(form, lambda node, rewriter: rewriter.is_free(node))


def of_constants(form: Term) -> Guarded:
    """A form whose node reads only values that depend on no input."""
    return Guarded(form, lambda node, rewriter: rewriter.constants.issuperset(node.operands))


def unpinned(form: Term) -> Guarded:
    """A form whose node the source doesn't fix the quantisation of."""
    return Guarded(form, lambda node, rewriter: not is_pinned(node))


def applied(node: Node, *operands: Node | Term) -> Expression:
    """A node's operator and attributes, applied to other operands."""
    return OPS[node.op].with_attributes(node.attributes, *operands)


def called(name: str, form: Term) -> Called:
    """A form whose node is in the match under this name."""
    return Called(name, form)


class Match:
    """The nodes that a rule's pattern matched: the root, each variable's as an attribute, and what builds of them need."""

    def __init__(self, root: Node, found: Found, rewriter: Rewriter, context: Context) -> None:
        self.root, self.found, self.rewriter, self.context = root, found, rewriter, context
        self.further: list[Node] = []
        """Nodes that the root stands for beside those in the pattern; `build` may add some."""

    def moved(self, node: Node, operand: Node) -> Node:
        """A matched node, of another operand, under the name and type of the root: it changes places with the root."""
        return replace(node, name=self.root.name, operands=(operand.name,), type=self.root.type)

    def constant(self, array: AnyArray) -> Node:
        """A constant in the root's place."""
        return as_constant(replace(self.root, origin=self.root.origin.by(self.rewriter.by)), array)

    def __getattr__(self, name: str) -> Node:
        """The node of a variable."""
        try:
            return self.found[name]
        except KeyError:
            raise AttributeError(f"the pattern has no variable {name}") from None


Build = Callable[[Match], Expression | Node | None]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A pattern, and what is put in its place. `when` is asked before."""

    name: str
    pattern: Term
    build: Build
    when: Callable[[Match], bool]


def rule(name: str, pattern: Term, build: Build, when: Callable[[Match], bool] = lambda match: True) -> Rule:
    """A rule by its parts; see the head of this file."""
    return Rule(name, pattern, build, when)


def rules_pass(
    name: str, summary: str, *, level: int, using: type[Rewriter] = Rewriter
) -> Callable[[Callable[[], Iterable[Rule]]], GraphPass]:
    """Makes a pass of the function below, which gives its rules. `using` is a rewriter that knows more of its nodes."""

    def made(rules: Callable[[], Iterable[Rule]]) -> GraphPass:
        @wraps(rules)
        def run(graph: Graph, context: Context) -> Graph:
            return Rules(name, *rules()).run(graph, context, using)

        return GraphPass(name, summary, level, run, {})

    return made


class Rules:
    """The rules of one pass."""

    def __init__(self, name: str, *rules: Rule) -> None:
        self.name = name
        self.rules = rules
        self._of_operators: dict[tuple[str, ...], Sequence[Rule]] = {}

    def run(self, graph: Graph, context: Context, using: type[Rewriter] = Rewriter) -> Graph:
        """The graph in which no rule holds any more, from front to back. `using` is a rewriter that knows more of its nodes."""
        if not any(_is_of(each.pattern, op) for op in {node.op for node in graph} for each in self.rules):
            return graph
        firings: list[Firing] = []
        result = using(graph, self.name).rewrite(lambda rewriter, node: self._fire(rewriter, node, context, firings))
        return replace(result, firings=(*result.firings, *firings)) if firings else result

    def _fire(self, rewriter: Rewriter, node: Node, context: Context, firings: list[Firing]) -> bool:
        """Puts what the rules make of a node; says whether any fired."""
        root, swallowed = node, list[Node]()
        while (step := self._step(rewriter, root, context)) is not None:
            firing, inner, built = step
            firings.append(firing)
            swallowed += filter(rewriter.is_free, inner)
            if built.name != node.name:
                rewriter.alias(node, built.name, *swallowed)
                return True
            root = built
        if root is node:
            return False
        rewriter.put(root, *swallowed)
        return True

    def _step(self, rewriter: Rewriter, root: Node, context: Context) -> tuple[Firing, Inner, Node] | None:
        """The first rule that fires at a node: what it did, the nodes inside its pattern, and what it built."""
        for each in self._rules_of(root.op, *(operand.op for operand in rewriter.operands(root))):
            for found, inner in _matches(each.pattern, root, root, rewriter, {}):
                match, before = Match(root, found, rewriter, context), len(rewriter.nodes)
                built = each.build(match) if each.when(match) else None
                if isinstance(built, Expression):
                    built = rewriter.in_place(root, built)
                if built is None or built == root:
                    continue
                last = (built,) if built.name == root.name else ()
                new = [*islice(reversed(rewriter.nodes.values()), len(rewriter.nodes) - before)]
                inner = (*inner, *match.further)
                return Firing(each.name, (*reversed(inner), root), (*reversed(new), *last)), inner, built
        return None

    def _rules_of(self, *operators: str) -> Sequence[Rule]:
        """The rules that may hold at a node of the first of these operators, with operands of the others. At most nodes there is none."""
        if operators not in self._of_operators:
            self._of_operators[operators] = [each for each in self.rules if _may_match(each.pattern, operators)]
        return self._of_operators[operators]


def _matches(form: Node | Term, node: Node, reader: Node, rewriter: Rewriter, found: Found) -> Iterator[tuple[Found, Inner]]:
    """All ways in which a node, which `reader` reads, has a form: the nodes of the variables, and those inside the pattern, from its root
    down. The root itself isn't one of them."""
    match form:
        case Variable():
            if found.get(form.name, node) is node and form.holds(node, reader):
                yield {**found, form.name: node}, ()
        case Guarded():
            if form.holds(node, rewriter):
                yield from _matches(form.form, node, reader, rewriter, found)
        case Called():
            for further, inner in _matches(form.form, node, reader, rewriter, found):
                yield {**further, form.name: node}, inner
        case Expression() | Applied():
            own = () if node is reader else (node,)
            for operands in _orders(form, node, rewriter):
                for further, inner in _all_match(form.operands, operands, node, rewriter, found):
                    yield further, (*own, *inner)
        case _:
            raise TypeError(f"a pattern is made of operators and variables, found {type(form).__name__}")


def _all_match(
    forms: Sequence[Node | Term], nodes: Sequence[Node], reader: Node, rewriter: Rewriter, found: Found
) -> Iterator[tuple[Found, Inner]]:
    """All ways in which each node has its form."""
    if not forms:
        yield found, ()
        return
    for first, inner in _matches(forms[0], nodes[0], reader, rewriter, found):
        for all_found, others in _all_match(forms[1:], nodes[1:], reader, rewriter, first):
            yield all_found, (*inner, *others)


def _may_match(form: Term, operators: Sequence[str]) -> bool:
    """Whether a node of the first of these operators, with operands of the others in one order or the other, may have a form."""
    match form:
        case Guarded() | Called():
            return _may_match(form.form, operators)
        case Applied() | Expression():
            op, *operands = operators
            return _is_of(form, op) and any(all(map(_is_of, form.operands, order)) for order in (operands, operands[::-1]))
        case _:
            return True


def _is_of(form: Node | Term, op: str) -> bool:
    """Whether a node of this operator may have a form."""
    match form:
        case Variable():
            return form.operator in ("", op)
        case Applied():
            return form.family.holds(op)
        case Expression():
            return form.operator.name == op
        case Guarded() | Called():
            return _is_of(form.form, op)
        case _:
            return True


def _has_attributes(form: Expression | Applied, node: Node) -> bool:
    """Whether a node of the form's operators has the attributes that are given."""
    if isinstance(form, Applied):
        return form.family.when(node)
    return all(getattr(node.attributes, name) == given for name, given in form.given.items())


def _orders(form: Expression | Applied, node: Node, rewriter: Rewriter) -> Iterator[tuple[Node, ...]]:
    """The orders in which a node's operands may have the forms: one, or two of a commutative operator; none where the node is of another
    operator, or their numbers differ."""
    if not _is_of(form, node.op) or not _has_attributes(form, node):
        return
    if form.operands and len(form.operands) != len(node.operands):
        return
    operands = rewriter.operands(node)
    yield operands
    in_any_order = isinstance(form, Applied) and form.family.in_any_order
    if form.operands and (in_any_order or facts_of(node.op).commutative(node.attributes)):
        yield operands[::-1]
