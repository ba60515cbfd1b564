"""The watch without its server: what counts as a change, what a compilation comes to, and the pages made of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.cases import each
from tests.support.pictures import BIDI, HOSTILE
from tests.support.watching import REPORT_PAGE, SMALL, WRONG, Drawing, draw, recipe
from tpucc.compilation import Compilation
from tpucc.diagnostics import CompileError, Diagnostic, InternalError, Label, LimitError, Source, Span
from tpucc.explain.codes import explain
from tpucc.options import Options
from tpucc.runtime.runtime import Runtime
from tpucc.watch.build import Built, Failed, attempt
from tpucc.watch.messages import Messages, messages_page, remarks
from tpucc.watch.server import Board
from tpucc.watch.session import ABSENT, Session, differ, look, named_files
from tpucc.watch.site import DIAGNOSTICS, FRONT, ICON, MESSAGES, REPORT, digest, view_of, waiting


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "small.tpu").write_text(SMALL)
    return tmp_path / "small.tpu"


def built(model: Path) -> Built:
    outcome = attempt(recipe(model))
    assert isinstance(outcome, Built)
    return outcome


def failed(model: Path, drawing: Drawing = draw) -> Failed:
    outcome = attempt(recipe(model, drawing))
    assert isinstance(outcome, Failed)
    return outcome


# What counts as a change


def test_other_bytes_are_a_change_and_another_time_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    first = look([path], {})
    os.utime(path, ns=(1, 1))
    assert not differ(look([path], first), first)
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))  # the size and the time are the same: only reading it tells
    assert differ(look([path], look([path], first)), first)


def test_a_large_file_is_read_again_only_when_its_stamp_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.watch.session.SMALL", 2)
    path = tmp_path / "a"
    path.write_bytes(b"one")
    first = look([path], {})
    stamp = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert look([path], first) == first
    os.utime(path, ns=(1, 1))
    assert differ(look([path], first), first)


def test_coming_and_going_are_changes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    absent = look([path], {})
    path.write_bytes(b"")
    there = look([path], absent)
    assert differ(there, absent)
    path.unlink()
    assert differ(look([path], there), there)
    assert not differ(look([path], there), absent)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = look([tmp_path / "pipe", tmp_path, tmp_path / "none"], {})
    assert [mark.digest for mark in found.values()] == [b"is a pipe or a device, not a file", b"is a directory", ABSENT.digest]


def test_the_archives_that_a_source_names(model: Path) -> None:
    model.write_text(SMALL.replace("weights random(seed=1)", 'weights "w.npz"\ncalibration "below/c.npz"'))
    assert list(named_files(model, Options())) == [model.parent.resolve() / "w.npz", model.parent.resolve() / "below" / "c.npz"]


@each(["../w.npz", "/etc/hostname", "below/../../w.npz"])
def test_files_outside_the_source_s_folder_are_not_looked_at(name: str, model: Path) -> None:
    model.write_text(SMALL.replace("weights random(seed=1)", f'weights "{name}"'))
    assert list(named_files(model, Options())) == []


# A session


def turns(model: Path, board: Board | None = None) -> tuple[Session, list[Built | Failed]]:
    heard: list[Built | Failed] = []
    return Session(recipe(model), board or Board(waiting("small.tpu")), lambda outcome, _: heard.append(outcome), pause=0), heard


def test_a_session_compiles_once_for_each_change(model: Path) -> None:
    session, heard = turns(model)
    assert [session.turn(), session.turn()] == [True, False]
    model.write_text(WRONG)
    assert [session.turn(), session.turn()] == [True, False]
    model.write_text(SMALL)
    assert session.turn()
    assert [type(outcome) for outcome in heard] == [Built, Failed, Built]


def test_a_named_archive_counts_and_one_of_a_source_that_broke_still_does(model: Path) -> None:
    text = SMALL.replace("weights random(seed=1)", 'weights "w.npz"')
    model.write_text(text)
    session, heard = turns(model)
    session.turn()
    (model.parent / "w.npz").write_bytes(b"no archive")
    assert session.turn()
    assert [outcome.error.diagnostics[0].code for outcome in heard if isinstance(outcome, Failed)] == ["E0420", "E0421"]
    model.write_text("model")
    assert session.turn()
    (model.parent / "w.npz").write_bytes(b"another")
    assert session.turn()
    assert not session.turn()


def test_the_last_good_report_stays_while_the_source_is_wrong(model: Path) -> None:
    board = Board(waiting("small.tpu"))
    session, _ = turns(model, board)
    session.turn()
    good = board.view
    model.write_text(WRONG)
    session.turn()
    assert board.view.contents[REPORT] == good.contents[REPORT]
    assert board.view.contents["/stats.json"].body == b"{}"
    assert board.view.contents[FRONT].body != good.contents[FRONT].body
    front = board.view.contents[FRONT].body
    assert b"<p>cycles</p>" in front, "the last good report"
    assert b'<template id="tpucc-errors">' in front
    assert b"E0201" in front
    assert b'href="/report.html"' in board.view.contents[MESSAGES].body
    assert (board.view.state.errors, board.view.state.compiling) == (1, False)


@pytest.mark.parametrize(
    "kind", ["folder", pytest.param("pipe", marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here"))]
)
def test_a_deleted_source_that_returns_as_something_else_is_told_of(model: Path, kind: str) -> None:
    """Nothing waits for who would write into a pipe."""
    session, heard = turns(model)
    session.turn()
    model.unlink()
    assert session.turn()
    (os.mkfifo if kind == "pipe" else os.mkdir)(model)
    assert [session.turn(), session.turn()] == [True, False]
    words = {"pipe": "is a pipe or a device, not a file", "folder": "is a directory"}
    assert isinstance(heard[-1], Failed)
    assert heard[-1].error.diagnostics[0].message == f"can't read {model}: {words[kind]}"
    Path.rmdir(model) if kind == "folder" else model.unlink()
    model.write_text(SMALL)
    assert session.turn()
    assert isinstance(heard[-1], Built)


# What a compilation comes to


def test_the_files_are_written_and_nothing_else(model: Path) -> None:
    outcome = built(model)
    assert {path.name for path in model.parent.iterdir()} == {"small.tpu", "build"}
    assert {path.name: path.read_bytes() for path in (model.parent / "build").iterdir()} == dict(outcome.files)
    assert re.fullmatch(r"[\d.]+ (ns|µs) end to end, [\d,]+ cycles on the device, .* bound", outcome.summary)


def test_a_failure_leaves_the_files_as_they_are(model: Path) -> None:
    built(model)
    model.write_text(WRONG)
    failed(model)
    assert (model.parent / "build" / "report.html").read_bytes() == REPORT_PAGE


@pytest.mark.parametrize(("raised", "kind", "code"), [(KeyError("x"), InternalError, "E0900"), (MemoryError(), LimitError, "E0613")])
def test_faults_become_messages(model: Path, raised: Exception, kind: type[Exception], code: str) -> None:
    def broken(compilation: Compilation, runtime: Runtime) -> Mapping[str, bytes]:
        raise raised

    outcome = failed(model, broken)
    assert isinstance(outcome.error, kind)
    assert outcome.error.diagnostics[0].code == code
    assert outcome.source == Source("small.tpu", SMALL)
    assert {path.name for path in model.parent.iterdir()} == {"small.tpu"}


def test_a_source_that_is_no_text_or_gone_is_a_failure_without_a_source(model: Path) -> None:
    model.write_bytes(b"\xff")
    assert [d.code for d in failed(model).error.diagnostics] == ["E0101"]
    model.unlink()
    assert failed(model).source is None


# The page of messages


def page(messages: tuple[Diagnostic, ...], text: str, **more: str) -> str:
    return messages_page(Messages("small.tpu: 1 error", messages=messages, source=Source("small.tpu", text), **more))  # type: ignore[arg-type]


def test_an_error_stands_under_its_line_with_its_code_and_help(model: Path) -> None:
    model.write_text(WRONG.replace("weight w", "weight vv"))
    outcome = failed(model)
    html = page(outcome.error.diagnostics, WRONG)
    before, marked, after = re.split(r"(<mark.*?</mark>)", html, maxsplit=1)
    assert before.endswith("return softmax(x @ ")
    assert marked == '<mark class="error">v</mark>'
    assert "<b>4</b><code>" in before.rpartition('<div class="line')[2]
    assert '<a href="/explain/E0201">E0201</a>: ' in after
    assert "help: did you mean vv?" in after


def test_notes_stand_at_their_own_lines() -> None:
    message = Diagnostic("E0208", "again", (Label(Span(3, 1, 3, 4), "here"), Label(Span(1, 5, 1, 6), "the first")))
    found = remarks(Source("s", "one two\n\nsix\n"), [message])
    assert {line: [(r.start, r.end, r.kind, r.words) for r in own] for line, own in found.items()} == {
        3: [(0, 3, "error", "here")],
        1: [(4, 5, "note", "note: the first")],
    }


@each(
    [
        (Span(1, 2, 2, 3), (1, 4)),  # over two lines: to the end of the first
        (Span(1, 5, 1, 6), (4, 4)),  # behind the end of the line
        (Span(1, 9, 1, 12), (4, 4)),
        (Span(3, 1, 3, 2), (0, 0)),  # past the end of the file
    ]
)
def test_marks_stay_inside_their_line(span: Span, expected: tuple[int, int]) -> None:
    (own,) = remarks(Source("s", "abcd\r\nef"), [Diagnostic("E0208", "m", (Label(span),))]).values()
    assert [(r.start, r.end) for r in own] == [expected]


def test_overlapping_marks_cut_the_line_without_losing_a_character() -> None:
    spans = [Span(1, 1, 1, 9), Span(1, 5, 1, 12), Span(1, 5, 1, 6)]
    html = page(tuple(Diagnostic("E0208", "m", (Label(span),)) for span in spans), "abcd<fg hijkl\n")
    row = re.search(r'<div class="line marked">.*?</div>', html)
    assert row is not None
    assert re.sub(r"<[^>]*>", "", row.group()) == "1abcd&lt;fg hijkl"
    assert row.group().count("<mark") == 4


def test_hostile_text_stays_text() -> None:
    label = Label(Span(1, 3, 1, 5), HOSTILE + BIDI)
    message = Diagnostic("E0201", HOSTILE, (label, Label(Span(2, 1, 2, 2), BIDI)), (HOSTILE,))
    loose = Diagnostic("E0504", BIDI, help=(BIDI,))
    given = Messages(HOSTILE, BIDI, (message, loose), Source(HOSTILE, f"{HOSTILE}\n{BIDI}\n"), (HOSTILE,), {"/": HOSTILE})
    html = messages_page(given)
    assert "<script" not in html
    assert not re.search("[\u202e\x00\uffff]", html)
    assert "\\u202e" in html
    assert "\\x00" in html


def test_messages_without_a_source_are_shown() -> None:
    html = messages_page(Messages("gone", messages=(Diagnostic("E0504", "can't read it", help=("look",)),)))
    assert "can&#39;t read it" in html
    assert "help: look" in html


# The pages by their paths


def test_a_good_outcome_is_the_report_and_the_files(model: Path) -> None:
    view = view_of("small.tpu", outcome := built(model), outcome)
    assert set(view.contents) == {FRONT, REPORT, MESSAGES, DIAGNOSTICS, ICON, "/stats.json"}
    assert view.contents["/stats.json"].type == "application/json"
    assert view.state.pages[FRONT] == view.state.pages[REPORT] == digest(REPORT_PAGE)
    assert b"no errors and no warnings" in view.contents[MESSAGES].body


def test_the_script_is_in_served_pages_alone(model: Path) -> None:
    outcome = built(model)
    html = view_of("small.tpu", outcome, outcome).contents[FRONT].body.decode()
    head, script, tail = re.split(r'(<script data-place="/view" data-digest="\w+">.*</script>)', html, flags=re.DOTALL)
    assert script.count("</") == 1
    assert f'data-digest="{digest(REPORT_PAGE)}"' in script
    assert head.endswith("</style>")
    assert tail == "</body></html>"
    assert b"<script" not in (model.parent / "build" / "report.html").read_bytes()


def test_warnings_stand_in_the_messages_while_the_report_is_in_front(model: Path) -> None:
    warning = Diagnostic("E0201", "odd", (Label(Span(1, 1, 1, 4)),), severity="warning")
    outcome = replace(built(model), source=Source("s.tpu", "odd\n"), warnings=(warning,), notes=("slow",))
    view = view_of("s.tpu", outcome, outcome)
    assert b"cycles</p>" in view.contents[FRONT].body
    said = view.contents[MESSAGES].body.decode()
    assert '<mark class="warning">odd</mark>' in said
    assert "s.tpu: 1 warning<" in said
    assert "slow" in said
    assert (view.state.errors, view.state.warnings) == (0, 1)


def test_explanations_are_served_as_text_for_the_codes_at_hand_only() -> None:
    failure = Failed(CompileError([Diagnostic("E0201", "a"), Diagnostic("E0201", "b"), Diagnostic("X9", "c")]), None)
    view = view_of("s.tpu", failure, None)
    assert [path for path in view.contents if path.startswith("/explain/")] == ["/explain/E0201"]
    assert view.contents["/explain/E0201"].body.decode() == explain("E0201")
    assert view.contents["/explain/E0201"].type.startswith("text/plain")
    assert REPORT not in view.contents


def test_a_state_is_one_line_of_json(model: Path) -> None:
    outcome = built(model)
    text = msgspec.json.encode(view_of("small.tpu", outcome, outcome).state)
    assert b"\n" not in text
    assert msgspec.json.decode(text)["pages"][FRONT] == digest(REPORT_PAGE)
