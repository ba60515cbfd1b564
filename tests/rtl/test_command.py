"""`tpucc rtl`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.command_line import SMALL, run

pytestmark = pytest.mark.annex


DOCS = Path(__file__).parents[2] / "docs"


def test_the_chapter_has_what_its_commands_print(rtl: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make pages` runs without PyRTL, too."""
    monkeypatch.syspath_prepend(str(DOCS))
    page, picture = ((DOCS / name).read_text("utf-8") for name in ("rtl.md", "pictures/rtl-units.svg"))
    made, drawn = importlib.import_module("terminal_blocks"), importlib.import_module("unit_pictures")
    assert made.with_outputs(page, "rtl.md") == page
    assert drawn.units_svg() == picture


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.tpu"
    path.write_text(SMALL, "utf-8")
    return path


def test_run_says_that_all_is_equal(model: Path, rtl: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rtl", "run", model, "--target", "tiny", "--vcd", "small.vcd", "--early") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("small: ")
    counts = dict(part.rsplit(" ", 1) for part in lines[1].removeprefix("cycles: ").split(", "))
    assert counts["hardware"] == counts["simulator"]
    assert int(counts["decoding too"]) > int(counts["hardware"])
    assert lines[2].endswith("each as the simulator writes it")
    trace = Path("small.vcd").read_text("utf-8")
    assert "element_3_3_sum" in trace
    assert "matrix_starts" in trace


def test_run_ends_with_1_where_something_differs(
    model: Path, rtl: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tpucc.rtl.chip.chip", lambda shape: rtl.chip(replace(shape, row_cycles=2)))
    assert run("rtl", "run", model, "--target", "tiny") == 1
    captured = capsys.readouterr()
    assert "not all of them equal" in captured.out
    assert re.search(r"error E0962: the hardware differs from the simulator: cycle \d+, host\.ends \(instruction \d+\)", captured.err)


def test_json_has_the_cycles_of_both(model: Path, rtl: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rtl", "run", model, "--target", "tiny", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"]
    assert found["cycles"]["hardware"] == found["cycles"]["simulator"] > 0
    assert found["differences"] == []


LISTING = """
.target tiny
.input x 4x4
.output y 4x4
.block multiplier=0.01
.tile
| 1 2 3 4
| 5 6 7 8
| 1 1 1 1
| 2 2 2 2
    read_weights tile=0
    read_host_memory host=x.0 ub=0 rows=4
    set_configuration block=0
    synchronize engine=matrix wait=host
    matrix_multiply ub=0 acc=0 rows=4, switch
    synchronize engine=activation wait=matrix
    activate acc=0 ub=8 inner=4
    synchronize engine=host wait=activation
    write_host_memory ub=8 host=y.0 rows=4
    halt
"""


def test_a_listing_that_was_typed_runs_on_random_integers(
    tmp_path: Path, rtl: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("typed.asm").write_text(LISTING, "utf-8")
    assert run("asm", "typed.asm", "-o", "typed.tpub") == 0
    assert run("rtl", "run", "typed.tpub") == 0
    printed = capsys.readouterr().out
    assert "10 instructions on the hardware of tiny, on random integers from seed 0" in printed
    assert "16 rows written, each as the simulator writes it" in printed


def test_modules_are_written(tmp_path: Path, rtl: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """One for each unit, and the chip; each under its own name, and the element with names that a reader knows."""
    assert run("rtl", "verilog", "-o", tmp_path / "v") == 0
    written = {path.stem: path.read_text("utf-8") for path in (tmp_path / "v").iterdir()}
    assert written.keys() == {unit.name for unit in rtl.UNITS} | {"chip"}
    assert all(f"module {name}(" in text for name, text in written.items())
    assert written["lane"].startswith("// lane: a column of the activation unit")
    assert "element_0_0_sum <=" in written["element"]
    assert "assign element_0_0_used = (left_switch ? element_0_0_shadow : element_0_0_weight);" in written["element"]
    assert f"{len(written)} modules" in capsys.readouterr().out


def test_the_modules_of_another_width(tmp_path: Path, rtl: ModuleType) -> None:
    rates = ("--set", "host_row_bytes=2", "--set", "host_bandwidth=2e6")
    assert run("rtl", "verilog", "--set", "mxu=2", *rates, "-o", tmp_path / "v") == 0
    text = (tmp_path / "v" / "array.v").read_text("utf-8")
    assert "element_1_1_sum" in text
    assert "element_2_2_sum" not in text
    assert run("rtl", "verilog", "--set", "mxu=3", "-o", tmp_path / "odd") == 2


def test_without_pyrtl(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pyrtl", None)
    assert run("rtl", "run", model) == 2
    assert "error E0963: tpucc rtl needs a package that isn't installed: pyrtl" in capsys.readouterr().err


def test_without_yosys(tmp_path: Path, rtl: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tpucc.rtl.verilog.yosys", lambda: None)
    assert run("rtl", "verilog", "-o", tmp_path / "v", "--synthesize") == 2
    assert "E0963: --synthesize needs a program that isn't installed: yosys" in capsys.readouterr().err


@pytest.mark.long
def test_every_unit_can_be_synthesized_without_a_latch(tmp_path: Path, rtl: ModuleType) -> None:
    """The element has as many bits of registers as the source says: 9 + 1 + 32 + 8 + 8 + 3."""
    from tpucc.rtl.verilog import blocks, synthesized, verilog, yosys

    tool = yosys()
    if tool is None:
        pytest.skip("Yosys is not installed")
    for name, block in blocks(rtl.SHAPE).items():
        if name in ("element", "matrix", "accumulators"):
            (tmp_path / f"{name}.v").write_text(verilog(name, block), "utf-8")
            size = synthesized(tool, tmp_path, name)
            assert size.latches == 0
            assert size.path > 0
            assert name != "element" or size.registers == 9 + 1 + 32 + 8 + 8 + 3
