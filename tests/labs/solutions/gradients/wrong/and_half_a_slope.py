"""Fails `smooth: one value`: a part of the formula is forgotten; of softmax, that each value depends on all others."""


def smooth(g):
    slope = {"tanh": lambda y: 1.0 - y, "sigmoid": lambda y: y, "softmax": lambda y: y * (1.0 - y)}
    return [g.dy * slope["{{smooth}}"](g.result)]
