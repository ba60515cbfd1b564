"""Fails `hidden: fuse activation: pinned values`: fuses a product whose quantisation is fixed."""


def is_open(rewriter, node):
    if node.op not in ("matmul", "linear") or rewriter.reads(node) != 1:
        return False
    if node.op == "linear" and node.attributes.activation:
        return False
    return all(constant_of(operand) is not None for operand in rewriter.operands(node)[1:])
