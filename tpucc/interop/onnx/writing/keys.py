"""Which constants of a graph are weights of the model, by the places of the source that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpucc.diagnostics import Span
from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.ir.graph import Graph, Node
from tpucc.layers.kinds import is_layer
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.rewriter import base_name

Place = tuple[tuple[Span, ...], tuple[Span, ...], int]


def keys_of(graph: Graph, model: Iterable[Node]) -> dict[str, str]:
    """The keys of the weights in the weight file, by the names of the constants that have all of their values, be it in another shape.

    A graph of operators has the weights' names. Passes give other names to those of layers: of several weights of one statement and one
    size, as in a loop, the one with the name before it got a number counts: none where names of weights end in numbers themselves.
    """
    weights = {node.name: node.attributes.key for node in model if isinstance(node.attributes, WeightAttributes)}
    if not any(map(is_layer, graph)):
        return weights
    by_place: dict[Place, dict[str, str]] = {}
    for node in model:
        if node.name in weights:
            by_place.setdefault(_place(node), {})[node.name] = weights[node.name]
    found: dict[str, str] = {}
    for node in graph:
        same = by_place.get(_place(node), {}) if array_of(node) is not None else {}
        if (key := _key(node.name, same)) is not None:
            found[node.name] = key
    return found


def _key(name: str, same: Mapping[str, str]) -> str | None:
    if len(set(same.values())) == 1:
        return next(iter(same.values()))
    return same.get(base_name(name))


def _place(node: Node) -> Place:
    return node.origin.spans, node.origin.calls, node.type.size
