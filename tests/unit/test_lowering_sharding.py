"""Which graphs are split along the batch, and that their parts have what each item needs and no more."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

import msgspec
import pytest

from tests.support.accesses import rows_of
from tests.support.cases import each, one_of
from tests.support.device_graphs import TINY, Device, assert_computes, compiled
from tpucc.ir import Graph
from tpucc.lowering.lower import make_plan
from tpucc.lowering.plan import Plan
from tpucc.lowering.sharding import shard
from tpucc.lowering.tensors import Access
from tpucc.lowering.verify import verify_tiles

ROOMY = msgspec.structs.replace(TINY, name="roomy", unified_buffer_rows=200)


def dense(device: Device) -> str:
    return device.fc("y", device.vector("h", "add", device.input("x", 6, 5), device.constant("c", 5)), 3)


def images(device: Device) -> str:
    h = device.conv("h", device.input("x", 6, 4, 3, 5), (3, 3), 6, sides=(1, 1, 1, 1))
    return device.pool("y", "average", device.conv("g", h, (3, 2), 3, sides=(1, 1, 0, 1)), (2, 2))


def images_then_rows(device: Device) -> str:
    """The batch is the first size of images, and of the rows [6, 5] after them."""
    h = device.pool("h", "max", device.input("x", 6, 4, 3, 5), (4, 3))
    return device.fc("y", device.reshape("v", h, 6, 5), 4)


def rows_of_items(device: Device) -> str:
    """Rows [24, 5] are 4 of each of 6 items."""
    h = device.fc("h", device.reshape("v", device.input("x", 6, 4, 5), 24, 5), 3)
    return device.vector("y", "add", device.reshape("w", h, 6, 4, 3), device.input("one", 4, 3))


def constant_of_each_item(device: Device) -> str:
    return device.vector("y", "multiply", device.input("x", 6, 5), device.constant("c", 6, 5))


def constant_for_all(device: Device) -> str:
    """It has as many rows as there are items, and every item reads all of them."""
    return device.vector("y", "multiply", device.input("x", 6, 6, 5), device.constant("c", 6, 5))


def joined_pixels(device: Device) -> str:
    x = device.input("x", 6, 3, 5)
    y = device.pad("p", device.concat("j", 1, x, device.vector("h", "add", x, x)), (0, 0), (1, 2))
    return device.fc_sum("y", [y, device.slice("s", y, (0, 6), (0, 9)), y], 4)


def turned_twice(device: Device) -> str:
    t = device.transpose("t", device.input("x", 6, 3, 5), 1, 0, 2)
    return device.fc("y", device.transpose("u", t, 1, 0, 2), 3)


def turned(device: Device) -> str:
    return device.fc("y", device.transpose("t", device.input("x", 6, 3, 5), 1, 0, 2), 3)


def other_half(device: Device) -> str:
    x = device.input("x", 6, 5)
    halves = [device.slice(name, x, part) for name, part in (("first", (0, 3)), ("second", (3, 6)))]
    return device.vector("y", "add", *halves)


def joined_items(device: Device) -> str:
    x = device.input("x", 6, 5)
    return device.concat("y", 0, x, device.vector("h", "add", x, x))


def padded_items(device: Device) -> str:
    return device.fc("y", device.pad("p", device.input("x", 6, 5), (0, 6)), 3)


def one_item(device: Device) -> str:
    return images_of(device, 1)


def images_of(device: Device, count: int) -> str:
    return device.conv("y", device.input("x", count, 4, 4, 5), (2, 2), 3)


def sum_over_items(device: Device) -> str:
    """Each item reads the first one's rows."""
    x = device.input("x", 6, 5)
    return device.vector("y", "subtract", x, device.slice("first", x, (0, 1)))


def longer_operand(device: Device) -> str:
    """Item i reads row i + 1 of a value that has no rows for the items."""
    return device.vector("y", "add", device.input("x", 6, 5), device.slice("s", device.input("z", 7, 5), (1, 7)))


def first_item(device: Device) -> str:
    """A result that all items share is computed from one of them."""
    x = device.input("x", 6, 5)
    return device.vector("y", "add", device.fc("h", x, 4), device.fc("one", device.slice("s", x, (0, 1)), 4))


