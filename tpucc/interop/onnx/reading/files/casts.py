"""Casts to the type that a value has: they change nothing, and PyTorch writes one behind each QuantizeLinear."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace

from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.schemas import Types, require_types


def without_needless_casts(graph: OnnxGraph, opsets: Mapping[str, int], types: Types) -> OnnxGraph:
    """The graph with Identity in the place of casts that change nothing, also in its branches and loops. `types` are those of its values,
    by their names."""
    return replace(graph, nodes=tuple(_without_cast(node, opsets, types) for node in graph.nodes))


def _without_cast(node: OnnxNode, opsets: Mapping[str, int], types: Types) -> OnnxNode:
    inner = {name: value for name, value in node.attributes.items() if isinstance(value, OnnxGraph)}
    if inner:
        made = {
            name: without_needless_casts(value, opsets, require_types(value, opsets, ChainMap({}, dict(types))))
            for name, value in inner.items()
        }
        return replace(node, attributes={**node.attributes, **made})
    return node.read_as("Identity", node.inputs[:1], {}) if _is_needless(node, types) else node


def _is_needless(node: OnnxNode, types: Types) -> bool:
    if node.kind not in ("Cast", "CastLike"):
        return False
    wanted = node.attributes["to"] if node.kind == "Cast" else types.get(node.inputs[1], 0)
    return bool(wanted) and wanted == types.get(node.inputs[0], 0)
