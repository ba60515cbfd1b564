"""For how long a register holds the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.numerics import AnyArray

Run = tuple[tuple[int, ...], int, int]
"""An index, the first cycle, and the one after the last."""


def runs(states: Sequence[AnyArray], nothing: int) -> Iterator[Run]:
    """Runs of equal values other than `nothing`, one array a cycle, in the order of the indices and then of time."""
    shape = states[0].shape
    values = np.stack([state.reshape(-1) for state in states], axis=1)
    changes = np.concatenate([np.ones_like(values[:, :1], dtype=np.bool_), values[:, 1:] != values[:, :-1]], axis=1)
    place, first = np.nonzero(changes)
    last = np.append(first[1:], 0)
    last[last == 0] = len(states)
    for index, begin, end in zip(place.tolist(), first.tolist(), last.tolist(), strict=True):
        if values[index, begin] != nothing:
            yield tuple(int(i) for i in np.unravel_index(index, shape)), begin, end
