"""Where the pass `place` puts the nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.ir import Graph
from tpucc.ir.node import Side
from tpucc.passes.base import Context
from tpucc.passes.place import place
from tpucc.target import load_target


def placement(graph: Graph) -> Mapping[str, Side | None]:
    """The place of each node, by name. Clamps and copies that the pass adds are left out."""
    placed = place.run(graph, Context(load_target("tpu_v1")))
    return {node.name: placed[node.name].place for node in graph}
