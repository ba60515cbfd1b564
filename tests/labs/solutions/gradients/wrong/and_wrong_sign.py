"""Fails `smooth: one value`: the sign is the other one."""


def smooth(g):
    return [-dx for dx in RULES["{{smooth}}"](g)]
