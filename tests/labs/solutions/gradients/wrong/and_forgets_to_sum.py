"""Fails `shaped: shapes`: what the result repeats is not summed on the way back; leading sizes are no rows; a mean is taken for a sum."""


def mul(g):
    a, b = g.operands
    return [g.dy * b, g.dy * a]


def div(g):
    _, b = g.operands
    return [g.dy / b, -(g.dy * g.result / b)]


def matmul(g):
    a, b = g.operands
    return [g.dy @ b.transposed(), a.transposed() @ g.dy]


def mean(g):
    (x,) = g.operands
    axes = axes_of(g.attributes.axis, len(x.shape))
    kept = (1 if a in axes else size for a, size in enumerate(x.shape))
    return [g.dy.reshape(*kept).repeated_to(x.shape)]


def avg_pool(g):
    return [over_windows(g, g.dy)]


RULES |= {rule.__name__: rule for rule in (mul, div, matmul, mean, avg_pool)}
