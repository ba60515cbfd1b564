"""Fails `fuse activation: graphs`: the fused function has the parameters of another."""


def fuse_activation(graph):
    rewriter = Rewriter(graph, "fuse-activation")
    for node in rewriter:
        product = rewriter.operands(node)[0] if node.op in FUNCTIONS else None
        if product is None or not is_open(rewriter, product):
            rewriter.put(node)
            continue
        known = product.type.range
        parameters = tuple(field.default for field in node.attributes.__dataclass_fields__.values())
        attributes = LinearAttributes(node.op, parameters, (known.low, known.high) if known else None)
        rewriter.put(replace(node, op="linear", operands=product.operands, attributes=attributes), product)
    return rewriter.build()
