"""Sweeps: the same table however it is computed, nothing lost and nothing twice, what is shared gives what a compile alone gives."""

from __future__ import annotations

import csv
import errno
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from itertools import combinations
from pathlib import Path
from threading import Event
from time import sleep
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import SMALL, run
from tpucc.cli import sweep_command
from tpucc.explain.sweeps.axes import axis_of_text, axis_of_values, split
from tpucc.explain.sweeps.figures import KEPT, Figures, figures_of, worded
from tpucc.explain.sweeps.journal import Journal, differences, journal_of
from tpucc.explain.sweeps.plan import Plan
from tpucc.explain.sweeps.points import run as compute
from tpucc.explain.sweeps.rows import Row, line_of_row, measured
from tpucc.explain.sweeps.shared import Compiler
from tpucc.explain.sweeps.summary import summary
from tpucc.interop.programs import folder
from tpucc.options import options_of
from tpucc.see.charts.fronts import Mark, front_svg
from tpucc.see.sweeps.heat import ROOMY, Cell, Hole, heat_map
from tpucc.see.sweeps.page import sweep_page
from tpucc.sim.timing import time_program
from tpucc.target import RANGES, load_target
from tpucc.tasks import cluster, computing, processes

AXES = ("--set", "mxu=16,32", "--set", "weight_bandwidth=34e9,68e9,136e9", "-D", "batch=4,8")
HOSTED = """
weights random(seed=1)
model hosted(x: f32[8, 40] in [-1.0, 1.0]):
    weight w: f32[40, 48]
    weight v: f32[48, 8]
    h = softmax(relu(x @ w))
    return h @ v
"""
"""A model with a step of the host in its middle."""


def plan_of(*axes: str, model: str = "small.tpu", given: Mapping[str, Any] | None = None) -> Plan:
    """The plan of axes like `mxu=16,32`, those with a `-` in front of params."""
    made = []
    for text in axes:
        name, _, values = text.removeprefix("-").partition("=")
        made.append(axis_of_text("param" if text.startswith("-") else "set", name, values))
    return Plan((model,), tuple(made), given or {})


def refused(*arguments: str) -> str:
    """What a sweep of the small model says when it is refused."""
    with pytest.raises(tpucc.UsageError) as caught:
        plan_of(*arguments).require(100)
    return caught.value.render().strip()


MESSAGES: Mapping[tuple[str, ...], str] = {
    ("mxu=",): "error E0560: value 1 of --set mxu is empty\nhelp: values have commas between them, as in 128,256",
    ("mxu=16,,32",): "error E0560: value 2 of --set mxu is empty\nhelp: values have commas between them, as in 128,256",
    ("mxu=16,16",): "error E0560: --set mxu has the value 16 twice",
    ("weight_bandwidth=34e9,34000000000",): "error E0560: --set weight_bandwidth has the value 34e9 twice",
    ("mxu=16", "mxu=32"): "error E0560: --set mxu is given twice\nhelp: one --set has all of its values",
    ("-batch=4", "-batch=8"): "error E0560: -D batch is given twice\nhelp: one -D has all of its values",
    ("mux=16",): "error E0531: a target has no number mux\nhelp: did you mean mxu?",
    ("mxu=wide",): "error E0531: mxu of a target is an integer from 1 to 1,024, not wide",
    ("weight_bandwidth=34GB",): "error E0531: weight_bandwidth of a target is a number from 1 to 10^18, not 34GB",
    ("mxu=1.5",): "error E0531: mxu of a target is an integer from 1 to 1,024, not 1.5",
    ("mxu:cores=16",): "error E0560: --set mxu:cores has 2 names, and 16 has 1 value",
    ("mxu:mxu=16:16",): "error E0560: --set mxu:mxu doesn't name one or several different things\nhelp: write --set NAME=A,B,…",
    (
        "-batch=1,2,3,4,5,6,7,8,9,10,11",
        "mxu=1,2,3,4,5,6,7,8,9,10",
    ): "error E0560: the sweep has 110 points (1 × 11 × 10), and at most 100 are computed\nhelp: --most 110 allows them",
}


def test_names_that_turn_the_text_are_written_out(small: Path) -> None:
    """On the terminal and in the page, in which `gpj.tpu` after U+202E would read `upt.jpg`; the table has the name itself."""
    names = ["a\u202egpj.tpu", "b\u2066.tpu"]
    for name in names:
        Path(name).write_text(small.read_text("utf-8"), "utf-8")
    found = tpucc.sweep(names, params={"batch": [4, 8]}, jobs=1)
    for text in (summary(found), sweep_page(found)):
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
        assert "a\\u202egpj" in text
    assert found[0]["model"] == names[0]


@each(list(MESSAGES))
def test_axes_that_are_refused(axes: tuple[str, ...]) -> None:
    assert refused(*axes) == MESSAGES[axes]


def test_values_with_brackets_and_texts_are_not_cut() -> None:
    assert split('[1, 2],"a,b",(3,4),5', ",") == ["[1, 2]", '"a,b"', "(3,4)", "5"]
    assert axis_of_text("param", "sizes", "[1, 2],[3]").values == (("[1, 2]",), ("[3]",))


def test_axes_of_python_values_are_those_of_the_command_line() -> None:
    assert axis_of_values("set", "weight_bandwidth", [34e9, 68e9]) == axis_of_text("set", "weight_bandwidth", "34e9,68000000000")
    assert axis_of_values("set", "mxu", np.array([16, 32])) == axis_of_text("set", "mxu", "16,32")
    assert axis_of_values("param", "batch", 8) == axis_of_text("param", "batch", "8")
    linked = axis_of_values("set", ("mxu", "accumulator_rows"), [(16, 64), (32, 32)])
    assert linked == axis_of_text("set", "mxu:accumulator_rows", "16:64, 32:32")
    assert axis_of_values("param", "name", "a,b").values == (('"a,b"',),)


@pytest.mark.parametrize(
    "program", [pytest.param("02_iris", marks=pytest.mark.long), "hosted", pytest.param("05_digits_cnn", marks=pytest.mark.soak)]
)
def test_what_points_share_gives_the_program_of_a_compile_alone(program: str, tmp_path: Path) -> None:
    """For each number of the machine, halved and doubled, after each other, so that each finds what those before have made."""
    path, compiler, base = folder() / f"{program}.tpu", Compiler(), load_target("tpu_v1")
    if program == "hosted":
        path = tmp_path / "hosted.tpu"
        path.write_text(HOSTED)
    factors = (0.5, 2) if program == "hosted" else (2,)
    changes = [(name, getattr(base, name) * factor) for name in RANGES for factor in factors if name not in ("cores", "matrix_units")]
    for name, value in [*changes, ("clock_hz", base.clock_hz)]:
        options = options_of(overrides={name: value})
        program_of = compiler.program(path, options)
        alone = tpucc.compile(path, overrides={name: value}).runtime
        assert program_of == alone.program, (name, value)
        assert time_program(program_of).makespan == alone.stats["cycles"]
    assert compiler.made["models"] == 1
    assert compiler.made["programs"] <= len(changes), "some points have one program"


IMAGE = """
weights random(seed=1)
model image(x: f32[4, 12, 12, 3] in [-1.0, 1.0]):
    weight k: f32[3, 3, 3, 16]
    return conv2d(x, k)
"""


