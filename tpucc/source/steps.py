"""The steps of a model: its operator graph, read for several choices of its params, and the functions that blocks of steps become.

A *body* of steps is the model or a function. It is elaborated several times: the model for each choice of its params (`batch` 2 or 3), and
a function at each of its calls, too. Each of these times is an *environment*. What the source computes statically (sizes, attributes, keys
of weights) has one value an environment, and `scope.py` finds the expression that has these values.

Two graphs are the same model if they are equal up to the names and the order of their nodes. Some differences don't count: where a
constant, such as a first state of zeros, is a node of its own and where several readers share it; two nodes for the weight of one key; a
slice of everything, and `dropout` outside of training, which are their operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tpucc.ir import Attributes, Graph, Node
from tpucc.ir.attributes import identities, identity
from tpucc.language.calls import IDENTITY_OUTSIDE_TRAINING
from tpucc.ops import INTERNAL, OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.source.names import Unwritable, variable_in


def same_model(a: Graph, b: Graph) -> bool:
    """Whether two graphs of operators have the same name, inputs, outputs, weights, and the same nodes between them."""
    numbers: dict[Hashable, int] = {}
    return _described(a, numbers) == _described(b, numbers)


def is_number(node: Node) -> bool:
    """Whether a node is a scalar constant, which the text of a source has as a number."""
    return isinstance(node.attributes, ConstantAttributes) and node.type.shape == () and node.type.dtype == "f32"


def is_constant(node: Node) -> bool:
    """Whether a node is computed of nothing: no operands, no input."""
    return not node.operands and not node.is_input


def is_identity(node: Node, operand: Node) -> bool:
    """Whether the front end makes no node of what this node computes, as it is its operand."""
    if isinstance(node.attributes, SliceAttributes):
        whole = tuple(map(range, operand.type.shape))
        return not node.attributes.squeeze and node.attributes.ranges == whole
    return node.op in IDENTITY_OUTSIDE_TRAINING


def _described(graph: Graph, numbers: dict[Hashable, int]) -> object:
    """What is the same for the same models. Each value has a number, which says how it is computed. Of several nodes that compute the same
    value it doesn't say which one is read."""
    computed: dict[str, int] = {}
    nodes: Counter[int] = Counter()
    for node in graph:
        operands = tuple(computed[operand] for operand in node.operands)
        if node.operands and is_identity(node, graph[node.operands[0]]):
            computed[node.name] = operands[0]
            continue
        described = (node.op, node.name if node.is_input else "", _attributes(node), _type(node), operands)
        computed[node.name] = number = numbers.setdefault(described, len(numbers))
        nodes[number] = 1 if is_constant(node) else nodes[number] + 1
    inputs = [(node.name, node.type) for node in graph.inputs]
    return graph.name, inputs, [(output.name, computed[output.node]) for output in graph.outputs], nodes


def _type(node: Node) -> Hashable:
    """Data type, shape and scale. The range of an input is declared; of other values it is only what is known of them."""
    return node.type if node.is_input else node.type.with_range(None)


def _attributes(node: Node) -> Hashable:
    """The attributes as a value that is equal for the same ones. Of a slice, what it takes, however its ends are written."""
    if isinstance(node.attributes, SliceAttributes):
        return node.attributes.ranges, tuple(sorted(node.attributes.squeeze))
    return identities(node.attributes)


Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor that a step computes, or that a body takes: its shape in each environment, and the variable that it is in the graph."""

    shapes: tuple[Shape, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An operand that stands inside the expression of the step that reads it: a weight, a scalar constant, or a slice of `whole`. It has
    the attributes and the shape of its node in each environment."""

    attributes: tuple[Attributes, ...]
    shapes: tuple[Shape, ...]
    whole: Operand | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a weight; empty for others."""
        return tuple(each.key for each in self.attributes if isinstance(each, WeightAttributes))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values of a scalar constant; empty for others."""
        return tuple(float(each.value.data) for each in self.attributes if isinstance(each, ConstantAttributes))


