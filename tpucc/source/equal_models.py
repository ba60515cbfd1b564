"""Whether two operator graphs are the same model: equal up to the names and the order of their nodes.

Some differences don't count: where a constant, such as a first state of zeros, is a node of its own and where several readers share it; two
nodes for the weight of one key; a slice of everything, and `dropout` outside of training, which are their operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from tpucc.ir import Graph, Node
from tpucc.ir.attributes import identities
from tpucc.language.calls import IDENTITY_OUTSIDE_TRAINING
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes


def same_model(a: Graph, b: Graph) -> bool:
    """Whether two graphs of operators have the same name, inputs, outputs, weights, and the same nodes between them."""
    numbers = _Numbers()
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


@dataclass
class _Numbers:
    """A number for each distinct value."""

    known: dict[Hashable, int] = field(default_factory=dict)

    def of(self, value: Hashable) -> int:
        return self.known.setdefault(value, len(self.known))


def _described(graph: Graph, numbers: _Numbers) -> object:
    """What is the same for the same models, and, as far as two passes over the graph can tell, differs for others."""
    above, roots = _computed(graph, numbers)
    below: dict[str, int] = {}
    readers: dict[str, list[int]] = {node.name: [] for node in graph}
    for output in graph.outputs:
        readers[roots[output.node]].append(numbers.of(("output", output.name)))
    for node in reversed(graph.nodes):
        if roots[node.name] != node.name:
            continue
        below[node.name] = numbers.of((above[node.name], tuple(sorted(readers[node.name]))))
        for index, operand in enumerate(node.operands):
            readers[roots[operand]].append(numbers.of((below[node.name], index)))
    nodes = Counter(number for name, number in below.items() if not is_constant(graph[name]))
    weights = {above[node.name] for node in graph if isinstance(node.attributes, WeightAttributes)}
    inputs = [(node.name, node.type) for node in graph.inputs]
    return graph.name, inputs, [(output.name, above[output.node]) for output in graph.outputs], nodes, weights


def _computed(graph: Graph, numbers: _Numbers) -> tuple[dict[str, int], dict[str, str]]:
    """For each node a number of how it is computed, and the node that it really is."""
    above: dict[str, int] = {}
    roots: dict[str, str] = {}
    for node in graph:
        if node.operands and is_identity(node, graph[node.operands[0]]):
            roots[node.name], above[node.name] = roots[node.operands[0]], above[node.operands[0]]
            continue
        roots[node.name] = node.name
        name = node.name if node.is_input else ""
        above[node.name] = numbers.of((node.op, name, _attributes(node), _type(node), tuple(above[operand] for operand in node.operands)))
    return above, roots


def _type(node: Node) -> Hashable:
    """Data type, shape and scale. The range of an input is declared; of other values it is only what is known of them."""
    return node.type if node.is_input else node.type.with_range(None)


def _attributes(node: Node) -> Hashable:
    """The attributes as a value that is equal for the same ones. Of a slice, what it takes, however its ends are written."""
    if isinstance(node.attributes, SliceAttributes):
        return node.attributes.ranges, tuple(sorted(node.attributes.squeeze))
    return identities(node.attributes)
