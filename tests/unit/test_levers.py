"""Advice that works: programs with each kind of bottleneck, and what they take when its lever is pulled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.reports import executable_of
from tpucc.api import Executable
from tpucc.explain.bottleneck import BOTTLENECKS, Bottleneck, bottleneck
from tpucc.explain.critical import critical_path
from tpucc.explain.levers import TileRows, Work, weight_memory
from tpucc.explain.quantities import rate_text
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.target import load_target

pytestmark = pytest.mark.usefixtures("any_ranges")

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
CHAIN = """
param batch = 8
param width = 1024
param layers = 4
weights random(seed=0)
model chain(x: f32[batch, width] in [-1.0, 1.0]):
    for i in range(layers):
        weight w: f32[width, width] = "w{i}"
        x = x @ w
    return x
"""
STEPS = """
param batch = 8
weights random(seed=0)
model steps(x: f32[batch, 64] in [-1.0, 1.0]):
    for i in range(4):
        weight w: f32[64, 64] = "w{i}"
        x = softmax(x @ w)
    return x
"""
POOLS = """
param batch = 16
weights random(seed=0)
model pools(x: f32[batch, 32, 32, 8] in [-1.0, 1.0]):
    for i in range(8):
        x = max_pool(x, size=7, stride=1, padding="same")
    return x
