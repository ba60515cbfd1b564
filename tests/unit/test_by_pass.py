"""What each pass gives: programs without the passes after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tpucc
from tpucc.cli.main import main
from tpucc.driver import compile_source
from tpucc.explain.by_pass import FIRST, Step, by_pass, by_pass_table
from tpucc.explain.timed import Timed
from tpucc.interop.sources import read_source
from tpucc.options import Options

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def test_each_step_is_the_program_without_the_passes_below_it() -> None:
    path, options = PROGRAMS / "02_iris.tpu", Options()
    source = read_source(path, options.params)
    steps = by_pass(compile_source(source, path.parent, options), path.parent)
    assert [step.name for step in steps] == [FIRST, "fuse-bias", "fuse-activation"]
    for place, step in enumerate(steps):
        without = frozenset(each.name for each in steps[place + 1 :])
        made = compile_source(source, path.parent, replace(options, omit=without)).program
        assert made is not None
        stats = Timed(made).stats
        assert (step.cycles, step.seconds) == (stats["cycles"], stats["end_to_end"]["seconds"])
    assert steps[-1].cycles == tpucc.compile(path).stats["cycles"]


def test_a_program_that_needs_a_pass_has_no_numbers_without_it() -> None:
    """Without `needed` there is no operator of the device left that reads 300,000 columns at once."""
    steps = [Step(FIRST, None, None), Step("needed", 2000, 3e-6), Step("faster", 1000, 1.5e-6), Step("hardly", 999, 1.4999e-6)]
    told = by_pass_table(steps)
    assert [line.split() for line in told.splitlines()[1:5]] == [
        [*FIRST.split()], ["needed", "2,000", "3", "µs"], ["faster", "1,000", "1.5", "µs", "-50.0"], ["hardly", "999", "1.5", "µs", "+0.0"]
    ]  # fmt: skip
    assert "can't be compiled without the passes below it" in " ".join(told.split())


def test_profile_prints_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(PROGRAMS / "02_iris.tpu"), "--by", "pass", "--quiet"]) == 0
    told = capsys.readouterr().out
    assert [line.split("  ")[0] for line in told.splitlines()[:4]] == ["with the passes as far as", FIRST, "fuse-bias", "fuse-activation"]
    assert max(map(len, told.splitlines())) <= 80


def test_what_does_not_go_with_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for options, words in (("--cores 1,2", "one number of cores"), ("--batches 3", "of one batch"), ("--trace t.json", "has no trace")):
        assert main(["profile", str(PROGRAMS / "02_iris.tpu"), "--by", "pass", *options.split()]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


def test_a_program_and_a_text_have_gone_through_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(PROGRAMS / "01_hello.tpu"), "-o", str(tmp_path), "--emit", "tpub,layers", "--quiet"]) == 0
    for name in ("01_hello.tpub", "01_hello.layers.graph"):
        assert main(["profile", str(tmp_path / name), "--by", "pass"]) == 2
        assert "already" in capsys.readouterr().err
