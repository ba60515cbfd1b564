"""The steps of a model: its operator graph, read for several choices of its params, and the functions that blocks of steps become.

A *body* of steps is the model or a function. It is elaborated several times: the model for each choice of its params (`batch` 2 or 3), and
a function at each of its calls, too. Each of these times is an *environment*. What the source computes statically (sizes, attributes, keys
of weights) has one value an environment, and `static_values.py` finds the expression that has these values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from tpucc.ir import Attributes, Graph, Node, TensorType
from tpucc.ir.attributes import identity
from tpucc.ops import INTERNAL, OPS, legalisation_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.facts import UNCHANGED
from tpucc.ops.opdef import Matrix
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.source.equal_models import is_constant, is_identity, is_number
from tpucc.source.names import Unwritable, variable_in

Shape: TypeAlias = tuple[int, ...]
FAR = 20
"""A value that a node so far behind it reads comes before all nodes that read it."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor that a step computes, or that a body takes: its shape in each environment, and the variable that it is in the graph."""

    shapes: tuple[Shape, ...]
    hint: str = ""


@dataclass(frozen=True)
class Part:
    """A slice of a value or a weight that one step reads: it stands inside the expression of this step."""

    whole: Value | Weight
    slices: tuple[SliceAttributes, ...]

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(each.shape for each in self.slices)


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight: its key and its shape in each environment."""

    keys: tuple[str, ...]
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar constant: its value in each environment."""

    values: tuple[float, ...]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return ((),) * len(self.values)


