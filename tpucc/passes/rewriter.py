"""A graph in the hands of a pass: read from front to back, written anew under the same names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import is_
from typing import Self, TypeVar, cast

from tpucc.diagnostics import Origin
from tpucc.ir import Constant, Graph, Node, Output, TensorType
from tpucc.ir.dataflow import constant_values, reached_from
from tpucc.ir.graph import once_a_graph
from tpucc.ir.node import Side
from tpucc.numerics import AnyArray
from tpucc.ops import OPS, facts_of, legalisation_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.facts import Values
from tpucc.ops.fused import Fused
from tpucc.ops.names import as_weights, constant, reshape
from tpucc.ops.opdef import Expression, Matrix, Term
from tpucc.ops.reshape import ReshapeAttributes

T = TypeVar("T")
_NUMBER = re.compile(r"(\.[0-9]+)+$")


class Rewriter:
    """Collects the nodes of a new graph.

    A node of the old graph is kept, replaced under its own name, or dropped in favour of another (`alias`); later operands follow. Nodes
    that the old graph read and the new one doesn't are left out of it: a pass clears away what it made useless, and nothing else.

    In a graph whose nodes have places, a node that is added without one gets it: that of its namesake, or else of the node that was read
    last, which it is made for. Nodes computed from constants alone belong to the host.
    """

    def __init__(self, graph: Graph, by: str) -> None:
        self.graph = graph
        self.nodes: dict[str, Node] = {}
        self.notes: list[str] = []
        """Messages for the user, which the new graph gets."""
        self.by = by
        self._aliases: dict[str, str] = {}
        self._fused: dict[str, tuple[str, ...]] = {}
        self._dropped: dict[str, list[Origin]] = {}
        """The origins of the nodes that were dropped in favour of a node."""
        self._names = Names(graph)
        self._made: dict[Hashable, object] = {}
        self.constants = set(constant_values(graph))
        """The nodes that depend on no input."""
        self._place: Side | None = None
        self._reads = Counter(chain.from_iterable(node.operands for node in graph))
        self._reads.update(output.node for output in graph.outputs)
        self._unread = {node.name for node in graph if not self._reads[node.name]}

    def __iter__(self) -> Iterator[Node]:
        """The old graph's nodes in order, each with its operands as they are now named."""
        for node in self.graph:
            self._place = node.place
            operands = self._resolved(node)
            yield node if operands == node.operands else replace(node, operands=operands)

    def resolve(self, name: str) -> str:
        """The new name of a node of the old graph."""
        return self._aliases.get(name, name)

    def _resolved(self, node: Node) -> tuple[str, ...]:
        return tuple(self._aliases.get(name, name) for name in node.operands) if self._aliases else node.operands

    def operands(self, node: Node) -> tuple[Node, ...]:
        """The operands as they stand in the new graph."""
        return tuple(self.nodes[name] for name in node.operands)

    def put(self, node: Node, *fused: Node) -> Node:
        """Adds a node under its own name. `fused` are the nodes that it takes the place of beside its namesake; it takes their origins."""
        replaced = self.graph.by_name.get(node.name)
        before = () if replaced is None else self._resolved(replaced)
        if before != node.operands:
            self._reads.subtract(before)
            self._reads.update(node.operands)
        for other in fused:
            if not self._reads[other.name]:
                self._reads.subtract(other.operands)
            if isinstance(node.attributes, Fused) and node.attributes.pre is not None and other.type.range is not None:
                node = replace(node, type=node.type.with_synthetic(other.type.range))  # its table is of that range
        if fused:
            self._fused[node.name] = tuple(other.name for other in fused)
        if not node.is_input and self.constants.issuperset(node.operands):
            self.constants.add(node.name)
        if node.place is None and self.graph.is_placed:
            place = self._place if replaced is None else replaced.place
            node = replace(node, place="host" if node.name in self.constants else place)
        self.nodes[node.name] = node
        return node

    def keep(self, node: Node) -> None:
        """Adds a node of the old graph as it is."""
        self.nodes[node.name] = node

    def make(self, node: Node) -> Node:
        """Adds a node that the source doesn't contain, under a name made from its own."""
        return self.put(replace(node, name=self.fresh(node.name), origin=node.origin.by(self.by)))

    def in_place(self, node: Node, expression: Expression) -> Node:
        """The node with an expression in its place: its name, type, origin and place stay. The nodes inside the expression are added, and
        the node itself isn't."""
        names = tuple(operand.name for operand in self._added(expression.operands, node))
        return replace(node, op=expression.operator.name, operands=names, attributes=expression.attributes)

    def add(self, expression: Expression, root: Node, name: str = "") -> Node:
        """Adds the nodes of an expression, which `root` is rewritten with, and returns the last.

        A node that has the values of its one operand goes by that one's name, and has its range and origin; others go by the root's.
        """
        operands, operator, attributes = self._added(expression.operands, root), expression.operator, expression.attributes
        type_ = operator.infer(attributes, [operand.type for operand in operands])
        if operator.facts.values in (Values.VIEWED, Values.PICKED):
            (root,) = operands
            type_ = replace(root.type, shape=type_.shape)
        names = tuple(operand.name for operand in operands)
        return self.make(Node(name or root.name, operator.name, names, attributes, type_, root.origin))

    def again(self, node: Node, *operands: Node, same_values: bool = False) -> Node:
        """Adds what a node of the source computes, of other operands. Where those have the `same_values` in another shape, so has the
        result, and its range is known."""
        type_ = OPS[node.op].infer(node.attributes, [operand.type for operand in operands])
        type_ = replace(node.type, shape=type_.shape) if same_values else type_
        names = tuple(operand.name for operand in operands)
        return self.put(replace(node, name=self.fresh(node.name), operands=names, type=type_))

    def _added(self, operands: Sequence[Node | Term], root: Node) -> tuple[Node, ...]:
        return tuple(self.add(operand, root) if isinstance(operand, Expression) else cast(Node, operand) for operand in operands)

    def constant(self, wanted: str, value: Constant, origin: Origin) -> Node:
        """Adds a constant that the pass computed."""
        return self.make(Node(wanted, constant.name, (), ConstantAttributes(value), TensorType(value.dtype, value.shape), origin))

    def reshape(self, of: Node, shape: tuple[int, ...]) -> Node:
        """Adds a value in another shape."""
        return self.add(reshape(of, shape=shape), of)

    def alias(self, node: Node, other: str, *fused: Node) -> None:
        """Drops a node: its readers read `other` from now on, which takes its origin, and those of the nodes `fused` that go with it."""
        self._aliases[node.name] = other
        self._reads.subtract(node.operands)
        self._reads[other] += self._reads[node.name]
        self._dropped.setdefault(other, []).extend(each.origin for each in (*fused, node) if each.name != other)

    def reads(self, node: Node) -> int:
        """How often the node is read, by operands and outputs."""
        return self._reads[node.name]

    def is_free(self, node: Node) -> bool:
        """Whether the node that `rewrite` stands at may take in this operand: nothing else reads it, the same side computes both, and the
        source doesn't fix how it is quantised."""
        return self._reads[node.name] == 1 and node.place == self._place and not is_pinned(node)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, made once for each `key` and shared by several nodes."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def fresh(self, wanted: str) -> str:
        """`wanted.1`, `wanted.2`, …: the first that neither graph has; a number at the end of `wanted` gives way."""
        return self._names.fresh(wanted)

    def rewrite(self, rule: Callable[[Self, Node], bool]) -> Graph:
        """The new graph, in which `rule` has put one node after the other; those for which it says that it has not stay."""
        for node in self:
            if rule(self, node):
                continue
            if node is self.graph[node.name]:
                self.keep(node)
            else:
                self.put(node)
        return self.build()

    def build(self) -> Graph:
        """The new graph; where nothing is different, the old one itself."""
        outputs = tuple(Output(output.name, self.resolve(output.node)) for output in self.graph.outputs)
        needed = {output.node for output in outputs}
        kept: list[Node] = []
        for node in reversed(self.nodes.values()):
            if node.name in needed or node.name in self._unread or node.is_input:
                needed.update(node.operands)
                several = node.name in self._fused or node.name in self._dropped
                kept.append(replace(node, origin=self._origin(node)) if several else node)
        nodes = tuple(reversed(kept))
        same = outputs == self.graph.outputs and len(nodes) == len(self.graph) and all(map(is_, nodes, self.graph.nodes))
        return (self.graph if same else replace(self.graph, nodes=nodes, outputs=outputs)).noting(*self.notes)

    def _origin(self, node: Node) -> Origin:
        """The origins of all that the node was fused from, the first computed first, then those of the nodes that were dropped in favour of
        one of these; each is visited once, at the end."""
        found, dropped = list[Origin](), list[Origin]()
        waiting = [node.name]
        while waiting:
            name = waiting.pop()
            found.append(self.nodes[name].origin)
            dropped.extend(self._dropped.get(name, ()))
            waiting.extend(fused for fused in self._fused.get(name, ()) if fused != name)  # a node may take its namesake's place
        return found[-1].merged(*reversed(found[:-1]), *dropped)


