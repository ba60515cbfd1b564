"""Windows at the edges of images, and the rows around them."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.accesses import inner, rows_of, tensor
from tests.support.cases import each
from tests.support.device_graphs import Device
from tests.support.examples import examples
from tpucc.layers.kinds import Sides
from tpucc.lowering.lane_by_lane import WindowRun, window_runs
from tpucc.lowering.tensors import NO_SIDES, border_rows, borders, padding_rows, whole, wider


@examples(120, 10_000)
@given(size=st.integers(1, 12), window=st.integers(1, 7), stride=st.integers(1, 4), data=st.data())
def test_runs_are_the_windows(size: int, window: int, stride: int, data: st.DataObject) -> None:
    before, after = (data.draw(st.integers(0, window - 1)) for _ in range(2))
    assume(size + before + after >= window)
    outputs = (size + before + after - window) // stride + 1
    seen = [[pixel for pixel in range(o * stride - before, o * stride - before + window) if 0 <= pixel < size] for o in range(outputs)]
    found = window_runs(size, window, stride, before, outputs)
    told = [list(range(run.pixel + o * stride, run.pixel + o * stride + run.pixels)) for run in found for o in range(run.outputs)]
    assert told == seen
    assert [run.first for run in found] == np.cumsum([0, *(run.outputs for run in found[:-1])]).tolist()
    assert len(found) <= before + after + 1


def test_one_run_where_all_windows_are_alike() -> None:
    assert window_runs(8, 2, 2, 0, 4) == [WindowRun(0, 4, 0, 2, 2)]
    assert window_runs(7, 3, 2, 1, 4) == [WindowRun(0, 1, 0, 2, 2), WindowRun(1, 2, 1, 3, 3), WindowRun(3, 1, 5, 2, 2)]
    assert window_runs(5, 5, 1, 0, 1) == [WindowRun(0, 1, 0, 5, 5)]
    assert window_runs(7, 3, 2, 1, 4, (1, 0)) == [WindowRun(0, 1, 0, 2, 3), WindowRun(1, 2, 1, 3, 3), WindowRun(3, 1, 5, 2, 2)]


@examples(80, 15_000)
@given(st.tuples(*[st.integers(1, 4)] * 3), st.tuples(*[st.integers(0, 3)] * 4))
def test_the_border_is_filled_once_and_the_image_not_at_all(image: tuple[int, int, int], sides: Sides) -> None:
    held = tensor(*image, sides=sides)
    filled = [row for access in border_rows(held) for row in rows_of(access).ravel().tolist()]
    assert sorted([*filled, *inner(held).ravel().tolist()]) == list(range(held.rows))


@examples(80, 8_000)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)), max_size=4))
def test_padding_covers_what_the_value_leaves(axes: list[tuple[int, int, int]]) -> None:
    held = tensor(*(sum(axis) for axis in axes))
    numbers = np.arange(held.rows).reshape(held.grid)
    kept = numbers[tuple(slice(before, before + size) for size, before, _ in axes)]
    filled = [rows_of(access) for access in padding_rows(whole(held), [(before, after) for _, before, after in axes])]
    assert sorted([*kept.ravel().tolist(), *(row for rows in filled for row in rows.ravel().tolist())]) == list(range(held.rows))
    assert len(filled) == sum((before > 0) + (after > 0) for _, before, after in axes)
    assert all(prod(rows.shape) for rows in filled)


def test_wider_takes_the_larger_of_each_side() -> None:
    assert wider((1, 0, 3, 0), (0, 2, 1, 0)) == (1, 2, 3, 0)


def test_a_result_has_the_border_that_its_convolutions_need() -> None:
    device = Device()
    x = device.input("x", 1, 6, 6, 3)
    h = device.conv("h", x, (3, 3), 4, sides=(1, 1, 1, 1))
    same = device.conv("same", h, (3, 3), 4, sides=(1, 1, 1, 1))
    large = device.conv("large", h, (5, 2), 4, sides=(2, 2, 0, 1))
    graph = device.build(device.vector("s", "add", device.pool("p", "max", same, (1, 1)), large))
    assert borders(graph) == {"h": (2, 2, 1, 1)}


@each(["input", "output", "view", "no padding"])
def test_no_border_for(reason: str) -> None:
    device = Device()
    h = device.input("x", 1, 6, 6, 3)
    if reason != "input":
        h = device.pool("h", "max", h, (1, 1))
    if reason == "view":
        h = device.transpose("v", h, 0, 2, 1, 3)
    y = device.conv("y", h, (3, 3), 4, sides=NO_SIDES if reason == "no padding" else (1, 1, 1, 1))
    assert borders(device.build(y, *(["h"] if reason == "output" else []))) == {}
