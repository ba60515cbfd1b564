"""A value that the source quantises in two ways becomes two values, each with the parameters of one.

`quantize(v, 0.1)` and `quantize(v, 0.2)` both round v, and neither rounds what the other has rounded. On the device a value is held with
one scale and zero point. So what computes v is there once for each of them: from the product on, if nothing else reads what lies between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from tpucc.ir import Graph, Node, TensorType
from tpucc.passes.rewriter import Names, is_product, is_view

Parameters = tuple[str, object]
"""The format of integers, with their scale and zero point."""


def quantised_apart(graph: Graph, quantised: Sequence[tuple[Node, Node]], constants: Set[str]) -> Graph:
    """The graph with a copy of each value for all parameters but the first with which it is quantised.

    `quantised` has each `quantize` with the value that the device computes for it, perhaps through views; nothing else reads these.
    """
    first: dict[str, Parameters] = {}
    wanted: dict[str, list[Parameters]] = {}
    for quantize, value in quantised:
        parameters = parameters_of(quantize.type)
        if first.setdefault(value.name, parameters) != parameters:
            for node in (*_views(graph, quantize), *_chain(graph, value, constants)):
                known = wanted.setdefault(node.name, [])
                if parameters not in known:
                    known.append(parameters)
    return graph.with_nodes(_copied(graph, wanted, {quantize.name for quantize, _ in quantised})) if wanted else graph


def parameters_of(integers: TensorType) -> Parameters:
    return integers.dtype, integers.quantisation


def _views(graph: Graph, quantize: Node) -> Iterator[Node]:
    """The views between a value and its `quantize`."""
    node = graph[quantize.operands[0]]
    while is_view(node):
        yield node
        node = graph[node.operands[0]]


def _chain(graph: Graph, value: Node, constants: Set[str]) -> Iterator[Node]:
    """The value, and what it is computed from by one operator after the other, back to a product: each is read by the next one only."""
    while True:
        yield value
        computed = [name for name in value.operands if name not in constants]
        if is_product(value) or len(computed) != 1:
            return
        value = graph[computed[0]]
        if value.is_input or not value.on_device or value.name in graph.output_nodes or len(graph.users[value.name]) > 1:
            return


def _copied(graph: Graph, wanted: Mapping[str, Sequence[Parameters]], quantised: Set[str]) -> Iterator[Node]:
    """The nodes, those that are wanted with other parameters once for each of them; what quantises them reads the copy with its own."""
    names = Names(graph)
    copies: dict[tuple[str, Parameters], str] = {}
    for node in graph:
        if node.name in quantised:
            yield _reading(node, copies, parameters_of(node.type))
            continue
        yield node
        for parameters in wanted.get(node.name, ()):
            copies[node.name, parameters] = names.fresh(node.name)
            yield replace(_reading(node, copies, parameters), name=copies[node.name, parameters])


def _reading(node: Node, copies: dict[tuple[str, Parameters], str], parameters: Parameters) -> Node:
    operands = tuple(copies.get((name, parameters), name) for name in node.operands)
    return node if operands == node.operands else replace(node, operands=operands)
