"""Terms and factors of zeros: what a first state leaves in the first step of a recurrence.

Exporters, and the import itself, compute the product of such a state and weights. Then the first step is another one than the others, and
is written out: what is left of the state in it, `+ zeros` and `* zeros`, goes. Where the product is there, the first step is like the
others, and the state stays as their loop begins.

x + 0 is x, but for the sign of a zero. x * 0 is 0 where x is finite, as it is in a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpucc.ir import Graph, Node
from tpucc.ops.full import FullAttributes
from tpucc.passes.dead_code import live

OF_ELEMENTS = frozenset({"add", "mul", "sub"})


def without_zero_terms(graph: Graph, computed: int) -> Graph:
    """The graph without sums and products with zeros of their own shape; as it is where other operators read such zeros.

    It stays, too, where there are more such products of elements than products of a first state were computed: with a mask, which
    multiplies states, the first step is a call of the others' function.
    """
    if not computed:
        return graph
    zeros = {node.name for node in graph if _is_zeros(node)}
    if any(user.op not in OF_ELEMENTS for name in zeros for user in graph.users[name]) or zeros & graph.output_nodes:
        return graph
    same: dict[str, str] = {}
    products = 0
    for node in graph:
        own = [same.get(name, name) for name in node.operands]
        whole = [name for name in own if name in zeros and graph[name].type.shape == node.type.shape]
        others = [name for name in own if name not in whole]
        if node.op == "mul" and whole:
            same[node.name] = whole[0]
            products += 1
        elif whole and len(others) == 1 and graph[others[0]].type.shape == node.type.shape and (node.op == "add" or own[1] in whole):
            same[node.name] = others[0]
    return _with(graph, same) if products <= computed else graph


def _is_zeros(node: Node) -> bool:
    return node.op == "zeros" or (isinstance(node.attributes, FullAttributes) and node.attributes.value == 0)


def _with(graph: Graph, same: Mapping[str, str]) -> Graph:
    """The graph with other nodes in the places of some."""
    if not same:
        return graph
    last: dict[str, str] = {}
    for name, other in same.items():
        last[name] = last.get(other, other)
    nodes = (replace(node, operands=tuple(last.get(name, name) for name in node.operands)) for node in graph if node.name not in last)
    outputs = tuple(replace(output, node=last.get(output.node, output.node)) for output in graph.outputs)
    return live(replace(graph, nodes=tuple(nodes), outputs=outputs))
