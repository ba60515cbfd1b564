"""Code that the user brings: whatever it does, it is reported with its file, its line and its name, with status 1, and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import SMALL, run
from tests.support.rewrites import CONTEXT, body, graph_of
from tpucc.diagnostics import PluginError
from tpucc.guest import files, jails
from tpucc.guest.files import CHILD, executed, passes_of_file
from tpucc.ir import Constant
from tpucc.isa.assembler import disassemble
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.passes.pipeline import run_pass
from tpucc.plugins.code import user_code
from tpucc.plugins.installed import installed_passes
from tpucc.schedule.allocate import Lives, allocate

PASS = """\
import sys
from dataclasses import dataclass, replace
from typing import ClassVar
import tpucc
class Odd(Exception):
    def __str__(self): raise RuntimeError("no text")
class Base(BaseException): pass
class Zero(tpucc.Error): exit_status = 0
HOSTILE
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
HOSTILE
def allocate(lives, rows):
    BODY
"""
HOSTILE = """\
def loop(*_):
    while True: pass
class Loops: __repr__ = loop
class Arrays: __array__ = loop
class Liar:
    @property
    def __class__(self): raise RuntimeError("no class")
class Untraceable(Exception):
    @property
    def __traceback__(self): raise RuntimeError("no traceback")
class Nameless(SyntaxError):
    def __init__(self): super().__init__("odd", (__file__, "third", 1, "text"))
class Subtle(str):
    def __str__(self): raise RuntimeError("no text")
    splitlines = __getitem__ = __str__
"""
PASS, STAGE = (text.replace("HOSTILE\n", HOSTILE) for text in (PASS, STAGE))
BODIES = {
    "raises": ("return 1 // 0", "E0521", "raised ZeroDivisionError"),
    "exits": ("sys.exit(0)", "E0521", "raised SystemExit"),
    "ends the process": ("import os; os._exit(0)", "E0521", "calls os._exit, which ends its process"),
    "becomes another program": ("import os; os.execvp('true', ['true'])", "E0521", "calls os.execv, which ends its process"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "E0521", "ended its process without an answer (signal SIGSEGV)"),
    "writes into the conversation": (
        "import os; [os.write(n, b'garbage') for n in range(4, 5)]; return 5",
        "E0523",
        "gave an answer that can't be read",
    ),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "E0521", "ended its process without an answer (signal SIGKILL)"),
    "has no debugger": ("breakpoint()", "E0521", "raised RuntimeError: breakpoint() has no terminal here: --trust runs"),
    "computes in C without an end": ("sum(range(10**12))", "E0522", "takes longer than"),
    "takes all memory": ("[0] * 10**15", "E0613", "takes more memory than there is"),
    "takes names of Python's away": (
        "import builtins; builtins.isinstance = builtins.next = builtins.BaseException = None; 1 // 0",
        "E0521",
        "raised ZeroDivisionError",
    ),
    "raises a BaseException": ("raise Base('x')", "E0521", "raised Base: x"),
    "raises in two lines": ("raise ValueError('shapes differ:\\n  8 and 4\\n')", "E0521", "raised ValueError: shapes differ: 8 and 4"),
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
    "an exception whose traceback raises": ("raise Untraceable", "E0521", "raised"),
    "an exception that is its own cause": ("e = ValueError('round'); e.__cause__ = e; raise e", "E0521", "raised ValueError: round"),
    "forks, and both processes raise": ("import os; os.fork(); raise ValueError('twice')", "E0521", "raised ValueError: twice"),
    "an exception at an odd line": ("raise Nameless", "E0521", "raised Nameless"),
    "an error of tpucc's": ("raise tpucc.PluginError(tpucc.Diagnostic('E0525', 'mine'))", "E0521", "raised PluginError"),
    "returns what loops when it is shown": ("return Loops()", "E0522", "takes longer than 0.3 s"),
    "returns what has no class": ("return Liar()", r"E052\d", "r"),
    "takes the timer away": ("import signal; signal.setitimer(signal.ITIMER_REAL, 0); loop()", "E0522", "takes longer than 0.3 s"),
    "takes the signals away": (
        "import signal; [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGALRM, signal.SIGURG)]; loop()",
        "E0522",
        "takes longer than 0.3 s",
    ),
    "sleeps": ("import time; time.sleep(60)", "E0522", "was stopped there"),
    "returns nothing": ("pass", "E0523", "returned None"),
    "returns what has no text": ("return Odd", "E0523", "returned <class"),
}
PLACES = {
    # where the loop is, in a function that the body calls; where there is no line to be had, the function's own
    **dict.fromkeys(("returns what loops when it is shown", "takes the timer away", "takes the signals away"), range(1, 100)),
    "an exception whose traceback raises": range(1, 100),
    "an exception at an odd line": range(1, 100),
    "is killed": range(1, 100),
    "returns what has no class": range(1, 100),
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of processor time is what ends a loop: a busy machine gives it little of its processor."""
    monkeypatch.setattr(files, "BY_THE_CLOCK", 300)