class Names:
    """New names for a graph's nodes, numbered: `h.1`, `h.2`, …, and never one that the graph has."""

    def __init__(self, graph: Graph) -> None:
        self._taken = graph.by_name
        self._numbers: Counter[str] = Counter()

    def fresh(self, wanted: str) -> str:
        base = base_name(wanted)
        while True:
            self._numbers[base] += 1
            if (name := f"{base}.{self._numbers[base]}") not in self._taken:
                return name


def base_name(name: str) -> str:
    """The name without the number that tells it from others."""
    return _NUMBER.sub("", name) or name


def constant_of(node: Node) -> Constant | None:
    """The value of a constant; None for other nodes, and for constants whose quantisation is fixed."""
    if isinstance(node.attributes, ConstantAttributes) and not is_pinned(node):
        return node.attributes.value
    return None


def array_of(node: Node) -> AnyArray:
    """The array of a constant whose quantisation isn't fixed."""
    value = constant_of(node)
    assert value is not None
    return value.data


def is_pinned(node: Node) -> bool:
    """Whether the source fixes how the value is quantised: then the value itself must stay in the graph."""
    return node.type.quantisation is not None


def held_array(node: Node) -> AnyArray | None:
    """The array of a constant, whether its quantisation is fixed or not; None for other nodes."""
    return node.attributes.value.data if isinstance(node.attributes, ConstantAttributes) else None