def test_what_points_share_knows_how_the_host_packs_patches(tmp_path: Path) -> None:
    """How fast the host is, and how rows are padded on its link, decides which windows are packed, if any."""
    (tmp_path / "image.tpu").write_text(IMAGE)
    compiler, notes = Compiler(), set()
    for rate in (1e9, 1e11):
        for size in (1, 64, 256):
            overrides = {"host_elements_per_second": rate, "host_row_bytes": size}
            found = compiler.program(tmp_path / "image.tpu", options_of(overrides=overrides))
            alone = tpucc.compile(tmp_path / "image.tpu", overrides=overrides)
            assert found == alone.runtime.program, overrides
            notes.add(next((note for note in alone.notes if "the host packs" in note), ""))
    assert len(notes) == 3


def test_what_changes_only_time_is_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "hosted.tpu").write_text(HOSTED)
    compiler = Compiler()
    cycles = set()
    for step in (1e-6, 10e-6, 50e-6):
        cycles.add(
            time_program(compiler.program(tmp_path / "hosted.tpu", options_of(level=0, overrides={"host_step_seconds": step}))).makespan
        )
    assert len(cycles) == 3
    assert compiler.made == {"models": 1, "graphs": 1, "programs": 1}


def test_the_model_is_read_once_for_each_of_its_params(small: Path) -> None:
    compiler, plan = Compiler(), plan_of("mxu=16,32", "-batch=4,8", "clock_hz=700e6,800e6", model=str(small))
    for point in plan.order(range(plan.count)):
        compiler.program(small, plan.options(point))
    assert compiler.made["models"] == 2


def test_code_of_the_users_is_run_for_each_point(small: Path) -> None:
    """It may look at a target in ways that nobody sees."""
    source = "class Mine:\n    name = 'mine'\n    summary = 'nothing'\n    def run(self, graph, context):\n        return graph\n"
    small.with_name("mine.py").write_text(source)
    plan, compiler = plan_of("host_step_seconds=1e-6,2e-6", model=str(small), given={"passes": ("mine.py",)}), Compiler()
    for point in range(2):
        compiler.program(small, plan.options(point))
    assert compiler.made == {"models": 1, "graphs": 2, "programs": 2}


def table_bytes(*arguments: str, output: str) -> bytes:
    assert run("sweep", "small.tpu", *AXES, "-o", output, "--quiet", *arguments) == 0
    return Path(output).read_bytes()


