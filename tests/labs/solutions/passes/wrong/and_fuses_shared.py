"""Fails `hidden: fuse bias: shared products`: computes a product twice."""


def is_open(rewriter, node):
    if node.op not in ("matmul", "linear") or is_pinned(node):
        return False
    if node.op == "linear" and node.attributes.activation:
        return False
    return all(constant_of(operand) is not None for operand in rewriter.operands(node)[1:])
