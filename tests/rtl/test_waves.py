"""`tpucc systolic --hardware`: the registers of the hardware's elements beside those of the array."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.command_line import run
from tpucc.see.waves import random_work
from tpucc.see.waves.terminal import comparison

pytestmark = pytest.mark.annex


@each([(4, 4, 6, 3, "small"), (3, 5, 4, 2, "int8"), (5, 2, 1, 1, "int8")])
def test_all_registers_are_equal_in_all_cycles(rows: int, columns: int, count: int, tiles: int, values: str, rtl: ModuleType) -> None:
    from tpucc.cosimulation.waves import array_registers

    work = random_work(rows, columns, count, tiles, 3, values)
    found = list(array_registers([frame.cycle for frame in work.frames]))
    assert comparison(work, found) == f"equal: {4 * rows * columns} registers of the hardware's elements, in {len(work.frames)} cycles"
    assert all(np.array_equal(each["sums"], frame.cycle.sums) for each, frame in zip(found, work.frames, strict=True))
    found[7]["shadow"][1, 0] += 1
    own = work.frames[7].cycle.shadow[1, 0]
    said = f"NOT EQUAL: in cycle 7, shadow of element (1,0) is {own + 1} in the hardware, and {own} here"
    assert comparison(work, found) == said


def test_the_command_says_it(tmp_path: Path, rtl: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("systolic", "--rows", 2, "--cols", 3, "--cycles", 4, "--hardware") == 0
    assert run("systolic", "--rows", 2, "--cols", 3, "--hardware", "-o", tmp_path / "waves.html") == 0
    assert capsys.readouterr().out.count("equal: 24 registers of the hardware's elements, in 13 cycles") == 2
    assert '"hardware":[{' in (tmp_path / "waves.html").read_text("utf-8")
    assert run("systolic", "--hardware", "-o", tmp_path / "waves.svg") == 2
    assert "--hardware is for text and for pages" in capsys.readouterr().err


def test_without_pyrtl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pyrtl", None)
    assert run("systolic", "--hardware") == 2
    assert "error E0963: --hardware needs a package that isn't installed: pyrtl" in capsys.readouterr().err
