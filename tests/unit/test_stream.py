"""A stream of batches: what each takes when transfers cross during others, by hand, by simulation and on the command line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tpucc.api import Executable
from tpucc.cli.main import main
from tpucc.isa.effects import effects
from tpucc.machines.v1 import Engine
from tpucc.sim.stream import Stream, crossing_transfers, in_step, stream
from tpucc.sim.timing import Clock, instruction_cycles

pytestmark = pytest.mark.usefixtures("any_ranges")

ROOT = Path(__file__).resolve().parents[2]
NETWORK = """
param batch = 8
param width = 600
weights random(seed=0)
model m(x: f32[batch, width] in [-1.0, 1.0]):
    for i in range(3):
        weight w: f32[width, width] = "w{i}"
        x = x @ w
    return x
"""
STEP = """
weights random(seed=0)
model m(x: f32[8, 64] in [-1.0, 1.0]):
    weight w: f32[64, 64]
    weight v: f32[64, 64]
    return softmax(x @ w) @ v
"""
PROGRAMS = ("programs/02_iris.tpu", "programs/04_digits_mlp.tpu", "programs/06_digits_lstm.tpu", "programs/05_digits_cnn.tpu")


@cache
def compiled(source: str = NETWORK, target: str = "tpu_v1", **numbers: float) -> Executable:
    if source.endswith(".tpu"):
        return tpucc.compile(ROOT / source, target=target)
    return tpucc.compile_source(source, target=target, overrides=numbers)


def streamed(exe: Executable) -> Stream:
    return stream(exe.runtime.program, exe.runtime.timeline)


def host_cycles(exe: Executable) -> int:
    program = exe.runtime.program
    touched = effects(program.instructions)
    return int(instruction_cycles(program, touched)[touched.engine == Engine.HOST].sum())


def test_many_tiles_take_the_time_of_their_fetches() -> None:
    """27 tiles of 600×600 matrices, 8 rows each: weight memory never rests, from batch to batch."""
    found = streamed(compiled())
    assert (found.cycles, found.computing, found.fits) == (27 * 1349, 27 * 1349, True)
    assert found.cycles < compiled().stats["cycles"]
    assert found.link == host_cycles(compiled())


def test_a_slow_link_is_the_period() -> None:
    exe = compiled(NETWORK, host_bandwidth=1e8)
    found = streamed(exe)
    assert found.cycles == found.link == host_cycles(exe) > found.computing
    assert found.waiting == found.link - found.computing
    shares = exe.stats["stream"]["breakdown"]
    assert shares["input_stall"] == pytest.approx(100 * found.waiting / found.cycles)
    assert exe.stats["stream"]["bottleneck"] == "host link"


def test_host_steps_stay_in_the_batch() -> None:
    exe = compiled(STEP)
    found = streamed(exe)
    assert found.fits
    assert found.computing > exe.stats["host_step_cycles"] > 0
    assert found.cycles > 0.6 * exe.stats["cycles"]


@pytest.mark.parametrize("name", one_of(2, PROGRAMS))
def test_the_period_is_that_of_twenty_batches(name: str) -> None:
    """The state of the weight fetch is compared instead of simulating on; twenty runs with the same barriers take no other time."""
    exe = compiled(name)
    program, found = exe.runtime.program, streamed(exe)
    touched = effects(program.instructions)
    cycles = np.where(crossing_transfers(program, touched), 0, instruction_cycles(program, touched))
    clock, begin = Clock(program, touched, cycles), 0
    for _ in range(20):
        clock.run()
        computing = max(clock.finished[unit] for unit in in_step(program.machine)) - begin
        begin += max(computing, found.link)
        for unit in in_step(program.machine):
            clock.free[unit] = clock.finished[unit] = begin
    assert found.computing == computing


def test_weights_are_fetched_while_a_batch_waits_for_the_link() -> None:
    """The digits MLP's three tiles take 4,047 cycles to fetch, and the link 8,076 for a batch: no product waits for weights."""
    shares = compiled("programs/04_digits_mlp.tpu").stats["stream"]["breakdown"]
    assert (shares["weight_stall"], shares["weight_shift"]) == (0, 0)
    assert shares["input_stall"] > 60


