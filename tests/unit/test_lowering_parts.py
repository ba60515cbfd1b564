"""Batches that don't fit whole: the first steps in parts, the rest for the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.device_graphs import TINY, Device, assert_computes
from tpucc.ir import Graph
from tpucc.lowering.lower import drafts_of, make_plan
from tpucc.lowering.sharding import Split, even
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Opcode
from tpucc.schedule import schedule
from tpucc.target import Target


def target(rows: int) -> Target:
    return msgspec.structs.replace(TINY, name="small", unified_buffer_rows=rows, accumulator_rows=64)


def built(model: Callable[[Device], str]) -> Graph:
    device = Device()
    return device.build(model(device))


def shrinking(device: Device) -> str:
    """Large maps, a pool, and small maps with borders of their own."""
    h = device.conv("h", device.input("x", 7, 8, 8, 3), (3, 3), 4, sides=(1, 1, 1, 1))
    p = device.pool("p", "max", h, (4, 4), stride=(4, 4))
    g = device.conv("g", p, (3, 3), 5, sides=(1, 1, 1, 1))
    return device.conv("y", device.conv("f", g, (3, 3), 4, sides=(1, 1, 1, 1)), (2, 2), 6)


def rows_at_the_end(device: Device) -> str:
    p = device.pool("p", "average", device.conv("h", device.input("x", 6, 6, 6, 4), (3, 3), 4), (4, 4), stride=(4, 4))
    return device.fc("y", device.fc("f", device.reshape("v", p, 6, 4), 9), 5)


def second_input(device: Device) -> str:
    """An input that only steps for the whole batch read."""
    x, z = device.input("x", 6, 6, 6, 4), device.input("z", 6, 4)
    q = device.pool("q", "max", x, (6, 6), stride=(6, 6))
    p = device.pool("p", "max", device.vector("h", "add", x, x), (6, 6), stride=(6, 6))
    both = device.vector("b", "add", device.reshape("v", p, 6, 4), device.reshape("w", q, 6, 4))
    return device.fc("y", device.vector("s", "add", both, z), 3)


MODELS = {"shrinking": (shrinking, 260), "rows at the end": (rows_at_the_end, 150), "second input": (second_input, 400)}


def joined(model: Callable[[Device], str], rows: int) -> list[TileProgram]:
    """The programs of a graph that do some steps for the whole batch after others in parts."""
    return [
        tiles for tiles in drafts_of(built(model), target(rows)).programs() if any("which is done for all" in note for note in tiles.notes)
    ]


@pytest.mark.parametrize("name", one_of(2, MODELS))
def test_every_way_computes_the_same(name: str) -> None:
    model, rows = MODELS[name]
    graph = built(model)
    programs = list(drafts_of(graph, target(rows)).programs())
    assert len(programs) > 1
    assert joined(model, rows)
    for tiles in programs:
        verify_tiles(tiles)
        assert_computes(graph, schedule(tiles))


def test_tiles_after_the_parts_are_fetched_once() -> None:
    model, rows = MODELS["shrinking"]
    parted = next(drafts_of(built(model), target(rows)).programs())
    for tiles in joined(model, rows):
        fetched = {number: int((switches(tiles) == number).sum()) for number in range(len(tiles.layers))}
        last = len(tiles.layers) - 1
        assert fetched[last] == len(tiles.layers[last].tile_fills)
        assert len(switches(tiles)) < len(switches(parted))


def switches(tiles: TileProgram) -> list[int]:
    """The layer of each multiply that takes a tile."""
    records = tiles.instructions
    return records["layer"][(records["flags"] & 1 != 0) & (records["opcode"] != Opcode.ACTIVATE)]


def test_tensors_between_are_whole() -> None:
    plan = make_plan(built(shrinking), target(260))
    names = [step.name for step in plan.steps]
    split = Split(even(7, 3), parted=names.index("g"))
    assert {tensor.name for tensor in plan.joined(split) if tensor.data is None} == {"p", "g", "f", "y"}
    assert [split.first(part) for part in range(3)] == [0, 3, 5]
    assert plan.joined(Split(even(7, 3))) == frozenset()


def test_an_output_of_the_parts_is_written_when_all_are_done() -> None:
    """The pool's result is gathered part by part in one tensor, which the host gets once, and whole."""
    device = Device()
    graph = device.build(rows_at_the_end(device), "p")
    programs = [
        tiles for tiles in drafts_of(graph, target(150)).programs() if any("until f, which is done for all" in note for note in tiles.notes)
    ]
    assert programs
    for tiles in programs:
        assert [port.splits for port in tiles.outputs if port.name == "p"] == [(6,)]
        verify_tiles(tiles)
        assert_computes(graph, schedule(tiles))


def test_a_program_with_steps_of_the_host_does_all_in_parts() -> None:
    """Parts of one segment would have to wait for the host, who takes the whole batch."""
    graph = built(rows_at_the_end)
    assert joined(rows_at_the_end, 150)
    programs = list(drafts_of(graph, target(150), segments={node.name: int(node.name in ("f", "y")) for node in graph}).programs())
    assert programs
    assert not any("which is done for all" in note for tiles in programs for note in tiles.notes)


def test_a_batch_that_stays_whole_is_not_said_to_be_split() -> None:
    """Its rows don't fit at one time, and fewer parts than two are none: rows are read again."""
    exe = tpucc.compile(Path(__file__).parents[2] / "programs" / "01_hello.tpu", target="tiny")
    assert any("read again" in note for note in exe.notes)
    assert not any("split the batch" in note for note in exe.notes)