"""
MEASURED = "(tpucc sweep -D batch=… measures it)"
HIDDEN = f"would use such a tile for the 1,349 rows that hide its fetch, if it stays in one piece {MEASURED}"
MORE = f"times as large may have room, and would use each tile for more rows {MEASURED}"
FAST_WEIGHTS = {"weight_bandwidth": 1e13}
FAST_LINK = {"host_bandwidth": 1e12, "host_latency_seconds": 0}
SMALL_BUFFER = {"weight_bandwidth": 136e9, "host_bandwidth": 100e9, "host_latency_seconds": 500e-9, "unified_buffer_rows": 500}
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], str, str]] = {
    "weights": (CHAIN, "tpu_v1", {"batch": 200}, {}, "weight memory", "batch"),
    "weights of a large batch": (CHAIN, "tiny", {"batch": 64, "width": 16}, {"weight_bandwidth": 2e5}, "weight memory", "weight_bandwidth"),
    "tiles that come late": (CHAIN, "tiny", {"batch": 4, "width": 16}, {}, "weight memory", "batch"),
    "shift": (CHAIN, "tpu_v1", {"batch": 64}, {"weight_bandwidth": 1e13, **FAST_LINK}, "weight shift", "batch"),
    "shift of a large batch": (
        CHAIN, "tiny", {"batch": 64, "width": 16, "layers": 2},
        {"weight_bandwidth": 1e9, "host_bandwidth": 1e9, "unified_buffer_rows": 12}, "weight shift", "unified_buffer_rows",
    ),
    "shift that a few rows more would hide": (
        CHAIN, "tpu_v1", {"batch": 96, "width": 384}, {"mxu": 128, "weight_bandwidth": 1e13, **FAST_LINK}, "weight shift", "batch",
    ),
    "shift of all rows that have sums": (
        CHAIN, "tpu_v1", {"batch": 120}, {"accumulator_rows": 128, "weight_bandwidth": 1e13, **FAST_LINK}, "weight shift", "batch",
    ),
    "weights of few sums": (CHAIN, "tpu_v1", {"batch": 96, "width": 512}, {"accumulator_rows": 64}, "weight memory", "accumulator_rows"),
    "weights of nearly enough sums": (
        CHAIN, "tpu_v1", {"batch": 96, "width": 512}, {"accumulator_rows": 256}, "weight memory", "batch",
    ),
    "products": (CHAIN, "tpu_v1", {"batch": 2048}, FAST_LINK, "matrix unit", "cores"),
    "activation": (POOLS, "tpu_v1", {}, FAST_LINK, "activation", "cores"),
    "host steps": (STEPS, "tpu_v1", {"batch": 8}, {}, "host work", "batch"),
    "slow host": (STEPS, "tpu_v1", {"batch": 8}, {"host_elements_per_second": 1e6}, "host work", "host_elements_per_second"),
    "latency": (CHAIN, "tpu_v1", {"batch": 4, "width": 64, "layers": 1}, FAST_WEIGHTS, "host link", "batch"),
    "link of a small batch": (CHAIN, "tpu_v1", {"batch": 64, "width": 64, "layers": 1}, {}, "host link", "host_bandwidth"),
    "link": (CHAIN, "tpu_v1", {"batch": 4000, "width": 64, "layers": 1}, {}, "host link", "host_bandwidth"),
    "fill and drain of halves": (CHAIN, "tpu_v1", {"batch": 200, "width": 64}, SMALL_BUFFER, "data dependencies", "batch"),
    "fill and drain": (
        CHAIN, "tpu_v1", {"batch": 4, "width": 64, "layers": 6}, {"weight_bandwidth": 1e13, **FAST_LINK}, "data dependencies", "batch",
    ),
}  # fmt: skip


def advice(stats: Mapping[str, Any]) -> str:
    """The lever alone, without what limits after it."""
    return re.split("; then, in a stream, |; in a stream |: the same program ", str(stats["advice"]))[0]


@cache
def compiled(name: str) -> tuple[Executable, Bottleneck]:
    source, target, params, numbers, _, _ = CASES[name]
    exe = made(source, target, params, numbers)
    program, timeline = exe.runtime.program, exe.runtime.timeline
    return exe, bottleneck(program, critical_path(program, timeline))


def made(source: str, target: str, params: dict[str, Any], numbers: dict[str, Any], cores: int = 1) -> Executable:
    return tpucc.compile_source(source, target=target, params=params, overrides=numbers, cores=cores)


def items(exe: Executable) -> int:
    return int(next(iter(exe.runtime.inputs.values())).shape[0])


@pytest.mark.parametrize("name", one_of(4, CASES))
def test_the_lever_makes_an_item_cheaper(name: str) -> None:
    source, target, params, numbers, limit, lever = CASES[name]
    exe, found = compiled(name)
    assert found.name == limit
    assert found.lever is not None
    assert (found.lever.field or found.lever.option) == lever
    batch = params.get("batch", items(exe))
    match found.lever.option:
        case "batch":
            after = made(source, target, {**params, "batch": int(batch * found.lever.value)}, {**numbers, **dict(found.lever.needed)})
        case "cores":
            after = made(source, target, params, numbers, int(found.lever.value))
        case "set":
            after = made(source, target, params, {**numbers, found.lever.field: found.lever.value})
    before = exe.stats["cycles"] / items(exe)
    assert after.stats["cycles"] / items(after) < 0.97 * before


@pytest.mark.parametrize(
    ("stem", "larger"),
    [("02_iris", 27), ("03_wine", 23)],
)
def test_a_larger_batch_does_what_it_is_said_to_do(stem: str, larger: int) -> None:
    """A larger one may be computed in parts, each with transfers of its own: there are more transfers, and fewer for each item."""
    before = tpucc.compile(PROGRAMS / f"{stem}.tpu")
    assert advice(before.stats) == f"a batch {larger} times as large {HIDDEN}"
    after = tpucc.compile(PROGRAMS / f"{stem}.tpu", params={"batch": larger * items(before)})
    assert after.stats["critical_path"]["weight_memory"] < before.stats["critical_path"]["weight_memory"]
    assert transfers(after) / items(after) < transfers(before) / items(before)
    assert after.stats["cycles"] / items(after) < before.stats["cycles"] / items(before)


@pytest.mark.parametrize("name", ["weights", "latency", "shift"])
def test_a_stream_of_larger_batches_has_at_most_the_rate_that_is_said(name: str) -> None:
    source, target, params, numbers, _, _ = CASES[name]
    exe, found = compiled(name)
    assert found.lever is not None
    words = re.search(r"at most ([\d.,]+ [GT]OPS) \(now|at ([\d.,]+ [GT]OPS) at most \(now", str(exe.stats["advice"]))
    assert words is not None
    after = made(source, target, {**params, "batch": int(params["batch"] * found.lever.value)}, numbers).stats
    number, unit = (words[1] or words[2]).split()
    rate = 2 * after["macs"] / after["end_to_end"]["stream_seconds"]
    assert 0.3 < rate / (float(number.replace(",", "")) * {"GOPS": 1e9, "TOPS": 1e12}[unit]) < 1.005


def transfers(exe: Executable) -> int:
    touched = effects(exe.runtime.program.instructions)
    return int((touched.host_reads | touched.host_writes).sum())


def test_padding_of_the_rows_that_cross_is_told() -> None:
    """Of a pixel a row, of 64 numbers, of 256; latency is the longer part with 4 rows. Outputs are 10 classes."""
    params = {"05_digits_cnn": {}, "04_digits_mlp": {}}
    told = {stem: tpucc.compile(PROGRAMS / f"{stem}.tpu", params=given).stats["explanation"] for stem, given in params.items()}
    of_outputs = "; each output row has 10 bytes of data in 256 that cross; "
    assert f"; each input row has 1 byte of data in 256 that cross{of_outputs}" in told["05_digits_cnn"]
    assert f"; each input row has 64 bytes of data in 256 that cross{of_outputs}" in told["04_digits_mlp"]
    for params in ({"batch": 4000, "width": 256, "layers": 1}, {"batch": 4, "width": 64, "layers": 1}):
        stats = made(CHAIN, "tpu_v1", params, FAST_WEIGHTS).stats
        assert stats["bottleneck"] == "host link"
        assert "bytes of data" not in stats["explanation"]


@pytest.mark.parametrize(
    ("batch", "cores", "room", "words"),
    [
        (2048, 1, 98304, "would share the batch, 1,024 items each, if no item needs another"),
        (4096, 2, 98304, "would share the batch, 1,024 items each"),
        (2047, 1, 18000, "would share an even batch, if no item needs another"),
        (2047, 1, 28000, "would share an even batch, if no item needs another"),
    ],
)
def test_cores_are_told_what_each_has_of_the_batch(batch: int, cores: int, room: int, words: str) -> None:
    name = "products"
    source, target, params, numbers, limit, _ = CASES[name]
    stats = made(source, target, {**params, "batch": batch}, {**numbers, "unified_buffer_rows": room}, cores).stats
    assert stats["bottleneck"] == limit
    assert advice(stats) == f"--cores {2 * cores} {words}"


@pytest.mark.parametrize(("name", "other"), [("latency", "host_bandwidth"), ("link", "batch")])
def test_of_two_levers_the_one_that_saves_more_is_named(name: str, other: str) -> None:
    source, target, params, numbers, _, _ = CASES[name]
    exe, found = compiled(name)
    larger = made(source, target, {**params, "batch": 2 * params["batch"]}, numbers)
    faster = made(source, target, params, {**numbers, "host_bandwidth": 2 * exe.runtime.program.target.host_bandwidth})
    by_batch, by_link = (made.stats["cycles"] / items(made) for made in (larger, faster))
    assert (by_batch < by_link) == (other == "host_bandwidth")
    assert found.lever is not None
    assert other not in (found.lever.option, found.lever.field)


def test_a_batch_that_cores_cannot_divide_is_told_to_grow_for_them() -> None:
    name = next(name for name, case in CASES.items() if case[5] == "cores")
    source, target, params, numbers, limit, _ = CASES[name]
    params = {**params, "batch": params["batch"] + 1 - params["batch"] % 2}
    exe = made(source, target, params, numbers)
    assert exe.stats["bottleneck"] == limit
    assert advice(exe.stats) == "a batch 2 times as large could be shared by --cores 2, if no item needs another"
    after = made(source, target, {**params, "batch": 2 * params["batch"]}, numbers, cores=2)
    assert after.stats["cycles"] / items(after) < 0.97 * exe.stats["cycles"] / items(exe)


def test_the_advice_is_about_the_bottleneck() -> None:
    """A larger batch would fetch weights less often; but rows take most of the critical path to cross."""
    stats = tpucc.compile(PROGRAMS / "06_digits_lstm.tpu").stats
    assert stats["critical_path"]["host_link"] > stats["critical_path"]["weight_memory"] > 20
    assert advice(stats) == "--set host_bandwidth=21.5e9 would move the rows in half the time"


@pytest.mark.parametrize(
    ("batch", "room", "advice"),
    [
        (1, 3.9, f"a batch up to about 3 {MORE}"),
        (1, 1.9, "--set weight_bandwidth=68e9 would fetch tiles in half the time"),
        (4, 1.9, f"a batch up to about 1.75 {MORE}"),
        (10, 3.9, f"a batch up to about 3.9 {MORE}"),
        (10, 10**4, f"a batch 135 times as large {HIDDEN}"),
    ],
)
def test_a_batch_grows_by_whole_items_and_by_what_fits(batch: int, room: float, advice: str) -> None:
    """`room` is how many times the rows of the layer fit the unified buffer: four blocks in and four out."""
    program = made(CHAIN, "tpu_v1", {"batch": batch, "layers": 1}, {}).runtime.program
    target = load_target("tpu_v1", {"unified_buffer_rows": int(room * 8 * batch)})
    program = replace(program, target=target)
    assert weight_memory(work_of(program, batch)).words == advice


def work_of(program: Program, rows: int) -> Work:
    """The work of a program whose tiles are used for so many rows, all that there are."""
    return Work(program, effects(program.instructions), [], TileRows(rows, only=True, whole=rows, waits=True))


@pytest.mark.parametrize("stem", [pytest.param("10_imdb_lstm", marks=pytest.mark.long), "gallery/gru"])
def test_what_fits_is_an_estimate(stem: str) -> None:
    """An item can need more rows in a large batch than in this one, so the words claim no largest batch that fits."""
    exe = tpucc.compile(PROGRAMS / f"{stem}.tpu", params={"time": 50} if stem == "10_imdb_lstm" else {})
    lever = weight_memory(work_of(exe.runtime.program, items(exe)))
    assert lever.most
    assert lever.words == advice(exe.stats) == f"a batch up to about {lever.value:,.0f} {MORE}"


def test_every_kind_has_a_case() -> None:
    assert {case[4] for case in CASES.values()} == set(BOTTLENECKS) - {"nothing"}


def test_the_advice_ends_the_explanation_and_names_the_next_bottleneck() -> None:
    stats = compiled("weights")[0].stats
    assert advice(stats) == f"a batch 6.8 times as large {HIDDEN}"
    assert stats["explanation"].endswith(f"; {stats['advice']}")
    assert advice(compiled("link")[0].stats) == "--set host_bandwidth=21.5e9 would move the rows in half the time"
    assert tpucc.compile_source("model m(x: f32[8, 8]):\n    return softmax(x)\n").stats["advice"] == ""


def test_advice_of_few_accumulators_names_what_the_tile_is_used_for_then() -> None:
    """A larger batch would have more row groups of as many rows."""
    before, found = compiled("weights of few sums")
    assert found.explanation.endswith(
        "and used for 48 rows; --set accumulator_rows=128 would hold the sums of more rows, and use such a tile for all 96 rows"
    )
    source, target, params, numbers, *_ = CASES["weights of few sums"]
    after = made(source, target, params, {**numbers, "accumulator_rows": 128})
    assert ", and used for 96 rows; " in after.stats["explanation"]
    assert 2 * after.stats["tile_fetches"] == before.stats["tile_fetches"]


def test_a_batch_grows_no_further_than_the_accumulators() -> None:
    exe, found = compiled("weights of nearly enough sums")
    assert found.lever is not None
    assert (
        found.lever.words
        == f"a batch 2.6 times as large would use such a tile for the 256 rows whose sums the accumulators hold {MEASURED}"
    )
    source, target, params, numbers, *_ = CASES["weights of nearly enough sums"]
    after = made(source, target, {**params, "batch": int(2.6 * params["batch"])}, numbers)
    assert after.stats["tile_fetches"] == exe.stats["tile_fetches"]


def test_a_param_is_named_where_the_source_has_it() -> None:
    source = "weights random(seed=0)\nmodel m(x: f32[8, 256]):\n    weight w: f32[256, 256]\n    return x @ w\n"
    fixed, open_ = (advice(tpucc.compile_source(text).stats) for text in (source, "param batch = 8\n" + source.replace("[8, ", "[batch, ")))
    assert open_ == f"{fixed} {MEASURED}"


def test_a_larger_batch_has_room_for_the_rows_of_its_layers() -> None:
    """The peak of a small batch may be lower: twice the batch has twice the peak, but isn't in one piece then."""
    numbers = {"mxu": 128, "unified_buffer_rows": 800, "host_bandwidth": 1e12}
    before, after = (tpucc.compile(PROGRAMS / "04_digits_mlp.tpu", params={"batch": batch}, overrides=numbers) for batch in (200, 400))
    assert before.runtime.program.peak_rows == 400
    assert "batch" not in before.stats["advice"]
    assert after.runtime.program.division is not None


