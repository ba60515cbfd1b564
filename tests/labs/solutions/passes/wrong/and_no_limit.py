"""Fails `hidden: fold constants: the limit`: makes constants of any size."""


def may_fold(node, values):
    if node.op in ("input", "weight", "constant") or is_pinned(node) or any(value is None for value in values):
        return False
    return node.type.size <= 2**24
