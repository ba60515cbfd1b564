"""What the layers say of the operators that they were made of: which unit computes each of them, or the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tpucc.ir import Graph, Node
from tpucc.see.diagrams.operators import CONSTANTS, UNITS, kind_of, kinds_of
from tpucc.see.palette import Kind

IDLE = frozenset({Kind.WEIGHTS, Kind.BOUNDARY, Kind.MOVE})
"""Operators that compute nothing of the model."""


def known_kinds(graph: Graph, layers: Graph) -> Mapping[str, Kind]:
    """The kinds of those operators of which the layers say another than their names do: of convolutions that the vector unit computes, of
    what the host computes though the device could, of what the device computes though it has no such operator, and of what became a
    constant before anything runs.

    An operator is found among the layers by its name, else by its place in the source. One that has layers of several kinds keeps its own.
    """
    made, found, constants = _Made(layers), dict[str, Kind](), set[str]()
    for node in graph:
        own, kinds = kind_of(node.op), made.of(node)
        if node.op in CONSTANTS or (not node.is_input and constants.issuperset(node.operands) and not made.named(node)):
            constants.add(node.name)
            found[node.name] = Kind.WEIGHTS
        elif own in UNITS and kinds == {Kind.HOST}:
            found[node.name] = Kind.HOST
        elif (own is Kind.MATRIX and kinds == {Kind.VECTOR}) or (own is Kind.HOST and not node.is_input and kinds and kinds <= UNITS):
            found[node.name] = Kind.VECTOR
    return found


class _Made:
    """The nodes of a layer graph that compute something, by the names of the values that they have, and by their places."""

    def __init__(self, layers: Graph) -> None:
        self._kinds = kinds_of(layers, has_layers=True)
        self._named: dict[str, set[Kind]] = defaultdict(set)
        self._placed: dict[str, list[Node]] = defaultdict(list)
        for node in layers:
            if not node.is_input and self._kinds[node.name] not in IDLE:
                for name in (node.name, *node.holds):
                    self._named[name].add(self._kinds[node.name])
                for span in node.origin.spans:
                    self._placed[str(span)].append(node)

    def named(self, node: Node) -> set[Kind]:
        """As `of`, by the name of the operator's value alone."""
        return self._named.get(node.name, set())

    def of(self, node: Node) -> set[Kind]:
        """What computes an operator; nothing where no layer tells."""
        calls = frozenset(node.origin.calls)
        here = (each for span in node.origin.spans[:1] for each in self._placed.get(str(span), ()))
        return self.named(node) or {self._kinds[each.name] for each in here if calls.issubset(each.origin.calls)}
