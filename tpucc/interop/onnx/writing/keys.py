"""Which constants of a graph are weights of the model, by the places of the source that they come from."""

from __future__ import annotations

from collections.abc import Iterable

from tpucc.diagnostics import Span
from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.ir.graph import Graph, Node
from tpucc.ops.weight import WeightAttributes

Place = tuple[tuple[Span, ...], tuple[Span, ...], int]


def keys_of(graph: Graph, model: Iterable[Node]) -> dict[str, str]:
    """The keys of the weights in the weight file, by the names of the constants that have all of their values, be it in another shape.

    Of several weights of one statement and one size, as in a loop, the one with the constant's name counts.
    """
    by_place: dict[Place, dict[str, str]] = {}
    for node in model:
        if isinstance(node.attributes, WeightAttributes):
            by_place.setdefault(_place(node), {})[node.name] = node.attributes.key
    found: dict[str, str] = {}
    for node in graph:
        same = by_place.get(_place(node), {}) if array_of(node) is not None else {}
        key = next(iter(same.values())) if len(set(same.values())) == 1 else same.get(node.name)
        if key is not None:
            found[node.name] = key
    return found


def _place(node: Node) -> Place:
    return node.origin.spans, node.origin.calls, node.type.size
