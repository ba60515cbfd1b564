"""The moves by which a random network grows: each writes a few lines that go on from the current value.

`MOVES` is the table. A move is for values of one rank (4: a feature map [N, H, W, C]; 3: a sequence [N, T, F]; 2: rows [N, K]), has a
share in the draw, and may say that it doesn't fit the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tests.support.network_draft import Draft
from tests.support.network_maps import (
    attend,
    average,
    convolve,
    convolve_and_pool,
    flatten,
    fold,
    inception,
    normalise,
    pool,
    residual,
    surround,
    unroll,
)
from tests.support.network_rows import (
    append,
    carry,
    combine,
    compare_steps,
    crop,
    dense,
    element_wise,
    gate,
    mix,
    raise_to_map,
    recur,
    recur_throughout,
    soften,
    split_and_join,
    stack,
    step,
    take_every,
    turn,
    unfold,
)


def always(_: Draft) -> bool:
    return True


def roomy(draft: Draft) -> bool:
    """Whether a value of three times the size, and of a few pixels more, is still affordable."""
    return draft.affords(0, 3 * prod(draft.shape)) and max(draft.shape) <= 300


def mixable(draft: Draft) -> bool:
    rows = prod(draft.shape[1:-1])
    return rows <= 64 and draft.affords(prod(draft.shape) * rows)


def few_steps(draft: Draft) -> bool:
    return draft.shape[0] == draft.batch and draft.shape[1] <= draft.bounds.steps


@dataclass(frozen=True, slots=True)
class Move:
    """`write` for values of `rank`, drawn in proportion to `share` where it `fits`."""

    rank: int
    share: float
    write: Callable[[Draft], None]
    fits: Callable[[Draft], bool] = always


MOVES = (
    Move(4, 6, convolve),
    Move(4, 1.5, convolve_and_pool, lambda draft: draft.affords(prod(draft.shape) * 30)),
    Move(4, 2, normalise, lambda draft: draft.affords(prod(draft.shape) * 30)),
    Move(4, 3, residual, lambda draft: draft.affords(prod(draft.shape) * 30)),
    Move(4, 4, pool, lambda draft: max(draft.shape[1:3]) > 1),
    Move(4, 2, inception, roomy),
    Move(4, 1.5, stack, roomy),
    Move(4, 1.5, surround, roomy),
    Move(4, 1.5, crop),
    Move(4, 0.7, turn, lambda draft: max(draft.shape) <= 64),
    Move(4, 0.7, fold, lambda draft: draft.shape[2] * draft.shape[3] <= 300),
    Move(4, 1, attend),
    Move(4, 1.5, flatten, lambda draft: draft.affords(prod(draft.shape))),
    Move(4, 0.7, average),
    Move(4, 0.7, unroll, lambda draft: few_steps(draft) and draft.shape[2] * draft.shape[3] <= 300),
    Move(4, 0.7, dense, lambda draft: draft.affords(prod(draft.shape))),
    Move(4, 1.5, element_wise),
    Move(4, 2, combine),
    Move(4, 0.3, soften),
    Move(4, 0.4, mix, mixable),
    Move(4, 0.5, take_every),
    Move(3, 3, recur, few_steps),
    Move(3, 1.5, recur_throughout, few_steps),
    Move(3, 1, dense, lambda draft: draft.affords(prod(draft.shape))),
    Move(3, 0.7, stack, roomy),
    Move(3, 0.7, crop),
    Move(3, 0.5, turn, lambda draft: max(draft.shape) <= 64),
    Move(3, 0.7, element_wise),
    Move(3, 0.7, combine),
    Move(3, 0.3, soften),
    Move(3, 0.5, mix, mixable),
    Move(3, 0.7, compare_steps, lambda draft: draft.affords(2 * prod(draft.shape) * draft.shape[1])),
    Move(3, 0.5, take_every),
    Move(3, 0.5, split_and_join, lambda draft: draft.shape[-1] > 1),
    Move(3, 0.7, step),
    Move(3, 0.5, unfold),
    Move(2, 3, dense, lambda draft: draft.affords(prod(draft.shape))),
    Move(2, 1, gate, lambda draft: draft.affords(prod(draft.shape) * 2)),
    Move(2, 0.7, carry, lambda draft: draft.affords(2 * prod(draft.shape) * draft.shape[1])),
    Move(2, 0.7, append, roomy),
    Move(2, 0.7, crop),
    Move(2, 1, element_wise),
    Move(2, 1, combine),
    Move(2, 0.4, soften),
    Move(2, 0.4, take_every),
    Move(2, 0.4, split_and_join, lambda draft: draft.shape[-1] > 1),
    Move(2, 0.4, raise_to_map, lambda draft: draft.shape[1] <= 64),
)


def fitting(draft: Draft) -> list[Move]:
    """The moves that the current value allows; there is always one."""
    return [move for move in MOVES if move.rank == len(draft.shape) and move.fits(draft)]
