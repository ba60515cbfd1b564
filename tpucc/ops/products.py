"""The size of products, wherever they are computed."""

from __future__ import annotations

from tpucc.ir import Graph
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Matrix


def multiply_accumulates(graph: Graph) -> int:
    """How many products of two numbers the matrix products and convolutions of an operator graph, or of a part of it, add up."""
    products = (node for node in graph if isinstance(legalisation_of(node.op), Matrix))
    return sum(node.type.size * facts_of(node.op).terms([operand.type.shape for operand in graph.operands(node)]) for node in products)
