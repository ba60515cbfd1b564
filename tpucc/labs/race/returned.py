"""A graph that a submission has handed back as text: read, and held against the one that it was given.

Whatever a rewrite does, the model stays the same from outside: its name, its inputs with their types, its outputs with their names and
types. Nodes say what is computed, and not where. What they compute is compared by values, elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpucc.guest.values import Plain
from tpucc.ir import Graph
from tpucc.labs.graphs import read_graph
from tpucc.plugins.failures import Failed

NODES = 50
"""Nodes that a graph may have more than twice those of the one before it."""


def returned_graph(found: Plain, given: Graph) -> Graph:
    """The graph that `rewrite` made of `given`. Raises `Failed`."""
    made = read_graph(found, given, "rewrite ")
    if (problem := next(_problems(made, given), "")) != "":
        raise Failed("wrong", f"rewrite {problem}")
    return replace(made, name=given.name, source=given.source, notes=())


def _problems(made: Graph, given: Graph) -> Iterator[str]:
    """What a rewrite may not change, and did."""
    for what, found in (("inputs", _inputs), ("outputs", _outputs)):
        if (after := found(made)) != (before := found(given)):
            yield f"changed the {what} from {', '.join(before)} to {', '.join(after)}"
    if constant := sorted(_constants(made) - _constants(given)):
        yield f"made a constant of {', '.join(constant)}: what the model returns depends on its inputs"
    for node in made:
        if node.place is not None or node.holds:
            yield f"said where {node.name} is computed, or what it holds; later passes do that"
    most = 2 * len(given) + NODES
    if len(made) > most:
        yield f"made {len(made):,} nodes of {len(given):,}; at most {most:,} are compiled"


def _constants(graph: Graph) -> set[str]:
    """The outputs that depend on no input. Nodes stand behind their operands."""
    varying = set[str]()
    for node in graph:
        if node.is_input or not varying.isdisjoint(node.operands):
            varying.add(node.name)
    return {output.name for output in graph.outputs if output.node not in varying}


def _inputs(graph: Graph) -> list[str]:
    """Names and types with their ranges; their order says nothing."""
    return sorted(f"{node.name}: {node.type}" for node in graph.inputs)


def _outputs(graph: Graph) -> list[str]:
    """Names and shapes; the range of an output may become known."""
    return [f"{output.name}: {graph[output.node].type.brief}" for output in graph.outputs]
