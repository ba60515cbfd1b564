"""Passes, stages and submissions run in one kind of child: the same harm gets the same words, at its line, from each of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.command_line import SMALL
from tpucc.guest import child as guest_child
from tpucc.guest import files
from tpucc.guest.files import OneChild, passes_of_file, stages_of_files
from tpucc.guest.jails import NONE, NOWHERE, OWN, Jail
from tpucc.guest.limits import Duration
from tpucc.guest.pipes import Pipes
from tpucc.guest.serving import Request
from tpucc.labs import child
from tpucc.labs.cells import cell
from tpucc.labs.child import Child
from tpucc.plugins.failures import Failed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits and jails are POSIX's")

HARMS = {
    "a fork bomb": ("while True: os.fork()", "BlockingIOError: [Errno 11] Resource temporarily unavailable"),
    "2 GB": ("bytearray(2**31)", "takes more memory than there is"),
    "a file of 32 MB": ("open('/tmp/filler', 'wb').write(bytes(2**25))", "OSError: [Errno 27] File too large"),
    "an endless loop": ("while True: pass", "takes longer than 0.3 s of processor time, and was stopped there"),
    "a write outside": ("open('/usr/lib/harm', 'w')", "OSError: [Errno 30] Read-only file system: '/usr/lib/harm'"),
    "a crash": ("ctypes.string_at(0)", "ended its process without an answer (signal SIGSEGV)"),
    "an exit": ("os._exit(0)", "calls os._exit, which ends its process"),
    "an exception": ("1 // 0", "ZeroDivisionError: integer division or modulo by zero"),
}
CODE = """\
import ctypes
import os


def harm():
    BODY


def order(tiles):
    harm()


class Mine:
    name, summary = "mine", "does harm"

    def run(self, graph, context):
        harm()
"""
LINE = 6


@contextmanager
def in_cell(shared: Path, text: str, jail: Jail, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of passes and stages, which a child has in a cell."""
    with cell(shared, {"mine.py": text.encode()}, "mine.py") as made:
        shared_by_files = OneChild(jail, made)
        monkeypatch.setattr(files, "CHILD", shared_by_files)
        try:
            yield made.submission / "mine.py"
        finally:
            shared_by_files.close()


def of_a_submission(path: Path, shared: Path, jail: Jail) -> tuple[int, str]:
    with cell(shared, {"mine.py": path.read_bytes()}, "mine.py") as made, Child(jail, made, ()) as submission:
        with pytest.raises(Failed) as caught:
            submission.call("harm", seconds=0.3)
        failure = caught.value
        return failure.frames[-1].line, failure.raised.removeprefix("harm: ")


def of_a_pass(path: Path, shared: Path, jail: Jail) -> tuple[int, str]:
    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, passes=passes_of_file(path, 0.3))
    return said(caught.value, "the pass mine ")


def of_a_stage(path: Path, shared: Path, jail: Jail) -> tuple[int, str]:
    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, stages=stages_of_files({"order": path}, 0.3))
    return said(caught.value, "the stage order ")


def said(error: tpucc.PluginError, name: str) -> tuple[int, str]:
    head = error.diagnostics[0]
    assert head.span is not None
    return head.span.line, head.message.removeprefix(name).removeprefix("raised ")


@pytest.mark.long
@pytest.mark.parametrize("harm", one_of(3, HARMS))
def test_one_harm_has_one_verdict(harm: str, shared: Path, jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    body, words = HARMS[harm]
    for limits in (files, child):
        monkeypatch.setattr(limits, "BY_THE_CLOCK", 300)  # a busy machine gives a loop little of its processor
    asks: tuple[Callable[[Path, Path, Jail], tuple[int, str]], ...] = (of_a_pass, of_a_stage, of_a_submission)
    with in_cell(shared, CODE.replace("BODY", body), jail, monkeypatch) as path:
        assert {ask(path, shared, jail) for ask in asks} == {(LINE, words)}


def test_a_child_of_a_file_has_the_limits_of_a_submissions(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a jail, too."""
    limits = "import resource\ndef order(tiles): raise ValueError(resource.getrlimit(resource.RLIMIT_AS)[0])\n"
    with in_cell(shared, limits, NONE, monkeypatch) as path, pytest.raises(tpucc.PluginError, match=str(1536 * 2**20)):
        tpucc.compile_source(SMALL, stages=stages_of_files({"order": path}, 10))


def test_who_waits_for_an_answer_hears_that_another_thread_has_ended_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if nobody reads the end of the child's answers any more."""
    monkeypatch.setattr(Pipes, "_read_answers", lambda pipes: None)
    asked, most, found = guest_child.Child(OWN, NOWHERE), Duration(60, 60, 60), list[guest_child.Answer]()
    asked.begin(Request("", f"{files.INSIDE}:ready", (), most))
    waiting = Thread(target=lambda: found.append(asked.answer(most)), daemon=True)
    waiting.start()
    waiting.join(0.2)
    asked.close()
    waiting.join(20)
    assert [answer.failure.kind for answer in found if answer.failure] == ["ended"]
