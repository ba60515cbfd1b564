"""The numbers in the answers of docs/instructors/exams.md are what tpucc computes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tpucc.interop.programs import folder
from tpucc.isa.assembler import disassemble
from tpucc.lowering.liveness import largest_live_sum
from tpucc.numerics import dequantise, quantise, requantise
from tpucc.schedule.allocate import Lives, allocate

pytestmark = pytest.mark.annex
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/instructors/exams.md").read_text("utf-8")
LAYER = """
param batch = 200
weights random(seed=1)
model m(x: f32[batch, 600] in [-8.0, 55.75]) -> f32[batch, 1000]:
    weight w: f32[600, 1000]
    return relu(x @ w)
"""


def answer(examination: str, number: int) -> str:
    """One answer, with plain minus signs, spaces and commas as in code."""
    part = PAGE.split(f"## Answers to the {examination}")[1].split("\n## ")[0]
    text = re.split(r"^\d\. ", part, flags=re.MULTILINE)[number]
    return re.sub(r"\s+", " ", text).replace("−", "-")


def test_a_dense_layer_and_its_roofline() -> None:
    exe = tpucc.compile_source(LAYER)
    stats, target = exe.stats, exe.runtime.program.target
    cells = stats["macs"] / 200 / (stats["tiles"] * target.tile_bytes)
    assert f"= {stats['tiles']}. (b)" in answer("first", 1)
    assert f"= {100 * cells:.1f} %" in answer("first", 1)
    assert f"= {stats['tiles'] * 200:,}. (b)" in answer("first", 2)
    assert f"· {target.tile_fetch_cycles:,} = {stats['tile_fetches'] * target.tile_fetch_cycles:,}" in answer("first", 2)
    roofline = answer("second", 1)
    assert f"= {stats['peak_tops']:.2f} TOPS" in roofline
    assert f"= {stats['ridge_macs_per_weight_byte']:,.1f}. (c)" in roofline
    assert f"= {stats['macs_per_weight_byte']:.1f} products" in roofline
    assert f"= {2 * stats['macs_per_weight_byte'] * target.weight_bandwidth / 1e12:.1f} TOPS" in roofline


def test_integers() -> None:
    exe = tpucc.compile_source(LAYER)
    assert exe.compilation is not None
    held = next(node.type.quantisation for node in exe.compilation.layers if node.type.quantisation)
    assert f"= {held.scale:g}; z = -128 + 8 ÷ 0.25 = {held.zero_point}." in answer("first", 3)
    values = quantise(np.array([3.125, 60, -0.1], np.float32), held.scale, held.zero_point)
    for value, number in zip(values.tolist(), dequantise(values, held.scale, held.zero_point).tolist(), strict=True):
        assert f"{value}, for {number:g}" in answer("first", 3)
    sums = np.array([[448], [-704], [1000]], np.int32)
    found = requantise(sums, np.float32(1 / 128), -20).reshape(-1)
    assert f"(a) {', '.join(map(str, found.tolist()))}." in answer("first", 4)
    assert f"so {', '.join(map(str, np.maximum(found, -20).tolist()))}." in answer("first", 4)


def test_waits() -> None:
    source = "weights random(seed=1)\nmodel h(x: f32[1, 4]):\n    weight w: f32[4, 4]\n    return relu(x @ w)\n"
    text = disassemble(tpucc.compile_source(source, target="tiny").runtime.program)
    waits = re.findall(r"synchronize (engine=\w+ wait=\w+)", text)
    assert [f"`{wait}`".replace("`engine=matrix", "`synchronize engine=matrix") for wait in waits] == re.findall(
        r"`(?:synchronize )?engine=\w+ wait=\w+`", answer("first", 5)
    )


def test_buffers() -> None:
    rows = [[int(cell) for cell in line.split("|")[2:5]] for line in re.findall(r"^\| \d \|.*", PAGE, re.MULTILINE)]
    lives = Lives(*np.array(rows, np.int64).T)
    spec = importlib.util.spec_from_file_location("first_fit", ROOT / "docs/stages/first_fit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fitted, best, text = module.allocate(lives, 100), allocate(lives, 100), answer("second", 2)
    bound = largest_live_sum(lives.first, lives.last, lives.rows)
    assert f"= {bound}. (b)" in text
    assert fitted.tolist() == [0, 4, 6, 0]
    assert f"That takes {lives.peak(fitted)}." in text
    assert f"at {', '.join(map(str, best.tolist()))} take {lives.peak(best)}," in text
    assert lives.peak(best) == bound


@pytest.mark.long
def test_what_is_worth_doing() -> None:
    whole = tpucc.compile(folder() / "paper/mlp0.tpu").stats["end_to_end"]
    host, device = whole["host_before"] + whole["host_after"], whole["seconds"] - whole["host_before"] - whole["host_after"]
    text = answer("second", 3)
    assert f"takes {1e6 * whole['host_before']:.0f} µs on the host before" in PAGE
    assert f"{1e6 * device:.0f} µs on the device and its link" in PAGE
    assert f"= {1e6 * (whole['seconds'] - device / 2):,.0f} µs: {50 * device / whole['seconds']:.0f} % less" in text
    assert f"works {1e6 * host:.0f} µs for each batch, and the device {1e6 * device:.0f}" in text
    stream = max(device, host / 2)
    assert f"takes {1e6 * host / 2:.0f} µs, and a stream then {1e6 * stream:.0f} µs a batch, {100 * (1 - stream / host):.0f} % less" in text


def test_gradients() -> None:
    x, w = np.array([[1.0, 2.0]]), np.array([[1.0, -3.0], [0.5, 1.0]])

    def loss(x: np.ndarray, w: np.ndarray) -> float:
        return float(np.maximum(x @ w, 0).sum())

    step = 2.0**-10
    moves = step * np.eye(4).reshape(4, 2, 2)
    by_w = [(loss(x, w + move) - loss(x, w - move)) / (2 * step) for move in moves]
    by_x = [(loss(x + move, w) - loss(x - move, w)) / (2 * step) for move in step * np.eye(2)[:, None]]
    (a, b, c, d), text = (f"{value:g}" for value in by_w), answer("second", 4)
    assert f"(({a}, {b}), ({c}, {d}))" in text
    assert f"({', '.join(f'{value:g}' for value in by_x)})." in text
