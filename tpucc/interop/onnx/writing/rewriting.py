"""Graphs as ONNX can say them, by operators of ours: what is changed before nodes are written."""

from __future__ import annotations

from dataclasses import replace

from tpucc.ir import Graph, GraphBuilder, Node
from tpucc.numerics import AnyArray
from tpucc.ops import OPS, facts_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.facts import Values
from tpucc.ops.fused import fused_form
from tpucc.ops.onnx_form import Form, Layout

MOVES = frozenset({Values.VIEWED, Values.PICKED})
"""Operators that only move values, or leave some out."""


def with_biases(graph: Graph) -> Graph:
    """The graph with the constants [N] that are added to convolutions in these: ONNX's have a bias."""
    found: dict[str, Node] = {}
    for node in graph:
        product = graph[node.operands[0]] if facts_of(node.op).signs == (1, 1) else node
        free = product.name not in graph.output_nodes and len(graph.users[product.name]) == 1
        if product is not node and free and facts_of(product.op).fuses_into and _is_of_images(product):
            added = graph[node.operands[1]]
            if array_of(added) is not None and added.type.shape == node.type.shape[-1:] and product.type == node.type:
                op, attributes = fused_form(product.op, product.attributes)
                found[node.name] = replace(node, op=op, operands=(*product.operands, added.name), attributes=attributes)
    return graph.with_nodes(found.get(node.name, node) for node in graph) if found else graph


def _is_of_images(node: Node) -> bool:
    form = OPS[node.op].onnx
    return isinstance(form, Form) and form.layout is Layout.IMAGES


def moving_integers(graph: Graph) -> Graph:
    """The graph with integers moved before they are dequantised, not after: the same values, and a fourth of the bytes to move."""
    builder, types = GraphBuilder(graph.name), {node.name: node.type for node in graph}
    builder.nodes.update(graph.by_name)
    real: dict[str, Node] = {}
    nodes: list[Node] = []
    for node in graph:
        source = real.get(node.operands[0]) if node.operands and facts_of(node.op).values in MOVES else None
        if source is None:
            made = node
        else:
            held = replace(types[source.operands[0]], shape=node.type.shape)
            integers = builder.add(replace(node, name=f"{node.name}.{held.dtype}", operands=source.operands, type=held))
            types[integers.name] = held
            nodes.append(integers)
            made = replace(source, name=node.name, operands=(integers.name,), type=node.type, origin=node.origin)
        nodes.append(made)
        if is_dequantised(made):
            real[node.name] = made
    return graph.with_nodes(nodes)


def is_dequantised(node: Node) -> bool:
    return isinstance(node.attributes, DequantizeAttributes)


def array_of(node: Node) -> AnyArray | None:
    """The value of a constant."""
    return node.attributes.value.data if isinstance(node.attributes, ConstantAttributes) else None
