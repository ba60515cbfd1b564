"""Progress: on a terminal, only for work that takes a while, and gone at the end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.terminal import on_a_terminal, screen
from tpucc.cli import progress
from tpucc.cli.main import main
from tpucc.cli.progress import ClassProgress, CompileProgress, Progress
from tpucc.driver import compile_source
from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.runtime.runtime import Runtime

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
IRIS = str(PROGRAMS / "02_iris.tpu")
AT_ONCE = """
import tpucc.cli.progress as p, tpucc.cli.main as m
p.Progress.__enter__ = lambda self: (self.shown and self._show(), self)[1]
"""
"""Shows the display when it is entered, in the same thread: no test of what it shows depends on the speed of the machine."""
posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")


class Recorder(Progress):
    """Keeps what was said instead of showing it."""

    def __init__(self) -> None:
        super().__init__(False)
        self.said: list[str] = []

    def stage(self, words: str) -> None:
        self.said.append(words)


def test_each_stage_is_named_before_it_runs() -> None:
    recorder, options, running = Recorder(), Options(), []
    observer = CompileProgress(recorder, options)
    made = compile_source(read_source(Path(IRIS)), PROGRAMS, options, lambda s: (running.append(recorder.said[-1]), observer(s))[1])
    stages = [snapshot.stage for snapshot in made.snapshots]
    assert [words.split(",")[0] for words in running] == stages
    counts = [words.split(", ")[1] for words in running[3:]]
    assert counts == [f"stage {number} of {len(stages)}" for number in range(4, len(stages) + 1)]


def test_a_class_says_what_is_being_graded_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three submissions by name, those that run longest first; on a terminal in a line that is renewed."""
    recorder = Recorder()
    monkeypatch.setattr(recorder, "shown", True)
    monkeypatch.setattr(progress, "SECOND", 0.01)
    course = ClassProgress(9)
    monkeypatch.setattr(course, "_progress", recorder)
    monkeypatch.setattr(progress, "monotonic", lambda: 100.0)
    for name in ("anna", "ben\x1b"):
        course.begun(name)
    monkeypatch.setattr(progress, "monotonic", lambda: 165.4)
    for name in "cdef":
        course.begun(name)
    course.done("anna")
    course.done("kept")
    with course:
        while not recorder.said:
            time.sleep(0.01)
    assert recorder.said[0] == "2 of 9 graded; being graded: ben\\x1b (65 s), c (0 s), d (0 s), 2 more"


def test_rounds_are_counted() -> None:
    program = tpucc.compile(IRIS, params={"batch": 8}).runtime.program
    recorder = Recorder()
    Runtime(program, recorder.rounds).run({"x": np.zeros((20, 4), np.float32)})
    assert recorder.said == [f"execute, round {number} of 3" for number in (1, 2, 3)]
    Runtime(program, recorder.rounds).run({"x": np.zeros((8, 4), np.float32)})
    assert len(recorder.said) == 3


def slow(shown: bool, patience: float, seconds: float) -> str:
    """A script that works for so long, with a warning in the middle. With no patience, until the display is there."""
    return (
        f"import sys, time\nfrom tpucc.cli import progress\nprogress.PATIENCE = {patience}\n"
        f"with progress.Progress({shown}) as p:\n"
        f"    p.stage('think hard')\n    time.sleep({seconds})\n"
        f"    while {patience == 0.0} and p._bar is None:\n        time.sleep(0.01)\n"
        "    with p.aside():\n        print('note: aside', file=sys.stderr)\n"
        f"    p.stage('think [on]')\n    time.sleep({seconds})\n"
        "print('result')\n"
    )


@pytest.mark.long
@posix
def test_long_work_shows_and_vanishes() -> None:
    raw = on_a_terminal(["-c", slow(True, 0.0, 0.2)])
    assert "think hard" in raw
    assert "think [on]" in raw
    assert screen(raw) == ["note: aside", "result"]


