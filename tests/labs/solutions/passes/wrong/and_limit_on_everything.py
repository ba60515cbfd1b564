"""Fails `hidden: fold constants: the limit`: large weights stay, too."""


def may_fold(node, values):
    if node.op in ("input", "weight", "constant") or is_pinned(node) or any(value is None for value in values):
        return False
    return node.type.size <= LIMIT
