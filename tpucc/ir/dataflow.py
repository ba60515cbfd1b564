"""Facts that flow over a graph: from operands to their readers, or from readers back to their operands.

A fact says something about a node. It depends on the node and on the same fact of its neighbours: the operands in a forward flow, the
readers in a backward flow. Definitions come before uses in a graph. So one sweep, which goes backwards for a backward flow, meets each node
after the neighbours that its fact depends on, and the facts that it finds are the fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeVar

from tpucc.ir.graph import Graph, once_a_graph
from tpucc.ir.node import Node

T = TypeVar("T")
FactOf = Callable[[Node, Mapping[str, T]], T]
"""Computes the fact of a node, from the node and the facts of its neighbours by their names. Neighbours that the flow doesn't visit are
left out."""


def forward(nodes: Iterable[Node], fact: FactOf[T]) -> dict[str, T]:
    """The fact of each of `nodes`, which stand in the order of their graph, from the facts of its operands."""
    found: dict[str, T] = {}
    for node in nodes:
        found[node.name] = fact(node, {name: found[name] for name in node.operands if name in found})
    return found


def backward(nodes: Sequence[Node], fact: FactOf[T]) -> dict[str, T]:
    """The fact of each of `nodes`, which stand in the order of their graph, from the facts of its readers."""
    found: dict[str, T] = {}
    readers: dict[str, dict[str, T]] = {node.name: {} for node in nodes}
    for node in reversed(nodes):
        found[node.name] = fact(node, readers[node.name])
        for name in node.operands:
            if name in readers:
                readers[name][node.name] = found[node.name]
    return found


def true_of(facts: Mapping[str, T]) -> frozenset[str]:
    """The nodes that a fact is true of: it isn't False, 0 or empty there."""
    return frozenset(name for name, fact in facts.items() if fact)


def reached_from(nodes: Iterable[Node], starts: Container[str], stops: Container[str] = ()) -> frozenset[str]:
    """The nodes `starts`, and the nodes that depend on one of them by a path without a node of `stops`. A start may be in `stops`."""
    found: set[str] = set()
    for node in nodes:
        if node.name in starts or (not found.isdisjoint(node.operands) and node.name not in stops):
            found.add(node.name)
    return frozenset(found)


def leading_to(nodes: Sequence[Node], ends: Container[str], stops: Container[str] = ()) -> frozenset[str]:
    """The nodes `ends`, and the nodes that one of them depends on by a path without a node of `stops`. An end may be in `stops`."""
    found, read = set[str](), set[str]()
    for node in reversed(nodes):
        if node.name in ends or (node.name in read and node.name not in stops):
            found.add(node.name)
            read.update(node.operands)
    return frozenset(found)


@once_a_graph
def constant_values(graph: Graph) -> frozenset[str]:
    """The nodes that depend on no input: constants, weights, and whatever is computed from these alone."""
    found: set[str] = set()
    for node in graph:
        if not node.is_input and found.issuperset(node.operands):
            found.add(node.name)
    return frozenset(found)


@once_a_graph
def needed_values(graph: Graph) -> frozenset[str]:
    """The nodes that the outputs are, or depend on."""
    return leading_to(graph.nodes, graph.output_nodes)


def stages(graph: Graph, device: Container[str]) -> dict[str, int]:
    """The segment of each value of the device, the stage of each value of the host. A segment runs on the device without a break, a stage
    on the host. Stage k stands between the segments k - 1 and k; stage 0 is before the first."""

    def stage(node: Node, operands: Mapping[str, int]) -> int:
        on_host = node.name not in device
        return max((at + 1 if on_host and name in device else at for name, at in operands.items()), default=0)

    return forward(graph, stage)


class Computed:
    """The nodes of a graph that depend on inputs and that outputs depend on, in order. Constants and nodes that nothing needs are left
    out."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = constant_values(graph)
        needed = needed_values(graph) - self.constants
        self.nodes = tuple(node for node in graph if node.name in needed)

    def operands(self, node: Node) -> list[str]:
        """The operands of a node that depend on inputs; one that it reads twice is there twice."""
        return [name for name in node.operands if name not in self.constants]