@pytest.mark.long
@posix
@pytest.mark.parametrize(("shown", "patience", "seconds"), [(False, 0.05, 0.3), (True, 30.0, 0.0)])
def test_short_or_quiet_work_shows_nothing(shown: bool, patience: float, seconds: float) -> None:
    raw = on_a_terminal(["-c", slow(shown, patience, seconds)])
    assert raw.split() == ["note:", "aside", "result"]


@pytest.mark.long
@posix
def test_no_progress_where_the_terminal_is_dumb() -> None:
    assert "think" not in on_a_terminal(["-c", slow(True, 0.05, 0.2)], TERM="dumb")


@pytest.mark.long
def test_no_progress_in_a_pipe() -> None:
    result = subprocess.run([sys.executable, "-c", slow(True, 0.05, 0.3)], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("result\n", "note: aside\n")


@pytest.mark.long
@posix
@pytest.mark.parametrize("extra", one_of(3, [[], ["--quiet"], ["--json"]]))
def test_commands_keep_it_from_standard_output(extra: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", IRIS, *extra]
    raw = on_a_terminal(["-c", f"{AT_ONCE}m.main({command!r})"])
    assert ("\x1b[?25l" in raw) == (not extra)  # the display hides the cursor while it is there
    assert main(command) == 0
    assert screen(raw) == [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@each(["import", "check", "profile"])
def test_an_import_says_what_it_does(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Progress, "stage", lambda _, words: said.append(words))
    made = tpucc.compile_source("model m(x: f32[2, 3]) -> f32[2, 3]:\n    return relu(x)\n")
    tpucc.export_onnx(made, tmp_path / "net.onnx")
    assert main([command, str(tmp_path / "net.onnx")]) == 0
    then = [] if command == "import" else ["parse", "elaborate"]
    found = said[said.index("read the network") :]
    assert found[: 2 + len(then)] == ["read the network", "write it as a source", *then]


@pytest.mark.long
@posix
def test_an_error_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "bad.tpu").write_text("model m(x: f32[2, 3]):\n    return y\n")
    command = ["profile", str(tmp_path / "bad.tpu")]
    raw = on_a_terminal(["-c", f"{AT_ONCE}assert m.main({command!r}) == 1"])
    assert raw.count("\x1b[?25l") == raw.count("\x1b[?25h")
    assert any("error E0201" in line for line in screen(raw))


def test_patience_is_half_a_second() -> None:
    assert progress.PATIENCE == 0.5


def test_the_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 100.0)
    started = time.perf_counter()
    with Progress(True):
        pass
    assert time.perf_counter() - started < 50


def test_standard_output_stays_itself_while_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is drawn in block characters or not by the encoding of standard output: it must be the same on a slow machine."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, this is a terminal
    before, errors = sys.stdout, sys.stderr
    with progress._bar():
        assert sys.stdout is before
        assert sys.stderr is errors


class Bar:
    """Counts how often it was started."""

    def __init__(self) -> None:
        self.started = 0

    def add_task(self, words: str, total: int | None) -> None:
        pass

    def start(self) -> None:
        self.started += 1

    def stop(self) -> None:
        pass


def test_what_is_done_before_it_would_show_never_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is the display made, nor does it start when the end comes while it is being made."""
    made: list[Bar] = []
    monkeypatch.setattr(progress, "PATIENCE", 100.0)
    monkeypatch.setattr(progress, "_bar", lambda: (made.append(Bar()), made[-1])[1])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(True) as shown:
        pass
    assert shown._timer.finished.is_set()  # it was cancelled
    assert made == []
    shown._show()
    assert [bar.started for bar in made] == [0]
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress(True) as shown:
        while shown._bar is None or not made[-1].started:
            time.sleep(0.01)
    assert [bar.started for bar in made] == [0, 1]


def test_names_of_passes_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "stage_order", lambda _: (*progress.FRONT_STAGES, "clear\x1b[2J"))
    recorder = Recorder()
    last = SimpleNamespace(number=len(progress.FRONT_STAGES) - 1)
    CompileProgress(recorder, Options())(last)  # type: ignore[arg-type]
    assert recorder.said[-1] == f"clear\\x1b[2J, stage {last.number + 2} of {last.number + 2}"
