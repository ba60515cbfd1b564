"""What the device can compute: of a single node, and of a graph before its nodes have places."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import constant_values, forward, true_of
from tpucc.ops import OPS
from tpucc.ops.opdef import Arithmetic, Boundary, Given, Matrix, OnHost, Rearrangement, View
from tpucc.passes.rewriter import has_weights, is_product, obstacle

MOVING = (View, Rearrangement)
"""Operators that compute nothing: at the edges of the device's work they are the host's, to whom they cost nothing."""


def computes(node: Node) -> bool:
    """Whether a node computes something, and isn't given, a boundary of integers, or values in other places."""
    return not isinstance(OPS[node.op].legalisation, (Given, Boundary, *MOVING))


def multiplies(node: Node) -> bool:
    """Whether the node multiplies two values, element by element."""
    legalisation = OPS[node.op].legalisation
    return isinstance(legalisation, Arithmetic) and legalisation.function(node.attributes) == "multiply"


def needs_host(node: Node, operands: Sequence[Node]) -> str:
    """Why the device can't run the operator; empty when it can. That a product needs weights is another matter."""
    legalisation = OPS[node.op].legalisation
    if isinstance(legalisation, Matrix) and (why := obstacle(node, operands)):
        return why
    if isinstance(legalisation, OnHost):
        return legalisation.why
    if isinstance(legalisation, Boundary | Given):
        return ""
    if isinstance(legalisation, View):
        kept = keeps_rows(operands[0].type.shape, node.type.shape)
        return "" if kept else "the device can only regroup rows: the last size must stay"
    if isinstance(legalisation, Rearrangement) and (why := legalisation.obstacle(node.attributes, [o.type.shape for o in operands])):
        return why
    if any(type_.dtype != "f32" for type_ in (node.type, *(operand.type for operand in operands))):
        return "the device computes with quantised f32 values"
    return ""


def keeps_rows(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether two shapes of one size have the same rows and columns on the device."""
    return (before[-1:] or (1,)) == (after[-1:] or (1,))


def device_values(graph: Graph) -> frozenset[str]:
    """The products with weights, and what the device can compute from them."""
    constants = constant_values(graph)
    return true_of(forward(graph, lambda node, known: is_devices(node, graph.operands(node), any(known.values()), constants)))


def is_devices(node: Node, operands: Sequence[Node], reads_device: bool, constants: Container[str]) -> bool:
    """Whether the node is a product with weights, which are `constants`, or what the device can compute and reads a value of the device."""
    from_device = reads_device and not is_product(node)
    return (from_device or has_weights(node, operands, constants)) and not needs_host(node, operands)