@each(PROGRAMS)
def test_a_batch_of_a_stream_is_never_slower_and_its_rows_add_up(name: str) -> None:
    stats = compiled(name).stats
    found = stats["stream"]
    assert found["cycles"] == max(found["computing_cycles"], found["link_cycles"]) <= stats["cycles"]
    parts = found["breakdown"]
    assert sum(parts[key] for key in ("array_active", "weight_stall", "weight_shift", "non_matrix")) == pytest.approx(100)
    assert parts["output"] == parts["input"] == 0
    assert found["tops"] >= stats["tops"]


def test_without_room_a_batch_takes_what_one_alone_does() -> None:
    stats = compiled("programs/02_iris.tpu", "tiny").stats
    found = stats["stream"]
    assert not found["fits"]
    assert found["ub_bytes"] > 48 * 4
    assert (found["cycles"], found["bottleneck"], found["breakdown"]) == (stats["cycles"], stats["bottleneck"], stats["breakdown"])


def test_a_stream_fits_in_exactly_the_rows_that_it_says() -> None:
    exe = compiled()
    program, rows = exe.runtime.program, streamed(exe).rows
    touched = effects(program.instructions)
    assert rows == program.peak_rows + int(touched.rows[touched.host_reads | touched.host_writes].sum())
    assert tpucc.compile_source(NETWORK, overrides={"unified_buffer_rows": rows}).stats["stream"]["fits"]
    assert not tpucc.compile_source(NETWORK, overrides={"unified_buffer_rows": rows - 1}).stats["stream"]["fits"]


def test_a_model_of_the_host_s_has_no_stream() -> None:
    found = compiled("model m(x: f32[8, 8]):\n    return softmax(x)\n").stats["stream"]
    assert (found["cycles"], found["tops"], found["bottleneck"]) == (0, 0.0, "nothing")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(ROOT / "programs" / "02_iris.tpu")
    text = printed(capsys, "profile", model, "--batches", "8")
    stats: dict[str, Any] = json.loads(printed(capsys, "profile", model, "--batches", "8", "--json"))
    each, alone = stats["stream"]["cycles"], stats["cycles"]
    assert stats["batches"] == {"count": 8, "cycles": alone + 7 * each}
    assert all(f"{cycles:,}" in text for cycles in (alone, each, alone + 7 * each))
    assert max(map(len, text.split("\n"))) <= 80
    for column in (1, 2):
        shares = [line.rsplit(maxsplit=2) for line in text.split("cycles, %")[1].split("\n")[1:14] if line]
        rows = shares[: [parts[0] for parts in shares].index("in all")]
        outer = [float(parts[column]) for parts in rows if not parts[0].startswith(" ")]
        assert sum(outer) == pytest.approx(100, abs=0.2)  # each is rounded by itself
    assert f"in a stream of batches: 20.5 µs each, host work bound; {each:,} cycles of the" in printed(capsys, "profile", model)
    assert "that needs 584 bytes" in printed(capsys, "profile", model, "--batches", "2", "--target", "tiny")


def test_the_summary_has_both_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "compile", str(ROOT / "programs" / "02_iris.tpu"), "--emit", "stats", "-o", str(tmp_path / "out"))
    assert "in a stream     20.5 µs each, host work bound; 3,102 cycles of the device" in text
    assert "device          5,119 cycles" in text


@pytest.mark.parametrize("arguments", [("--batches", "0"), ("--batches", "2", "--cores", "1,2"), ("--batches", "2", "--timing", "serial")])
def test_what_can_t_be_streamed(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(ROOT / "programs" / "02_iris.tpu"), *arguments]) == 2
    assert "--batches" in capsys.readouterr().err
