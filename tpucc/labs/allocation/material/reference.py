"""Lab 5, a solution: several orders, each buffer at the lowest rows that are free while it lives; the best of them."""

import numpy as np

import tpucc

ALIGNMENT = {{alignment}}
BELOW, ABOVE = {{below}}, {{above}}
FIRST = -(-BELOW // ALIGNMENT) * ALIGNMENT
ROUNDS = 60


def allocate(lives, rows):
    """The first row of each buffer."""
    orders = [
        np.lexsort((lives.first, -lives.rows)),
        np.lexsort((lives.first, -lives.rows * (lives.last - lives.first + 1))),
        np.lexsort((-lives.rows, lives.first - lives.last)),
        np.argsort(lives.first, kind="stable"),
    ]
    needed = FIRST + largest_sum(lives)
    best = min((placed(lives, order) for order in orders), key=lambda starts: peak(lives, starts))
    draw = np.random.default_rng(5)
    order = orders[0]
    least = peak(lives, placed(lives, order))
    for _ in range(ROUNDS):
        if peak(lives, best) <= needed:
            break
        trial = moved(order, draw)
        starts = placed(lives, trial)
        if peak(lives, starts) <= least:
            order, least = trial, peak(lives, starts)
        best = min(best, starts, key=lambda found: peak(lives, found))
    if peak(lives, best) > rows - ABOVE:
        raise tpucc.TooLarge
    return best


def moved(order, draw):
    """The order with one buffer somewhere earlier."""
    order = list(order)
    buffer = order.pop(int(draw.integers(len(order))))
    order.insert(int(draw.integers(len(order) + 1)), buffer)
    return np.array(order)


def peak(lives, starts):
    return int((starts + lives.rows).max(initial=0))


def largest_sum(lives):
    """The most rows that are alive at one time."""
    return max((int(lives.rows[(lives.first <= t) & (lives.last >= t)].sum()) for t in lives.first), default=0)


def placed(lives, order):
    """Each buffer, in this order, at the lowest rows that no buffer alive with it has."""
    starts = np.zeros(len(lives.rows), np.int64)
    done = np.zeros(len(lives.rows), bool)
    for b in order:
        together = np.flatnonzero(done & (lives.first <= lives.last[b]) & (lives.last >= lives.first[b]))
        start = FIRST
        for other in together[np.argsort(starts[together], kind="stable")]:
            if starts[other] >= start + lives.rows[b]:
                break
            start = max(start, -(-int(starts[other] + lives.rows[other]) // ALIGNMENT) * ALIGNMENT)
        starts[b], done[b] = start, True
    return starts
