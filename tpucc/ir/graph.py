"""The graph: the one representation between source and tiles.

A `Graph` is a tuple of nodes in an order where definitions come before uses. The same type holds the operator graph (float32) and the
layer graph (int8 layers between host operators); what a node's name of operator and attributes mean is defined by the packages `ops`
and `layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tpucc.ir.node import Firing, Node, Output
from tpucc.ir.printer import print_graph

if TYPE_CHECKING:
    import networkx

T = TypeVar("T")


@dataclass(frozen=True)
class Graph:
    """A model as a directed acyclic graph of nodes.

    `source` is the name of the source file that the origins speak of. `notes` are sentences for the user from the pass that made the
    graph, and `firings` say how the rules of that pass made it.
    """

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    source: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    firings: tuple[Firing, ...] = field(default=(), compare=False)

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def users(self) -> Mapping[str, tuple[Node, ...]]:
        """For each node's name the nodes that read it, in order, each once."""
        found: dict[str, dict[str, Node]] = {node.name: {} for node in self.nodes}
        for node in self.nodes:
            for operand in node.operands:
                found[operand][node.name] = node
        return {name: tuple(users.values()) for name, users in found.items()}

    @cached_property
    def output_nodes(self) -> frozenset[str]:
        return frozenset(output.node for output in self.outputs)

    @cached_property
    def is_placed(self) -> bool:
        """Whether the nodes have places, host or device."""
        return any(node.place is not None for node in self.nodes)

    @cached_property
    def nx(self) -> networkx.MultiDiGraph:
        """The graph as networkx sees it: nodes by name (attribute `node`), one edge an operand, keyed by its index.

        networkx is imported when this is asked for: importing it takes twice as long as importing NumPy.
        """
        import networkx

        view = networkx.MultiDiGraph(name=self.name)
        for node in self.nodes:
            view.add_node(node.name, node=node)
        for node in self.nodes:
            for index, operand in enumerate(node.operands):
                view.add_edge(operand, node.name, key=index)
        return networkx.freeze(view)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy in another process gets: the fields, and nothing that can be found again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __getitem__(self, name: str) -> Node:
        return self.by_name[name]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def operands(self, node: Node) -> tuple[Node, ...]:
        return tuple(self.by_name[name] for name in node.operands)

    @cached_property
    def holders(self) -> Mapping[str, str]:
        """For each value of the operator graph, the name of the node in this layer graph that has it."""
        own = {node.name: node.name for node in self.nodes if not node.holds}
        return own | {value: node.name for node in self.nodes for value in node.holds}

    @cached_property
    def found(self) -> dict[Callable[[Graph], Any], Any]:
        """What functions that are asked `once_a_graph` have found."""
        return {}

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_input)

    def with_nodes(self, nodes: Iterable[Node]) -> Graph:
        return replace(self, nodes=tuple(nodes))

    def noting(self, *notes: str) -> Graph:
        """The graph with sentences that the user will read."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self

    def without_notes(self) -> Graph:
        return replace(self, notes=()) if self.notes else self

    def without_firings(self) -> Graph:
        return replace(self, firings=()) if self.firings else self

    def __str__(self) -> str:
        return print_graph(self)


def once_a_graph(function: Callable[[Graph], T]) -> Callable[[Graph], T]:
    """A function of a graph alone, computed when it is first asked for; the graph keeps the result, which nobody may change."""

    @wraps(function)
    def kept(graph: Graph) -> T:
        if function not in graph.found:
            graph.found[function] = function(graph)
        return cast(T, graph.found[function])

    return kept


class GraphBuilder:
    """Builds a graph node by node, keeping names unique."""

    def __init__(self, name: str, source: str = "") -> None:
        self.name = name
        self.source = source
        self.nodes: dict[str, Node] = {}
        self.outputs: list[Output] = []
        self._counters: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """`wanted`, or `wanted.1`, `wanted.2`, … when it is taken."""
        if wanted not in self.nodes:
            return wanted
        number = self._counters.get(wanted, 0)
        while True:
            number += 1
            if (name := f"{wanted}.{number}") not in self.nodes:
                self._counters[wanted] = number
                return name

    def add(self, node: Node) -> Node:
        """Adds a node under a fresh name made from its own; returns it as it was added."""
        name = self.fresh(node.name)
        added = node if name == node.name else replace(node, name=name)
        self.nodes[name] = added
        return added

    def output(self, name: str, node: str) -> None:
        self.outputs.append(Output(name, node))

    def build(self) -> Graph:
        return Graph(self.name, tuple(self.nodes.values()), tuple(self.outputs), self.source)