Operand: TypeAlias = Value | Leaf


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operator applied, or a function called. `attributes` are the operator's in each environment. `environments` are those of the
    called function that the environments of the call are."""

    op: str
    operands: tuple[Operand, ...]
    results: tuple[Value, ...]
    attributes: tuple[Attributes, ...] = ()
    function: Body | None = None
    environments: tuple[int, ...] = ()


@dataclass(eq=False)
class Body:
    """Steps from entries to results: the model, or the function of several calls.

    `samples` says for each environment with which choice of the params it is. `carried` has the results that go from call to call, as `h`
    in `h = step(h)`: for the place of a result the place of the entry that the next call has it for.
    """

    samples: tuple[int, ...]
    entries: tuple[Value, ...] = ()
    steps: list[Step] = field(default_factory=list)
    results: tuple[Operand, ...] = ()
    carried: dict[int, int] = field(default_factory=dict)


def bottom_of(operand: Operand) -> Operand:
    """An operand, or what it is a slice of."""
    return bottom_of(operand.whole) if isinstance(operand, Leaf) and operand.whole is not None else operand


def values_of(operands: Iterable[Operand]) -> Iterator[Value]:
    """The values that operands are, or are slices of."""
    return (bottom for bottom in map(bottom_of, operands) if isinstance(bottom, Value))


def statics_of(step: Step, environment: int = 0) -> Iterator[Attributes]:
    """The attributes of a step, of the weights and numbers that it reads, and of all within the function that it calls."""
    yield from step.attributes[environment : environment + 1]
    yield from (bottom.attributes[environment] for bottom in map(bottom_of, step.operands) if isinstance(bottom, Leaf))
    for inner in step.function.steps if step.function is not None else ():
        yield from statics_of(inner, step.environments[environment])


def keys_of(step: Step, environment: int = 0) -> Iterator[str]:
    """The keys of the weights that a step reads, and of those within the function that it calls."""
    return (attributes.key for attributes in statics_of(step, environment) if isinstance(attributes, WeightAttributes))


def numbers_of(step: Step) -> list[Hashable]:
    """The numbers that a step is given, and those within the function that it calls, in order."""
    return [each for given in statics_of(step) if not isinstance(given, WeightAttributes) for each in identities(given)]


def is_slice(step: Step) -> bool:
    """Whether a step takes a part of a tensor."""
    return bool(step.attributes) and isinstance(step.attributes[0], SliceAttributes)


def takes_many(op: str) -> bool:
    """Whether an operator takes a list of tensors."""
    return op in OPS and any(operand.many for operand in OPS[op].operands)


def body_of(graphs: Sequence[Graph]) -> tuple[Body, list[Leaf]]:
    """The body of one model in several environments, whose graphs differ in sizes only, and the weights that nothing reads.

    Raises `Unwritable` for operators that the language doesn't have, and for graphs that differ in more.
    """
    if len({tuple((node.op, len(node.operands)) for node in graph) for graph in graphs}) != 1:
        raise Unwritable("the graphs of the samples have other operators, not only other sizes")
    reader = _Reader(graphs)
    for nodes in zip(*graphs, strict=True):
        reader.read(nodes)
    body = reader.body
    body.results = tuple(reader.operands[output.node] for output in graphs[0].outputs)
    body.steps[:0] = reader.states.values()
    read = {bottom_of(operand) for step in body.steps for operand in step.operands} | set(map(bottom_of, body.results))
    return body, [weight for weight in reader.weights.values() if weight not in read]


class _Reader:
    """Reads nodes, each in all environments, into a body."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs, self.first = graphs, graphs[0]
        self.places = [{node.name: place for place, node in enumerate(graph)} for graph in graphs]
        self.readers = Counter(name for node in self.first for name in node.operands)
        self.body = Body(tuple(range(len(graphs))))
        self.operands: dict[str, Operand] = {}
        self.weights: dict[tuple[Attributes, ...], Leaf] = {}
        self.states: dict[Hashable, Step] = {}
        """What is computed of nothing, such as a first state of zeros: those that are alike are one step, before all other steps."""

    def read(self, nodes: Sequence[Node]) -> None:
        """One node more."""
        first, shapes = nodes[0], tuple(node.type.shape for node in nodes)
        attributes = tuple(node.attributes for node in nodes)
        self._require_alike(nodes)
        if isinstance(first.attributes, WeightAttributes):
            self.operands[first.name] = self.weights.setdefault(attributes, Leaf(attributes, shapes))
        elif is_number(first):
            self.operands[first.name] = Leaf(attributes, shapes)
        elif first.is_input:
            self.operands[first.name] = entry = Value(shapes, variable_in(first.name))
            self.body.entries += (entry,)
        elif first.operands and all(is_identity(node, graph[node.operands[0]]) for graph, node in zip(self.graphs, nodes, strict=True)):
            self.operands[first.name] = self.operands[first.operands[0]]
        elif isinstance(first.attributes, SliceAttributes) and self.readers[first.name] == 1 and first.name not in self.first.output_nodes:
            self.operands[first.name] = Leaf(attributes, shapes, self.operands[first.operands[0]])
        else:
            self.operands[first.name] = self._computed(nodes)

    def _computed(self, nodes: Sequence[Node]) -> Value:
        first = nodes[0]
        if first.op in INTERNAL and not isinstance(first.attributes, SliceAttributes):
            raise Unwritable(f"{first.name} is of the operator {first.op}, which the language doesn't have")
        value = Value(tuple(node.type.shape for node in nodes), variable_in(first.name))
        operands = tuple(self.operands[name] for name in first.operands)
        step = Step(first.op, operands, (value,), tuple(node.attributes for node in nodes))
        if not operands:
            alike = tuple((node.op, identity(node.attributes), node.type) for node in nodes)
            return self.states.setdefault(alike, step).results[0]
        self.body.steps.append(step)
        return value

    def _require_alike(self, nodes: Sequence[Node]) -> None:
        read = {tuple(places[name] for name in node.operands) for places, node in zip(self.places, nodes, strict=True)}
        if len(read) != 1 or len({node.type.rank for node in nodes}) != 1:
            raise Unwritable(f"{nodes[0].name} has other operands in another of the samples")
