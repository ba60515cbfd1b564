"""Fails `hidden: a buffer that is just large enough`: raises TooLarge one row too early."""

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
            start = max(start, -(-(starts[other] + lives.rows[other]) // ALIGNMENT) * ALIGNMENT)
        if start + lives.rows[b] > rows - ABOVE - 1:
            raise tpucc.TooLarge
        starts[b] = start
        placed.append(b)
    return starts
