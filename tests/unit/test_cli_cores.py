"""--cores at the command line, and the table that compares several numbers of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.command_line import SMALL, run
from tpucc.data.archive import npz_bytes

SOURCE = SMALL.replace("batch = 4", "batch = 8")


@pytest.fixture
def small(small: Path) -> Path:
    """The small model with a batch that 2, 4 and 8 cores can share."""
    small.write_text(SOURCE)
    return small


def test_compile_writes_a_program_that_runs_on_its_cores(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", small, "--cores", "4", "-o", "out") == 0
    out = capsys.readouterr().out
    assert "small on 4 cores of tpu_v1" in out
    assert "2 of 8 items, all weights, a share of the host link" in out
    assert max(map(len, out.splitlines())) <= 80
    assert json.loads(Path("out/stats.json").read_text())["cores"] == 4
    assert "<h1>small on 4 cores of tpu_v1</h1>" in Path("out/report.html").read_text()
    Path("x.npz").write_bytes(npz_bytes({"x": np.random.default_rng(0).uniform(-1, 1, (19, 6)).astype(np.float32)}))
    for model, output, options in (("out/small.tpub", "a.npz", []), (small, "b.npz", ["--cores", "2"]), (small, "c.npz", [])):
        assert run("run", model, "--input", "x.npz", "--output", output, "--check", *options) == 0
        assert "3 rounds of 8" in capsys.readouterr().out
    assert Path("a.npz").read_bytes() == Path("b.npz").read_bytes() == Path("c.npz").read_bytes()


def test_profile_compares_numbers_of_cores(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("profile", small, "--cores", "1,2,8", "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small on tpu_v1, a batch of 8 divided among cores"
    assert lines[2].split() == ["cores", "items", "cycles", "time", "speed-up", "efficiency", "TOPS", "bottleneck"]
    assert [line.split()[:2] for line in lines[3:]] == [["1", "8"], ["2", "4"], ["8", "1"]]
    assert len({line.split()[4] for line in lines[3:]}) == 1, "times that are compared have one unit"
    assert max(map(len, lines)) <= 80
    run("profile", small, "--cores", "1,2,8", "--quiet", "--json")
    rows = json.loads(capsys.readouterr().out)["scaling"]
    for row in rows:
        run("profile", small, "--cores", row["cores"], "--quiet", "--json")
        stats = json.loads(capsys.readouterr().out)
        assert (row["cycles"], row["tops"], row["bottleneck"]) == (stats["cycles"], stats["tops"], stats["bottleneck"])
        assert row["speedup"] == pytest.approx(rows[0]["cycles"] / row["cycles"])
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["cores"])


def test_efficiency_counts_from_the_first_number(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("profile", small, "--cores", "2,4", "--quiet", "--json")
    first, second = json.loads(capsys.readouterr().out)["scaling"]
    assert (first["speedup"], first["efficiency"]) == (1, 1)
    assert second["efficiency"] == pytest.approx(first["cycles"] / second["cycles"] / 2)


@each(["0", "-1", "2,0", "1,,2", "two", "1.5", "", 5000 * "9"])
def test_what_is_no_number_of_cores(cores: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("profile", small, "--cores", cores) == 2
    assert "--cores" in capsys.readouterr().err
    assert run("compile", small, "--cores", cores) == 2


def test_a_batch_that_is_not_divisible(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", small, "-D", "batch=6", "--cores", "8") == 2
    err = capsys.readouterr().err
    assert "error E0508: batch 6 is not divisible by 8 cores" in err
    assert "help: batch 6 can't be divided among 8 cores: 8 and 16 can" in err
    assert not Path("build").exists()
    assert run("profile", small, "--cores", "1,3") == 2
    assert "batch 8 can't be divided among 3 cores: 6 and 9 can" in capsys.readouterr().err


def test_operators_that_mix_items_are_the_sources_fault(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.write_text(SOURCE.replace("softmax(", "softmax(axis=0, x="))
    assert run("compile", small) == 0
    assert run("compile", small, "--cores", "2") == 1
    assert "small.tpu:8:12: error E0831" in capsys.readouterr().err


def test_cores_belong_to_compiling(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("compile", small, "--quiet")
    for cores in ("2", "1,2"):
        assert run("profile", "build/small/small.tpub", "--cores", cores) == 2
        assert "--cores is an option of compiling" in capsys.readouterr().err
    assert run("profile", "build/small/small.tpub") == 0
    assert run("profile", small, "--cores", "1,2", "--trace", "t.json") == 2
    assert run("profile", small, "--cores", "2", "--trace", "t.json", "--quiet") == 0
    assert "small on 2 cores of tpu_v1" in Path("t.json").read_text()
