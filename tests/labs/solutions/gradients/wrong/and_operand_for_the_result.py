"""Fails `smooth: one value`: the formula is of y, and x stands in its place."""

from dataclasses import replace


def smooth(g):
    return RULES["{{smooth}}"](replace(g, result=g.operands[0]))
