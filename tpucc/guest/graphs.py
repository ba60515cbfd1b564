"""Graphs that cross the border from a child: as text, with the constants that we don't have.

The text form has no field `of` and nothing of how rules made the graph: both travel beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from tpucc.ir import Constant, Graph, Node
from tpucc.ir.attributes import non_default
from tpucc.ir.digests import digest_of
from tpucc.ir.literals import DataWriter
from tpucc.ir.node import Firing
from tpucc.ir.parser import parse_graph, parse_nodes
from tpucc.ir.printer import print_graph, print_node
from tpucc.layers.kinds import ATTRIBUTES


class _Constants:
    """Constants by their digests (`ir.digests.Known`)."""

    name = "the graph that the pass got"

    def __init__(self, data: Iterable[bytes]) -> None:
        self._data = {(digest_of(each), len(each)): each for each in data}

    def find(self, digest: str, size: int) -> bytes | None:
        return self._data.get((digest, size))


def graph_values(graph: Graph, before: Graph) -> dict[str, Any]:
    """A graph that was made of `before`, as values that travel."""
    nodes = [node for firing in graph.firings for node in (*firing.matched, *firing.made)]
    data, known = DataWriter(False), {id(constant.data) for constant in constants_of(before)}
    lines = [print_node(node, data) for node in nodes]
    new = [constant for constant in constants_of(chain(graph, nodes)) if id(constant.data) not in known]
    return {
        "text": print_graph(graph, with_data=False),
        "constants": [np.frombuffer(each.data.tobytes(), np.uint8) for each in new],
        "notes": list(graph.notes),
        "of": {node.name: node.of for node in graph if node.of},
        "firings": [[firing.rule, len(firing.matched), len(firing.made)] for firing in graph.firings],
        "fired": "\n".join([*lines, *data.sections()]),
    }


def graph_of(values: Mapping[str, Any], before: Graph) -> Graph:
    """The graph that `graph_values` has packed; nodes of `before` that are in it are the same objects. Raises `ProgramError` for a text
    that is no graph's, and other exceptions for values that aren't of this form."""
    known = _Constants([*(each.data.tobytes() for each in constants_of(before)), *(array.tobytes() for array in values["constants"])])
    graph, of = parse_graph(values["text"], "the graph of the pass", ATTRIBUTES, known), values["of"]
    nodes = iter(parse_nodes(values["fired"], ATTRIBUTES, known))
    firings = [Firing(str(rule), tuple(islice(nodes, matched)), tuple(islice(nodes, made))) for rule, matched, made in values["firings"]]
    own = (replace(node, of=str(of[node.name])) if node.name in of else node for node in graph)
    kept = tuple(_kept(node, before.by_name.get(node.name)) for node in own)
    return replace(graph, nodes=kept, notes=tuple(map(str, values["notes"])), firings=tuple(firings))


def _kept(node: Node, old: Node | None) -> Node:
    """The node, as the object that it was before where nothing of it has changed."""
    return old if old is not None and node == old and (node.origin, node.of) == (old.origin, old.of) else node


def constants_of(nodes: Iterable[Node]) -> Iterator[Constant]:
    """Every constant among the attributes of nodes."""
    return (value for node in nodes for _, value in non_default(node.attributes) if isinstance(value, Constant))
