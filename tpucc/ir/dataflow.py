"""Questions about what depends on what in a graph, whatever its operators mean. Each is one sweep over the nodes."""

from __future__ import annotations

from collections.abc import Container, Iterable

from tpucc.ir.graph import Graph


def constant_values(graph: Graph) -> frozenset[str]:
    """The nodes that depend on no input: constants, weights, and whatever is computed from these alone."""
    found: set[str] = set()
    for node in graph:
        if not node.is_input and all(name in found for name in node.operands):
            found.add(node.name)
    return frozenset(found)


def needed_values(graph: Graph) -> frozenset[str]:
    """The nodes that the outputs depend on."""
    found = set(graph.output_nodes)
    for node in reversed(graph.nodes):
        if node.name in found:
            found.update(node.operands)
    return frozenset(found)


def stages(graph: Graph, device: Container[str]) -> dict[str, int]:
    """The segment of each value of the device, the stage of each value of the host. Stage k stands between the segments k - 1 and k."""
    found: dict[str, int] = {}
    for node in graph:
        late = 0 if node.name in device else 1
        found[node.name] = max((found[name] + late * (name in device) for name in node.operands), default=0)
    return found


class Relations:
    """Which nodes of a graph lie before and after which, among those that depend on inputs and lead to outputs (`computed`)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = constant_values(graph)
        needed = needed_values(graph) - self.constants
        self.computed = tuple(node for node in graph if node.name in needed)

    def before(self, marked: Iterable[str]) -> dict[str, str]:
        """For each node after one of `marked` the nearest of them on one of its paths."""
        chosen = frozenset(marked)
        found: dict[str, str] = {}
        for node in self.computed:
            for operand in node.operands:
                if operand in chosen or operand in found:
                    found[node.name] = operand if operand in chosen else found[operand]
                    break
        return found

    def after(self, marked: Iterable[str]) -> dict[str, str]:
        """For each node before one of `marked` the nearest of them on one of its paths."""
        chosen = frozenset(marked)
        found: dict[str, str] = {}
        for node in reversed(self.computed):
            reached = node.name if node.name in chosen else found.get(node.name)
            if reached is not None:
                found.update((operand, reached) for operand in node.operands if operand not in self.constants)
        return found

    def near(self, marked: Iterable[str], stops: Iterable[str], *, backwards: bool = False) -> set[str]:
        """The nodes that a path leads to from one of `marked` (or from there to one, `backwards`) without a node of `stops`."""
        chosen, closed = frozenset(marked), frozenset(stops)
        found: set[str] = set()
        for node in reversed(self.computed) if backwards else self.computed:
            reached = node.name in chosen or (node.name in found and node.name not in closed)
            if backwards and reached:
                found.update(node.operands)
            elif not backwards and any(name in chosen or (name in found and name not in closed) for name in node.operands):
                found.add(node.name)
        return found
