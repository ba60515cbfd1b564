"""A walk over the whole graph: `dequantize` moves before what moves its integers, so that the device holds them, as it holds every value.

The device moves values that it holds. Integers that the source quantised, moved and dequantised are such values; the operators on them are
not, since the device has no operator on integers as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpucc.ir import Attributes, Graph, Node, TensorType, f32
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.ops import dequantizes, facts_of
from tpucc.ops.facts import UNCHANGED
from tpucc.ops.names import dequantize
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.explicit_quantisation import holding
from tpucc.passes.rewriter import Rewriter


@graph_pass("hoist-dequantize", "moves dequantize before operators that only move values", level=0)
def hoist_dequantize(graph: Graph, context: Context) -> Graph:
    """Rewrites `dequantize(m(q, …))` to `m(dequantize(q), …)` for operators `m` that only move values, through chains of them too.

    Other readers of the integers still read the integers.
    """
    needed = _needed(graph)
    if not needed:
        return graph
    rewriter = Rewriter(graph, "hoist-dequantize")
    reals: dict[tuple[str, Attributes], str] = {}
    for node in rewriter:
        move = graph[node.operands[0]] if dequantizes(node.op) else node
        if dequantizes(node.op) and _moves(move):
            operands = tuple(reals[name, node.attributes] for name in move.operands)
            rewriter.put(replace(move, name=node.name, operands=operands, type=_held(move)), move)
            continue
        rewriter.put(node)
        for attributes in needed.get(node.name, ()):
            reals[node.name, attributes] = _real(rewriter, node, attributes, reals)
    return rewriter.build()


def _moves(node: Node) -> bool:
    return facts_of(node.op).values in UNCHANGED


def _needed(graph: Graph) -> dict[str, dict[Attributes, None]]:
    """The integers whose real values moves will read, with the attributes of the `dequantize` behind."""
    found: dict[str, dict[Attributes, None]] = {}
    for node in reversed(graph.nodes):
        move, wanted = node, found.get(node.name, {})
        if dequantizes(node.op):
            move, wanted = graph[node.operands[0]], {node.attributes: None}
        if _moves(move):
            for operand in move.operands if wanted else ():
                found.setdefault(operand, {}).update(wanted)
    return found


def _real(rewriter: Rewriter, node: Node, attributes: Attributes, reals: Mapping[tuple[str, Attributes], str]) -> str:
    """The name of the real values of some integers, which is made here: the same move of real values, or a `dequantize`."""
    if _moves(node):
        operands = tuple(reals[name, attributes] for name in node.operands)
        return rewriter.make(Node(node.name, node.op, operands, node.attributes, _held(node), node.origin)).name
    return rewriter.make(dequantize.node(node.name, (node.name,), attributes, f32(*node.type.shape), node.origin)).name


def _held(move: Node) -> TensorType:
    """The type of moved real values, which the device holds as the source says."""
    type_, quantisation = f32(*move.type.shape), move.type.quantisation
    return type_ if quantisation is None else holding(type_, quantisation, INTEGER_FORMATS[move.type.dtype])
