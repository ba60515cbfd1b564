"""Code that the user brings: whatever it does, it is reported with its file, its line and its name, with status 1, and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.command_line import SMALL, run
from tpucc.plugins.guard import guest
from tpucc.schedule.allocate import allocate

PASS = """\
import sys
from dataclasses import dataclass, replace
from typing import ClassVar
import tpucc
class Odd(Exception):
    def __str__(self): raise RuntimeError("no text")
class Base(BaseException): pass
class Zero(tpucc.Error): exit_status = 0
@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "is broken"
    def run(self, graph, context):
        BODY
"""
STAGE = """\
import sys
import tpucc
class Odd(Exception):
    def __str__(self): raise RuntimeError("no text")
class Base(BaseException): pass
class Zero(tpucc.Error): exit_status = 0
def allocate(lives, rows):
    BODY
"""
BODIES = {
    "raises": ("return 1 // 0", "E0521", "raised ZeroDivisionError"),
    "exits": ("sys.exit(0)", "E0521", "raised SystemExit"),
    "raises a BaseException": ("raise Base('x')", "E0521", "raised Base: x"),
    "raises an interrupt": ("raise KeyboardInterrupt", "E0521", "raised KeyboardInterrupt"),
    "an error of status 0": ("raise Zero(tpucc.Diagnostic('E0001', 'nothing'))", "E0521", "raised Zero"),
    "an error of status 5": ("raise tpucc.InternalError(tpucc.Diagnostic('E0900', 'mine'))", "E0521", "raised InternalError"),
    "too large, which is no answer of a pass": ("raise tpucc.TooLarge if 'graph' in dir() else KeyError('x')", "E0521", "raised"),
    "an exception whose text raises": ("raise Odd", "E0521", "raised Odd: (its text can't be had"),
    "loops": ("while True: pass", "E0522", "takes longer than 0.3 s"),
    "loops and swallows": (
        "while True:\n            try: pass\n            except BaseException: pass",
        "E0522",
        "takes longer than 0.3 s",
    ),
    "returns nothing": ("pass", "E0523", "returned None"),
    "returns what has no text": ("return Odd", "E0523", "returned <class"),
}


def assert_reported(printed: str, status: int, name: str, line: int, code: str, words: str) -> None:
    """The message has the file and the line, is nobody else's fault, and nothing is left in the folder but the source and the file."""
    assert status == 1
    assert re.search(rf"^{name}\.py:{line}:\d+: error {code}: ", printed, re.MULTILINE), printed
    assert words in printed
    assert "fault in tpucc" not in printed
    assert {path.name for path in Path.cwd().iterdir()} - {"__pycache__"} == {"small.tpu", f"{name}.py"}


@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("kind", ["pass", "stage"])
def test_whatever_it_does_it_is_reported(small: Path, capsys: pytest.CaptureFixture[str], kind: str, case: str) -> None:
    body, code, words = BODIES[case]
    text = PASS if kind == "pass" else STAGE
    Path("mine.py").write_text(text.replace("BODY", body if kind == "pass" else body.replace("\n    ", "\n")))
    option = ("--pass", "mine.py") if kind == "pass" else ("--replace", "allocate=mine.py")
    status = run("compile", small, *option, "--plugin-timeout", "0.3")
    line = text[: text.index("BODY")].count("\n") + (0 if code in ("E0522", "E0523") else 1)
    assert_reported(capsys.readouterr().err, status, "mine", line, code, words)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("object.__setattr__(graph, 'name', 'other'); return graph", "E0524", "changed the graph that it was given"),
        ("object.__setattr__(graph.nodes[1], 'op', 'tanh'); return graph", "E0524", "changed the graph that it was given"),
        ("graph.nodes[1].attributes.value.data[:] = 0", "E0521", "raised"),
        ("return replace(graph, nodes=(1, 2, 3))", "E0525", "made a graph that can't be read"),
        ("return graph.with_nodes(graph.nodes[:2])", "E0525", "made a graph that is not valid"),
        ("return replace(graph, outputs=None)", "E0525", "made a graph that can't be read"),
    ],
)
def test_a_pass_that_changes_its_input_or_makes_nonsense(
    small: Path, capsys: pytest.CaptureFixture[str], body: str, code: str, words: str
) -> None:
    Path("mine.py").write_text(PASS.replace("BODY", body))
    line = PASS[: PASS.index("BODY")].count("\n") + (code == "E0521")
    status = run("compile", small, "--pass", "mine.py")
    assert_reported(capsys.readouterr().err, status, "mine", line, code, words)