def test_one_process_two_and_a_second_run_write_the_same_bytes(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = table_bytes("--jobs", "1", output="one.csv")
    assert table_bytes("--jobs", "2", output="two.csv") == one
    lines = Path("one.points.jsonl").read_bytes().splitlines(keepends=True)
    torn = b"".join([lines[0], lines[5], lines[2], lines[5], lines[9][:40]])
    Path("rest.points.jsonl").write_bytes(torn)
    assert table_bytes("--jobs", "1", output="rest.csv") == one
    rest = Path("rest.points.jsonl").read_bytes()
    assert rest.startswith(b"".join([lines[0], lines[5], lines[2], lines[5]]))
    assert len(rest.splitlines()) == len(lines) + 1, "the one that was there twice; the torn line is gone, nothing else is computed again"
    assert Path("two.html").read_bytes() == Path("one.html").read_bytes()
    monkeypatch.setattr("tpucc.explain.sweeps.points.measured", None)
    assert table_bytes("--jobs", "1", output="rest.csv") == one, "all are done: nothing is computed"


@pytest.mark.long
def test_ctrl_c_says_what_is_done(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = table_bytes("--jobs", "1", output="one.csv")

    def interrupted(compiler: Compiler, plan: Plan, point: int) -> Row:
        if point == plan.count - 1:
            raise KeyboardInterrupt
        return measured(compiler, plan, point)

    with monkeypatch.context() as patched:
        patched.setattr("tpucc.explain.sweeps.points.measured", interrupted)
        assert run("sweep", "small.tpu", *AXES, "-o", "two.csv", "--jobs", "1") == 130
    assert "note: 11 of 12 points are done; the same command goes on from there" in capsys.readouterr().err
    assert not Path("two.csv").exists()
    assert table_bytes("--jobs", "1", output="two.csv") == alone


@pytest.mark.long
def test_rows_are_what_profile_says(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table_bytes("--jobs", "1", output="one.csv")
    rows = list(csv.DictReader(Path("one.csv").read_text("utf-8").splitlines()))
    assert [(row["mxu"], float(row["weight_bandwidth"]), row["batch"]) for row in rows] == [
        (mxu, bandwidth, batch) for mxu in ("16", "32") for bandwidth in (34e9, 68e9, 136e9) for batch in ("4", "8")
    ]
    assert run(*rows[7]["command"].split()[1:], "--json") == 0
    stats = json.loads(capsys.readouterr().out)
    assert stats["cycles"] == int(rows[7]["cycles"])
    whole = {"seconds": "end_to_end_seconds", "stream_seconds": "stream_seconds"}
    assert all(stats["end_to_end"][key] == float(rows[7][name]) for key, name in whole.items())
    whole = {"bottleneck": "end_to_end_bottleneck", "explanation": "end_to_end_explanation", "stream_bottleneck": "stream_bottleneck"}
    assert all(stats["end_to_end"][key] == rows[7][name] for key, name in whole.items())
    assert stats["explanation"] == rows[7]["explanation"]
    assert stats["breakdown"]["useful_macs"] == float(rows[7]["useful_macs"])
    assert stats["ub_peak_bytes"] == int(rows[7]["ub_peak_bytes"])


def test_rows_have_the_products_of_the_host_and_of_the_activation_unit(tmp_path: Path) -> None:
    """A product of two values is the host's; a depthwise convolution of 2×2 pixels with 3×3 taps, 4 channels, has 144 MACs."""
    text = """weights random(seed=0)
param batch = 1

model mixed(x: f32[batch, 3, 5], y: f32[batch, 5, 2], z: f32[batch, 2, 2, 4]):
    weight k: f32[3, 3, 1, 4]
    a = x @ y
    b = conv2d(z, k, groups=4, padding="same")
    return a, b
"""
    (tmp_path / "mixed.tpu").write_text(text)
    rows = [measured(Compiler(), plan_of("-batch=1,2", model=str(tmp_path / "mixed.tpu")), point) for point in (0, 1)]
    assert [(row["host_macs"], row["vector_macs"]) for row in rows] == [(30, 144), (60, 288)]


OTHERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "a value less": (("--set", "mxu=16"), "another sweep: of the values of --set mxu, only it has 32\n"),
    "another value": (("--set", "mxu=16,64"), "of the values of --set mxu, only it has 32, and only this one has 64\n"),
    "the order": (("--set", "mxu=32,16"), "another sweep: its values of --set mxu are in another order\n"),
    "an axis": (("--set", "mxu=16,32", "-D", "batch=4"), "another sweep: only this one has the axis -D batch\n"),
    "options": (("--set", "mxu=16,32", "-O0", "--activation-bits", "16"), "only this one has the options -O0 and --activation-bits 16\n"),
    "source": (("--set", "mxu=16,32"), "small.tpu or a file that it names has changed"),
    "version": (("--set", "mxu=16,32"), "it was made by tpucc 0, not"),
    "none": (("--set", "mxu=16,32"), "isn't the points of a sweep"),
}


@pytest.mark.parametrize("change", one_of(2, OTHERS))
def test_the_points_of_another_sweep_are_refused(change: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", small, "--set", "mxu=16,32", "-o", "a.csv", "--quiet", "--jobs", "1") == 0
    kept = Path("a.points.jsonl")
    if change == "source":
        small.write_text(SMALL + "# more\n")
    if change == "version":
        kept.write_text(kept.read_text().replace(f'"tpucc":"{tpucc.__version__}"', '"tpucc":"0"'))
    if change == "none":
        kept.write_text("a,b\n")
    before, (arguments, words) = kept.read_bytes(), OTHERS[change]
    capsys.readouterr()
    assert run("sweep", small, *arguments, "-o", "a.csv", "--quiet") == 2
    told = capsys.readouterr().err
    assert "error E0561: a.points.jsonl" in told
    assert words in told
    assert kept.read_bytes() == before


LONG = [str(value) for value in range(16, 256)]
SWEPT: Mapping[str, Any] = {
    "tpucc": "1",
    "models": {"a.tpu": "0", "b.tpu": "0"},
    "options": ["-O0", "--pass", "p.py", "0"],
    "axes": {"--set mxu": LONG, "-D batch": ["4", "8"]},
}
DIFFERENCES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "nothing": ({}, ""),
    "values of long axes": (
        {"axes": {"--set mxu": [*LONG[:-1], "999", "1000"], "-D batch": ["4", "8"]}},
        "of the values of --set mxu, only it has 255, and only this one has 999 and 1000",
    ),
    "many values": (
        {"axes": {"--set mxu": LONG[:7], "-D batch": ["4", "8"]}},
        "of the values of --set mxu, only it has 23, 24, 25, 26, 27 and 228 more",
    ),
    "a long value": (
        {"axes": {"--set mxu": LONG, "-D batch": ["4", "8", "9" * 50 + "8" * 50]}},
        f"of the values of -D batch, only this one has {'9' * 20}…{'8' * 20}",
    ),
    "the order of the axes": ({"axes": {"-D batch": ["4", "8"], "--set mxu": LONG}}, "its axes are in another order"),
    "the order of the models": ({"models": {"b.tpu": "0", "a.tpu": "0"}}, "its models are in another order"),
    "a model": ({"models": {"a.tpu": "0"}}, "only it has the model b.tpu"),
    "a file of a model": ({"models": {"a.tpu": "0", "b.tpu": "1"}}, "b.tpu or a file that it names has changed"),
    "an option": (
        {"options": ["--pass", "q.py", "0"]},
        "only it has the options -O0 and --pass p.py; only this one has the option --pass q.py",
    ),
    "a file of an option": ({"options": ["-O0", "--pass", "p.py", "1"]}, "a file that an option names has changed"),
    "axes": (
        {"axes": {"--set mxu:rows": ["1:2"], "-D batch": ["4"]}},
        "only it has the axis --set mxu; only this one has the axis --set mxu:rows; of the values of -D batch, only it has 8",
    ),
    "more than a message has room for": (
        {
            "tpucc": "2",
            "axes": {str(place): [] for place in range(9)},
            "models": {f"{place}.tpu": "0" for place in range(3)},
            "options": ["0"],
        },
        "it was made by tpucc 1, not 2; only it has the models a.tpu and b.tpu; only this one has the models 0.tpu, 1.tpu and 2.tpu; only "
        "it has the options -O0 and --pass p.py; only it has the axes --set mxu and -D batch; and 1 more difference",
    ),
}


@each(list(DIFFERENCES))
def test_a_message_says_what_differs(name: str) -> None:
    """However long both sides are."""
    change, words = DIFFERENCES[name]
    assert differences(SWEPT, {**SWEPT, **change}) == words


@each(["weights", "calibration", "passes", "stages", "target"])
def test_every_file_that_an_option_names_is_part_of_the_sweep(option: str, tmp_path: Path) -> None:
    """Points that another content of it gave aren't kept."""
    (tmp_path / "small.tpu").write_text(SMALL)
    file = tmp_path / "named.toml"
    given = {option: {"passes": (str(file),), "stages": {"order": str(file)}}.get(option, str(file))}
    found = set()
    for content in ("a", "b", "a"):
        file.write_text(content)
        found.add(plan_of("mxu=16,32", model=str(tmp_path / "small.tpu"), given=given).digest)
    assert len(found) == 2


def test_without_a_name_for_the_table_another_sweep_has_points_of_its_own(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for batch in ("batch=2", "batch=3", "batch=2"):
        assert run("sweep", small, "-D", batch, "--jobs", "1") == 0
    assert capsys.readouterr().out.count("the point is of an earlier run.") == 1
    assert len(list(Path("build/small").glob("sweep.*.points.jsonl"))) == 2
    assert [row["batch"] for row in csv.DictReader(Path("build/small/sweep.csv").read_text("utf-8").splitlines())] == ["2"]


def test_axes_in_another_order_are_another_sweep(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its points have other numbers."""
    one, other = ("--set", "mxu=16,32"), ("--set", "weight_bandwidth=34e9,68e9")
    rest = ("-o", "a.csv", "--quiet", "--jobs", "1")
    assert run("sweep", small, *one, *other, *rest) == 0
    assert run("sweep", small, *other, *one, *rest) == 2
    assert "a.points.jsonl has the points of another sweep: its axes are in another order" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_points_that_are_no_file_are_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reading a pipe or a device would never end."""
    os.mkfifo("a.points.jsonl")
    assert run("sweep", small, "--set", "mxu=16,32", "-o", "a.csv", "--quiet", "--jobs", "1") == 2
    assert "error E0504: can't read a.points.jsonl: is a pipe or a device, not a file" in capsys.readouterr().err


def held_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of points can be read only."""
    opened = Path.open

    def only_read(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if path.name.endswith(".points.jsonl") and "+" in mode:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", only_read)


def test_points_that_cant_be_written_are_enough_where_none_is_missing(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("sweep", "small.tpu", "--set", "mxu=16,32", "-o", "a.csv", "--jobs", "1")
    assert run(*arguments) == 0
    table = Path("a.csv").read_bytes()
    held_open(monkeypatch)
    assert run(*arguments) == 0
    assert Path("a.csv").read_bytes() == table
    points = journal_of(Path("a.csv"))
    kept = points.read_bytes()
    points.write_bytes(kept[: kept.rindex(b"\n", 0, -1) + 5])
    capsys.readouterr()
    assert run(*arguments) == 2
    error = "error E0505: can't write a.points.jsonl: permission denied"
    assert capsys.readouterr().err.startswith(f"{error}\nhelp: name another place, with -o")
    assert points.read_bytes() == kept[: kept.rindex(b"\n", 0, -1) + 5]


class FullDisk:
    """A file on a disk without room, that is otherwise `file`."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_names_the_points(small: Path) -> None:
    plan = plan_of("mxu=16,32")
    with Journal(journal_of(Path("a.csv")), plan.identity, plan.count) as journal:
        journal._file = FullDisk(journal._file)  # type: ignore[assignment]
        with pytest.raises(tpucc.UsageError, match=r"E0505: can't write a\.points\.jsonl: the disk is full\nhelp: "):
            compute(plan, journal, jobs=1)


def test_two_commands_cant_write_one_table(small: Path) -> None:
    pytest.importorskip("fcntl")
    plan = plan_of("mxu=16,32", model=str(small))
    with Journal(journal_of(Path("a.csv")), plan.identity, 2), pytest.raises(tpucc.UsageError, match="written by another command"):
        Journal(journal_of(Path("a.csv")), plan.identity, 2)


def test_a_point_that_cant_be_compiled_is_a_row(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", small, "--set", "weight_memory_bytes=100,1000000", "-o", "a.json", "--jobs", "1") == 0
    assert "2 points, 1 compiled; not compiled: 1 with E0622" in capsys.readouterr().out
    first, second = json.loads(Path("a.json").read_text())
    assert first["cycles"] is None
    assert first["error"] == "E0622"
    assert "weight memory" in first["reason"]
    assert (second["error"], second["reason"]) == (None, None)


def test_a_text_that_is_no_value_is_refused_before_anything_is_computed(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", small, "-D", "batch=4,x", "-o", "a.json", "--jobs", "1") == 2
    assert capsys.readouterr().err.startswith("-D batch:1:1: error E0519: this is no value: nothing is named x\n")
    assert {path.name for path in Path().iterdir()} == {"small.tpu"}


def test_a_number_that_no_machine_has_is_an_error_of_its_points(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And a second run says whose the points are."""
    for kept in ("", "\nall 2 points are of an earlier run. a.json; a.html"):
        assert run("sweep", small, "--set", "mxu=0,16", "-o", "a.json", "--jobs", "1") == 0
        printed = capsys.readouterr().out
        assert "2 points, 1 compiled; not compiled: 1 with E0531" in printed
        assert kept in printed
    assert json.loads(Path("a.json").read_text())[0]["reason"].endswith("mxu must be an integer from 1 to 1,024, and is 0")


def test_a_sweep_of_which_nothing_compiles_fails(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its error is said, with --quiet too."""
    command = ("sweep", small, "--set", "weight_memory_bytes=100,200", "-o", "a.csv", "--jobs", "1")
    assert run(*command) == 1
    assert "2 points, 0 compiled" in capsys.readouterr().out
    assert run(*command, "--quiet") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error E0622: no point can be compiled; the first: ")


def test_a_param_that_no_model_has_is_refused_before_anything_is_written(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().iterdir())
    assert run("sweep", small, "-D", "bach=4,8", "-o", "a.csv", "--jobs", "1", "--quiet") == 2
    assert "error E0510: the source has no param bach\n" in capsys.readouterr().err
    assert run("sweep", small, "-D", "bach=4,8", "-o", "a.csv", "--json") == 2
    [told] = json.loads(capsys.readouterr().out)
    assert (told["code"], told["help"]) == ("E0510", ["did you mean batch?"])
    assert sorted(Path().iterdir()) == before
    Path("other.tpu").write_text(SMALL.replace("batch", "rows"))
    assert run("sweep", small, "other.tpu", "-D", "batch=4,8", "-o", "a.json", "--jobs", "1", "--quiet") == 0
    assert [row["error"] for row in json.loads(Path("a.json").read_text())] == [None, None, "E0510", "E0510"]


LINES: Mapping[str, Mapping[str, Any] | str | None] = {
    "a number that was changed": None,
    "a number of 401 digits": {"cycles": 10**400},
    "a number that a table can't hold": {"cycles": 2**63},
    "a text for a number": {"cycles": "<b>"},
    "a negative number": {"cycles": -1},
    "no number": {"tops": float("nan")},
    "a bottleneck that isn't one": {"bottleneck": "nonsense"},
    "another column": {"more": 1},
    "a column less, as earlier versions wrote": {"stream_seconds": None},
    "a fraction of a point": {"point": 0.5},
    "depth": "[" * 100_000,
    "no text": "\udcff",
}


@pytest.mark.parametrize("change", one_of(2, LINES))
def test_a_line_that_no_sweep_writes_is_computed_again(change: str, small: Path) -> None:
    command = ("sweep", small, "--set", "mxu=16,32", "--jobs", "1", "--quiet", "-o")
    assert run(*command, "one.csv") == 0
    head, first, *rest = Path("one.points.jsonl").read_text("utf-8").splitlines()
    new = LINES[change]
    if isinstance(new, str):
        first = new
    elif new is None:
        first = first.replace('"cycles":', '"cycles":1')
    else:
        row: dict[str, Any] = {name: value for name, value in json.loads(first).items() if name != "crc"} | new
        row = {name: value for name, value in row.items() if value is not None}
        first = line_of_row(row.pop("point"), row).decode().rstrip()
    Path("two.points.jsonl").write_text("\n".join([head, first, *rest, ""]), "utf-8", "surrogateescape")
    assert run(*command, "two.csv") == 0
    assert Path("two.csv").read_bytes() == Path("one.csv").read_bytes()


def test_points_that_another_command_writes_are_left_alone(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty file is that of a command that was killed before it wrote a line: it is begun."""
    fcntl = pytest.importorskip("fcntl")
    command, kept = ("sweep", small, "--set", "mxu=16", "-o", "a.csv", "--jobs", "1", "--quiet"), Path("a.points.jsonl")
    kept.touch()
    with kept.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert run(*command) == 2
    told = capsys.readouterr().err
    assert "error E0561: a.points.jsonl is being written by another command\nhelp: wait until that has ended, or name" in told
    assert kept.read_bytes() == b""
    assert run(*command) == 0
    assert len(kept.read_text().splitlines()) == 2


@each(["[" * 100_000, '{"tpucc":1,"models":1,"options":5,"axes":[]}', "9" * 401])
def test_a_first_line_that_no_sweep_writes_is_refused(text: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.points.jsonl").write_text(f"{text}\n")
    assert run("sweep", small, "--set", "mxu=16", "-o", "a.csv", "--jobs", "1") == 2
    assert "error E0561: a.points.jsonl isn't the points of a sweep" in capsys.readouterr().err


def test_integers_of_a_param_stay_integers(small: Path) -> None:
    small.write_text(SMALL.replace("param batch", "param scale = 1\nparam batch"))
    run("sweep", small, "-D", "scale=0,1,1.5", "-o", "a.csv", "--jobs", "1", "--quiet")
    rows = list(csv.DictReader(Path("a.csv").read_text("utf-8").splitlines()))
    assert [row["scale"] for row in rows] == ["0", "1", "1.5"]
    assert [row["command"].rpartition(" ")[2] for row in rows] == ["scale=0", "scale=1", "scale=1.5"]


def test_the_progress_is_away_before_the_summary(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the summary's first line stands behind it."""
    events: list[str] = []

    class Told(sweep_command.Progress):
        def close(self) -> None:
            events.append("away")
            super().close()

    monkeypatch.setattr(sweep_command, "Progress", Told)
    monkeypatch.setattr(sweep_command, "_print", lambda *_: events.append("summary"))
    assert run("sweep", small, "-D", "batch=4", "--jobs", "1") == 0
    assert events[:2] == ["away", "summary"]


def test_the_summary_has_the_fronts_of_what_was_swept(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", small, *AXES, "-o", "a.csv", "--jobs", "1") == 0
    told = " ".join(capsys.readouterr().out.split())
    costs = (
        "narrower or equally wide unit",
        "slower or equally fast weight memory",
        "program that uses as much of the unified buffer or less",
    )
    assert [told.count(f"Pareto front: no {cost} is faster. ") for cost in costs] == [1, 1, 0]
    assert "the page has the same for unified buffer in use" in told


def test_a_front_says_all_values_of_its_points(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    axes = ("mxu:accumulator_rows=16:4096,32:4096", "weight_memory_bytes=200000000,300000000", "unified_buffer_rows=90000,98304")
    sets = [word for axis in axes for word in ("--set", axis)]
    assert run("sweep", small, *sets, "-D", "batch=4,8", "-o", "a.csv", "--jobs", "1") == 0
    told = capsys.readouterr().out
    front = told.partition("unit is faster.")[2].partition("Pareto")[0]
    assert max(map(len, front.splitlines())) <= 80
    assert re.search(r"\nbest: [\d.]+ [GM]OPS end to end, ", told), told
    words = " ".join(front.split())
    assert words.startswith("mxu speed end to end bottleneck other values 16 ")
    assert re.search(r" weight_memory_bytes 200000000, unified_buffer_rows 90000, batch \d", words)


def test_the_best_of_several_says_how_many_have_as_much(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", "small.tpu", "--set", "weight_memory_bytes=1000000,2000000,4000000", "-o", "a.csv", "--jobs", "1") == 0
    assert "; 2 other points have as much: " in " ".join(capsys.readouterr().out.split())
    assert "; 2 other points have as much" in Path("a.html").read_text()


@pytest.mark.soak
def test_a_page_of_many_axes_says_which_maps_it_leaves_out(small: Path) -> None:
    """Each model has maps of its own."""
    Path("other.tpu").write_text(SMALL)
    numbers = ("host_bandwidth", "weight_bandwidth", "clock_hz", "host_elements_per_second", "accumulator_rows")
    base = load_target("tpu_v1")
    axes = [f"--set={name}={getattr(base, name)},{getattr(base, name) * 2}" for name in numbers]
    assert run("sweep", "small.tpu", "other.tpu", *axes, "-o", "a.csv", "--jobs", "1") == 0
    page = Path("a.html").read_text()
    left = [f"{first} and {second}" for first, second in combinations(numbers, 2)][5:]
    assert f"The first 5 of 10 pairs; there is no map of {', '.join(left[:-1])} and {left[-1]}." in page
    maps = [f"time end to end of {model}; across: host_bandwidth; down: weight_bandwidth" for model in ("small", "other")]
    assert all(page.count(f"<figcaption>{words}") == 1 for words in maps)


def test_numbers_of_the_page_have_all_digits_of_their_whole_part(small: Path) -> None:
    bandwidths = [10737418240, 1e10 / 3]
    page = sweep_page(tpucc.sweep(small, overrides={"host_bandwidth": bandwidths}, jobs=1))
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    place = data["columns"].index("host_bandwidth")
    assert [row[place] for row in data["rows"]] == bandwidths
    seconds = [row[data["columns"].index("seconds")] for row in data["rows"]]
    assert seconds == [float(f"{value:.6g}") for value in seconds]
    assert '"rows":[[0,10737418240,' in page, "a whole number is none with a fraction"


def test_heads_of_the_page_have_units(small: Path) -> None:
    """One for all times; and what one can search for is there."""
    page = sweep_page(tpucc.sweep(small, overrides={"weight_bandwidth": [34e9], "mxu": [16, 32]}, jobs=1))
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert [data["heads"][column] for column in data["times"]] == ["end to end, µs", "in a stream, µs", "device, µs"]
    assert data["of_a_second"] == 10**6
    assert {"useful_macs, %", "weight_bandwidth, bytes/s", "macs", "ub_peak_bytes"} < set(data["heads"])
    assert re.search(r'placeholder="find: [a-z ]+ mxu=32"', page)


def test_a_hole_in_a_map_has_its_reason(small: Path) -> None:
    """Where only some points of a pair can't be compiled, the best of the others stands there."""
    sets = {"mxu": [16, 32], "weight_memory_bytes": [100, 1_000_000]}
    found = tpucc.sweep(small, overrides=sets, params={"batch": [4, 8]}, table="a.csv", jobs=1)
    page = sweep_page(found)
    maps = [unescape(table) for table in re.findall(r'<table class="heat".*?</table>', page, re.DOTALL)]
    assert [table.count('class="hole"') for table in maps] == [2, 0, 2]
    assert page.count("Dashed: nothing there can be compiled.") == 1
    first = found[0]
    assert f'title="mxu 16, weight_memory_bytes 100, batch 4: E0622, {first["reason"]} (and so all 2 points here)"' in maps[0]
    assert maps[0].count(f">{first['error']}<") == 2


def test_a_map_has_a_scale_of_its_colours() -> None:
    """From the worst value to the best; none where there is but one."""
    cells = {(place, 0): Cell(place, 1 / value, "host link", f"{value} TOPS", "") for place, value in enumerate((3, 1, 9))}
    drawn = heat_map((["64", "128", "256"], ["8"]), cells)
    assert re.search(r'class="scale">1 TOPS<span class="ramp">.</span>9 TOPS<', drawn)
    assert re.findall(r"--share:([\d.]+)", drawn) == ["0.500", "0.000", "1.000"]
    one = heat_map((["64"], ["8"]), {(0, 0): cells[0, 0]})
    assert "ramp" not in one
    assert re.findall(r"--share:([\d.]+)", one) == ["1.000"]


def test_a_map_of_many_columns_has_small_cells_and_heads_where_there_is_room() -> None:
    """Every cell stands in its row and column, and can be chosen; heads go over all of them."""
    across, down = [f"{n:,}" for n in range(1000, 1000 + 4 * ROOMY)], [f"{n}" for n in range(50)]
    cells: dict[tuple[int, int], Cell | Hole] = {
        (x, y): Cell(100 * y + x, 1.0 + x, "host link", f"{x}", "words") for x in range(len(across)) for y in range(len(down))
    }
    cells[3, 0] = Hole(3, (("E0622", 1),), "words")
    drawn = heat_map((across, down), {place: cell for place, cell in cells.items() if place != (2, 0)})
    assert "words" not in drawn
    assert "<a " not in drawn
    first, second, *_ = (re.findall(r'data-point="(\d+)"', line) for line in drawn.split("<tr>")[2:])
    assert first == [str(x) for x in range(len(across)) if x != 2]
    assert second == [str(100 + x) for x in range(len(across))]
    for span, texts in (("colspan", across), ("rowspan", down)):
        heads = [(int(count), text) for count, text in re.findall(rf'<th {span}="(\d+)">([^<]+)</th>', drawn)]
        assert sum(count for count, _ in heads) == len(texts)
        assert 1 < heads[0][0] < 10
        assert [text for _, text in heads] == texts[:: heads[0][0]]


def test_a_hole_in_a_map_has_all_reasons_of_its_points(small: Path) -> None:
    """Several points fall on one cell where more than two axes vary."""
    sets = {"mxu": [16, 32], "weight_memory_bytes": [100, 1_000_000]}
    page = unescape(sweep_page(tpucc.sweep(small, overrides=sets, params={"batch": [4, 8, 0]}, jobs=1)))
    of_cell = page.partition("title=\"mxu 16, weight_memory_bytes 100, batch 4: E0622, the weights don't fit")[2].partition("</a>")[0]
    words, _, shown = of_cell.partition('"')
    other = re.search(r" \(2 of 3 points here\); 1 point: (E\d{4}), [^;]+$", words)
    assert other
    assert re.findall(r">([^<>]+)</span>", shown) == ["E0622 × 2", f"{other[1]} × 1"]


def test_a_hole_names_a_few_of_many_errors() -> None:
    assert Hole(0, (("E0622", 3),), "").lines == ["E0622"]
    assert Hole(0, (("E0622", 3), ("E0531", 1)), "").lines == ["E0622 × 3", "E0531 × 1"]
    assert Hole(0, (("E0622", 3), ("E0531", 2), ("E0510", 1)), "").lines == ["E0622 × 3", "others × 3"]


def test_sizes_are_marked_at_powers_of_two() -> None:
    marks = [Mark(point, 1000.0 * 1.7**point, 100.0 - point, "nothing", "") for point in range(14)]
    words = partial(worded, "ub_peak_bytes"), partial(worded, "cycles")
    svg = front_svg("f", "about", ("buffer", "cycles"), marks, {"": [0]}, words, binary=True)
    assert re.findall(r">([\d.,]+ (?:bytes|KiB|MiB))<", svg) == ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]


def test_each_mark_below_a_chart_has_its_number() -> None:
    """Of costs that are near each other the first is marked."""
    words = partial(worded, "ub_peak_bytes"), partial(worded, "cycles")
    for costs, numbers in (
        ((427136, 2562688, 5125376, 7047168, 14094336), 4),
        ((1000, 1010, 1020, 9000), 2),
        ((1, 10, 100), 3),
    ):
        marks = [Mark(point, float(cost), 100.0 - point, "nothing", "") for point, cost in enumerate(costs)]
        svg = ET.fromstring(front_svg("f", "about", ("buffer", "cycles"), marks, {"": [0]}, words))
        written = [text for text in svg.iter("{http://www.w3.org/2000/svg}text") if re.search("bytes|iB", text.text or "")]
        ticks = [line for line in svg.iter("{http://www.w3.org/2000/svg}line") if line.get("x1") == line.get("x2")]
        assert sorted(text.get("x") or "" for text in written) == sorted(line.get("x1") or "" for line in ticks)
        assert len(written) == numbers


def test_a_source_that_is_wrong_stops_the_sweep(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.write_text("model small(\n")
    assert run("sweep", small, "--set", "mxu=16,32") == 1
    assert "error E01" in capsys.readouterr().err
    assert not Path("build").exists()


ENDS = """import os, pathlib, signal
class Mine:
    name = "mine"
    summary = "ends its process"
    def run(self, graph, context):
        rows = graph.inputs[0].type.shape[0]
        once = pathlib.Path("once")
        first = rows == 4 and not once.exists()
        if first:
            once.touch()
        if first or rows == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return graph
"""


@pytest.mark.parametrize(
    "alone", one_of(2, [False, True], pytest.mark.long), ids=["in this process", "in its own, which its first processes are copies of"]
)
def test_a_process_that_ends_is_replaced(alone: bool, small: Path) -> None:
    """A pass ends its process: once at a batch of 4, always at 8. Nothing is lost, and nothing is there twice."""
    Path("mine.py").write_text(ENDS)
    words = ["sweep", str(small), "-D", "batch=1,2,3,4,5,6,7,8,9", "--pass", "mine.py", "--trust", "--jobs", "2", "-o", "a.json", "--quiet"]
    assert (subprocess.run([sys.executable, "-m", "tpucc", *words], check=False).returncode if alone else run(*words)) == 0
    rows = json.loads(Path("a.json").read_text())
    assert [row["batch"] for row in rows if row["error"]] == [8]
    assert (rows[7]["error"], rows[7]["reason"]) == ("E0613", "the process that computed it ended: signal SIGKILL")
    assert len(Path("a.points.jsonl").read_text().splitlines()) == 10


@pytest.mark.long
def test_a_sweep_that_is_killed_can_go_on_at_once(small: Path) -> None:
    """Its processes have no part of the lock of its points."""
    alone = table_bytes("--jobs", "1", output="one.csv")
    slow = "import time\nimport tpucc.explain.sweeps.rows as rows\nplain = rows.Timed\n"
    slow += "rows.Timed = lambda *given: (time.sleep(0.3), plain(*given))[1]\nfrom tpucc.cli.main import main\nmain()\n"
    words = ["sweep", "small.tpu", *AXES, "-o", "two.csv", "--quiet", "--jobs", "2"]
    killed = subprocess.Popen([sys.executable, "-c", slow, *words])
    journal = Path("two.points.jsonl")
    while not journal.exists() or len(journal.read_bytes().splitlines()) < 4:
        assert killed.poll() is None
        sleep(0.01)
    killed.kill()
    killed.wait()
    before = journal.read_bytes()
    assert table_bytes("--jobs", "1", output="two.csv") == alone
    assert journal.read_bytes().startswith(before[: before.rindex(b"\n")])


def test_from_python(small: Path) -> None:
    def speed(row: Mapping[str, Any]) -> float:
        return float(row["macs"] / row["end_to_end_seconds"])

    done: list[int] = []
    found = tpucc.sweep(small, overrides={"mxu": [16, 32]}, params={"batch": [4, 8]}, jobs=1, told=done.append)
    assert done == [0, 1, 2, 3, 4]
    assert [(row["mxu"], row["batch"]) for row in found] == [(16, 4), (16, 8), (32, 4), (32, 8)]
    assert found[2]["cycles"] == tpucc.compile(small, overrides={"mxu": 32}, params={"batch": 4}).stats["cycles"]
    found.save("a.csv")
    assert run("sweep", "small.tpu", "--set", "mxu=16,32", "-D", "batch=4,8", "-o", "b.csv", "--quiet", "--jobs", "1") == 0
    assert Path("a.csv").read_text() == Path("b.csv").read_text().replace("small.tpu", str(small))
    assert all(speed(a) < speed(b) for a, b in zip(found.front(), found.front()[1:], strict=False))
    found.save("a.html")
    found.page().save("b.html")
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    assert repr(found.page()) == f"<the report of the sweep of {small}>"
    with pytest.raises(tpucc.UsageError, match="front's cost is 'ub_peak_bytes'"):
        found.front("cycles")
    with pytest.raises(tpucc.UsageError, match="compiling has no keyword levl"):
        tpucc.sweep(small, levl=1)


def test_another_machine_of_the_same_name_is_another_sweep(small: Path) -> None:
    machine = load_target("tpu_v1")
    tpucc.sweep(small, target=machine, table="a.csv", jobs=1)
    with pytest.raises(tpucc.UsageError, match="has the points of another sweep"):
        tpucc.sweep(small, target=msgspec.structs.replace(machine, mxu=32), table="a.csv", jobs=1)


def test_a_front_has_the_points_that_no_other_one_beats() -> None:
    """Of two equal ones the cheaper, and of two that are equal in both the first; a point that can't be compiled has no numbers."""
    plan, costs = plan_of("mxu=1,2,3,4,5,6,7"), [1.0, 1, 2, 3, 3, np.nan, 1]
    figures = figures_with(plan, mxu=costs, end_to_end_seconds=[5.0, 4, 4, 3, 6, np.nan, 4])
    assert (figures.measure, figures.costs, figures.best(), figures.ties(1)) == ("end_to_end_seconds", ("mxu",), [3], 2)
    assert figures.fronts("mxu") == [[1, 3]]


def figures_with(plan: Plan, **columns: list[float]) -> Figures:
    """Figures of points with a unit of work and without other columns."""
    given = {name: np.full(plan.count, np.nan) for name in KEPT} | {"macs": np.ones(plan.count), "host_macs": np.zeros(plan.count)}
    given |= {name: np.array(values) for name, values in columns.items()}
    return Figures(plan, given, ("nothing",) * plan.count, ("",) * plan.count)


def test_rows_that_a_machine_computes_twice_are_no_work() -> None:
    """With bands in a small buffer the device's TOPS are more, and the model takes longer."""
    twice = figures_with(plan_of("unified_buffer_rows=1,2"), end_to_end_seconds=[19.0, 14.0], macs=[100.0, 76.0])
    assert (twice.measure, twice.best()) == ("end_to_end_seconds", [1])
    plan = plan_of("unified_buffer_rows=1,2", "-batch=4,8")
    batches = figures_with(plan, macs=[100.0, 200.0, 80.0, 160.0], end_to_end_seconds=[20.0, 36.0, 18.0, 34.0])
    assert batches.measure == "end_to_end_tops"
    assert batches.values.tolist() == pytest.approx([160e-12 / 20, 320e-12 / 36, 160e-12 / 18, 320e-12 / 34])
    assert batches.best() == [3]


def test_products_that_one_machine_leaves_to_the_host_are_work_of_the_model() -> None:
    """Both machines compute one model; the second one's device has fewer products, which is no other work."""
    columns = {"macs": [100.0, 60.0], "host_macs": [0.0, 40.0], "end_to_end_seconds": [5.0, 4.0]}
    moved = figures_with(plan_of("host_step_seconds=1,2"), **columns)
    assert moved.work.tolist() == [100, 100]
    batches = figures_with(plan_of("-batch=4,8"), **columns | {"host_macs": [0.0, 140.0]})
    assert batches.values.tolist() == pytest.approx([200e-12 / 5, 400e-12 / 4])


def test_models_are_compared_each_with_itself() -> None:
    """A model of more work is no worse machine: here both have the same front."""
    plan = replace(plan_of("mxu=1,2,3"), models=("a.tpu", "b.tpu"))
    columns = {"mxu": [1.0, 2, 3] * 2, "macs": [1.0] * 3 + [2.0] * 3}
    figures = figures_with(plan, **columns, end_to_end_seconds=[9.0, 9, 5, 90, 80, 85])
    assert (figures.measure, figures.best(), figures.fronts("mxu")) == ("end_to_end_seconds", [2, 4], [[0, 2], [3, 4]])
    columns["macs"] = [np.nan] * 3 + [1.0] * 3
    one_alone = figures_with(plan, **columns, end_to_end_seconds=[np.nan] * 3 + [9.0, 8, 7])
    assert (one_alone.best(), one_alone.fronts("mxu")) == ([5], [[], [3, 4, 5]])


@pytest.mark.parametrize(
    ("axes", "goal", "measure"),
    [
        (("clock_hz=1e8,7e8",), "latency", "end_to_end_seconds"),
        (("clock_hz=1e8,7e8",), "stream", "stream_seconds"),
        (("-batch=4,8", "clock_hz=1e8,7e8"), "latency", "end_to_end_tops"),
        (("-batch=4,8",), "stream", "stream_tops"),
    ],
)
def test_points_are_compared_by_what_can_be_compared(axes: tuple[str, ...], goal: str, measure: str, small: Path) -> None:
    """Of a batch alone its time with the host's work, of a stream that of each of its batches; of other batches what is done in it."""
    plan = plan_of("mxu=16,32", *axes, model=str(small), given={"goal": goal})
    with Journal(Path("a.points.jsonl"), plan.identity, plan.count) as journal:
        found = compute(plan, journal, jobs=1)
        figures, rows = figures_of(found), list(found)
        told, page = " ".join(summary(found).split()), sweep_page(found)
    seconds = [row["stream_seconds" if goal == "stream" else "end_to_end_seconds"] for row in rows]
    assert figures.measure == measure
    rates = [2e-12 * (row["macs"] + row["host_macs"]) / time for row, time in zip(rows, seconds, strict=True)]
    assert figures.values.tolist() == pytest.approx(rates if figures.is_rate else seconds, rel=1e-12)
    [best] = figures.best()
    assert figures.values[best] == (max if figures.is_rate else min)(figures.values)
    when = "in a stream" if goal == "stream" else "end to end"
    assert f"bottleneck {when}: host work" in told
    assert re.search(rf"best: [\d.]+ {'[MG]OPS' if figures.is_rate else 'µs'} {when}, .*: host work bound: .* Of the device: ", told)
    assert f"<figcaption>{'speed' if figures.is_rate else 'time'} {when}" in page


def test_the_width_of_the_unit_does_not_change_what_crosses_the_link(small: Path) -> None:
    """Rows are padded to a number of the machine's own: an axis of that moves other bytes, an axis of `mxu` doesn't."""
    found = tpucc.sweep(small, overrides={"mxu": [64, 128, 256]}, jobs=1)
    assert len({row["host_bytes"] for row in found}) == 1
    found = tpucc.sweep(small, overrides={"host_row_bytes": [1, 64, 256]}, jobs=1)
    moved = [row["host_bytes"] for row in found]
    assert moved == sorted(set(moved))
    alone = [tpucc.compile(small, overrides={"host_row_bytes": size}).stats for size in (1, 64, 256)]
    assert [row["end_to_end_seconds"] for row in found] == [stats["end_to_end"]["seconds"] for stats in alone]


def test_several_models_are_an_axis(small: Path) -> None:
    (small.parent / "wide.tpu").write_text(SMALL.replace("units = 8", "units = 80").replace("model small", "model wide"))
    found = tpucc.sweep(["small.tpu", "wide.tpu"], overrides={"mxu": [16, 32]}, jobs=1)
    assert [row["model"] for row in found] == ["small.tpu", "small.tpu", "wide.tpu", "wide.tpu"]
    assert found[3]["macs"] == 10 * found[0]["macs"]
    page, told = sweep_page(found), " ".join(summary(found).split())
    assert told.count("best: ") == 2
    assert "each of the 2 models has its own best point and fronts" in told
    assert all(f"{name}</text>" in page for name in ("small", "wide"))
    assert page.count("The best point of each model") == 2


@each(
    [
        (("-D", "batch=4", "-o", "a.xlsx"), "error E0563: a table of a sweep is .csv, .json or .parquet, not a.xlsx"),
        (("-D", "batch=4", "-o", "a.html"), "not a.html\nhelp: the page is written beside the table: -o a.csv gives a.html too"),
        (("--scheduler", "tcp://h:1", "--jobs", "2"), "--jobs is of this machine; a cluster has the workers that it has"),
        (("--set", "mxu"), "'mxu' is not NAME=A,B,…, as in --set mxu=128,256"),
        (("--omit", "nothing"), "error E0509: no pass is named nothing"),
        (("--target", "tpu_v2"), "error E0530: tpu_v2 multiplies bfloat16"),
        ((), "Error: a sweep goes through values: --set mxu=128,256 of the target, or -D batch=8,64 of the source"),
        (("--most", "1", "-D", "batch=4,8"), "error E0560: the sweep has 2 points (1 × 2), and at most 1 are computed"),
    ]
)
def test_a_command_that_is_refused(arguments: tuple[str, ...], words: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", small, *arguments) == 2
    assert words in capsys.readouterr().err


def test_programs_have_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", "small.tpub") == 2
    assert "small.tpub is compiled already, for one machine" in capsys.readouterr().err
    assert run("sweep") == 2
    assert "a sweep needs at least one model" in capsys.readouterr().err


def test_a_table_in_parquet(small: Path) -> None:
    why = "pyarrow is not installed; it comes with the extra: pip install -e '.[dev,parquet]'"
    parquet = pytest.importorskip("pyarrow.parquet", reason=why)
    found = tpucc.sweep("small.tpu", overrides={"mxu": [16, 32], "weight_memory_bytes": [100, 10**6]}, table="a.parquet", jobs=1)
    assert parquet.read_table("a.parquet").to_pylist() == list(found)


def test_json_has_counts_and_fronts(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sweep", small, "--set", "mxu=16,32", "-o", "a.csv", "--jobs", "1", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["points"], told["compiled"], told["measure"]) == (2, 2, "end_to_end_seconds")
    assert told["fronts"]["mxu"][0]["mxu"] == 16
    assert told["best_of_each"] == [told["best"]]


def test_a_cluster_needs_an_extra(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("sweep", small, "--set", "mxu=16,32", "--scheduler", "tcp://127.0.0.1:9") == 2
    told = capsys.readouterr().err
    assert "error E0562: --scheduler needs a package that isn't installed: distributed" in told
    assert "help: python -m pip install 'tpucc[dask]' installs it; without --scheduler this machine does the work" in told


@pytest.mark.parametrize(
    "lost", [CancelledError("scheduler-connection-lost"), ConnectionError("closed")], ids=lambda lost: type(lost).__name__
)
def test_a_scheduler_that_goes_is_no_fault_of_tpucc(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lost: Exception
) -> None:
    """Dask's errors then; with Dask itself the scheduler would have to be killed, and 10 seconds waited for."""

    def followed(*_: object) -> None:
        raise lost

    dask = SimpleNamespace(Client=lambda *_, **__: nullcontext(), CancelledError=CancelledError)
    monkeypatch.setattr(cluster, "_distributed", lambda: dask)
    monkeypatch.setattr(cluster, "_followed", followed)
    assert run("sweep", small, "--set", "mxu=16,32", "--scheduler", "tcp://127.0.0.1:9") == 2
    assert "error E0562: the scheduler at tcp://127.0.0.1:9 has gone; what is done is kept" in capsys.readouterr().err
    assert not list(Path().rglob("*.jsonl")), "no point is done, and nothing is in the way of another sweep"


@dataclass(frozen=True, eq=False)
class Task:
    result: Callable[[], object]

    def release(self) -> None:
        pass


class Dask:
    """As much of Dask as a sweep needs, in this process: a task is computed when its result is asked for."""

    CancelledError = CancelledError
    KilledWorker = type("KilledWorker", (Exception,), {})
    loop = None

    def __init__(
        self, call: Callable[..., object] = lambda function, data: function(data), connect: Callable[[], None] = lambda: None
    ) -> None:
        self._call, self._connect = call, connect

    def Client(self, *_: object, **__: object) -> Dask:
        self._connect()
        return self

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def as_completed(self, futures: list[Any], **_: object) -> list[Any]:
        return futures

    def submit(self, function: Callable[[bytes], object], data: bytes, **_: object) -> Any:
        return Task(partial(self._call, function, data))

    def nthreads(self) -> Mapping[str, int]:
        return {}

    def cancel(self, _: object) -> None:
        pass


def on_cluster(monkeypatch: pytest.MonkeyPatch, dask: Dask, patience: float = 0.05) -> int:
    monkeypatch.setattr(cluster, "_distributed", lambda: dask)
    monkeypatch.setattr(cluster, "PATIENCE", patience)
    monkeypatch.setattr(cluster, "_kept", {})
    return run("sweep", "small.tpu", "--set", "mxu=16,32", "--scheduler", "tcp://127.0.0.1:9", "-o", "a.csv", "--quiet")


def test_what_dask_says_of_its_troubles_is_not_heard(
    small: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error is said once, by tpucc. What others log and warn of stays."""
    dasks, others = logging.getLogger("distributed.client"), logging.getLogger("mine")

    def call(function: Callable[[bytes], object], data: bytes) -> object:
        dasks.error("Traceback")
        others.error("of mine")
        warnings.warn_explicit("versions differ", UserWarning, "client.py", 1, "distributed.client")
        with pytest.warns(UserWarning, match="of mine"):
            warnings.warn("of mine", UserWarning, stacklevel=1)
        return function(data)

    with warnings.catch_warnings(record=True) as heard:
        assert on_cluster(monkeypatch, Dask(call)) == 0
    assert heard == []
    assert set(caplog.messages) == {"of mine"}
    dasks.error("later")
    assert caplog.messages[-1] == "later"


def test_a_server_that_is_no_scheduler(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As the dashboard is, whose port is the next one: Dask waits for it without an end."""
    over = Event()
    assert on_cluster(monkeypatch, Dask(connect=over.wait)) == 2
    over.set()
    assert "no scheduler answers at tcp://127.0.0.1:9: what listens there says nothing that a scheduler says" in capsys.readouterr().err


def test_a_worker_without_tpucc_is_named(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is made of what every Python has: one that can't be unpickled would end the worker, and the sweep would wait for another."""

    def call(function: Callable[[bytes], object], data: bytes) -> object:
        assert function is pickle.loads
        program = "import pickle, sys; pickle.loads(sys.stdin.buffer.read())"
        elsewhere = subprocess.run([sys.executable, "-I", "-S", "-c", program], input=data, capture_output=True, check=False)
        name, _, words = elsewhere.stderr.decode().splitlines()[-1].partition(": ")
        assert name == "ModuleNotFoundError"
        raise ModuleNotFoundError(words)

    assert on_cluster(monkeypatch, Dask(call)) == 2
    assert "error E0562: a worker can't use tpucc: No module named 'tpucc'" in capsys.readouterr().err


def test_a_worker_without_the_files_is_named(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def call(function: Callable[[bytes], object], data: bytes) -> object:
        small.rename("elsewhere.tpu")
        return function(data)

    assert on_cluster(monkeypatch, Dask(call)) == 2
    assert "error E0562: a worker can't take part: can't read small.tpu: no such file" in capsys.readouterr().err


def test_a_cluster_without_workers_is_told_of(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def call(function: Callable[[bytes], object], data: bytes) -> object:
        sleep(0.1)
        return function(data)

    assert on_cluster(monkeypatch, Dask(call), 0.01) == 0
    told = capsys.readouterr().err
    assert told == "note: the cluster has no workers; the rest waits until there is one, as by `dask worker tcp://127.0.0.1:9`\n"


@pytest.mark.soak
def test_what_a_stage_writes_is_no_answer(small: Path) -> None:
    Path("mine.py").write_text(
        "import os\ndef allocate(lives, rows):\n    for stream in range(3, 40):\n        try: os.write(stream, b'garbage')\n"
        "        except OSError: pass\n    return [0] * len(lives.rows)\n"
    )
    words = ("sweep", "small.tpu", "-D", "batch=1,2", "--replace", "allocate=mine.py", "--trust", "--jobs", "2", "-o", "a.json", "--quiet")
    process = subprocess.run([sys.executable, "-m", "tpucc", *words], check=False, capture_output=True, text=True)
    assert process.returncode == 1, process.stderr
    assert [row["error"] for row in json.loads(Path("a.json").read_text())] == ["E0613"] * 2
    assert "gave no answer" in process.stderr


@pytest.mark.long
def test_there_are_no_more_processes_than_points(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    plain = processes.computed_by_processes
    monkeypatch.setattr(computing, "computed_by_processes", lambda *given: (asked.append(given[3]), plain(*given))[1])
    assert run("sweep", small, "-D", "batch=1,2", "--jobs", "3000", "-o", "a.json", "--quiet") == 0
    assert asked == [2]


def test_a_stage_that_fails_is_named_with_its_file_and_line(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text("def allocate(lives, rows):\n    raise ValueError('mine')\n")
    assert run("sweep", small, "-D", "batch=1,2", "--replace", "allocate=mine.py", "-o", "a.json", "--quiet") == 1
    assert "the stage allocate raised ValueError: mine (mine.py:2)" in capsys.readouterr().err