def assert_reported(printed: str, status: int, name: str, lines: Collection[int], code: str, words: str) -> None:
    """The message has the file and the line, is nobody else's fault, and nothing is left in the folder but the source and the file."""
    assert status == 1
    found = re.search(rf"^{name}\.py:(\d+):\d+: error {code}: ", printed, re.MULTILINE)
    assert found, printed
    assert int(found[1]) in lines, printed
    assert words in printed
    assert "fault in tpucc" not in printed
    assert {path.name for path in Path.cwd().iterdir()} - {"__pycache__"} == {"small.tpu", f"{name}.py"}


@pytest.mark.parametrize("case", one_of(2, BODIES))
@pytest.mark.parametrize("kind", ["pass", "stage"])
def test_whatever_it_does_it_is_reported(small: Path, capsys: pytest.CaptureFixture[str], kind: str, case: str) -> None:
    body, code, words = BODIES[case]
    text = PASS if kind == "pass" else STAGE
    Path("mine.py").write_text(text.replace("BODY", body if kind == "pass" else body.replace("\n    ", "\n")))
    option = ("--pass", "mine.py") if kind == "pass" else ("--replace", "allocate=mine.py")
    status = run("compile", small, *option, "--plugin-timeout", "0.3")
    line = text[: text.index("BODY")].count("\n") + (code != "E0523")
    assert_reported(
        capsys.readouterr().err, status, "mine", PLACES.get(case, range(line, line + 4) if code == "E0522" else (line,)), code, words
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("object.__setattr__(graph, 'name', 'other'); return graph", "E0524", "changed the graph that it was given"),
        ("object.__setattr__(graph.nodes[1], 'op', 'tanh'); return graph", "E0524", "changed the graph that it was given"),
        ("graph.nodes[1].attributes.value.data[:] = 0", "E0521", "raised"),
        ("return replace(graph, nodes=(1, 2, 3))", "E0525", "made a graph that can't be read"),
        ("return graph.with_nodes(graph.nodes[:2])", "E0525", "made a graph that is not valid"),
        ("return replace(graph, outputs=None)", "E0525", "made a graph that can't be read"),
        ("return graph.noting(5)", "E0525", "made a graph with 5 among its notes"),
        ("return replace(graph, notes=None)", "E0525", "made a graph that can't be read"),
        ("return replace(graph, source=5)", "E0525", "made a graph that is not valid"),
        ("return replace(graph, name=Subtle('x'))", "E0525", "can't be read: it holds 'x', of type Subtle"),
        ("return replace(graph, outputs=tuple(replace(o, name='a\\nb') for o in graph.outputs))", "E0525", "-> (out) into one of"),
        ("return replace(graph, notes=(Loops(),))", "E0522", "takes longer"),
        ("object.__setattr__(graph.nodes[1], 'type', None); return graph", "E0524", "changed the graph that it was given"),
        ("object.__setattr__(graph.nodes[1].attributes, 'value', None); return graph", "E0524", "changed the graph"),
        ("object.__setattr__(graph, 'nodes', None); return graph", "E0524", "changed the graph that it was given"),
    ],
)
def test_a_pass_that_changes_its_input_or_makes_nonsense(
    small: Path, capsys: pytest.CaptureFixture[str], body: str, code: str, words: str
) -> None:
    Path("mine.py").write_text(PASS.replace("BODY", body))
    line = PASS[: PASS.index("BODY")].count("\n") + (code == "E0521")
    status = run("compile", small, "--pass", "mine.py", "--plugin-timeout", "1")
    assert_reported(capsys.readouterr().err, status, "mine", range(1, 100) if code == "E0522" else (line,), code, words)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("name = property(lambda self: 1 // 0)", "raised ZeroDivisionError"),
        ("name = property(loop)", "takes longer than 0.3 s"),
        ("name = property(lambda self: sys.exit(0))", "raised SystemExit"),
        ("name = Subtle('mine')", ""),
        ("after = property(loop)", "takes longer than 0.3 s"),
        ("level = Loops()", "isn't a pass"),
        ("def __post_init__(self): loop()", "takes longer than 0.3 s"),
        ("def __getattribute__(self, name): raise RuntimeError(name)", "raised RuntimeError"),
    ],
)
def test_what_a_pass_says_of_itself_is_read_with_care(small: Path, capsys: pytest.CaptureFixture[str], attributes: str, words: str) -> None:
    whole = PASS.replace("BODY", "return graph").replace("    def run(", f"    {attributes}\n    def run(")
    Path("mine.py").write_text(whole.replace('    name: ClassVar[str] = "mine"\n', "" if "name =" in attributes else '    name = "mine"\n'))
    status = run("check", small, "--pass", "mine.py", "--plugin-timeout", "0.3")
    printed = capsys.readouterr().err
    assert words in printed
    assert "fault in tpucc" not in printed
    assert status == (0 if not words else 2 if "isn't a pass" in words else 1)


