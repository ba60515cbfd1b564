"""Fails `hidden: fuse activation: functions`: fuses two functions into one product."""


def is_open(rewriter, node):
    if node.op not in ("matmul", "linear") or not rewriter.is_free(node):
        return False
    return all(constant_of(operand) is not None for operand in rewriter.operands(node)[1:])
