"""Row groups and chunks: they cover all rows, fit the accumulators, and are the cheapest of all that could be chosen."""

from __future__ import annotations

import re
from itertools import product
from math import prod

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tests.support.device_graphs import TINY, V1
from tests.support.examples import examples
from tpucc.lowering.blocking import Blocking, Chunk, choose_blocking
from tpucc.target import Target


def chunks_of(blocking: Blocking) -> list[Chunk]:
    return [chunk for group in blocking.groups for chunk in group]


def cuts(blocking: Blocking) -> list[int]:
    """The rows at which chunks begin, but the first."""
    return [start for start, _ in chunks_of(blocking)][1:]


def cut_at(blocking: Blocking, unit: int) -> bool:
    return all(start % unit == 0 for start in cuts(blocking))


SIZES = st.one_of(
    st.tuples(st.integers(1, 20_000)),
    st.tuples(st.integers(2, 200), st.integers(2, 100)),
    st.tuples(st.integers(2, 9), st.integers(2, 60), st.integers(2, 40)),
    st.tuples(*[st.integers(2, 9)] * 4),
)


@examples(120, 8_000)
@given(loops=SIZES, deep=st.integers(1, 9), wide=st.integers(1, 9), room=st.sampled_from([2, 3, 16, 300, 4096]))
def test_chunks_cover_all_rows_and_fit(loops: tuple[int, ...], deep: int, wide: int, room: int) -> None:
    target = msgspec.structs.replace(V1, accumulator_rows=room)
    blocking = choose_blocking(loops, deep, wide, target)
    position = 0
    for start, count in chunks_of(blocking):
        assert start == position
        assert 0 < count <= room
        position += count
    assert position == prod(loops)
    if deep > 1:
        assert all(sum(count for _, count in group) <= room for group in blocking.groups)


@examples(40, 8_000)
@given(loops=SIZES, deep=st.integers(1, 9), room=st.sampled_from([2, 16, 300, 4096]))
def test_more_loops_cost_no_less(loops: tuple[int, ...], deep: int, room: int) -> None:
    """What is walked in one loop needs the fewest instructions."""
    target = msgspec.structs.replace(V1, accumulator_rows=room)
    assert choose_blocking((prod(loops),), deep, 2, target).cycles <= choose_blocking(loops, deep, 2, target).cycles


def test_lines_are_not_cut_where_whole_ones_fit() -> None:
    blocking = choose_blocking((113, 111), 3, 1, V1)
    assert len(blocking.groups) > 1
    assert cut_at(blocking, 111)
    assert not cut_at(choose_blocking((113 * 111,), 3, 1, V1), 111)


def test_images_are_not_cut_where_whole_ones_fit() -> None:
    """One instruction walks the pixels of one image."""
    blocking = choose_blocking((24, 14, 14), 9, 2, V1)
    assert len(blocking.groups) > 1
    assert cut_at(blocking, 14 * 14)


def test_an_image_that_does_not_fit_is_cut_at_lines() -> None:
    target = msgspec.structs.replace(V1, accumulator_rows=1024)
    blocking = choose_blocking((2, 56, 56), 9, 1, target)
    assert len(blocking.groups) > 2
    assert cut_at(blocking, 56)
    assert not cut_at(blocking, 56 * 56)


def test_a_line_that_does_not_fit_is_cut() -> None:
    blocking = choose_blocking((5, 37), 2, 1, TINY)
    assert not cut_at(blocking, 37)
    assert all(count <= TINY.accumulator_rows for _, count in chunks_of(blocking))
    assert not cut_at(choose_blocking((5, 37), 1, 1, TINY), 37)


@each([(40, 100), (4000,), (4, 10, 100)])
def test_rows_that_fill_the_accumulators_keep_each_tile(loops: tuple[int, ...]) -> None:
    assert len(choose_blocking(loops, 8, 8, V1).groups) == 1


def test_rows_within_half_the_accumulators_are_one_chunk() -> None:
    blocking = choose_blocking((200,), 8, 8, V1)
    assert blocking.groups == (((0, 200),),)
    assert "each of 64 tiles fetched once for them" in blocking.choice
    assert "activate overlaps the next" in blocking.choice


@each([(200, 1, 1, False), (200, 1, 2, True), (4096, 8, 1, False), (4096, 1, 1, True), (5000, 8, 1, True)])
def test_one_block_has_no_next_one(rows: int, deep: int, wide: int, said: bool) -> None:
    assert ("activate" in choose_blocking((rows,), deep, wide, V1).choice) is said


def test_rows_that_fill_the_accumulators_keep_each_tile_and_activate_chunk_by_chunk() -> None:
    blocking = choose_blocking((4000,), 8, 8, V1)
    assert len(blocking.groups) == 1
    assert len(blocking.groups[0]) > 2
    assert "one by one" in blocking.choice


def test_more_rows_than_accumulators_reload_the_weights() -> None:
    blocking = choose_blocking((5000,), 8, 8, V1)
    assert len(blocking.groups) > 1
    said = rf"{len(blocking.groups)} row groups of at most [\d,]+ rows, each of \d+ tiles fetched once for each row group: "
    assert re.match(said, blocking.choice)
    assert "4,096 accumulator rows don't hold the sums of 5,000 rows" in blocking.choice


def test_one_tile_deep_needs_no_reload_however_many_rows() -> None:
    blocking = choose_blocking((100_000,), 1, 3, V1)
    assert len(blocking.groups) == 1
    assert all(2 * count <= V1.accumulator_rows for _, count in blocking.groups[0])
    assert blocking.cycles < 1.1 * 300_000


@each(product([1, 2, 16, 17, 2048, 2049], [TINY, V1]))
def test_estimates_are_no_less_than_the_matrix_unit_s_work(rows: int, target: Target) -> None:
    assert choose_blocking((rows,), 3, 2, target).cycles >= rows * 6
    assert choose_blocking((rows,), 3, 2, target).cycles >= 6 * target.tile_fetch_cycles
