"""Fails `memory`: gives every buffer rows of its own."""

import numpy as np

import tpucc

ALIGNMENT = {{alignment}}
BELOW, ABOVE = {{below}}, {{above}}
FIRST = -(-BELOW // ALIGNMENT) * ALIGNMENT


def allocate(lives, rows):
    sizes = -(-lives.rows // ALIGNMENT) * ALIGNMENT
    starts = FIRST + np.cumsum(sizes) - sizes
    if len(starts) and (starts + lives.rows).max() > rows - ABOVE:
        raise tpucc.TooLarge
    return starts
