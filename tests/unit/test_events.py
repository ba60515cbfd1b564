"""The history of every row, as the rules see it, beside one that is collected row by row."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest

from tpucc.isa.verify import events as module
from tpucc.isa.verify.events import READ, WRITE, Accesses, Pattern, events

History = list[tuple[int, int]]
"""(instruction, kind), in order."""


def accesses(seed: int, rows: int, count: int) -> Accesses:
    random = np.random.default_rng(seed)
    low = random.integers(0, rows, count)
    kind = random.choice(np.array([READ, WRITE], np.uint8), count)
    return Accesses(random.integers(0, count, count), low, low + random.integers(1, 9, count), kind)


def seen(*parts: Accesses | Pattern) -> dict[int, History]:
    """The history of the first row of each segment, which reads cover wholly. `last` is checked on the way."""
    found: dict[int, History] = {}
    for part in events(parts, whole_reads=True):
        last = part.last(part.kind == WRITE)
        columns = zip(part.row.tolist(), part.instruction.tolist(), part.kind.tolist(), last.tolist(), strict=True)
        for row, group in groupby(enumerate(columns), key=lambda item: item[1][0]):
            assert row not in found
            found[row] = []
            write = -1
            for position, (_, instruction, kind, before) in group:
                assert before == write
                write = position if kind == WRITE else write
                found[row].append((instruction, kind))
    return found


def expected(row: int, *parts: Accesses) -> History:
    inside = ((part, (part.low <= row) & (row < part.high)) for part in parts)
    columns = (zip(part.instruction[at].tolist(), part.kind[at].tolist(), strict=True) for part, at in inside)
    return sorted(pair for column in columns for pair in column)


@pytest.mark.parametrize("batch", [4, 30, 2**21])
def test_every_row_has_its_history(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many events are looked at together, and where accesses lie far apart."""
    monkeypatch.setattr(module, "BATCH", batch)
    near, far = accesses(1, 60, 40), accesses(2, 40, 20)
    far = Accesses(far.instruction, far.low + 2**32, far.high + 2**32, far.kind)
    found = seen(near, far)
    assert set(near.low.tolist()) | set(far.low.tolist()) <= set(found)
    for row, history in found.items():
        assert history == expected(row, near, far)


@pytest.mark.parametrize("share", [2, 3, 30])
def test_the_last_event_is_found_at_chosen_places_as_at_all(share: int) -> None:
    """Where few events follow many, and where many follow few."""
    for part in events([accesses(3, 60, 400)]):
        numbers = np.arange(len(part))
        few = numbers % share == 0
        for marked, at in ((numbers[few], numbers[~few]), (numbers[~few], numbers[few])):
            among = np.isin(numbers, marked)
            assert np.array_equal(part.last_at(marked, at), part.last(among)[at])


def test_reads_cut_no_segments() -> None:
    """Segments lie between bounds of writes; each has the reads that touch it, with the first row that they read there."""
    given = accesses(3, 90, 50)
    columns = list(zip(given.instruction.tolist(), given.low.tolist(), given.high.tolist(), given.kind.tolist(), strict=True))
    bounds = sorted({row for _, low, high, kind in columns for row in (low, high) if kind == WRITE} | {0, 100})
    expected = [
        sorted((index, kind, max(low, begin)) for index, low, high, kind in columns if low < end and high > begin)
        for begin, end in pairwise(bounds)
    ]
    (part,) = events([given])
    touches = np.stack([part.instruction, part.kind, part.row], axis=1)
    found = [sorted(map(tuple, touches[part.start == first].tolist())) for first in np.unique(part.start)]
    assert found == [segment for segment in expected if segment]


def test_more_segments_than_sixteen_bits_count() -> None:
    count = 2**16 + 10
    index = np.arange(count)
    writes = Accesses.of(index, 2 * index, 2 * index + 1, WRITE)
    reads = Accesses.of(index + count, 2 * index[::-1], 2 * index[::-1] + 1, READ)
    found = seen(writes, reads)
    assert len(found) == count
    assert all(found[2 * i] == [(i, WRITE), (2 * count - 1 - i, READ)] for i in (0, 1, 2**16 - 1, 2**16, count - 1))


def test_a_pattern_is_its_runs() -> None:
    pattern = Pattern(np.array([3, 5]), np.array([10, 11]), np.array([0, 4]), np.array([2, 6]), READ)
    both = [(3, READ), (5, READ)]
    assert seen(pattern) == {10: both[:1], 11: both, 12: both[1:], 14: both[:1], 15: both, 16: both[1:]}
