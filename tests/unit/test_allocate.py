"""Placement: nothing that lives together overlaps, the lower bound holds, and gaps are kept right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tpucc.lowering.liveness import largest_live_sum
from tpucc.schedule.allocate import Gaps, Lives, allocate, greedy_by_size, linear_scan

BUFFERS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 9)), min_size=1, max_size=25)


def lives_of(buffers: list[tuple[int, int, int]]) -> Lives:
    """From (first, instructions after it, rows)."""
    columns = np.array(buffers, np.int64).reshape(-1, 3)
    return Lives(columns[:, 0], columns[:, 0] + columns[:, 1], columns[:, 2])


def assert_apart(lives: Lives, starts: np.ndarray) -> None:
    """Paints every buffer's rectangle of time and rows; none may be painted twice."""
    painted = np.zeros((int(lives.last.max()) + 1, lives.peak(starts)), np.int64)
    for first, last, rows, start in zip(lives.first, lives.last, lives.rows, starts, strict=True):
        painted[first : last + 1, start : start + rows] += 1
    assert painted.max() == 1


def live_sum_by_counting(lives: Lives) -> int:
    times = range(int(lives.last.max()) + 1)
    return max(int(lives.rows[(lives.first <= time) & (lives.last >= time)].sum()) for time in times)


@examples(60, 6_000)
@given(BUFFERS)
def test_buffers_that_live_together_lie_apart(buffers: list[tuple[int, int, int]]) -> None:
    lives = lives_of(buffers)
    bound = largest_live_sum(lives.first, lives.last, lives.rows)
    assert bound == live_sum_by_counting(lives)
    peaks = {}
    for method in (linear_scan, greedy_by_size, lambda lives: allocate(lives, 10**6)):
        starts = method(lives)
        assert_apart(lives, starts)
        peaks[method] = lives.peak(starts)
        assert bound <= peaks[method] <= int(lives.rows.sum())
    scan, greedy, best = peaks.values()
    assert best == min(scan, greedy)


def test_a_gap_is_used_again() -> None:
    lives = lives_of([(0, 1, 4), (0, 5, 4), (2, 3, 4)])
    assert linear_scan(lives).tolist() == [0, 4, 0]


def test_best_fit_takes_the_smallest_gap() -> None:
    lives = lives_of([(0, 1, 6), (0, 9, 1), (0, 1, 3), (0, 9, 1), (3, 5, 3)])
    starts = linear_scan(lives)
    assert starts[4] == starts[2]


def test_greedy_beats_a_scan_that_fragments() -> None:
    """A scan puts the small, long-lived buffer in the middle of what a large one needs later."""
    lives = lives_of([(0, 1, 4), (1, 4, 1), (2, 2, 6)])
    assert lives.peak(linear_scan(lives)) > lives.peak(greedy_by_size(lives)) == largest_live_sum(lives.first, lives.last, lives.rows)


def test_unused_buffers_take_no_place() -> None:
    lives = Lives(np.array([0, 9]), np.array([3, -1]), np.array([5, 1000]))
    assert largest_live_sum(lives.first, lives.last, lives.rows) == lives.peak(allocate(lives, 5)) == 5


def test_many_buffers_are_placed_quickly() -> None:
    random = np.random.default_rng(0)
    first = np.sort(random.integers(0, 200_000, 100_000))
    lives = Lives(first, first + random.integers(0, 200, 100_000), random.integers(1, 300, 100_000))
    starts = linear_scan(lives)
    order = np.argsort(lives.first)
    assert lives.peak(starts) < 2 * largest_live_sum(lives.first, lives.last, lives.rows)
    near = order[:300]
    assert_apart(Lives(lives.first[near], lives.last[near], lives.rows[near]), starts[near])


@examples(40, 10_000)
@given(st.lists(st.integers(-12, 12).filter(bool), max_size=60))
def test_gaps_against_a_row_of_booleans(steps: list[int]) -> None:
    """Positive numbers take rows, negative ones give back the oldest stretch."""
    gaps, used, taken = Gaps(40), np.zeros(40, np.bool_), list[tuple[int, int]]()
    for step in steps:
        if step > 0:
            start = gaps.take(step)
            free = [s for s in range(40 - step + 1) if not used[s : s + step].any()]
            assert (start >= 0) == bool(free)
            if start >= 0:
                assert start in free
                used[start : start + step] = True
                taken.append((start, step))
        elif taken:
            start, rows = taken.pop(0)
            gaps.give(start, rows)
            used[start : start + rows] = False
    for start, rows in taken:
        gaps.give(start, rows)
    assert gaps.take(40) == 0


@pytest.mark.parametrize("rows", [1, 7])
def test_gaps_that_are_full_say_so(rows: int) -> None:
    gaps = Gaps(6)
    assert gaps.take(6) == 0
    assert gaps.take(rows) == -1