@pytest.mark.parametrize("option", [["--pass", "mine.py"], ["--replace", "order=mine.py"]])
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\nraise SystemExit(0)\n", 2, "raised SystemExit"),
        ("def f(:\n", 1, "raised SyntaxError"),
        ("import nowhere\n", 1, "raised ModuleNotFoundError"),
        ("\n\nwhile True:\n    pass\n", 0, "takes longer than 0.3 s"),
    ],
)
def test_a_file_that_fails(small: Path, capsys: pytest.CaptureFixture[str], option: list[str], text: str, line: int, words: str) -> None:
    Path("mine.py").write_text(text)
    assert run("compile", small, *option, "--plugin-timeout", "0.3") == 1
    printed = capsys.readouterr().err
    assert words in printed
    assert f"mine.py:{line}:" in printed or not line


def test_a_file_without_the_function_says_what_to_write(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text("def alocate(lives, rows): pass\n")
    assert run("compile", small, "--replace", "allocate=mine.py") == 2
    assert "did you mean alocate?" in capsys.readouterr().err
    assert run("compile", small, "--replace", "alocate=mine.py") == 2
    assert "did you mean allocate?" in capsys.readouterr().err


def test_the_watchdog_ends_a_loop_in_another_thread() -> None:
    found: list[BaseException] = []

    def loop() -> None:
        while True:
            pass

    def inside() -> None:
        try:
            guest("the loop", loop, 0.2).call(loop)
        except tpucc.PluginError as error:
            found.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join(10)
    assert [error.diagnostics[0].code for error in found if isinstance(error, tpucc.PluginError)] == ["E0522"]


def test_what_was_set_before_is_set_again() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    with pytest.raises(tpucc.PluginError):
        guest("it", len, 5).call(lambda: 1 // 0)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("body", ["while True: pass", "try:\n            while True: pass\n        except BaseException: return graph"])
def test_an_interrupt_from_the_keyboard_still_ends_tpucc(tmp_path: Path, body: str) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    (tmp_path / "mine.py").write_text(PASS.replace("BODY", f"open('begun', 'w').close()\n        {body}"))
    command = [sys.executable, "-m", "tpucc", "compile", "small.tpu", "--pass", "mine.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() == "interrupted"
    assert not (tmp_path / "build").exists()


def test_from_python_the_traceback_is_the_cause() -> None:
    def broken(lives: object, rows: int) -> np.ndarray:
        raise KeyError("mine")

    with pytest.raises(tpucc.PluginError, match="the stage allocate raised KeyError") as caught:
        tpucc.compile_source(SMALL, stages=tpucc.Stages(allocate=broken))
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.source is not None
    assert caught.value.source.name == Path(__file__).name


def test_stages_must_be_functions_and_passes_passes() -> None:
    with pytest.raises(tpucc.UsageError, match="the stage order is a function, found 3"):
        tpucc.Stages(order=3)  # type: ignore[arg-type]
    with pytest.raises(tpucc.UsageError, match="is no pass"):
        tpucc.compile_source(SMALL, passes=(allocate,))  # type: ignore[arg-type]


def test_errors_are_json_for_programs(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(PASS.replace("BODY", "return 1 // 0"))
    assert run("compile", small, "--pass", "mine.py", "--json") == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    (found,) = json.loads(printed.out)
    assert (found["code"], found["file"], found["line"], found["column"]) == ("E0521", "mine.py", 14, 9)
    assert found["spans"][0]["end_column"] == 22


LATE_EXIT = """\
import sys
class Rows:
    def __array__(self, *arguments, **options): sys.exit(0)
def allocate(lives, rows): return Rows()
"""


def test_an_exit_outside_of_the_call_is_no_good_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a stage returns is the user's code, too: NumPy asks it for its rows."""
    (tmp_path / "m.tpu").write_text(SMALL)
    (tmp_path / "late.py").write_text(LATE_EXIT)
    assert run("compile", tmp_path / "m.tpu", "-o", tmp_path / "out", "--replace", f"allocate={tmp_path / 'late.py'}") == 1
    assert "raised SystemExit" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_a_stage_prints_is_not_among_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert guest("the stage", print).call(lambda: print("hello")) is None
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello\n")


def test_a_constant_that_a_pass_changes_in_place_is_found() -> None:
    class Zeros:
        name, summary, level = "zeros", "overwrites a constant", 0

        def run(self, graph: tpucc.Graph, context: tpucc.Context) -> tpucc.Graph:
            value = next(node.attributes.value for node in graph if hasattr(node.attributes, "value"))
            object.__setattr__(value, "data", np.zeros_like(value.data))
            return graph

    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, passes=(Zeros(),))
    assert caught.value.diagnostics[0].code == "E0524"
