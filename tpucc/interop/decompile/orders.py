"""Orders of a graph's nodes: steps of a sequence are alike only where their nodes stand in the same order.

Exporters and optimisers write the first step of a recurrence in another order than the others, or parts of the inputs before a step and
behind it. The first layer has among its nodes those that make the mask for all layers. In the order that is the best to read the model is
the shortest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpucc.interop.decompile.same import is_number
from tpucc.ir import Graph, Node
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import WeightAttributes

MOST = 1_500
"""Nodes of a graph of which all orders are tried: each takes as long as one text."""
LARGE = 3_000
"""Nodes of a graph of which the order by need is tried."""


def orders(graph: Graph) -> Iterator[Graph]:
    """The graph as it is, with what several layers read of the inputs in front, with what depends on no step in front, and by need: each
    node behind its operands, those from far away first.

    The second is there where the first layers have such nodes among theirs, the others where a matrix of weights is used twice: else there
    are no steps.
    """
    yield graph
    if len(graph.nodes) <= MOST and (shared := _shared(graph)):
        yield replace(graph, nodes=(*graph.inputs, *_in(graph, shared), *(node for node in graph if node.name not in shared)))
    if len(graph.nodes) > LARGE or not _uses_twice(graph):
        return
    if len(graph.nodes) <= MOST:
        yield replace(graph, nodes=tuple(_started(graph)))
    yield replace(graph, nodes=tuple(_by_need(graph)))


def _in(graph: Graph, names: set[str]) -> Iterator[Node]:
    return (node for node in graph if node.name in names and not node.is_input)


def _shared(graph: Graph) -> set[str]:
    """The inputs, and what is computed of them without weights and read several times, as masks are, with all that it is made of; empty
    where none of it stands behind a product."""
    light: set[str] = set()
    found: set[str] = set()
    has_product = is_behind = False
    for node in graph:
        if node.is_input or is_number(node) or is_state(node) or (node.operands and light.issuperset(node.operands)):
            light.add(node.name)
            if node.operands and len(graph.users[node.name]) > 1:
                found.add(node.name)
                is_behind |= has_product
        has_product |= isinstance(legalisation_of(node.op), Matrix)
    for node in reversed(graph.nodes):
        if node.name in found:
            found.update(node.operands)
    return found.union(node.name for node in graph.inputs) if is_behind else set()


def _uses_twice(graph: Graph) -> bool:
    """Whether a matrix of weights, or one that is computed of weights alone, meets two values that aren't."""
    known: set[str] = set()
    met: set[str] = set()
    for node in graph:
        if not node.is_input and all(name in known for name in node.operands):
            known.add(node.name)
            continue
        matrices = {name for name in node.operands if name in known and graph[name].type.rank >= 2}
        if matrices & met:
            return True
        met |= matrices
    return False


def _started(graph: Graph) -> Iterator[Node]:
    """The inputs, then initial states and parts of inputs, then the others in their order."""
    first = _first(graph)
    yield from graph.inputs
    yield from (node for node in graph if node.name in first and not node.is_input)
    yield from (node for node in graph if node.name not in first)


def _first(graph: Graph) -> set[str]:
    """The inputs and their parts, and the values that have no operand, but weights and numbers, which stand where they are read."""
    found: set[str] = set()
    for node in graph:
        part = isinstance(node.attributes, SliceAttributes) and node.operands[0] in found and graph[node.operands[0]].is_input
        if node.is_input or is_state(node) or part:
            found.add(node.name)
    return found


def is_state(node: Node) -> bool:
    """Whether a node is an initial state: no operands, no input, no weight, no number."""
    return not node.operands and not node.is_input and not isinstance(node.attributes, WeightAttributes) and not is_number(node)


def _by_need(graph: Graph) -> Iterator[Node]:
    """Each node behind its operands, of which that with the longest way behind it comes first. A first state is the longest, as the states
    of later steps are."""
    first = _first(graph)
    heights: dict[str, int] = {}
    for node in graph:
        heights[node.name] = len(graph) if is_state(node) else 1 + max((heights[name] for name in node.operands), default=0)
    yield from (node for node in _started(graph) if node.name in first)
    done = set(first)
    for root in (*(output.node for output in graph.outputs), *heights):
        waiting = [root]
        while waiting:
            name = waiting[-1]
            missing = [operand for operand in graph[name].operands if operand not in done]
            if name in done or not missing:
                waiting.pop()
                if name not in done:
                    done.add(name)
                    yield graph[name]
            else:
                waiting.append(max(missing, key=heights.__getitem__))
