"""Fails `memory`: gives every buffer rows of its own."""

import numpy as np

import tpucc

ALIGNMENT = {{alignment}}


def allocate(lives, rows):
    sizes = -(-lives.rows // ALIGNMENT) * ALIGNMENT
    starts = np.cumsum(sizes) - sizes
    if len(starts) and (starts + lives.rows).max() > rows:
        raise tpucc.TooLarge
    return starts
