"""The operator graph as a diagram, clustered by layer.

A layer, for the eye, is a product with the bias, the normalisation and the activation that follow it: what will become one layer of
the device where fusion succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpucc.diagnostics import counted, listed, printable
from tpucc.ir.graph import Graph, Node
from tpucc.ops import OPS, facts_of
from tpucc.ops.facts import MOVED
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Matrix, Pooling, Table
from tpucc.viz.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.viz.diagrams.values import CONSTANTS, attribute_label, constant_label, edge_label
from tpucc.viz.palette import Kind


def operator_diagram(graph: Graph) -> Diagram:
    """One box an operator, its constants small beside it, clusters for layers; inputs and outputs at the ends."""
    return _Picture(graph).diagram()


def kind_of(op: str) -> Kind:
    """The kind of an operator, from how it is legalised."""
    if op in CONSTANTS:
        return Kind.WEIGHTS
    if facts_of(op).values in MOVED:
        return Kind.MOVE
    definition = OPS.get(op)
    match definition.legalisation if definition else None:
        case Matrix():
            return Kind.MATRIX
        case Table() | Clamp() | Arithmetic() | Pooling():
            return Kind.VECTOR
        case Boundary():
            return Kind.BOUNDARY
    return Kind.HOST


class _Picture:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.boxes: list[Box] = []
        self.edges: list[Edge] = []
        self.index: dict[str, int] = {}
        self.shown = [node for node in graph if node.op not in CONSTANTS or node.name in graph.output_nodes]
        self.cluster_of, self.clusters = clusters(graph)

    def diagram(self) -> Diagram:
        for node in self.shown:
            self._add(node)
        for output in self.graph.outputs:
            node = self.graph[output.node]
            self.edges.append(self._edge(node, len(self.boxes)))
            self.boxes.append(Box("output", Kind.HOST, (output.name,), signature="output", name=output.name))
        name = self.graph.name
        return Diagram("graph", "operator", f"{name}: {self._counts()}", SUBTITLE, tuple(self.boxes), tuple(self.edges), self.clusters)

    def _counts(self) -> str:
        products = sum(kind_of(node.op) is Kind.MATRIX for node in self.shown)
        others = sum(kind_of(node.op) is not Kind.MATRIX and not node.is_input for node in self.shown)
        weights = sum(node.type.size for node in self.graph if node.op in CONSTANTS)
        parts = [counted(products, "matrix product")] if products else []
        parts += [counted(others, "other operator" if products else "operator")] if others else []
        return listed([*parts, counted(weights, "weight")]) if weights else listed(parts) or "no operators"

    def _add(self, node: Node) -> None:
        constants = [operand for operand in self.graph.operands(node) if operand.name not in self.index]
        self.index[node.name] = own = len(self.boxes)
        details = _details(node)
        signature = f"{node.op} {node.type.brief}"
        cluster = self.cluster_of.get(node.name, -1)
        self.boxes.append(Box(node.op, kind_of(node.op), details, cluster, -1, (node.origin,), signature, name=node.name))
        for operand in self.graph.operands(node):
            if operand.name in self.index:
                self.edges.append(self._edge(operand, own))
        if constants:
            words = tuple(dict.fromkeys(map(constant_label, constants)))
            origins = tuple(dict.fromkeys(constant.origin for constant in constants))
            self.edges.append(Edge(len(self.boxes), own))
            self.boxes.append(Box(words[0], Kind.WEIGHTS, words[1:], beside=own, origins=origins))

    def _edge(self, tail: Node, head: int) -> Edge:
        return Edge(self.index[tail.name], head, edge_label(tail.type), tail.type.quantisation is not None)


SUBTITLE = "Operators as the compiler understood the source; the arrows are tensors, the frames are layers."


def clusters(graph: Graph) -> tuple[dict[str, int], tuple[Cluster, ...]]:
    """For each node inside a layer the layer's number, and the layers. Layers of a single operator are left out."""
    layer_of: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for node in graph:
        kind = kind_of(node.op)
        if kind is Kind.MATRIX:
            layer_of[node.name] = node.name
            members[node.name] = [node.name]
        elif kind is Kind.VECTOR or node.op == "batch_norm":
            _join(graph, node, layer_of, members)
    large = [layer for layer in members if len(members[layer]) > 1]
    numbers = {layer: number for number, layer in enumerate(large)}
    found = {name: numbers[layer] for name, layer in layer_of.items() if layer in numbers}
    return found, tuple(Cluster(_layer_name(graph, layer, members[layer])) for layer in large)


def _join(graph: Graph, node: Node, layer_of: dict[str, str], members: dict[str, list[str]]) -> None:
    """A node joins the layer whose result only it reads, if it reads nothing else; a sum of two products makes them one layer."""
    computed = [operand for operand in graph.operands(node) if operand.op not in CONSTANTS]
    ends = [layer_of[operand.name] for operand in computed if operand.name in layer_of and _only_reader(graph, operand.name)]
    if not ends or len(ends) < len(computed):
        return
    first, *rest = dict.fromkeys(ends)
    if rest and not (_adds(node) and all(kind_of(operand.op) is Kind.MATRIX or _adds(operand) for operand in computed)):
        return
    for other in rest:
        for name in members[other]:
            layer_of[name] = first
        members[first] += members.pop(other)
    layer_of[node.name] = first
    members[first].append(node.name)


def _adds(node: Node) -> bool:
    return bool(facts_of(node.op).signs)


def _only_reader(graph: Graph, name: str) -> bool:
    return len(graph.users[name]) == 1 and name not in graph.output_nodes


def _layer_name(graph: Graph, first: str, members: Iterable[str]) -> str:
    """What the weights' keys have in common (`fc1` of `fc1.w` and `fc1.b`), else the product's own name; and the line."""
    nodes = [graph[name] for name in members]
    keys = [_key(operand) for node in nodes for operand in graph.operands(node) if operand.op in CONSTANTS]
    common = _common(keys)
    line = graph[first].origin.line
    return f"{printable(common) or first}{f' · line {line}' if line else ''}"


def _common(keys: Sequence[str]) -> str:
    """What all the keys begin with, in whole words: `fc1` of `fc1.w` and `fc1.b`."""
    words = [key.split(".")[:-1] for key in keys]
    if not words:
        return ""
    same = next((n for n, level in enumerate(zip(*words, strict=False)) if len(set(level)) > 1), min(map(len, words)))
    return ".".join(words[0][:same])


def _key(node: Node) -> str:
    key = getattr(node.attributes, "key", node.name)
    return key if isinstance(key, str) else node.name


def _details(node: Node) -> tuple[str, ...]:
    if node.op in CONSTANTS:
        return (constant_label(node),)
    return (*((node.name,) if node.name != node.op else ()), *attribute_label(node))
