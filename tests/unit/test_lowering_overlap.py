"""Splits for speed: which are tried, that all of them compute the same, and that the driver takes the fastest."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.device_graphs import TINY, V1, Device, assert_computes
from tpucc.ir import Graph
from tpucc.lowering.lower import drafts_of, make_plan
from tpucc.lowering.plan import Plan
from tpucc.lowering.sharding import Split
from tpucc.lowering.splits import overlapping_splits
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.verify import verify_tiles
from tpucc.schedule import schedule
from tpucc.schedule.fastest import WORTHWHILE
from tpucc.sim.timing import time_program
from tpucc.target import Target

ROOMY = msgspec.structs.replace(TINY, name="roomy", unified_buffer_rows=4000, accumulator_rows=64)


def built(model: Callable[[Device], str]) -> Graph:
    device = Device()
    return device.build(model(device))


def maps(device: Device) -> str:
    h = device.conv("h", device.input("x", 7, 6, 5, 3), (3, 3), 5, sides=(1, 1, 1, 1))
    g = device.pool("g", "max", device.conv("f", h, (3, 3), 6, sides=(1, 1, 1, 1)), (2, 2))
    return device.conv("y", g, (2, 2), 4)


def residual(device: Device) -> str:
    h = device.fc("h", device.input("x", 30, 6), 6)
    return device.fc("y", device.vector("r", "add", h, device.fc("g", h, 6)), 5)


def shared(device: Device) -> str:
    """One step makes what all items share."""
    c = device.fc("c", device.input("k", 1, 5), 6)
    return device.fc("y", device.vector("r", "add", device.fc("h", device.input("x", 21, 5), 6), c), 3)


def splits_of(model: Callable[[Device], str], target: Target = ROOMY) -> list[Split]:
    return overlapping_splits(make_plan(built(model), target))


@pytest.mark.parametrize("model", one_of(2, [maps, residual, shared]))
def test_every_split_computes_the_same(model: Callable[[Device], str]) -> None:
    graph = built(model)
    programs = list(drafts_of(graph, ROOMY).programs())
    assert len(programs) > 1
    for tiles in programs:
        verify_tiles(tiles)
        assert_computes(graph, schedule(tiles))
    assert [bool(tiles.notes) for tiles in programs] == [False, *[True] * (len(programs) - 1)]


def test_halves_in_turn_and_parts_that_follow() -> None:
    splits = splits_of(maps)
    assert [split.sizes for split in splits if split.lead is not None] == [(4, 3)] * (len(splits) - 1)
    (following,) = (split for split in splits if split.lead is None)
    assert following.ahead
    assert sum(following.sizes) == 7
    assert max(following.sizes) - min(following.sizes) <= 1


def sums(device: Device) -> str:
    """Nine steps of 16 rows, a cycle each; 16 rows go in and out."""
    h = device.input("x", 16, 4)
    for number in range(9):
        h = device.vector(f"h{number}", "add", h, h)
    return h


def windows(device: Device) -> str:
    """Nine pools of two images of 8 lines, each of six windows of three pixels and two of two: 176 cycles an image, whose rows are 64."""
    h = device.input("x", 2, 8, 8, 4)
    for number in range(9):
        h = device.pool(f"h{number}", "max", h, (1, 3), sides=(0, 0, 1, 1))
    return h


@each([(sums, 1, 1), (sums, 2, 2), (sums, 3, 3), (sums, 4, 3), (windows, 4, 2)])
def test_a_half_leads_by_what_transfers_take(model: Callable[[Device], str], slower: int, lead: int) -> None:
    """But by no more than a third of all steps."""
    target = msgspec.structs.replace(ROOMY, host_bandwidth=ROOMY.host_bandwidth / slower)
    assert [split.lead for split in splits_of(model, target)[:-1]] == [0, lead]


def order(tiles: TileProgram) -> list[tuple[str, str]]:
    """Layer and part of each product, in program order, without repetitions."""
    found: list[tuple[str, str]] = []
    for record in tiles.instructions[tiles.instructions["group"] >= 0]:
        if record["dest_buffer"] >= 0:
            name = tiles.buffers[record["dest_buffer"]].name
            layer = tiles.layers[record["layer"]].name
            if (layer, name[-1]) not in found[-1:]:
                found.append((layer, name[-1]))
    return found


def test_the_first_half_leads() -> None:
    graph, plan = built(residual), make_plan(built(residual), ROOMY)
    leads = [split.lead for split in overlapping_splits(plan)[:-1]]
    assert leads
    for lead, tiles in zip(leads, list(drafts_of(graph, ROOMY).programs())[1:], strict=False):
        parts = [part for layer, part in order(tiles) if layer in ("h", "g", "y")]
        assert sorted(parts) == ["0"] * 3 + ["1"] * 3
        assert lead is not None
        assert parts[0] == "0"
        assert parts[-1] == "1"
        assert parts == (["0", "1"] * 3 if lead == 0 else parts)


def test_inputs_of_the_next_part_are_read_ahead() -> None:
    tiles = list(drafts_of(built(residual), ROOMY).programs())[-1]
    names = [tiles.buffers[buffer].name if buffer >= 0 else "" for buffer in tiles.instructions["dest_buffer"]]
    reads = [name for name in names if name.startswith("x.")]
    assert reads == [f"x.{block}#{part}" for part in range(len(reads) // 2) for block in range(2)]
    for part in range(1, len(reads) // 2):
        assert names.index(f"x.0#{part}") < names.index(f"h.0#{part - 1}")


def test_a_division_says_whether_it_is_for_room() -> None:
    """Those that hide transfers have other orders."""
    orders = [tiles.division.order if tiles.division else "" for tiles in drafts_of(built(residual), ROOMY).programs()]
    assert orders == ["", *["alternating"] * (len(orders) - 2), "ahead"]
    assert [tiles.division.order for tiles in drafts_of(built(residual), ROOMY, parts=2).programs() if tiles.division] == ["in-turn"]


@each(
    [
        lambda device: device.fc("y", device.input("x", 1, 9), 5),
        lambda device: device.fc("y", device.input("x", 3, 900), 900),
        lambda device: device.fc("y", device.transpose("t", device.input("x", 6, 30, 5), 1, 0, 2), 3),
    ]
)
def test_what_is_never_split(model: Callable[[Device], str]) -> None:
    assert splits_of(model, V1) == []


def test_a_segment_of_the_host_waits_for_all_items() -> None:
    graph = built(residual)
    plan: Plan = make_plan(graph, V1, {node.name: int(node.name == "y") for node in graph})
    assert plan.segments == 2
    assert overlapping_splits(plan) == []


SOURCE = """weights random(seed=1)
model m(x: f32[256, 8, 8, 64]):
    weight k: f32[3, 3, 64, 200]
    weight w: f32[1, 1, 200, 64]
    return conv2d(relu(conv2d(x, k, padding="same")), w)
"""


@pytest.mark.long
def test_the_driver_takes_the_fastest() -> None:
    exe = tpucc.compile_source(SOURCE)
    assert exe.compilation is not None
    assert exe.compilation.program is not None
    cycles = time_program(exe.compilation.program).makespan
    (note,) = (note for note in exe.compilation.program.notes if "latency" in note)
    whole = tpucc.compile_source(SOURCE, level=0)
    assert whole.compilation is not None
    assert whole.compilation.program is not None
    assert not any("latency" in text for text in whole.compilation.program.notes)
    said = re.search(r"latency ([\d,]+) cycles \(was ([\d,]+)\); throughput is [\d.]+ % worse \(--for stream keeps the better one\)$", note)
    assert said is not None
    alone, before = (int(number.replace(",", "")) for number in said.groups())
    assert alone == cycles
    assert cycles < (1 - WORTHWHILE) * before
