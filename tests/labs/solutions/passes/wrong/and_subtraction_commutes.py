"""Fails `hidden: fuse bias: the other side`: exchanges the operands of a subtraction."""


def fused_with_bias(rewriter, node):
    if node.op not in ("add", "sub"):
        return False
    product, other = rewriter.operands(node)
    if not is_open(rewriter, product):
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
