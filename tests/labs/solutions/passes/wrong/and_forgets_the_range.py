"""Fails `fuse activation: graphs`: the table's range is lost."""


def fuse_activation(graph):
    rewriter = Rewriter(graph, "fuse-activation")
    for node in rewriter:
        product = rewriter.operands(node)[0] if node.op in FUNCTIONS else None
        if product is None or not is_open(rewriter, product):
            rewriter.put(node)
            continue
        parameters = tuple(getattr(node.attributes, name) for name in node.attributes.__dataclass_fields__)
        attributes = LinearAttributes(node.op, parameters, None)
        rewriter.put(replace(node, op="linear", operands=product.operands, attributes=attributes), product)
    return rewriter.build()
