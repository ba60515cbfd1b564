"""A student's allocator: first fit, in the order of time.

    tpucc judge MODEL.tpu --replace allocate=docs/stages/first_fit.py

Each buffer takes the lowest rows that no buffer has which is alive together with it.
"""

import numpy as np

import tpucc


def allocate(lives, rows):
    """The first row of each buffer, in a unified buffer of `rows` rows."""
    starts = np.zeros(len(lives.rows), np.int64)
    placed = []
    for buffer in np.argsort(lives.first, kind="stable"):
        together = [other for other in placed if overlap(lives, buffer, other)]
        start = lowest(starts, lives.rows, together, lives.rows[buffer])
        if start + lives.rows[buffer] > rows:
            raise tpucc.TooLarge
        starts[buffer] = start
        placed.append(buffer)
    return starts


def overlap(lives, one, other):
    """Whether two buffers are alive at the same time; both ends count."""
    return lives.first[one] <= lives.last[other] and lives.first[other] <= lives.last[one]


def lowest(starts, sizes, others, wanted):
    """The lowest row from which `wanted` rows are free."""
    row = 0
    for other in sorted(others, key=lambda other: starts[other]):
        if row + wanted <= starts[other]:
            break
        row = max(row, starts[other] + sizes[other])
    return row
