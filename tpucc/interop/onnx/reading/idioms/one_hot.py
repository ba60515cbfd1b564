"""Rows of one 1 that exporters write as a comparison: x, with a last axis of 1, is compared with the numbers 0 to n - 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.indices import without_unread
from tpucc.numerics import AnyArray


def with_one_hot(graph: OnnxGraph) -> OnnxGraph:
    """The graph in which Equal(c, [0, 1, … n - 1]), of integers, is OneHot(x), of booleans, where c is x with one more axis, the last, of
    size 1.

    An Expand between c and Equal stands behind OneHot: it makes the last axis 1 or n, and OneHot has n there in both cases.
    """
    made = {name: node for node in graph.nodes for name in node.outputs}
    ranks = {value.name: len(value.shape) for value in graph.inputs if value.shape is not None}
    constants: dict[str, AnyArray] = {}
    nodes: list[OnnxNode] = []
    moved = set[int]()
    for node in graph.nodes:
        found = _compared(graph, made, ranks, node) if node.kind == "Equal" and len(node.inputs) == 2 else None
        if found is None:
            nodes.append(node)
            continue
        column, count, expands = found
        moved.update(map(id, expands))
        names = [f"{node.outputs[0]}\0{place}" for place in range(len(expands))]  # that no file has
        depth, values, sizes, numbers = (f"{node.outputs[0]}\0{what}" for what in ("depth", "values", "sizes", "numbers"))
        constants |= {depth: np.array(count), values: np.array([False, True])}
        x, *others = column.inputs
        if column.kind == "Reshape":
            target = _constant(graph, made, others[0])
            assert target is not None
            constants[sizes] = target[:-1]
            nodes.append(replace(column.read_as("Reshape", (x, sizes), column.attributes), outputs=(numbers,)))
            x = numbers
        results = [*names, node.outputs[0]]
        nodes.append(replace(node.read_as("OneHot", (x, depth, values), {}), outputs=(results[0],)))
        for expand, before, after in zip(expands, results, results[1:], strict=False):
            nodes.append(replace(expand.read_as("Expand", (before, *expand.inputs[1:]), {}), outputs=(after,)))
    return replace(graph, nodes=without_unread(graph, nodes, moved), constants={**graph.constants, **constants}) if constants else graph


def _compared(
    graph: OnnxGraph, made: Mapping[str, OnnxNode], ranks: Mapping[str, int], node: OnnxNode
) -> tuple[OnnxNode, int, list[OnnxNode]] | None:
    """The node that gives integers their last axis, how many numbers from 0 on they are compared with, and each Expand between, in order;
    None of another comparison."""
    for name, row in (node.inputs, node.inputs[::-1]):
        numbers = _constant(graph, made, row)
        if numbers is None or numbers.dtype.kind not in "iu" or numbers.size < 2 or numbers.shape[-1:] != (numbers.size,):
            continue
        column, expands = made.get(name), list[OnnxNode]()
        while column is not None and column.kind in ("Expand", "Identity"):
            expands[:0] = [column] * (column.kind == "Expand")
            column = made.get(column.inputs[0])
        rank = _rank_of_column(graph, made, ranks, column) if column is not None else 0
        if column is not None and numbers.ndim <= rank and np.array_equal(numbers.reshape(-1), np.arange(numbers.size)):
            return column, numbers.size, expands
    return None


def _rank_of_column(graph: OnnxGraph, made: Mapping[str, OnnxNode], ranks: Mapping[str, int], node: OnnxNode) -> int:
    """The least rank that a node's result has, where the node adds a last axis of size 1; 0 of another node."""
    if node.kind not in ("Reshape", "Unsqueeze"):
        return 0
    x, *others = node.inputs
    numbers = _constant(graph, made, others[0]) if others else np.array(node.attributes.get("axes", ()))
    if numbers is None or numbers.dtype.kind not in "iu":
        return 0
    listed = numbers.reshape(-1).tolist()
    if node.kind == "Reshape":
        return len(listed) if listed[-1:] == [1] and numbers.ndim == 1 else 0
    return ranks.get(x, 0) + 1 if listed in ([-1], [ranks.get(x)]) else 0


def _constant(graph: OnnxGraph, made: Mapping[str, OnnxNode], name: str) -> AnyArray | None:
    node = made.get(name)
    if node is not None and node.kind != "Constant":
        return None
    value = node.attributes.get("value") if node is not None else graph.constants.get(name)
    return value if isinstance(value, np.ndarray) else None
