"""Indices of rows: numbers below 0 that count from the end, as Keras has them, are none in tpucc, whose tables have the rows 0 to n - 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.model import OnnxGraph, OnnxNode


def counted_from_the_start(graph: OnnxGraph) -> OnnxGraph:
    """The graph in which Where(x < 0, x + n, x) is x, if nothing reads it but Gather, as indices."""
    made = {name: node for node in graph.nodes for name in node.outputs}
    others = {value.name for value in graph.outputs}
    others |= {name for node in graph.nodes for name in (node.inputs[:1] if node.op == "Gather" else node.inputs)}
    found = [node for node in graph.nodes if others.isdisjoint(node.outputs) and _counts_from_the_end(graph, made, node)]
    if not found:
        return graph
    names = {node.outputs[0] for node in found}
    kept = (replace(node, op="Identity", inputs=node.inputs[2:]) if node.outputs[0] in names else node for node in graph.nodes)
    parts = {name for node in found for name in node.inputs[:2]}
    return replace(graph, nodes=_without(tuple(kept), parts))


def _counts_from_the_end(graph: OnnxGraph, made: Mapping[str, OnnxNode], node: OnnxNode) -> bool:
    if node.op != "Where" or not made.keys() >= set(node.inputs[:2]):
        return False
    below, later, x = made[node.inputs[0]], made[node.inputs[1]], node.inputs[2]
    if (below.op, later.op) != ("Less", "Add") or below.inputs[0] != x or x not in later.inputs:
        return False
    zero = below.inputs[1]
    value = made[zero].attributes.get("value") if zero in made else graph.constants.get(zero)
    return isinstance(value, np.ndarray) and not value.any()


def _without(nodes: tuple[OnnxNode, ...], names: Iterable[str]) -> tuple[OnnxNode, ...]:
    """The nodes, but for those that make these values, where nothing else reads them."""
    read = {name for node in nodes for name in node.inputs}
    unread = set(names) - read
    return tuple(node for node in nodes if not unread.issuperset(node.outputs))
