"""The steps of a model: its operator graph, and the functions that blocks of steps become.

A *body* of steps is the model or a function. A function is elaborated at each of its calls: each of these times is an *environment*. What
the source computes statically (sizes, attributes, keys of weights) has one value an environment, and `scope.py` finds the expression that
has these values.

Two graphs are the same model if they are equal up to the names and the order of their nodes. Some differences don't count: where a
constant, such as a first state of zeros, is a node of its own and where several readers share it; two nodes for the weight of one key; a
slice of everything, and `dropout` outside of training, which are their operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tpucc.ir import Attributes, Graph, Node
from tpucc.ir.attributes import identities
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
    """Steps from entries to results: the model, or the function of several calls, with the number of its environments.

    `carried` has the results that go from call to call, as `h` in `h = step(h)`: for the place of a result the place of the entry that the
    next call has it for.
    """

    environments: int = 1
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


def body_of(graph: Graph) -> Body:
    """The body of a model. Raises `Unwritable` for operators that the language doesn't have."""
    reader = _Reader(graph)
    for node in graph:
        reader.read(node)
    body = reader.body
    body.results = tuple(reader.operands[output.node] for output in graph.outputs)
    body.steps[:0] = reader.states
    return body


class _Reader:
    """Reads nodes into a body."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.body = graph, Body()
        self.readers = Counter(name for node in graph for name in node.operands)
        self.operands: dict[str, Operand] = {}
        self.weights: dict[Attributes, Leaf] = {}
        self.states: list[Step] = []
        """What is computed of nothing, such as a first state of zeros. It stands before all other steps."""

    def read(self, node: Node) -> None:
        """One node more."""
        attributes, shapes = (node.attributes,), (node.type.shape,)
        is_read_once = self.readers[node.name] == 1 and node.name not in self.graph.output_nodes
        if isinstance(node.attributes, WeightAttributes):
            self.operands[node.name] = self.weights.setdefault(node.attributes, Leaf(attributes, shapes))
        elif is_number(node):
            self.operands[node.name] = Leaf(attributes, shapes)
        elif node.is_input:
            self.operands[node.name] = entry = Value(shapes, variable_in(node.name))
            self.body.entries += (entry,)
        elif node.operands and is_identity(node, self.graph[node.operands[0]]):
            self.operands[node.name] = self.operands[node.operands[0]]
        elif isinstance(node.attributes, SliceAttributes) and is_read_once:
            self.operands[node.name] = Leaf(attributes, shapes, self.operands[node.operands[0]])
        else:
            self.operands[node.name] = self._computed(node)

    def _computed(self, node: Node) -> Value:
        if node.op in INTERNAL and not isinstance(node.attributes, SliceAttributes):
            raise Unwritable(f"{node.name} is of the operator {node.op}, which the language doesn't have")
        value = Value((node.type.shape,), variable_in(node.name))
        (self.body.steps if node.operands else self.states).append(
            Step(node.op, tuple(self.operands[name] for name in node.operands), (value,), (node.attributes,))
        )
        return value
