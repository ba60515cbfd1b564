"""Terms and factors that change nothing: a factor or a divisor 1, a term 0, and what a first state of zeros leaves in the first step of a
recurrence.

Exporters, and the import itself, compute the product of such a state and weights. Then the first step is another one than the others, and
is written out: what is left of the state in it, `+ zeros` and `* zeros`, goes. Where the product is there, the first step is like the
others, and the state stays as their loop begins.

x * 1 and x / 1 are x bit for bit. x + 0 is x, but for the sign of a zero. x * 0 is 0 where x is finite, as it is in a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpucc.interop.onnx.reading.idioms.layer_norms import number_of
from tpucc.ir import Graph, Node
from tpucc.ops.full import FullAttributes
from tpucc.passes.dead_code import live

OF_ELEMENTS = frozenset({"add", "mul", "sub"})


def without_neutral_numbers(graph: Graph) -> Graph:
    """The graph without products of a value and 1, and quotients, also where 1 has a shape; and without sums and differences of a value
    and the number 0. Zeros that have a shape may be a first state."""
    same: dict[str, str] = {}
    for node in graph:
        others = [name for name in node.operands if not _is_neutral(node.op, graph[name])]
        is_first = len(others) == 1 and (node.op in ("add", "mul") or others[0] == node.operands[0])
        if is_first and node.op in OF_ELEMENTS | {"div"} and graph[others[0]].type.shape == node.type.shape:
            same[node.name] = others[0]
    return _with(graph, same)


def _is_neutral(op: str, node: Node) -> bool:
    """Whether a number as an operand of an operation leaves the other operand as it is."""
    if op in ("add", "sub"):
        return number_of(node) == 0
    return number_of(node) == 1 or (isinstance(node.attributes, FullAttributes) and node.attributes.value == 1)


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
