"""Operator graphs on their way to source text: bodies of steps, whose static values are vectors.

A body is what the source has as the model or as a `def`. It is elaborated several times: a `def` at each of its calls, and all of it for
each choice of the params (`batch` 2 or 3). Each of these times is an *environment*. All that the source computes statically (sizes,
attributes, keys of weights) therefore has one value an environment, and `statics.py` finds the expression that has these values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tpucc.interop.decompile.same import is_identity, is_number
from tpucc.ir import Attributes, Graph, Node, TensorType
from tpucc.ops import INTERNAL
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes

Shape: TypeAlias = tuple[int, ...]


class Unwritable(ValueError):
    """The graph has no text: it has an operator, a value or a name that the language doesn't have."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a step computes, or that a body takes."""

    index: int

    def __hash__(self) -> int:
        return self.index  # the texts of long sequences ask for millions


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight: its key and its shape in each environment."""

    keys: tuple[str, ...]
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar constant: its value in each environment."""

    values: tuple[float, ...]


Operand: TypeAlias = Value | Weight | Number


@dataclass(frozen=True, slots=True)
class Step:
    """An operator applied, or a function called.

    `attributes` are the operator's in each environment. A call has instead in `environments` which of the function's environments
    each of its own is.
    """

    op: str
    operands: tuple[Operand, ...]
    results: tuple[Value, ...]
    attributes: tuple[Attributes, ...] = ()
    function: Function | None = None
    environments: tuple[int, ...] = ()


@dataclass
class Body:
    """Steps from entries to results. `shapes` and `hints` are of each value in each environment; a hint is the name of the graph's node."""

    entries: tuple[Value, ...]
    steps: list[Step]
    results: tuple[Operand, ...]
    shapes: dict[Value, tuple[Shape, ...]] = field(default_factory=dict)
    hints: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    unused: tuple[Weight, ...] = ()
    """Weights that no step reads."""


@dataclass(eq=False)
class Function:
    """A `def`: the body of several calls."""

    body: Body
    rounds: bool = False
    """Whether it is `quantized`, which puts values of any shape on a grid and is no layer of its own."""


@dataclass(frozen=True, slots=True)
class Program:
    """A model: its name, inputs and outputs, and the values of the params in each environment of the model's body."""

    name: str
    inputs: tuple[tuple[str, tuple[TensorType, ...]], ...]
    outputs: tuple[str, ...]
    types: tuple[tuple[TensorType, ...], ...]
    """The type of each output in each environment."""
    body: Body
    params: Mapping[str, tuple[int, ...]]


def program_of(graphs: Sequence[Graph], params: Mapping[str, tuple[int, ...]]) -> Program:
    """The program of one model in several environments: node by node the same graph, but for sizes.

    Raises `Unwritable` for operators without text, and for graphs that differ in more.
    """
    first = graphs[0]
    reader = _Reader(graphs)
    for nodes in reader.aligned:
        reader.read(nodes)
    body = reader.body
    body.results = tuple(reader.operands[output.node] for output in first.outputs)
    read = {operand for step in body.steps for operand in step.operands} | set(body.results)
    declared = {operand: None for operand in reader.operands.values() if isinstance(operand, Weight)}
    body.unused = tuple(weight for weight in declared if weight not in read)
    inputs = tuple((nodes[0].name, tuple(node.type for node in nodes)) for nodes in reader.aligned if nodes[0].is_input)
    outputs = zip(*(graph.outputs for graph in graphs), strict=True)
    types = tuple(tuple(graph[output.node].type for graph, output in zip(graphs, alike, strict=True)) for alike in outputs)
    return Program(first.name, inputs, tuple(output.name for output in first.outputs), types, body, params)


class _Reader:
    """Reads nodes, each in all environments, into a body."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        if len({tuple((node.op, len(node.operands)) for node in graph) for graph in graphs}) != 1:
            raise Unwritable("the graphs of the samples have other operators, not only other sizes")
        self.aligned: list[tuple[Node, ...]] = list(zip(*graphs, strict=True))
        self.body = Body((), [], ())
        self.operands: dict[str, Operand] = {}
        self.names = [{node.name: index for index, node in enumerate(graph)} for graph in graphs]

    def read(self, nodes: Sequence[Node]) -> None:
        """One node more."""
        first = nodes[0]
        self._require_alike(nodes)
        if isinstance(first.attributes, WeightAttributes):
            keys = tuple(node.attributes.key for node in nodes if isinstance(node.attributes, WeightAttributes))
            self.operands[first.name] = Weight(keys, tuple(node.type.shape for node in nodes))
        elif is_number(first):
            values = tuple(float(node.attributes.value.data) for node in nodes if isinstance(node.attributes, ConstantAttributes))
            self.operands[first.name] = Number(values)
        elif first.operands and all(is_identity(node, self._operand(node, at)) for at, node in enumerate(nodes)):
            self.operands[first.name] = self.operands[first.operands[0]]
        else:
            self._compute(nodes)

    def _compute(self, nodes: Sequence[Node]) -> None:
        first = nodes[0]
        value = Value(len(self.operands))
        self.body.shapes[value] = tuple(node.type.shape for node in nodes)
        self.body.hints[value] = tuple(node.name for node in nodes)
        operands = tuple(self.operands[name] for name in first.operands)
        self.operands[first.name] = value
        if first.is_input:
            self.body.entries += (value,)
            return
        if first.op in INTERNAL and not isinstance(first.attributes, SliceAttributes):
            raise Unwritable(f"{first.name} is of the operator {first.op}, which the language doesn't have")
        self.body.steps.append(Step(first.op, operands, (value,), tuple(node.attributes for node in nodes)))

    def _operand(self, node: Node, environment: int) -> Node:
        return self.aligned[self.names[environment][node.operands[0]]][environment]

    def _require_alike(self, nodes: Sequence[Node]) -> None:
        places = {tuple(names[operand] for operand in node.operands) for names, node in zip(self.names, nodes, strict=True)}
        ranks = {node.type.rank for node in nodes}
        if len(places) != 1 or len(ranks) != 1:
            raise Unwritable(f"{nodes[0].name} has other operands in another of the samples")