@each(
    [
        ("functools.partial(given, 5)", "E0523", "returned 5"),
        ("len", "E0521", "raised TypeError"),
        ("Callable()", "E0523", "returned 7"),
    ]
)
def test_a_stage_may_be_anything_that_can_be_called(
    made: str, code: str, words: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """\
import functools
def given(value, lives, rows): return value
class Callable:
    __code__ = 5
    def __call__(self, lives, rows): return 7
allocate = MADE
"""
    Path("mine.py").write_text(text.replace("MADE", made))
    assert run("compile", small, "--replace", "allocate=mine.py") == 1
    printed = capsys.readouterr().err
    assert f"error {code}: the stage allocate {words}" in printed
    assert ("mine.py:" in printed) == (made != "len")


def test_what_a_stage_does_to_its_input_stays_there(small: Path) -> None:
    """A stage gets arrays of its own, so that even one that makes them writable changes nothing of ours."""
    plain = tpucc.compile(small)

    def vandal(lives: Lives, rows: int) -> Int64:
        starts = allocate(lives, rows)
        for column in (lives.first, lives.last, lives.rows):
            column.setflags(write=True)
            column[:] = 0
        object.__setattr__(lives, "rows", None)
        return starts

    def zeroes(tiles: TileProgram) -> range:
        for array in vars(tiles).values():
            if isinstance(array, np.ndarray):
                array.setflags(write=True)
                array[...] = np.zeros((), array.dtype)
        return range(len(tiles))

    assert str(tpucc.compile(small, stages=tpucc.Stages(allocate=vandal)).program) == str(plain.program)
    unordered = tpucc.compile(small, stages=tpucc.Stages(order=lambda tiles: np.arange(len(tiles)))).program
    assert disassemble(tpucc.compile(small, stages=tpucc.Stages(order=zeroes)).program) == disassemble(unordered)


@pytest.mark.long
def test_a_stage_that_takes_pythons_modules_away(tmp_path: Path) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    (tmp_path / "mine.py").write_text("import sys\ndef order(tiles):\n    sys.modules.clear()\n    return 5\n")
    command = [sys.executable, "-m", "tpucc", "compile", "small.tpu", "--replace", "order=mine.py"]
    done = subprocess.run(command, cwd=tmp_path, timeout=50, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mine.py:2:1: error E05")


def test_a_pass_that_changes_its_context_changes_its_own(small: Path) -> None:
    class Vandal:
        name, summary, level = "vandal", "takes the machine away", 0

        def run(self, graph: tpucc.Graph, context: tpucc.Context) -> tpucc.Graph:
            object.__setattr__(context, "target", None)
            return graph

    assert str(tpucc.compile(small, passes=(Vandal(),)).program) == str(tpucc.compile(small).program)


ENDS = """
import atexit, os, sys, threading, time, weakref, tpucc

def ends(): os._exit(0)
def later(): time.sleep(0.01); os._exit(0)

def synchronise(listing):
    for target in (ends, later): threading.Thread(target=target, daemon=True).start()
    atexit.register(ends)
    weakref.finalize(tpucc, ends)
    sys.exit = lambda *_: os._exit(0)
    os.path.join = None
    sys.__stdout__.close()
    sys.stderr.close()
    return []
"""


@pytest.mark.long
def test_no_way_to_end_the_process_makes_a_wrong_stage_right(small: Path) -> None:
    """By a thread, by one that outlives the call, by what is called at the end, and by streams that are closed."""
    Path("mine.py").write_text(ENDS)
    words = ["judge", str(small), "--replace", "synchronise=mine.py"]
    done = subprocess.run([sys.executable, "-m", "tpucc", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done
    assert "V0801" in done.stdout or "calls os._exit, which ends its process" in done.stdout


HARMS = {
    "closes the streams": ("os.closerange(0, 100); return rows", 1, r"error E0521: the stage allocate ended its process without an answer"),
    "sets what threads need": ("threading.get_ident = None; return rows", 0, ""),
    "lets no file be opened": ("sys.addaudithook(refuses); return rows", 0, ""),
    "takes names away": ("vars(os)['path'] = vars(sys)['stderr'] = None; sys.setrecursionlimit(90); os.chdir('/'); return rows", 0, ""),
}


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="closes descriptors by their numbers")
@pytest.mark.parametrize("harm", one_of(2, HARMS))
def test_code_that_harms_its_process_harms_its_own(tmp_path: Path, harm: str) -> None:
    body, status, words = HARMS[harm]
    (tmp_path / "small.tpu").write_text(SMALL)
    (tmp_path / "mine.py").write_text(
        "import os, sys, threading\nfrom tpucc.schedule.allocate import allocate as ours\n"
        "def refuses(event, given):\n    if event == 'open': raise KeyError\n\n\n"
        f"def allocate(lives, rows):\n    rows = ours(lives, rows)\n    {body}\n"
    )
    command = [sys.executable, "-m", "tpucc", "judge", "small.tpu", "--replace", "allocate=mine.py"]
    done = subprocess.run(command, cwd=tmp_path, timeout=50, capture_output=True, text=True)
    assert (done.returncode, "small.tpu: equal" in done.stdout) == (status, not status), done
    assert not done.stderr, done
    assert re.search(words, done.stdout), done
    assert not list(tmp_path.glob("tpucc-fault-*"))


def test_a_message_has_the_line_of_a_file_that_is_gone(tmp_path: Path) -> None:
    """As where the code has left no descriptor to open it."""
    path = tmp_path / "gone.py"
    path.write_text("import os\ndef goes(file):\n    os.unlink(file)\n    return 1 // 0\n")
    goes = executed(path).goes
    with pytest.raises(tpucc.PluginError, match=r"gone\.py:4:5: error E0521: .*\n *4 \|     return 1 // 0"):
        user_code("the pass", goes).call(goes, path)


def test_an_error_that_only_looks_like_one_of_tpuccs_is_the_codes() -> None:
    def forges() -> None:
        error = tpucc.PluginError.__new__(tpucc.PluginError)
        vars(error).update(is_placed=True)
        raise error

    with pytest.raises(tpucc.PluginError, match=r"test_guest_code.py:\d+:\d+: error E0521: the pass raised PluginError"):
        user_code("the pass", forges).call(forges)


@pytest.mark.long
def test_a_thread_that_never_ends_does_not_keep_tpucc(tmp_path: Path) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    (tmp_path / "mine.py").write_text(
        "import threading, time\nthreading.Thread(target=lambda: time.sleep(60)).start()\ndef order(tiles): return range(len(tiles))\n"
    )
    command = [sys.executable, "-m", "tpucc", "judge", "small.tpu", "--replace", "order=mine.py"]
    assert subprocess.run(command, cwd=tmp_path, timeout=50, capture_output=True).returncode == 0


@pytest.mark.parametrize("option", [["--pass", "mine.py"], ["--replace", "order=mine.py"]])
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\nraise SystemExit(0)\n", 2, "raised SystemExit"),
        ("def f(:\n", 1, "raised SyntaxError: invalid syntax\n"),
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "words"),
    one_of(
        2,
        [
            (
                'hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)',
                ["mine.py:3:5: error E0522: the stage order takes longer", "help: "],
            ),
            ("sum(range(10**12))", ["mine.py:3:5: error E0522: the stage order takes longer", "help: "]),
        ],
    ),
    ids=["gives the lock back", "keeps the lock"],
)
def test_one_long_call_into_c_is_ended(tmp_path: Path, body: str, words: list[str]) -> None:
    """No exception reaches the code there; the first call lets other threads run meanwhile, and the second doesn't."""
    (tmp_path / "small.tpu").write_text(SMALL)
    (tmp_path / "mine.py").write_text(f"import hashlib\ndef order(tiles):\n    {body}\n")
    command = [sys.executable, "-m", "tpucc", "compile", "small.tpu", "--replace", "order=mine.py", "--plugin-timeout", "0.2"]
    done = subprocess.run(command, cwd=tmp_path, timeout=20, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert not [word for word in words if word not in done.stderr], done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == ["mine.py", "small.tpu"]
    assert not (tmp_path / "build").exists()


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_a_command_that_is_killed_leaves_no_child(tmp_path: Path) -> None:
    """Also while the child computes, and with what it has started."""
    (tmp_path / "small.tpu").write_text(SMALL)
    begins = "import os\n        os.fork()\n        open(f'begun{os.getpid()}', 'w').close()\n        while True: pass"
    (tmp_path / "mine.py").write_text(PASS.replace("BODY", begins))
    with subprocess.Popen([sys.executable, "-m", "tpucc", "compile", "small.tpu", "--pass", "mine.py"], cwd=tmp_path) as process:
        while len(begun := [int(path.name[5:]) for path in tmp_path.glob("begun*")]) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait(20)
    end = time.monotonic() + 20
    while any(map(is_there, begun)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_there, begun))


def is_there(number: int) -> bool:
    """Whether a process of this number runs: one that has ended and that nobody has waited for doesn't."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_an_installed_package_brings_its_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    assert list(installed_passes()) == []
    module, archive, folder = f"in_{kind}", tmp_path / "site.zip", tmp_path / "site"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr(f"{module}.py", PASS.replace("HOSTILE", "").replace("BODY", "return graph"))
        files.writestr(f"{module}-1.0.dist-info/METADATA", f"Name: {module}\nVersion: 1.0\n")
        files.writestr(f"{module}-1.0.dist-info/entry_points.txt", f"[tpucc.passes]\nmine = {module}:Mine\n")
        files.extractall(folder)
    monkeypatch.syspath_prepend(folder if kind == "folder" else archive)
    assert [step.name for step in installed_passes()] == ["mine"]


def test_a_package_that_is_installed_meanwhile_brings_its_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of packages are looked through again when they have changed."""
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, ns=(0, 0))
    assert list(installed_passes()) == []
    (tmp_path / "later.py").write_text(PASS.replace("HOSTILE", "").replace("BODY", "return graph"))
    (tmp_path / "later-1.0.dist-info").mkdir()
    (tmp_path / "later-1.0.dist-info" / "METADATA").write_text("Name: later\nVersion: 1.0\n")
    (tmp_path / "later-1.0.dist-info" / "entry_points.txt").write_text("[tpucc.passes]\nmine = later:Mine\n")
    assert [step.name for step in installed_passes()] == ["mine"]


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
    with pytest.raises(tpucc.UsageError, match="isn't a pass"):
        tpucc.compile_source(SMALL, passes=(allocate,))  # type: ignore[arg-type]


