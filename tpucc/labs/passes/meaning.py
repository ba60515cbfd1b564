"""What the three passes must do in a term, written apart from every solution: the graph that each should give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tpucc.ir import Constant, Graph, Node, TensorType
from tpucc.labs.passes.rules import ANY, Rules
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.fused import with_activation
from tpucc.ops.linear import LinearAttributes
from tpucc.ops.opdef import Given

# lab 2 begin: say what a pass leaves of a graph
Wanted = Mapping[str, Node]
"""The nodes that a pass leaves, by name; a constant that it may have made stands as the operand `ANY`."""


def fold_constants(graph: Graph, rules: Rules) -> Wanted:
    """Every operator of which all operands are constants is one itself, up to the limit."""
    now: dict[str, Node] = {}
    for node in graph:
        values = [value for name in node.operands if (value := constant(now[name])) is not None]
        folds = len(values) == len(node.operands) and _computes(node) and not is_pinned(node)
        if folds and node.type.size <= max(rules.limit, sum(value.data.size for value in values)):
            node = replace(node, op="constant", operands=(), attributes=ConstantAttributes(_nothing(node.type)))
        now[node.name] = node
    return now


def _computes(node: Node) -> bool:
    return node.op in OPS and not isinstance(OPS[node.op].legalisation, Given)


def _nothing(type_: TensorType) -> Constant:
    """Stands for a value that isn't compared here."""
    return Constant(np.zeros(type_.shape, type_.numpy))


def fuse_bias(graph: Graph, rules: Rules) -> Wanted:
    """Every constant that is added to a product that nothing else reads is part of it."""
    return _rewritten(graph, lambda node, now, reads: _biased(node, now, reads, rules))


def fuse_activation(graph: Graph, rules: Rules) -> Wanted:
    """Every function of the term's that is applied to a product that nothing else reads is part of it."""
    return _rewritten(graph, lambda node, now, reads: _activated(node, now, reads, rules))


Step = Callable[[Node, Mapping[str, Node], Counter[str]], tuple[Node, str] | None]
"""What a node becomes, and the name of the product that it takes in; None where it stays."""


def _rewritten(graph: Graph, step: Step) -> Wanted:
    now: dict[str, Node] = {}
    reads = Counter(name for node in graph for name in node.operands) + Counter(output.node for output in graph.outputs)
    for node in graph:
        made = step(node, now, reads)
        if made is not None:
            node, taken = made
            del now[taken]
        now[node.name] = node
    return now


def _biased(node: Node, now: Mapping[str, Node], reads: Counter[str], rules: Rules) -> tuple[Node, str] | None:
    orders = {"add": ((0, 1), (1, 0)), "sub": ((0, 1),)}.get(node.op, ())
    for left, right in orders:
        product, other = (now[node.operands[index]] for index in (left, right))
        added = constant(other)
        if added is None or not _is_open(product, now, reads) or node.type.shape != product.type.shape:
            continue
        if _is_row(added, product.type) and (rules.second or len(product.operands) == 2):
            return replace(node, op="linear", operands=(*product.operands[:2], ANY), attributes=LinearAttributes()), product.name
    return None


def _activated(node: Node, now: Mapping[str, Node], reads: Counter[str], rules: Rules) -> tuple[Node, str] | None:
    if node.op not in rules.functions or not _is_open(before := now[node.operands[0]], now, reads):
        return None
    attributes = with_activation(LinearAttributes(), node.op, node.attributes, before.type.range)
    return replace(node, op="linear", operands=before.operands, attributes=attributes), before.name


def _is_open(node: Node, now: Mapping[str, Node], reads: Counter[str]) -> bool:
    """Whether the node is a product with constant weights that takes in what follows it."""
    if node.op not in ("matmul", "linear") or reads[node.name] != 1 or is_pinned(node):
        return False
    if isinstance(node.attributes, LinearAttributes) and node.attributes.activation:
        return False
    return all(name == ANY or constant(now[name]) is not None for name in node.operands[1:])


def _is_row(value: Constant, type_: TensorType) -> bool:
    """Whether a constant has one value for each column of a type, or one for all."""
    return value.data.size == 1 or (value.data.size == type_.columns and value.shape[-1:] == type_.shape[-1:])


def constant(node: Node) -> Constant | None:
    """The value of a constant that isn't pinned."""
    return node.attributes.value if isinstance(node.attributes, ConstantAttributes) and not is_pinned(node) else None


def is_pinned(node: Node) -> bool:
    """Whether the source fixes how the value is quantised."""
    return node.type.quantisation is not None


PASSES: Mapping[str, Callable[[Graph, Rules], Wanted]] = {
    "fold_constants": fold_constants,
    "fuse_bias": fuse_bias,
    "fuse_activation": fuse_activation,
}


# lab 2 end