def as_constant(node: Node, value: AnyArray) -> Node:
    """A constant in the place of a node, under its name, type, origin and place."""
    return replace(node, op=constant.name, operands=(), attributes=ConstantAttributes(Constant(value)))


def as_reshape(node: Node, operand: str) -> Node:
    """A reshape of `operand` in the place of a node, whose shape it has."""
    return replace(node, op=reshape.name, operands=(operand,), attributes=ReshapeAttributes(node.type.shape))


def is_view(node: Node) -> bool:
    """Whether the node is its operand in another shape."""
    return facts_of(node.op).values is Values.VIEWED


def is_product(node: Node) -> bool:
    """Whether the node is an operator that the matrix unit computes if its weights are constant."""
    return isinstance(legalisation_of(node.op), Matrix)


@once_a_graph
def after_products(graph: Graph) -> frozenset[str]:
    """The products, and the values that depend on one."""
    return reached_from(graph, {node.name for node in graph if is_product(node)})


def is_written(node: Node) -> bool:
    """Whether the node is a value that the host writes to weight memory."""
    return as_weights.made(node)


def has_weights(node: Node, operands: Sequence[Node], constants: Container[str]) -> bool:
    """Whether the node is a product whose right side is one of `constants`, which depend on no input, or is written to weight memory."""
    return is_product(node) and (node.operands[1] in constants or is_written(operands[1]))


def obstacle(node: Node, operands: Sequence[Node]) -> str:
    """Why the matrix unit can't compute a product, whatever its weights; empty when it can."""
    legalisation = legalisation_of(node.op)
    assert isinstance(legalisation, Matrix)
    if is_written(operands[1]):
        return ""
    return legalisation.obstacle(node.attributes, [operand.type.shape for operand in operands])


def as_columns(value: Constant, type_: TensorType) -> Constant | None:
    """A constant that broadcasts to `type_` as one value a column, as f32[N]; None when it is anything else.

    One value for all columns is repeated.
    """
    columns = type_.shape[-1:]
    if value.dtype != "f32" or not columns or len(value.shape) > type_.rank or value.data.size not in (1, *columns):
        return None
    if value.shape[-1:] != columns and value.data.size != 1:
        return None
    if value.shape == columns:
        return value
    repeated = value.data.reshape(-1)
    return Constant(repeated if repeated.shape == columns else repeated.repeat(columns[0]))


def columns_of(node: Node, type_: TensorType) -> Constant | None:
    """The value of a constant as one value a column of `type_`; None for other nodes."""
    value = constant_of(node)
    return None if value is None else as_columns(value, type_)
