"""The cycles counted in four ways: each count by another route, and what must hold between them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.dense import DenseNetwork
from tests.support.machine import TINY, Writer
from tpucc.cli.main import main
from tpucc.diagnostics import Origin
from tpucc.explain.counts import WAYS, count_cycles, scale_sim_cycles
from tpucc.explain.tables import counts_table
from tpucc.isa.program import LayerInfo, Program
from tpucc.machines.v1 import V1, Flag, Function, Opcode
from tpucc.runtime.runtime import Runtime
from tpucc.sim.timing import time_program
from tpucc.systolic import Multiply, Tile, simulate

pytestmark = pytest.mark.usefixtures("any_ranges")

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "programs"


def demand_rows(rows: int, height: int, width: int) -> int:
    """Cycles of one fold as SCALE-Sim makes them: weights, rows and drain one under the other, each lane a cycle later."""
    demand = np.zeros((height + rows + width - 1, height))
    skewed = [np.concatenate([np.zeros(lane), demand[:, lane], np.zeros(height - 1 - lane)]) for lane in range(height)]
    return len(np.stack(skewed, axis=1))


@pytest.mark.parametrize(("rows", "depth", "width"), [(1, 1, 1), (200, 2000, 2000), (7, 256, 257), (300, 513, 10)])
def test_scale_sim_s_count_is_that_of_its_demand_matrix(rows: int, depth: int, width: int) -> None:
    layer = LayerInfo("h", "fc", Origin(made_by="test"), rows * depth * width, (depth, width), ((0, 1, 1),))
    folds = [demand_rows(rows, 256, 256) for _ in range(0, depth, 256) for _ in range(0, width, 256)]
    assert scale_sim_cycles(layer, 256) == sum(folds) - 1


@pytest.mark.parametrize(("groups", "depth", "width"), [(3, 80, 20), (2, 300, 257), (60, 9, 1)])
def test_scale_sim_counts_each_group_as_a_product(groups: int, depth: int, width: int) -> None:
    """Also where the activation unit computes a depthwise convolution: it sees the layer, not the program."""
    one = LayerInfo("h", "conv", Origin(made_by="test"), 64 * depth * width, (depth, width), ((0, 1, 1),))
    macs, weights = groups * one.macs, (depth, groups * width)
    layers = [replace(one, macs=macs, weights=weights, group=(depth, width))]
    layers += [replace(one, macs=macs, weights=weights, tile_fills=())] if width == 1 else []
    assert {scale_sim_cycles(layer, 256) + 1 for layer in layers} == {groups * (scale_sim_cycles(one, 256) + 1)}


def test_one_tile_on_the_array_takes_two_cycles_more_than_in_scale_sim() -> None:
    """Those of the setup and of the accumulators; the - 1 is the numbering."""
    for mxu, rows in ((4, 9), (16, 3), (32, 50)):
        layer = LayerInfo("h", "fc", Origin(made_by="test"), rows * mxu * mxu, (mxu, mxu), ((0, 1, 1),))
        cycles = list(simulate([Multiply(np.ones((rows, mxu)), Tile(np.ones((mxu, mxu))))], rows=mxu, columns=mxu))
        assert scale_sim_cycles(layer, mxu) + 1 + 2 == len(cycles)
        assert len(cycles) == mxu + (rows + 2 * mxu)  # the shift, and OpenTPU's L + 2N


def small_program() -> Program:
    """Two layers: a transfer, a tile for two multiplies, an activation; then a tile, a multiply, a pool, a transfer."""
    writer = Writer()
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=6)
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(np.eye(4)))
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=4)
    writer.add(Opcode.MATRIX_MULTIPLY, ub=4, acc=4, inner=2)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block())
    writer.add(Opcode.ACTIVATE, acc=0, dest=8, inner=6)
    writer.layer = 1
    writer.add(Opcode.READ_WEIGHTS, index=0)
    writer.add(Opcode.CONVOLVE, Flag.SWITCH, ub=8, ub_pitch=2, ub_stride=1, acc=0, outer=3, inner=2)
    writer.add(Opcode.POOL, function=Function.MAX, ub=8, dest=20, inner=2, window_outer=1, window_inner=3)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=20, host=16, inner=2)
    program = writer.program()
    first = replace(program.layers[0], macs=6 * 4 * 3, weights=(4, 3), tile_fills=((0, 4, 3),))
    layers = (first, replace(program.layers[1], macs=0, weights=(4, 4)))
    return replace(program, layers=layers)


def test_the_four_counts_of_a_small_program() -> None:
    """The tiny target: a tile is fetched in 8 cycles and shifted in 4; the array fills and drains in 8; a row crosses the link in one."""
    program = small_program()
    counts = count_cycles(program, time_program(program))
    assert list(counts.ways) == list(WAYS)
    assert {name: column.tolist() for name, column in counts.parts.items()} == {
        "host": [0, 2, 6],
        "fetch": [8, 8, 0],
        "shift": [4, 4, 0],
        "rows": [6, 6, 0],
        "pipeline": [16, 8, 0],
        "activation": [7, 6, 0],
    }
    assert counts.ways["serial"].tolist() == [41, 34, 6]
    assert counts.ways["opentpu"].tolist() == [(4 + 8) + (2 + 8), 6 + 8, 0]
    assert counts.ways["scale_sim"].tolist() == [1 * (6 + 2 * 4 + 4 - 2) - 1, 0, 0]
    assert counts.ways["overlapped"].sum() == time_program(program).makespan


def test_a_shift_counts_for_the_layer_that_takes_the_tile() -> None:
    """The first layer fetches the tile of the second ahead."""
    program = small_program()
    layer_of = program.layer_of.copy()
    ahead = np.flatnonzero(program.instructions["opcode"] == Opcode.READ_WEIGHTS)[1]
    layer_of[ahead] = 0
    parts = count_cycles(replace(program, layer_of=layer_of), time_program(program)).parts
    assert (parts["fetch"].tolist(), parts["shift"].tolist()) == ([16, 0, 0], [4, 4, 0])


@pytest.mark.parametrize("seed", [0, 1, 2, 4, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (3, 5, 6, 7))])
def test_what_holds_between_the_counts(seed: int) -> None:
    runtime = tpucc.compile_source(DenseNetwork(seed).source(), target="tiny" if seed % 2 else "tpu_v1").runtime
    program, counts, stats = runtime.program, runtime.counts, runtime.stats
    parts = counts["serial_parts"]
    code = [V1.read(record) for record in program.instructions]
    multiplied = [i["inner"] + 2 * program.target.mxu for i in code if i.opcode == Opcode.MATRIX_MULTIPLY]
    assert counts["overlapped"] == stats["cycles"] <= counts["serial"] == sum(parts.values())
    assert counts["opentpu"] == sum(multiplied) == parts["rows"] + parts["pipeline"]
    assert parts["fetch"] == stats["tile_fetches"] * program.target.tile_fetch_cycles
    assert parts["shift"] == stats["tile_fetches"] * program.target.tile_shift_cycles
    for way in WAYS:
        assert counts[way] == sum(layer[way] for layer in counts["layers"])
    assert [layer["overlapped"] for layer in counts["layers"]] == [layer["cycles"] for layer in stats["layers"]]
    assert list(parts) == ["host", "fetch", "shift", "rows", "pipeline", "activation"]


def test_the_table_has_80_columns_however_many_layers() -> None:
    model = 'weights random(seed=0)\nmodel m(x: f32[2, 3]):\n    for i in range(45):\n        weight w: f32[3, 3] = "w{i}"\n'
    runtime = tpucc.compile_source(model + "        x = relu(x @ w)\n    return x\n").runtime
    text = counts_table(runtime)
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"^6 more +[\d,]+ ", text, re.MULTILINE)
    assert f"{runtime.counts['serial']:,}" in text


def test_a_program_of_the_host_alone_counts_nothing() -> None:
    runtime = tpucc.compile_source("model m(x: f32[8, 8]):\n    return softmax(x)\n").runtime
    assert [runtime.counts[way] for way in WAYS] == [0, 0, 0, 0]
    assert "in all" in counts_table(runtime)


def test_profile_counts_in_the_way_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["profile", str(PROGRAMS / "02_iris.tpu"), "--quiet"]
    assert main([*command, "--timing", "serial"]) == 0
    shown = capsys.readouterr().out
    assert "SCALE-Sim" in shown
    assert "OpenTPU" in shown
    assert main([*command, "--timing", "overlapped"]) == 0
    overlapped = capsys.readouterr().out
    assert main(command) == 0
    assert capsys.readouterr().out == overlapped != shown
    assert main([*command, "--timing", "serial", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["overlapped"] == found["cycles"]
    assert set(WAYS) < set(found["counts"])
    assert main([*command, "--json"]) == 0
    assert "counts" not in json.loads(capsys.readouterr().out)
    assert main([*command, "--timing", "scalesim"]) == 2


CHAIN = """
weights random(seed=0)
model chain(x: f32[{batch}, 2048]):
    for i in range(3):
        weight w: f32[2048, 2048] = "w{{i}}"
        x = relu(x @ w)
    return x
"""


@pytest.mark.parametrize("batch", [200, 2048])
def test_the_worked_example_of_the_book(batch: int) -> None:
    """The row of `docs/timing.md`, as the program counts it; by hand there."""
    middle = tpucc.compile_source(CHAIN.format(batch=batch)).runtime.counts["layers"][1]
    row = " | ".join(f"{middle[way]:,}" for way in WAYS)
    assert f"| {batch:,} | {row} |" in (ROOT / "docs" / "timing.md").read_text("utf-8")


def test_a_program_file_is_counted_alike(tmp_path: Path) -> None:
    exe = tpucc.compile(PROGRAMS / "02_iris.tpu", target=TINY)
    exe.save(tmp_path / "iris.tpub")
    loaded: Runtime = tpucc.load(tmp_path / "iris.tpub").runtime
    assert loaded.counts == exe.counts
