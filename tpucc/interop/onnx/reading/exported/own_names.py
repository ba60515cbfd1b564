"""Real values under the names of the file's integers in whose place they stand: names of weights become their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpucc.interop.onnx.reading.exported.steps import SIGNED
from tpucc.interop.onnx.reading.files.model import OnnxGraph


def with_own_names(graph: OnnxGraph, names: Mapping[str, str]) -> OnnxGraph:
    """The graph with constants under other names, as far as nothing has these: `names` says which, by the present ones."""
    read = dict.fromkeys(name for node in graph.nodes for name in node.inputs if name in graph.constants)
    wanted = {name: names.get(name) or name.removesuffix(SIGNED) for name in read}
    first = {other: name for name, other in reversed(wanted.items()) if other != name and other not in read}
    if not first:
        return graph
    given = {name: other for other, name in first.items()}
    nodes = tuple(replace(node, inputs=tuple(given.get(name, name) for name in node.inputs)) for node in graph.nodes)
    constants = {**graph.constants, **{other: graph.constants[name] for other, name in first.items()}}
    weights = {given.get(name, name): weight for name, weight in graph.weights.items()}
    return replace(graph, nodes=nodes, constants=constants, weights=weights)
