"""Fails `shaped: one value`: each operand is multiplied with itself; the factor that is not transposed is; the wrong values are counted."""


def mul(g):
    a, b = g.operands
    return [summed_to(g.dy * a, a.shape), summed_to(g.dy * b, b.shape)]


def div(g):
    a, b = g.operands
    return [summed_to(g.dy * b, a.shape), summed_to(-(g.dy * g.result), b.shape)]


def matmul(g):
    a, b = g.operands
    return [g.dy.transposed() @ b, a @ g.dy.transposed()]


def mean(g):
    (x,) = g.operands
    axes = axes_of(g.attributes.axis, len(x.shape))
    kept = (1 if a in axes else size for a, size in enumerate(x.shape))
    return [(g.dy / float(math.prod(g.result.shape))).reshape(*kept).repeated_to(x.shape)]


def avg_pool(g):
    return [over_windows(g, g.dy / float(g.operands[0].shape[0]))]


RULES |= {rule.__name__: rule for rule in (mul, div, matmul, mean, avg_pool)}
