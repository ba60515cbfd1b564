"""Fails `kinked: one value`: one side of the kink is forgotten."""


def leaky_relu(g):
    (x,) = g.operands
    return [g.dy * (x > 0.0)]


def clip(g):
    (x,) = g.operands
    low, high = g.attributes.low, g.attributes.high
    return [g.dy * ((x < high) + at_kink(0.0, 1.0) * (x.call("equal", low) + x.call("equal", high)))]


def max_pool(g):
    return [over_windows(g, g.dy)]


RULES |= {rule.__name__: rule for rule in (leaky_relu, clip, max_pool)}
