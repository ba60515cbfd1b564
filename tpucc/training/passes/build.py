"""Nodes in the making: the `Builder`s that gradient rules, optimizers and passes write with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tpucc.diagnostics import Origin
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Output, TensorType
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.gradient import DEFAULTS, Value
from tpucc.ops.names import constant
from tpucc.ops.opdef import RuleError
from tpucc.passes.rewriter import Rewriter


class Growing:
    """A graph that grows at its end.

    What is made between `begin` and `end` comes from one place of the source, and is named together: until `end`, a node has a name that
    stands for it, by which rules may use it later, too.
    """

    def __init__(self, graph: Graph, by: str) -> None:
        self.graph = graph
        self.nodes = dict(graph.by_name)
        self._by = by
        self._origin = Origin()
        self._made: dict[str, Node] = {}
        self._final: dict[str, str] = {}
        self._constants: dict[bytes, str] = {}

    def value(self, name: str) -> Value:
        return Value(name, self.nodes[name].type, self)

    def begin(self, origin: Origin) -> None:
        """What is made from now on comes from `origin`."""
        self._origin = origin.by(self._by)
        self._made = {}

    def end(self, names: Sequence[tuple[Value | None, str]], others: str) -> list[str | None]:
        """Adds what was made since `begin`. Each value of `names` gets the name beside it, if it is new; all else is called after `others`.

        Returns the values' names, as they are.
        """
        chosen = {value.name: wanted for value, wanted in reversed(names) if value is not None and value.name in self._made}
        final = self._final
        for made in self._made.values():
            final[made.name] = name = self.fresh(chosen.get(made.name, f"{others}.{made.op}"))
            self.nodes[name] = replace(made, name=name, operands=tuple(final.get(operand, operand) for operand in made.operands))
        return [None if value is None else final.get(value.name, value.name) for value, _ in names]

    def call(self, op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any] = DEFAULTS) -> Value:
        """The result of an operator, whose rule gives its type. Raises `RuleError`."""
        given, type_ = _inferred(op, operands, attributes)
        return self._add(op, tuple(value.name for value in operands), given, type_)

    def constant(self, value: Constant) -> Value:
        """A constant; an equal one that is there already serves again."""
        if value.digest not in self._constants:
            name = self.fresh("scalar" if value.data.size == 1 else "constant")
            type_ = TensorType(value.dtype, value.shape)
            self.nodes[name] = constant.node(name, (), ConstantAttributes(value), type_, Origin(made_by=self._by))
            self._constants[value.digest] = name
        return self.value(self._constants[value.digest])

    def leaf(self, name: str, op: str, attributes: Attributes, type_: TensorType, origin: Origin) -> Value:
        """Adds a node without operands at once: an input or a state."""
        made = Node(self.fresh(name), op, (), attributes, type_, origin.by(self._by))
        self.nodes[made.name] = made
        return self.value(made.name)

    def build(self, outputs: Iterable[Output]) -> Graph:
        return replace(self.graph, nodes=tuple(self.nodes.values()), outputs=tuple(outputs))

    def fresh(self, wanted: str) -> str:
        """`wanted`, or `wanted.1`, `wanted.2`, … when it is taken."""
        name, number = wanted, 0
        while name in self.nodes:
            number += 1
            name = f"{wanted}.{number}"
        return name

    def _add(self, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> Value:
        node = Node(f"\0{len(self._final) + len(self._made)}", op, operands, attributes, type_, self._origin)
        self._made[node.name] = node
        return Value(node.name, type_, self)


class Within:
    """Makes the nodes that a pass puts before one of the graph's, named after it."""

    def __init__(self, rewriter: Rewriter, node: Node) -> None:
        self._rewriter = rewriter
        self._node = node

    def value(self, name: str) -> Value:
        return Value(name, self._rewriter.nodes[name].type, self)

    def call(self, op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any] = DEFAULTS) -> Value:
        given, type_ = _inferred(op, operands, attributes)
        names = tuple(value.name for value in operands)
        return self.value(self._rewriter.make(Node(f"{self._node.name}.{op}", op, names, given, type_, self._node.origin)).name)

    def constant(self, value: Constant) -> Value:
        made = self._rewriter.once(value.digest, lambda: self._rewriter.constant("scalar", value, self._node.origin))
        return self.value(made.name)


class Apart:
    """Keeps what a rule makes as nodes of a graph of its own, whose inputs are what the rule was given."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def input(self, name: str, type_: TensorType) -> Value:
        return self._add(name, "input", (), NoAttributes(), type_)

    def call(self, op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any] = DEFAULTS) -> Value:
        """The result of an operator, whose rule gives its type. Raises `ValueError` for what it refuses."""
        try:
            given, type_ = _inferred(op, operands, attributes)
        except RuleError as error:
            names = [value.type.brief for value in operands]
            raise ValueError(f"{op}({', '.join(names)}): {error.named(names)[0]}") from None
        return self._add(self._fresh(), op, tuple(value.name for value in operands), given, type_)

    def constant(self, value: Constant) -> Value:
        return self._add(self._fresh(), "constant", (), ConstantAttributes(value), TensorType(value.dtype, value.shape))

    def graph(self, value: Value) -> Graph:
        """What a value is computed from, operands first; its output has the name `gradient`."""
        needed = {value.name}
        for node in reversed(self.nodes.values()):
            if node.name in needed:
                needed.update(node.operands)
        return Graph("rule", tuple(node for node in self.nodes.values() if node.name in needed), (Output("gradient", value.name),))

    def _fresh(self) -> str:
        return f"v{len(self.nodes)}"

    def _add(self, name: str, op: str, operands: tuple[str, ...], attributes: Attributes, type_: TensorType) -> Value:
        self.nodes[name] = Node(name, op, operands, attributes, type_, Origin(made_by="rule"))
        return Value(name, type_, self)


def _inferred(op: str, operands: Sequence[Value], attributes: Attributes | Mapping[str, Any]) -> tuple[Attributes, TensorType]:
    """All attributes of a call of an operator, and the type of its result."""
    operator = OPS[op]
    given: Attributes = operator.attributes(**attributes) if isinstance(attributes, Mapping) else attributes
    return given, operator.infer(given, [value.type for value in operands]).plain()
