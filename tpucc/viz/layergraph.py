"""The layer graph as a diagram: one box a layer, framed by where it runs."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.diagnostics import counted
from tpucc.ir.graph import Graph, Node
from tpucc.layers.kinds import Fc, Vector
from tpucc.viz.diagram import Box, Cluster, Diagram, Edge, bounded_lines
from tpucc.viz.operators import kind_of
from tpucc.viz.palette import Kind
from tpucc.viz.values import CONSTANTS, attribute_label, constant_label, edge_label

ROLES = ("bias", "multipliers", "table")
SUBTITLE = "Thick arrows carry int8, where an integer q stands for scale · (q - zero point); what stands in the frame runs on the device."


def layer_diagram(graph: Graph) -> Diagram:
    """The layers of the device inside a frame, the host's operators outside, scales and zero points on the edges."""
    boxes: list[Box] = []
    edges: list[Edge] = []
    index: dict[str, int] = {}
    for node in graph:
        if node.op in CONSTANTS and node.name not in graph.output_nodes:
            continue
        own = index[node.name] = len(boxes)
        boxes.append(_box(node, graph))
        edges += [_edge(operand, index, own) for operand in graph.operands(node) if operand.name in index]
        if words := _constants(node, [operand for operand in graph.operands(node) if operand.name not in index]):
            edges.append(Edge(len(boxes), own))
            boxes.append(Box(words[0], Kind.WEIGHTS, words[1:], beside=own))
    for output in graph.outputs:
        edges.append(_edge(graph[output.node], index, len(boxes)))
        boxes.append(Box("output", Kind.HOST, (output.name,), signature="output"))
    device = any(box.cluster == 0 for box in boxes)
    clusters = (Cluster("device · int8", layer=False),) if device else ()
    return Diagram("layers", "layer", f"{graph.name}: {_counts(graph)}", SUBTITLE, tuple(boxes), tuple(edges), clusters)


def _counts(graph: Graph) -> str:
    device = sum(_on_device(node) for node in graph)
    host = sum(not _on_device(node) and node.op not in CONSTANTS | {"input", "quantize", "dequantize"} for node in graph)
    return f"{counted(device, 'layer')} on the device in int8, {counted(host, 'operator')} on the host in float32"


def _on_device(node: Node) -> bool:
    if isinstance(node.attributes, Fc | Vector):
        return True
    return node.type.dtype == "i8" and node.op not in CONSTANTS | {"quantize", "input"}


def _box(node: Node, graph: Graph) -> Box:
    kind = kind_of(node.op)
    details = attribute_label(node) if kind is not Kind.BOUNDARY else ()
    title = node.op
    match node.attributes:
        case Fc():
            kind, title = Kind.MATRIX, "fc"
            inputs, outputs = graph[node.operands[1]].type.shape
            details = (f"{inputs:,} → {outputs:,}", *(("then table",) if node.attributes.table else ()))
        case Vector():
            kind, title = Kind.VECTOR, f"vector {node.attributes.function}"
            details = ("then table",) if node.attributes.table and node.attributes.function != "table" else ()
    signature = f"{title} {node.type.brief}"
    cluster = 0 if _on_device(node) else -1
    return Box(title, kind, (node.name, *details), cluster, lines=bounded_lines(node.origin.lines), signature=signature)


def _edge(tail: Node, index: dict[str, int], head: int) -> Edge:
    return Edge(index[tail.name], head, edge_label(tail.type), tail.type.dtype in ("i8", "i16"))


def _constants(node: Node, constants: Sequence[Node]) -> tuple[str, ...]:
    """The constants of a layer in two lines: its weights, and what comes with them."""
    if not constants:
        return ()
    if isinstance(node.attributes, Fc):
        return constant_label(constants[0]), ", ".join(ROLES[: len(constants) - 1])
    if isinstance(node.attributes, Vector):
        return tuple("table" if constant.type.shape == (256,) else constant_label(constant) for constant in constants)
    return tuple(map(constant_label, constants))
