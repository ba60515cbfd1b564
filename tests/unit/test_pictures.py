"""What the drawing functions are given: the work of a model and its layers on one core, and the stalls as intervals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tpucc.explain.roofs import works_of
from tpucc.explain.tables import roofline_table
from tpucc.machines.v1 import Opcode
from tpucc.see.charts.roofline import KEPT
from tpucc.see.pictures import roofline_of, times_of

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
DENSE = """
weights random(seed=1)
model dense(x: f32[8, 300]) -> f32[8, 5]:
    weight a: f32[300, 270] = "one.w"
    weight b: f32[270, 5] = "two.w"
    return relu(x @ a) @ b
"""


@pytest.mark.parametrize("cores", [1, 2])
def test_work_is_that_of_one_core_and_its_weights_are_whole_tiles(cores: int) -> None:
    """Each of two cores has half of the batch and all of the weights: 2 × 2 and 2 × 1 tiles of 64 KiB."""
    runtime = tpucc.compile_source(DENSE, cores=cores).runtime
    model, one, two = works_of(runtime)
    rows = 8 // cores
    assert [(work.name, work.layer, work.macs) for work in (one, two)] == [("one", 0, rows * 300 * 270), ("two", 1, rows * 270 * 5)]
    assert [work.weight_bytes for work in (one, two)] == [4 * 65536, 2 * 65536]
    fetches = int((runtime.program.instructions["opcode"] == Opcode.READ_WEIGHTS).sum())
    assert (model.layer, model.macs, model.weight_bytes) == (-1, one.macs + two.macs, fetches * 65536)
    assert (model.cycles, one.cycles + two.cycles) == (runtime.timeline.makespan,) * 2


def test_a_layer_that_uses_an_earlier_one_s_tile_has_no_point() -> None:
    source = "weights random(seed=0)\nmodel m(x: f32[8, 16]):\n    weight w: f32[16, 16]\n    return relu(relu(x @ w) @ w)\n"
    runtime = tpucc.compile_source(source).runtime
    assert [(work.weight_bytes, work.kept, work.drawable) for work in works_of(runtime)[1:]] == [(65536, False, True), (0, True, False)]
    assert KEPT.format("")[:-1] in " ".join(re.findall("<text[^>]*>([^<]*)", roofline_of(runtime)))
    assert "Left out are layers that fetch no tiles, as an earlier layer did" in roofline_table(runtime)


def test_a_layer_in_two_halves_fetches_its_tiles_twice() -> None:
    """By hand, of the digits CNN with a host that packs pixels: two fetches of each of 1, 9, 4 and 1 tiles. The layers' bytes are those of
    the model."""
    runtime = tpucc.compile(PROGRAMS / "05_digits_cnn.tpu", overrides={"host_elements_per_second": 1e15}).runtime
    model, *layers = works_of(runtime)
    assert [layer.weight_bytes // 65536 for layer in layers] == [2, 0, 18, 0, 8, 2]
    assert [round(layer.intensity, 1) for layer in layers if layer.drawable] == [14.1, 12.5, 3.1, 1.0]
    assert model.weight_bytes == sum(layer.weight_bytes for layer in layers)


@pytest.mark.parametrize("name", ["02_iris", "05_digits_cnn"])
def test_waits_are_intervals_of_their_roots(name: str) -> None:
    """They add up to the numbers of `stats.json`, never overlap, and the last ends with the program."""
    runtime = tpucc.compile(PROGRAMS / f"{name}.tpu").runtime
    times, waits = times_of(runtime), runtime.stats["waits_by_root"]
    found = {root.value: int((ends - starts).sum()) for root, (starts, ends) in times.waits.items()}
    assert found == {root: cycles for root, cycles in waits.items() if cycles}
    starts, ends = (np.sort(np.concatenate([pair[side] for pair in times.waits.values()])) for side in (0, 1))
    assert (starts < ends).all()
    assert (ends[:-1] <= starts[1:]).all()
    assert ends[-1] <= times.cycles == runtime.timeline.makespan


def test_shifts_begin_when_the_shadow_is_free() -> None:
    """A tile may have arrived long before: with 2,000 rows a product takes longer than a fetch."""
    runtime = tpucc.compile_source(
        "weights random(seed=0)\nmodel m(x: f32[2000, 600]):\n    weight w: f32[600, 9]\n    return x @ w\n"
    ).runtime
    times, products = times_of(runtime), runtime.timeline.tiles.taken
    assert times.shift_starts[1:].tolist() == np.maximum(products[:-1], runtime.timeline.tiles.arrived[1:]).tolist()
    assert (times.shift_starts > runtime.timeline.tiles.arrived).any()
    assert (times.shift_ends - times.shift_starts == 256).all()