Make = Callable[[Device], str]
SPLIT: list[tuple[Make, int]] = [
    (dense, 6),
    (images, 6),
    (images_then_rows, 6),
    (rows_of_items, 6),
    (constant_of_each_item, 6),
    (constant_for_all, 6),
    (joined_pixels, 6),
    (turned_twice, 6),
]
WHOLE: list[Make] = [turned, other_half, joined_items, padded_items, one_item, sum_over_items, longer_operand, first_item]


def built(make: Make) -> Graph:
    device = Device()
    return device.build(make(device))


@pytest.mark.parametrize(("make", "batch"), one_of(2, SPLIT), ids=lambda value: getattr(value, "__name__", str(value)))
def test_graphs_whose_items_are_apart_are_split_and_compute_the_same(make: Make, batch: int) -> None:
    graph = built(make)
    assert make_plan(graph, TINY).sharding.batch == batch
    for parts in (2, 4, 6):
        tiles, program = compiled(graph, ROOMY, parts=parts)
        verify_tiles(tiles)
        assert len(tiles.outputs[0].splits) == parts
        assert sum(tiles.outputs[0].splits) == prod(tiles.outputs[0].shape[:-1])
        assert_computes(graph, program, parts)


@each(WHOLE)
def test_graphs_whose_items_meet_are_not_split(make: Make) -> None:
    graph = built(make)
    assert make_plan(graph, TINY).sharding.batch == 1
    tiles, program = compiled(graph, ROOMY)
    assert len(tiles.outputs[0].splits) == 1
    assert_computes(graph, program)


def touched(plan: Plan, items: int) -> list[tuple[Access, set[int]]]:
    """All accesses of the parts of so many items, and the rows that they have."""
    parts = [plan.sharding.part(step, items) for step in plan.steps]
    return [(access, set(rows_of(access).ravel().tolist())) for part in parts for access in (part.y, *part.accesses)]


@each(product([make for make, _ in SPLIT], [1, 2, 5]))
def test_a_part_has_the_rows_of_its_items(make: Make, items: int) -> None:
    plan = make_plan(built(make), TINY)
    for access, rows in touched(plan, items):
        assert rows <= set(range(plan.sharding.rows(access.tensor, items)))
    assert any(plan.sharding.has_items(access.tensor) for access, _ in touched(plan, items))


def test_what_serves_all_items_is_not_split() -> None:
    plan = make_plan(built(constant_for_all), TINY)
    assert {tensor.name: plan.sharding.has_items(tensor) for tensor in plan.owners} == {"x": True, "c": False, "y": True}
    plan = make_plan(built(constant_of_each_item), TINY)
    assert {tensor.name: plan.sharding.has_items(tensor) for tensor in plan.owners} == {"x": True, "c": True, "y": True}


def test_a_result_for_all_items_is_computed_once() -> None:
    device = Device()
    shared = device.fc("shared", device.input("one", 1, 5), 6)
    graph = device.build(device.vector("y", "add", device.fc("h", device.input("x", 6, 5), 6), shared))
    plan = make_plan(graph, TINY)
    step = next(step for step in plan.steps if step.name == "shared")
    assert plan.sharding.part(step, 2) is step
    tiles, program = compiled(graph, ROOMY, parts=3)
    layer = [layer.name for layer in tiles.layers].index("shared")
    assert len({buffer.name for buffer in tiles.buffers if buffer.name.startswith("shared")}) == 2
    once, _ = compiled(graph, ROOMY, parts=1)
    assert (tiles.instructions["layer"] == layer).sum() == (once.instructions["layer"] == layer).sum()
    assert_computes(graph, program)


def test_nothing_has_no_batch() -> None:
    assert shard(()).batch == 1


def test_the_border_of_each_image_goes_with_it() -> None:
    graph = built(images)
    tiles, _ = compiled(graph, ROOMY, parts=3)
    rows = {buffer.name: buffer.rows for buffer in tiles.buffers}
    assert rows["h.0#0"] == rows["h.1#2"] == 2 * (4 + 2) * (3 + 1)
    assert rows["y.0#1"] == 2 * 3 * 2
    assert [port.splits for port in tiles.inputs] == [(24, 24, 24)]
