"""Fails `random lives`: the last row of each buffer is shared."""

import numpy as np

import tpucc

ALIGNMENT = {{alignment}}
BELOW, ABOVE = {{below}}, {{above}}
FIRST = -(-BELOW // ALIGNMENT) * ALIGNMENT


def allocate(lives, rows):
    starts, placed = np.zeros(len(lives.rows), np.int64), []
    for b in np.argsort(lives.first, kind="stable"):
        start = FIRST
        for other in sorted(
            (o for o in placed if lives.first[o] <= lives.last[b] and lives.last[o] >= lives.first[b]), key=lambda o: starts[o]
        ):
            if starts[other] >= start + lives.rows[b]:
                break
            start = max(start, -(-(starts[other] + lives.rows[other] - 1) // ALIGNMENT) * ALIGNMENT)
        if start + lives.rows[b] > rows - ABOVE:
            raise tpucc.TooLarge
        starts[b] = start
        placed.append(b)
    return starts
