"""What the layers say of the operators that they were made of: which unit computes each of them, or the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpucc.ir import Graph, Node
from tpucc.layers.kinds import LAYERS, Conv, Fc, is_by_lanes
from tpucc.see.diagrams.operators import CONSTANTS, UNITS, kind_of
from tpucc.see.palette import Kind

IDLE = frozenset({Kind.WEIGHTS, Kind.BOUNDARY, Kind.MOVE})
"""Operators that compute nothing of the model."""


def known_kinds(graph: Graph, layers: Graph) -> Mapping[str, Kind]:
    """The kinds of those operators of which the layers say another than their names do: of convolutions that the vector unit computes, of
    what the host computes though the device could, of what the device computes though it has no such operator, and of what became a
    constant before anything runs.

    An operator is found among the layers by its name, else by its place in the source; one of which the host computes a part and the
    device another is left out.
    """
    found = dict.fromkeys(_computed_by_lanes(graph, layers), Kind.VECTOR)
    sides, constants = _Sides(layers), set[str]()
    for node in graph:
        if node.op in CONSTANTS or (not node.is_input and constants.issuperset(node.operands) and not sides.named(node)):
            constants.add(node.name)
            found[node.name] = Kind.WEIGHTS
            continue
        kind, on_device = kind_of(node.op), sides.of(node)
        if kind in UNITS and on_device == {False}:
            found[node.name] = Kind.HOST
        elif kind is Kind.HOST and not node.is_input and on_device == {True}:
            found[node.name] = Kind.VECTOR
    return found


class _Sides:
    """Where the nodes of a layer graph that compute something run: by the names of the values that they have, and by their places."""

    def __init__(self, layers: Graph) -> None:
        self._named: dict[str, set[bool]] = {}
        self._placed: dict[str, list[Node]] = {}
        for node in layers:
            if node.is_input or (node.op not in LAYERS and kind_of(node.op) in IDLE):
                continue
            for name in (node.name, *node.holds):
                self._named.setdefault(name, set()).add(node.op in LAYERS)
            for span in node.origin.spans:
                self._placed.setdefault(str(span), []).append(node)

    def named(self, node: Node) -> set[bool]:
        """As `of`, by the name of the operator's value alone."""
        return self._named.get(node.name, set())

    def of(self, node: Node) -> set[bool]:
        """Of an operator: whether the device computes it; both where it computes a part, and nothing where no layer tells."""
        return self.named(node) or {found.op in LAYERS for found in self._made_of(node)}

    def _made_of(self, node: Node) -> Iterator[Node]:
        calls = frozenset(node.origin.calls)
        for span in node.origin.spans[:1]:
            yield from (found for found in self._placed.get(str(span), ()) if calls.issubset(found.origin.calls))


def _computed_by_lanes(graph: Graph, layers: Graph) -> frozenset[str]:
    """The convolutions of an operator graph that the vector unit computes: those of whose place in the source all layers are such, or the
    layer with the same turn is where both graphs have as many there."""
    operators = _by_place(node for node in graph if kind_of(node.op) is Kind.MATRIX)
    made = _by_place(node for node in layers if isinstance(node.attributes, Fc | Conv))
    found = set[str]()
    for place, nodes in operators.items():
        turns = list(map(is_by_lanes, made.get(place, ())))
        if len(turns) == len(nodes):
            found |= {node.name for node, is_there in zip(nodes, turns, strict=True) if is_there}
        elif turns and all(turns):
            found |= {node.name for node in nodes}
    return frozenset(found)


def _by_place(nodes: Iterable[Node]) -> Mapping[str, list[Node]]:
    """By the first place of their origin."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if node.origin.spans:
            found.setdefault(str(node.origin.spans[0]), []).append(node)
    return found
