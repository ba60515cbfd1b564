"""Row groups and chunks: they cover all rows, fit the accumulators, and are the cheapest of all that could be chosen."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.device_graphs import TINY, V1
from tpucc.lowering.blocking import choose_blocking
from tpucc.target import Target


@settings(max_examples=150, deadline=None)
@given(rows=st.integers(1, 20_000), deep=st.integers(1, 9), wide=st.integers(1, 9), room=st.sampled_from([2, 3, 16, 300, 4096]))
def test_chunks_cover_all_rows_and_fit(rows: int, deep: int, wide: int, room: int) -> None:
    target = msgspec.structs.replace(V1, accumulator_rows=room)
    blocking = choose_blocking(rows, deep, wide, target)
    chunks = [chunk for group in blocking.groups for chunk in group]
    position = 0
    for start, count in chunks:
        assert start == position
        assert 0 < count <= room
        position += count
    assert position == rows
    if deep > 1:
        assert all(sum(count for _, count in group) <= room for group in blocking.groups)


def test_rows_within_half_the_accumulators_are_one_chunk() -> None:
    blocking = choose_blocking(200, 8, 8, V1)
    assert blocking.groups == (((0, 200),),)
    assert "each of 64 tiles fetched once" in blocking.choice
    assert "activate overlaps the next" in blocking.choice


def test_rows_that_fill_the_accumulators_keep_each_tile_and_activate_chunk_by_chunk() -> None:
    blocking = choose_blocking(4000, 8, 8, V1)
    assert len(blocking.groups) == 1
    assert len(blocking.groups[0]) > 2
    assert "one by one" in blocking.choice


def test_more_rows_than_accumulators_reload_the_weights() -> None:
    blocking = choose_blocking(5000, 8, 8, V1)
    assert len(blocking.groups) > 1
    assert f"fetched {len(blocking.groups)} times" in blocking.choice
    assert "4,096 accumulator rows don't hold the sums of 5,000 rows" in blocking.choice


def test_one_tile_deep_needs_no_reload_however_many_rows() -> None:
    blocking = choose_blocking(100_000, 1, 3, V1)
    assert len(blocking.groups) == 1
    assert all(2 * count <= V1.accumulator_rows for _, count in blocking.groups[0])
    assert blocking.cycles < 1.1 * 300_000


@pytest.mark.parametrize("target", [TINY, V1])
@pytest.mark.parametrize("rows", [1, 2, 16, 17, 2048, 2049])
def test_estimates_are_no_less_than_the_matrix_unit_s_work(rows: int, target: Target) -> None:
    assert choose_blocking(rows, 3, 2, target).cycles >= rows * 6
    assert choose_blocking(rows, 3, 2, target).cycles >= 6 * target.tile_fetch_cycles
