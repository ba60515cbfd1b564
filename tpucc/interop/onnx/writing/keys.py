"""Which constants of a graph are weights of the model, by the places of the source that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpucc.diagnostics import Span
from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.ir.graph import Graph, Node
from tpucc.layers.kinds import is_layer
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.rewriter import base_name


def keys_of(graph: Graph, model: Iterable[Node], biases: Mapping[str, str]) -> dict[str, str]:
    """The keys of the weights in the weight file, by the names of the constants that are these, or that passes have made of one of them: in
    another shape, or with a scale folded in.

    A graph of operators has the weights' names. Passes give other names to those of layers: of several weights of one statement and one
    size, as in a loop, the one with the name before it got a number counts: none where names of weights end in numbers themselves. `biases`
    are the constants that those of layers are made of.
    """
    weights = {node.name: node.attributes.key for node in model if isinstance(node.attributes, WeightAttributes)}
    if not any(map(is_layer, graph)):
        return weights
    by_span: dict[Span, list[Node]] = {}
    for node in model:
        if node.name in weights:
            for span in node.origin.spans:
                by_span.setdefault(span, []).append(node)
    found: dict[str, str] = {}
    for node in graph:
        if array_of(node) is not None:
            near = (other for span in node.origin.spans for other in by_span.get(span, ()))
            made_of = {other.name: weights[other.name] for other in near if _is_of(node, other)}
            if (key := _key(biases.get(node.name, node.name), made_of)) is not None:
                found[node.name] = key
    return found


def _is_of(node: Node, weight: Node) -> bool:
    """Whether a constant has as many values as a weight, and comes from its place alone, or is a matrix, a kernel or the integers of a
    bias, and comes from there, too: so do multipliers, which are of several weights and have no key."""
    if node.type.size != weight.type.size:
        return False
    if node.type.rank > 1 or (node.type.dtype == "i32" and weight.type.rank == 1):
        return {*node.origin.calls} >= {*weight.origin.calls}
    return (node.origin.spans, node.origin.calls) == (weight.origin.spans, weight.origin.calls)


def _key(name: str, same: Mapping[str, str]) -> str | None:
    if len(set(same.values())) == 1:
        return next(iter(same.values()))
    return same.get(base_name(name))
