"""The names by which `--keep` takes what a layer graph shows."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import Computed
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Boundary
from tpucc.passes.device_work import computes
from tpucc.passes.kept_layers import layer_of, names_of, readers_of, sources_of
from tpucc.passes.rewriter import is_product

FEW = 2
"""Of more layers than these, the lines are given, if the lines are no more than these."""


class Keepable:
    """The names that `--keep` takes for the nodes of a layer graph, which may be parts of a layer. The pass `place` reads `graph`."""

    def __init__(self, graph: Graph) -> None:
        self._computed = Computed(graph)
        self._computing = [node for node in self._computed.nodes if computes(node)]
        self._named: dict[str, set[str]] = {}
        for node in self._computing:
            for name in names_of(node):
                self._named.setdefault(name, set()).add(node.name)

    def names(self, layer: Node, of: Sequence[str], readers: Sequence[Node]) -> tuple[str, ...]:
        """The names that keep a node of the layer graph: its own name; else the name of the operator that it is a part of; else the names
        of the layers whose values it moves, or that read the integers that it makes; else its line. Empty if none of these keeps it. `of`
        are the names that its operator may have, and `readers` the nodes that read it in the layer graph."""
        graph = self._computed.graph
        known = [graph[name] for name in of if name in graph.by_name]
        if isinstance(legalisation_of(layer.op), Boundary):
            read = [reader for node in known[:1] for reader in readers_of(node, self._computed)]
            read = read or [graph[reader.of] for reader in readers if reader.of in self._named]
            return self._short([*dict.fromkeys(map(self._called, read))]) or self._line(layer)
        meant = [node for node in known if node.name in self._named]
        own = self._named.get(layer.name, set())
        if own and (not meant or not own.isdisjoint(layer_of(self._computed, meant[0]))):
            return (layer.name,)
        made = [name for node in known[:1] for name in sources_of(node.name, self._computed)]
        return (self._product(meant[0]),) if meant else self._short(made) or self._line(layer)

    def _product(self, node: Node) -> str:
        """The name of a node's layer as `_called`, if no other layer has that name; else the node's own."""
        called = self._called(node)
        return called if len(self._named[called]) == 1 else node.name

    def _called(self, node: Node) -> str:
        """The name of the layer with a node: its product's name, if it has a product."""
        layer = [self._computed.graph[name] for name in layer_of(self._computed, node)]
        return next(names_of(next(filter(is_product, layer), node)))

    def _short(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names, or the lines if there are many names from few lines."""
        if len(names) <= FEW:
            return tuple(names)
        lines = sorted({node.origin.line for node in self._computing if not {*names}.isdisjoint(names_of(node))})
        return tuple(map(str, lines)) if len(lines) <= FEW and 0 not in lines else tuple(names)

    def _line(self, layer: Node) -> tuple[str, ...]:
        line = layer.origin.line
        return (str(line),) if line and any(line in node.origin.lines for node in self._computing) else ()