def test_rows_of_16_bits_take_two_cycles_each() -> None:
    """So half as many hide a fetch."""
    wide = tpucc.compile_source(CHAIN, params={"batch": 200}, activation_bits=16)
    assert "would use such a tile for the 675 rows that hide its fetch" in wide.stats["advice"]


def test_a_batch_that_was_split_is_not_told_to_grow() -> None:
    """On `tiny` the batch is computed in parts for want of memory: a larger one would be computed in more of them."""
    exe, found = compiled("weights of a large batch")
    assert len(exe.runtime.program.inputs[0].splits) > 1
    assert "batch" not in exe.stats["advice"]
    assert found.lever is not None
    assert found.lever.field == "weight_bandwidth"


def test_what_limits_a_stream_already_is_said() -> None:
    """The host's work for digits takes longer than all that the device does: twice the link's bandwidth makes one batch shorter only."""
    stats = tpucc.compile(PROGRAMS / "04_digits_mlp.tpu").stats
    assert stats["end_to_end"]["stream_bottleneck"] == "host work"
    assert advice(stats) == "--set host_bandwidth=21.5e9 would move the rows in half the time"
    assert stats["advice"].endswith("; in a stream the host's work limits already")


def test_the_rate_of_now_is_the_rate_of_the_stream() -> None:
    """The busiest unit alone would be faster: the others don't always work beside it."""
    stats = executable_of("14_digits_resnet").stats
    assert stats["advice"].endswith(f" at most (now {rate_text(2 * stats['macs'] / stats['end_to_end']['stream_seconds'])})")
