"""Lab 2, a solution."""

from dataclasses import replace

import numpy as np

from tpucc.ir import Constant
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import compute
from tpucc.ops.linear import LinearAttributes
from tpucc.passes.rewriter import Rewriter, as_columns, constant_of, is_pinned

LIMIT = {{limit}}
FUNCTIONS = {{names}}
SECOND = {{second}}


def fold_constants(graph):
    rewriter = Rewriter(graph, "fold-constants")
    for node in rewriter:
        operands = rewriter.operands(node)
        values = [constant_of(operand) for operand in operands]
        if may_fold(node, values):
            result = compute(node, [operand.type for operand in operands], [value.data for value in values])
            made = ConstantAttributes(Constant(np.asarray(result, node.type.numpy)))
            node = replace(node, op="constant", operands=(), attributes=made)
        rewriter.put(node)
    return rewriter.build()


def may_fold(node, values):
    if node.op in ("input", "weight", "constant") or is_pinned(node) or any(value is None for value in values):
        return False
    return node.type.size <= max(LIMIT, sum(value.data.size for value in values))


def fuse_bias(graph):
    rewriter = Rewriter(graph, "fuse-bias")
    for node in rewriter:
        if not fused_with_bias(rewriter, node):
            rewriter.put(node)
    return rewriter.build()


def fused_with_bias(rewriter, node):
    if node.op not in ("add", "sub"):
        return False
    product, other = rewriter.operands(node)
    if node.op == "add" and not is_open(rewriter, product):
        product, other = other, product
    if not is_open(rewriter, product) or constant_of(other) is None or node.type.shape != product.type.shape:
        return False
    columns = as_columns(constant_of(other), product.type)
    if columns is None or (len(product.operands) == 3 and not SECOND):
        return False
    values = -columns.data if node.op == "sub" else columns.data
    if len(product.operands) == 3:
        values = constant_of(rewriter.nodes[product.operands[2]]).data + values
    bias = rewriter.constant(other.name, Constant(values), other.origin)
    made = replace(node, op="linear", operands=(*product.operands[:2], bias.name), attributes=LinearAttributes())
    rewriter.put(made, product)
    return True


def is_open(rewriter, node):
    if node.op not in ("matmul", "linear") or not rewriter.is_free(node):
        return False
    if node.op == "linear" and node.attributes.activation:
        return False
    return all(constant_of(operand) is not None for operand in rewriter.operands(node)[1:])


def fuse_activation(graph):
    rewriter = Rewriter(graph, "fuse-activation")
    for node in rewriter:
        product = rewriter.operands(node)[0] if node.op in FUNCTIONS else None
        if product is None or not is_open(rewriter, product):
            rewriter.put(node)
            continue
        known = product.type.range
        parameters = tuple(getattr(node.attributes, name) for name in node.attributes.__dataclass_fields__)
        attributes = LinearAttributes(node.op, parameters, (known.low, known.high) if known else None)
        rewriter.put(replace(node, op="linear", operands=product.operands, attributes=attributes), product)
    return rewriter.build()
