"""Rows of one 1 that exporters write as a comparison: x, with a last axis of 1, is compared with the numbers 0 to n - 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.numerics import AnyArray


def with_one_hot(graph: OnnxGraph) -> OnnxGraph:
    """The graph in which Equal(Unsqueeze(x, -1), [0, 1, … n - 1]), of integers, is OneHot(x), of booleans."""
    made = {name: node for node in graph.nodes for name in node.outputs}
    ranks = {value.name: len(value.shape) for value in graph.inputs if value.shape is not None}
    constants: dict[str, AnyArray] = {}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        numbers, count = _compared(graph, made, ranks, node) if node.kind == "Equal" and len(node.inputs) == 2 else ("", 0)
        if count:
            depth, values = (f"{node.outputs[0]}\0{what}" for what in ("depth", "values"))  # names that no file has
            constants |= {depth: np.array(count), values: np.array([False, True])}
            node = node.read_as("OneHot", (numbers, depth, values), {})
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), constants={**graph.constants, **constants}) if constants else graph


def _compared(graph: OnnxGraph, made: Mapping[str, OnnxNode], ranks: Mapping[str, int], node: OnnxNode) -> tuple[str, int]:
    """The integers that are compared with all numbers from 0 on, and how many numbers these are; 0 of another comparison."""
    for column, row in (node.inputs, node.inputs[::-1]):
        numbers = _constant(graph, made, row)
        if numbers is None or numbers.dtype.kind not in "iu" or numbers.ndim != 1 or not np.array_equal(numbers, np.arange(len(numbers))):
            continue
        unsqueeze = made.get(column)
        if len(numbers) > 1 and unsqueeze is not None and unsqueeze.kind == "Unsqueeze":
            x, *others = unsqueeze.inputs
            axes = _constant(graph, made, others[0]) if others else np.array(unsqueeze.attributes.get("axes", ()))
            if axes is not None and axes.reshape(-1).tolist() in ([-1], [ranks.get(x)]):
                return x, len(numbers)
    return "", 0


def _constant(graph: OnnxGraph, made: Mapping[str, OnnxNode], name: str) -> AnyArray | None:
    node = made.get(name)
    if node is not None and node.kind != "Constant":
        return None
    value = node.attributes.get("value") if node is not None else graph.constants.get(name)
    return value if isinstance(value, np.ndarray) else None
