"""Whether two operator graphs are the same model: equal up to the names and the order of their nodes.

Some differences don't count: where a constant, such as a first state of zeros, is a node of its own and where several readers share it; two
nodes for the weight of one key; a slice of everything, and `dropout` outside of training, which are their operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from tpucc.ir import Graph, Node
from tpucc.ir.attributes import identities
from tpucc.language.calls import IDENTITY_OUTSIDE_TRAINING
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes


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