def test_errors_are_json_for_programs(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(PASS.replace("BODY", "return 1 // 0"))
    assert run("compile", small, "--pass", "mine.py", "--json") == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    (found,) = json.loads(printed.out)
    assert (found["code"], found["file"], found["line"], found["column"]) == ("E0521", "mine.py", 29, 9)
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


def test_what_a_stage_prints_is_not_among_the_results(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the module keeps what it knows from one call to the next, of all that one command asks."""
    Path("mine.py").write_text(COUNTS)
    assert run("judge", small, "--replace", "order=mine.py", "-O0") == 0
    printed = capsys.readouterr()
    assert "call" not in printed.out
    assert [line for line in printed.err.splitlines() if "call" in line] == ["call 1 of helper in " + str(Path.cwd())]
    assert run("judge", small, "--replace", "order=mine.py", "-O0", "--trust") == 0
    assert "call 1 of helper in" in capsys.readouterr().err


COUNTS = """\
import os, sys, types
sys.modules["helper"] = types.SimpleNamespace(name="helper")
calls = 0
def order(tiles):
    import helper
    global calls
    calls += 1
    print("call", calls, "of", helper.name, "in", os.getcwd())
    return range(len(tiles))
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says how much memory is free")
def test_code_that_takes_memory_without_end_is_refused_more(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    CHILD.close()
    monkeypatch.setattr(jails, "own_limits", lambda: {"AS": 2**31})
    Path("mine.py").write_text("def order(tiles):\n    held = []\n    while len(held) < 300:\n        held.append(bytearray(2**24))\n")
    assert run("compile", small, "--replace", "order=mine.py") == 1
    assert "mine.py:4:9: error E0613: the stage order takes more memory than there is" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["1e300", "1e-3"])
def test_a_limit_may_be_any_number_of_seconds(small: Path, seconds: str) -> None:
    Path("mine.py").write_text("def order(tiles): return range(len(tiles))\n")
    run("check", small, "--replace", "order=mine.py", "--plugin-timeout", seconds)


def replaces(constant: Constant) -> None:
    object.__setattr__(constant, "data", np.zeros_like(constant.data))


def overwrites(constant: Constant) -> None:
    constant.data.setflags(write=True)
    constant.data[...] = 0


def reshapes(constant: Constant) -> None:
    constant.data.shape = (*constant.data.shape, 1)


@each([replaces, overwrites, reshapes])
def test_a_constant_that_a_pass_changes_in_place_is_found(change: Callable[[Constant], None]) -> None:
    class Changes:
        name, summary, level = "changes", "changes its constants", 0

        def run(self, graph: tpucc.Graph, context: tpucc.Context) -> tpucc.Graph:
            for node in graph:
                if isinstance(value := getattr(node.attributes, "value", None), Constant):
                    change(value)
            return graph

    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, passes=(Changes(),))
    assert caught.value.diagnostics[0].code == "E0524"


def test_an_edited_file_runs_as_it_is_now(tmp_path: Path) -> None:
    """Even when the edit has the same size and comes in the same second, where Python would take the compiled module for it."""
    path = tmp_path / "mine.py"
    for word in ("tahn", "tanh"):
        path.write_text(f"word = {word!r}\n")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert executed(path).word == word
    assert not (tmp_path / "__pycache__").exists()


RULES_AND_A_FUNCTION = """
from tpucc.ops.names import relu
from tpucc.passes.base import graph_pass
from tpucc.passes.rules import rule, rules_pass, value

@rules_pass("relu-once", "computes no relu of a relu", level=1)
def relu_once():
    yield rule("a relu of a relu", relu(relu(value("x"))), lambda m: relu(m.x))

@graph_pass("say-size", "says how large the graph is", level=1)
def say_size(graph, context):
    return graph.noting(f"{len(graph)} nodes, {1 / (len(graph) - 3):g}")
"""


def test_a_file_may_have_rules_and_functions(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(RULES_AND_A_FUNCTION)
    relu_once, say_size = passes_of_file(file)
    graph = graph_of("x = input : f32[3, 4]\na = relu(x) : f32[3, 4]\nb = relu(a) : f32[3, 4]\nreturn b")
    after = run_pass(relu_once, graph, CONTEXT)
    assert body(after).splitlines()[1:] == ["b = relu(x) : f32[3, 4]", 'return b as "b"']
    assert run_pass(say_size, after, CONTEXT).notes == ("2 nodes, -1",)
    with pytest.raises(PluginError) as error:
        run_pass(say_size, graph, CONTEXT)
    assert [label.span.line for label in error.value.diagnostics[0].labels] == [12]