Operand: TypeAlias = Value | Part | Weight | Number


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operator applied, or a function called. `attributes` are the operator's in each environment. `environments` are those of the
    called function that the environments of the call are."""

    op: str
    operands: tuple[Operand, ...]
    results: tuple[Value, ...]
    attributes: tuple[Attributes, ...] = ()
    function: Function | None = None
    environments: tuple[int, ...] = ()


@dataclass(eq=False)
class Body:
    """Steps from entries to results. `samples` says for each environment with which choice of the params it is."""

    samples: tuple[int, ...]
    entries: tuple[Value, ...] = ()
    steps: list[Step] = field(default_factory=list)
    results: tuple[Operand, ...] = ()


@dataclass(eq=False)
class Function:
    """A `def`: the body of several calls."""

    body: Body


@dataclass(frozen=True, slots=True)
class Program:
    """A model: its inputs and outputs with their types in each environment, the values of its params in each, and its body. `unused` are
    weights that no step reads."""

    name: str
    inputs: tuple[tuple[str, tuple[TensorType, ...]], ...]
    outputs: tuple[tuple[str, tuple[TensorType, ...]], ...]
    params: Mapping[str, tuple[int, ...]]
    body: Body
    unused: tuple[Weight, ...]


def leaf_of(operand: Operand) -> Value | Weight | Number:
    """An operand, or what it is a part of."""
    return operand.whole if isinstance(operand, Part) else operand


def wholes(step: Step) -> Iterator[Value]:
    """The tensors that a step reads, the whole ones of parts."""
    return values_of(map(leaf_of, step.operands))


def weights_of(step: Step) -> Iterator[Weight]:
    """The weights that a step reads."""
    return (leaf for leaf in map(leaf_of, step.operands) if isinstance(leaf, Weight))


def values_of(operands: Iterable[Operand]) -> Iterator[Value]:
    """The values among operands."""
    return (operand for operand in operands if isinstance(operand, Value))


def is_slice(step: Step) -> bool:
    """Whether a step takes a part of a tensor."""
    return bool(step.attributes) and isinstance(step.attributes[0], SliceAttributes)


def takes_many(op: str) -> bool:
    """Whether an operator takes a list of tensors."""
    return op in OPS and any(operand.many for operand in OPS[op].operands)


def program_of(graphs: Sequence[Graph], params: Mapping[str, tuple[int, ...]]) -> Program:
    """The program of one model in several environments, whose graphs differ in sizes only.

    Raises `Unwritable` for operators that the language doesn't have, and for graphs that differ in more.
    """
    if len({tuple((node.op, len(node.operands)) for node in graph) for graph in graphs}) != 1:
        raise Unwritable("the graphs of the samples have other operators, not only other sizes")
    reader = _Reader(graphs)
    for nodes in reader.in_order():
        reader.read(nodes)
    first, body, operands = graphs[0], reader.body, reader.operands
    body.results = tuple(operands[output.node] for output in first.outputs)
    read = {leaf_of(operand) for step in body.steps for operand in step.operands} | set(body.results)
    weights = dict.fromkeys(operand for operand in operands.values() if isinstance(operand, Weight))
    inputs = tuple((nodes[0].name, tuple(node.type for node in nodes)) for nodes in reader.aligned if nodes[0].is_input)
    outputs = [(output.name, tuple(node.type for node in reader.aligned[reader.places[0][output.node]])) for output in first.outputs]
    return Program(first.name, inputs, tuple(outputs), params, body, tuple(weight for weight in weights if weight not in read))


class _Reader:
    """Reads nodes, each in all environments, into a body."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.aligned: list[tuple[Node, ...]] = list(zip(*graphs, strict=True))
        self.places = [{node.name: place for place, node in enumerate(graph)} for graph in graphs]
        self.readers = Counter(name for node in graphs[0] for name in node.operands)
        self.readers.update(output.node for output in graphs[0].outputs)
        self.graph = graphs[0]
        self.body = Body(tuple(range(len(graphs))))
        self.operands: dict[str, Operand] = {}
        self.states: dict[Hashable, Value] = {}
        """Of values without operands those that are alike are one."""

    def in_order(self) -> Iterator[tuple[Node, ...]]:
        """The nodes in an order in which blocks that are alike are written alike, whatever wrote the file.

        It is the graph's order, but in a recurrence, where all is computed where it is read, and the states step by step: they meet weights
        that other values meet, too. What is computed of inputs alone, and is read far behind or only moved, comes before all that read it.
        """
        nodes = self.graph.nodes
        last = {name: place for place, node in enumerate(nodes) for name in node.operands}
        moved = {node.name for node in self.graph.inputs}
        light: set[str] = set()
        fixed: set[str] = set()
        recurrent: set[str] = set()
        for place, node in enumerate(nodes):
            if node.operands and self._moves(place) and moved.issuperset(node.operands):
                moved.add(node.name)
            if not isinstance(node.attributes, WeightAttributes) and light.issuperset(node.operands):
                light.add(node.name)
            if not node.is_input and fixed.issuperset(node.operands):
                fixed.add(node.name)
            if isinstance(legalisation_of(node.op), Matrix) and any(name in fixed and self.readers[name] > 1 for name in node.operands):
                recurrent.update(node.operands)
        far = [place for place, node in enumerate(nodes) if node.operands and node.name in light and last.get(node.name, 0) - place > FAR]
        done = {place for place, node in enumerate(nodes) if not node.operands or node.name in moved}
        yield from (self.aligned[place] for place in sorted(done))
        for root in (*far, *(self.places[0][output.node] for output in self.graph.outputs), *range(len(nodes))):
            for place in sorted(self._behind(root, done)):
                if place == root or not recurrent or nodes[place].name in recurrent:
                    needed = self._behind(place, done)
                    yield from (self.aligned[each] for each in needed)
                    done.update(needed)

    def _behind(self, root: int, done: Collection[int]) -> list[int]:
        """A node, and before it all that is computed for it and isn't done; of two operands the one with the longest way comes first."""
        operands: dict[int, list[int]] = {}
        waiting = [root]
        while waiting:
            if (place := waiting.pop()) not in operands:
                operands[place] = [each for name in self.graph.nodes[place].operands if (each := self.places[0][name]) not in done]
                waiting += operands[place]
        heights: dict[int, int] = {}
        for place in sorted(operands):
            heights[place] = 1 + max((heights[each] for each in operands[place]), default=0)
        found: dict[int, None] = {}
        waiting = [root] if root not in done else []
        while waiting:
            missing = [each for each in operands[waiting[-1]] if each not in found]
            if missing and takes_many(
                self.graph.nodes[waiting[-1]].op
            ):  # what is joined, in its order, behind all that is only moved to be joined
                moved = [inner for each in missing if self._moves(each) for inner in operands[each] if inner not in found]
                waiting.append([*moved, *missing][0])
            elif missing:
                waiting.append(max(missing, key=heights.__getitem__))
            else:
                found[waiting.pop()] = None
        return list(found)

    def _moves(self, place: int) -> bool:
        op = self.graph.nodes[place].op
        return op in OPS and OPS[op].facts.values in UNCHANGED

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
            self.operands[first.name] = self._computed(nodes)

    def _computed(self, nodes: Sequence[Node]) -> Value | Part:
        first = nodes[0]
        slices = tuple(node.attributes for node in nodes if isinstance(node.attributes, SliceAttributes))
        whole = self.operands[first.operands[0]] if slices else None
        if isinstance(whole, Value | Weight) and self.readers[first.name] == 1 and first.name not in self.graph.output_nodes:
            return Part(whole, slices)
        alike = tuple((node.op, identity(node.attributes), node.type) for node in nodes) if is_constant(first) else first.name
        if alike in self.states:
            return self.states[alike]
        value = self.states[alike] = Value(tuple(node.type.shape for node in nodes), variable_in(first.name))
        if first.is_input:
            self.body.entries += (value,)
        elif first.op in INTERNAL and not slices:
            raise Unwritable(f"{first.name} is of the operator {first.op}, which the language doesn't have")
        else:
            operands = tuple(self.operands[name] for name in first.operands)
            self.body.steps.append(Step(first.op, operands, (value,), tuple(node.attributes for node in nodes)))
        return value

    def _operand(self, node: Node, environment: int) -> Node:
        return self.aligned[self.places[environment][node.operands[0]]][environment]

    def _require_alike(self, nodes: Sequence[Node]) -> None:
        read = {tuple(places[name] for name in node.operands) for places, node in zip(self.places, nodes, strict=True)}
        if len(read) != 1 or len({node.type.rank for node in nodes}) != 1:
            raise Unwritable(f"{nodes[0].name} has other operands in another of the samples")
