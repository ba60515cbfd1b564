"""`check` refuses exactly what `compile` refuses: the same status, the same codes, at the same places."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import SMALL, run
from tpucc.diagnostics import Source
from tpucc.driver import check_source, compile_source
from tpucc.interop.sources import read_source
from tpucc.language.problem import Limits
from tpucc.options import Keywords, options_of

ROOT = Path(__file__).resolve().parents[2]
BAD = sorted((ROOT / "tests" / "errors").glob("*.tpu"))
GOOD = [ROOT / "programs" / f"{name}.tpu" for name in ("01_hello", "02_iris", "05_digits_cnn", "13_quadric")]
GOOD += [path for path in sorted((ROOT / "tests" / "programs").glob("*.tpu")) if path.stem not in ("imdb_lstm", "mnist_cnn")]
MACHINES: dict[str, Keywords] = {
    "tiny": {"target": "tiny"},
    "small buffer": {"overrides": {"unified_buffer_rows": 40}},
    "few accumulators": {"target": "tiny", "overrides": {"accumulator_rows": 2}},
    "little weight memory": {"overrides": {"weight_memory_bytes": 70_000}},
    "cores": {"cores": 2},
}

SMALLER = {"resnet": {"blocks": "1", "batch": "1"}, "05_digits_cnn": {"batch": "20"}}
OTHER = {"left_constants", "01_hello"}
"""Programs that have the machine after theirs, on which they take 40,000 instructions."""
PAIRS = [
    pytest.param(path, machine, marks=() if (row + column + (path.stem in OTHER)) % len(MACHINES) == 0 else pytest.mark.soak)
    for row, path in enumerate(GOOD)
    for column, machine in enumerate(MACHINES)
]
"""Every program on one of the machines; in `make soak`, on all."""


LOWER = {
    "05_digits_cnn": Limits(instructions=150_000),
    "limit_steps": Limits(steps=2_000_000),
    "limit_calls": Limits(all_calls=10_000),
    "limit_static_calls": Limits(all_calls=10_000),
}
"""Bounds of programs that exceed the ordinary ones, to reach which takes seconds."""


def outcome(act: Any, path: Path, asked: Keywords) -> Any:
    """The status, the codes and the places of what is refused; 0 when nothing is."""
    try:
        act(read_source(path), path.parent, replace(options_of(**asked), limits=LOWER.get(path.stem, Limits())))
    except tpucc.Error as error:
        return type(error), [(found.code, found.message, found.labels) for found in error.diagnostics]
    return 0


@pytest.mark.long
@each({path.stem: (path,) for path in BAD})
def test_bad_programs(path: Path) -> None:
    refused = outcome(check_source, path, {})
    assert refused == outcome(compile_source, path, {}) != 0


@pytest.mark.parametrize(("path", "machine"), one_of(3, PAIRS), ids=lambda value: getattr(value, "stem", value))
def test_programs_on_small_machines(path: Path, machine: str) -> None:
    asked: Keywords = {**MACHINES[machine], "params": SMALLER.get(path.stem, {})}
    assert outcome(check_source, path, asked) == outcome(compile_source, path, asked)


@pytest.mark.long
def test_some_of_these_are_refused_and_some_are_not() -> None:
    found = {machine: outcome(check_source, GOOD[1], asked) for machine, asked in MACHINES.items()}
    refused = [machine for machine, result in found.items() if result]
    assert refused == ["little weight memory", "cores"]
    broadcasts = next(path for path in GOOD if path.stem == "broadcasts")
    (refusal,) = outcome(check_source, broadcasts, {"target": "tiny", "overrides": {"unified_buffer_rows": 4}})[1]
    assert refusal[0] == "E0621"


@pytest.mark.parametrize(
    ("stages", "layer", "lines"),
    [(tpucc.Stages(), "conv2", [9, 18]), (tpucc.Stages(lower_conv=lambda layer: pytest.fail("it isn't lowered")), "fc1", [14, 19])],
)
def test_a_program_of_too_many_instructions(stages: tpucc.Stages, layer: str, lines: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks have as many rows on a unit of one row as on a wide one: shorter ones would take 11.9 million instructions. A lowering of the
    user's counts as the least that it can take, and isn't called."""
    monkeypatch.setitem(LOWER, "05_digits_cnn", Limits(instructions=10_000))
    cnn, asked = GOOD[2], Keywords(overrides={"mxu": 1}, stages=stages)
    refused = outcome(check_source, cnn, asked)
    assert refused == outcome(compile_source, cnn, asked)
    ((code, message, labels),) = refused[1]
    assert code == "E0624"
    assert f"{layer} alone takes" in message
    assert int(message.split()[3].replace(",", "")) < 200_000
    assert [label.span.line for label in labels] == lines


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["-D", "units=9", "--weights", "w.npz"], 3, "E0425"),
        (["--weights", "nowhere.npz"], 2, "E0420"),
        (["--target", "nowhere"], 2, "E05"),
        (["--pass", "nowhere.py"], 2, "E0504"),
        (["--omit", "quantise"], 2, "E0506"),
        (["--cores", "3"], 2, "E0508"),
        (["-D", "unit=9"], 2, "E05"),
    ],
)
@pytest.mark.parametrize("command", ["check", "compile"])
def test_options(small: Path, capsys: pytest.CaptureFixture[str], command: str, arguments: list[str], status: int, code: str) -> None:
    np.savez("w.npz", w=np.zeros((6, 8), np.float32), v=np.zeros((8, 3), np.float32))
    assert run(command, small, *arguments) == status
    printed = capsys.readouterr()
    assert f"error {code}" in printed.err
    assert printed.out == ""
    assert run(command, small, *arguments, "--json") == status
    printed = capsys.readouterr()
    assert printed.err == ""
    assert json.loads(printed.out)[0]["code"].startswith(code)


def test_json_has_the_place_and_the_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.tpu"
    path.write_text("model m(x: f32[4, 8]) -> f32[4, 8]:\n    return relo(x)\n")
    assert run("check", path, "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("severity", "file", "line", "column")} == {
        "severity": "error",
        "file": "m.tpu",
        "line": 2,
        "column": 12,
    }
    assert found["spans"][0]["end_column"] == 16
    assert found["help"] == ["did you mean relu?"]


def test_a_good_program_has_no_diagnostics(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", small, "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run("check", small) == 0
    assert "no errors" in capsys.readouterr().out


def test_check_schedules_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tpucc.driver.fastest", lambda *_: pytest.fail("check looks for the fastest program"))
    monkeypatch.setattr("tpucc.isa.verify.check", lambda _: pytest.fail("check verifies"))
    assert check_source(Source("small.tpu", SMALL), tmp_path, options_of()).graph.name == "small"
