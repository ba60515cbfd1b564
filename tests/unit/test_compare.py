"""Two compiles side by side: differences that add up, and the cause that the numbers have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.command_line import run
from tpucc.interop.programs import folder
from tpucc.runtime.compare import GROUPS, spent_by_group
from tpucc.sim.segments import matrix_segments

PAIRS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any], tuple[str, ...]]] = {
    "levels": ("05_digits_cnn", {"level": 0}, {}, ("fewer are spent multiplying", "42,600 rows multiplied instead of 144,400")),
    "batches": ("04_digits_mlp", {"params": {"batch": 8}}, {}, ("bytes across the link instead of", "The batch is 200 instead of 8:")),
    "weight memory": (
        *("04_digits_mlp", {}, {"overrides": {"weight_bandwidth": "3e9"}}),
        ("more are spent waiting for weight tiles: 3 tiles fetched in both, 15,292 cycles each instead of 1,349 cycles each",),
    ),
    "a pass left out": (
        *("06_digits_lstm", {}, {"omit": ["batch-products"]}),
        (
            "more are spent waiting for weight tiles: 61 tiles fetched instead of 33",
            "On the other hand, 18,869 fewer are spent waiting for the host link: with 512,000",
        ),
    ),
    "wider values": ("12_mlp_mixer_block", {}, {"activation_bits": 16}, ("more are spent waiting for the host link: 1,974,272 bytes",)),
    "host steps": ("08_fashion_cnn", {}, {"omit": ["flatten-to-convolution"]}, ("more are spent waiting for steps of the host", "1 step")),
}
"""A program, the options of both sides, and what the cause says."""


@pytest.mark.parametrize("name", PAIRS)
def test_the_cause_is_that_of_the_numbers(name: str) -> None:
    program, first, second, words = PAIRS[name]
    a, b = (tpucc.compile(folder() / f"{program}.tpu", **options) for options in (first, second))
    found = tpucc.compare(a, b)
    for word in words:
        assert word in found.cause
    assert found.difference == b.stats["cycles"] - a.stats["cycles"] != 0
    assert sum(pair.difference for pair in found.rows.values()) == found.difference
    assert sum(pair.difference for pair in found.groups.values()) == found.difference
    assert sum(layer.cycles.difference for layer in found.layers) == found.difference
    assert sum(pair.b for pair in found.rows.values()) == b.stats["cycles"]
    back = tpucc.compare(b, a)
    assert back.difference == -found.difference
    assert {layer.name: layer.cycles.difference for layer in back.layers} == {
        layer.name: -layer.cycles.difference for layer in found.layers
    }


def test_each_cycle_is_in_one_group() -> None:
    for program in ("05_digits_cnn", "06_digits_lstm", "13_quadric"):
        runtime = tpucc.compile(folder() / f"{program}.tpu", level=0).runtime
        segments = matrix_segments(runtime.program, runtime.timeline)
        assert sum(group.own(segments).astype(int) for group in GROUPS).tolist() == [1] * len(segments.start)
        assert sum(spent_by_group(runtime).values()) == runtime.stats["cycles"]


def test_equal_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    iris = folder() / "02_iris.tpu"
    assert run("compare", iris) == 0
    assert "Both take 5,119 cycles, with the same instructions." in capsys.readouterr().out
    tpucc.compile(iris).save(tmp_path / "iris.tpub")
    assert run("compare", iris, tmp_path / "iris.tpub") == 0
    assert "with the same instructions" in capsys.readouterr().out


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options of one side count more than those of both; the text fits a terminal; JSON has the contract's keys."""
    cnn, page = folder() / "05_digits_cnn.tpu", tmp_path / "page.html"
    assert run("compare", cnn, "--a=-O0 -D batch=20", "--b=-D batch=10", "-D", "batch=40", "-o", page) == 0
    printed = capsys.readouterr().out
    assert "A: 05_digits_cnn.tpu -O0 -D batch=20\nB: 05_digits_cnn.tpu -D batch=10" in printed
    assert "The batch is 10 instead of 20" in " ".join(printed.split())
    assert max(map(len, printed.replace(str(page), "").split("\n"))) <= 80
    text = page.read_text("utf-8")
    assert text.count("<svg") == 4
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert run("compare", cnn, "--a=-O1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"cycles", "difference", "cause", "layers"} <= found.keys()
    assert found["cycles"]["b"] - found["cycles"]["a"] == found["difference"]
    assert sum(layer["difference"] for layer in found["layers"]) == found["difference"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--a=-O7",), "--a: Invalid value for '-O'"),
        (("--b=-D batch",), "--b: Invalid value for '-D'"),
        (('--b="-O0',), "--b: No closing quotation"),
        (("--b=--help",), "--b: No such option"),
        (("--a=other.tpu",), "--a: Got unexpected extra argument"),
    ],
)
def test_options_of_a_side_that_are_none(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", folder() / "01_hello.tpu", *words) == 2
    assert says in capsys.readouterr().err


def test_a_program_takes_no_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tpucc.compile(folder() / "01_hello.tpu").save(tmp_path / "p.tpub")
    assert run("compare", tmp_path / "p.tpub", "--b=-O0") == 2
    assert "p.tpub is a program, which is compiled already" in capsys.readouterr().err
