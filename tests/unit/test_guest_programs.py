"""Programs as stages: what they read and write, what is said of one that misbehaves, and that a call costs one run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import SMALL, run
from tests.support.seeds import at_length
from tpucc.guest import files
from tpucc.guest.files import executed, passes_of_file, stages_of_files
from tpucc.guest.programs import MOST, answer_of, question
from tpucc.plugins.failures import Failed, Unfit
from tpucc.schedule.allocate import Lives, TooLarge

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a script names what runs it on POSIX systems")

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs" / "stages"
SUPPORT = ROOT / "tests" / "support" / "programs"
SHELL = "#!/bin/sh\n"
PYTHON = """\
#!/usr/bin/env python3
import json
import sys

asked = json.load(sys.stdin)
"""
ALLOCATE = f"""{PYTHON}
lives, placed = asked["lives"], []
starts = [0] * len(lives["rows"])
for buffer in sorted(range(len(starts)), key=lambda buffer: lives["first"][buffer]):
    for other in sorted(placed, key=lambda other: starts[other]):
        together = lives["first"][other] <= lives["last"][buffer] and lives["first"][buffer] <= lives["last"][other]
        if together and starts[other] < starts[buffer] + lives["rows"][buffer]:
            starts[buffer] = max(starts[buffer], starts[other] + lives["rows"][other])
    placed.append(buffer)
fits = all(start + rows <= asked["rows"] for start, rows in zip(starts, lives["rows"]))
print(json.dumps({{"version": 1, "result": starts}} if fits else {{"TooLarge": "no rows are free"}}))
"""
"""First fit, as docs/stages/first_fit.py."""


def program(path: Path, text: str) -> Path:
    """A program with this text."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def allocator(path: Path) -> Callable[[Lives, int], Any]:
    """What a program answers, asked from this process."""
    function: Callable[[Lives, int], Any] = vars(executed(path))["allocate"]
    return function


@pytest.fixture(scope="module")
def allocators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[Lives, int], Any]]:
    """First fit in each language that there is."""
    folder = tmp_path_factory.mktemp("programs")
    found = {"Python": allocator(program(folder / "python", ALLOCATE))}
    if compiler := shutil.which("cc"):
        subprocess.run([compiler, "-O1", "-o", folder / "c", SUPPORT / "first_fit.c"], check=True)
        found["C"] = allocator(folder / "c")
    if shutil.which("node"):
        found["JavaScript"] = allocator(BOOK / "first_fit.js")
    return found


def lives_of(draw: Random) -> Lives:
    count = draw.randrange(0, 30)
    first = np.array([draw.randrange(40) for _ in range(count)], np.int64)
    return Lives(
        first, first + [draw.randrange(12) for _ in range(count)], np.array([draw.randrange(1, 20) for _ in range(count)], np.int64)
    )


def outcome(allocate: Callable[[Lives, int], Any], lives: Lives, rows: int) -> list[int] | None:
    """The starts, or None for rows that are too few."""
    try:
        return list(map(int, allocate(lives, rows)))
    except TooLarge:
        return None


@pytest.mark.long
def test_first_fit_is_the_same_in_each_language(allocators: dict[str, Callable[[Lives, int], Any]]) -> None:
    compare(range(3), allocators)


@at_length(500, 100)
def test_first_fit_is_the_same_on_many_inputs(seeds: range, allocators: dict[str, Callable[[Lives, int], Any]]) -> None:
    compare(seeds, allocators)


def compare(seeds: Iterable[int], allocators: dict[str, Callable[[Lives, int], Any]]) -> None:
    """The allocators beside that of the book, on random lives."""
    book = vars(executed(BOOK / "first_fit.py"))["allocate"]
    for seed in seeds:
        draw = Random(seed)
        lives, rows = lives_of(draw), draw.randrange(20, 120)
        expected = outcome(book, lives, rows)
        assert {name: outcome(allocate, lives, rows) for name, allocate in allocators.items()} == dict.fromkeys(allocators, expected)


def test_both_answers_of_an_allocator_are_tried(allocators: dict[str, Callable[[Lives, int], Any]]) -> None:
    lives = Lives(np.array([0, 4, 5]), np.array([4, 8, 9]), np.array([10, 4, 9]))
    for name, allocate in allocators.items():
        assert outcome(allocate, lives, 14) == [0, 10, 0], name
        assert outcome(allocate, lives, 13) is None, name


def test_a_program_gives_the_same_bytes_as_the_python_file_of_the_book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line, with everything that is dumped."""
    (tmp_path / "small.tpu").write_text(SMALL)
    mine = program(tmp_path / "mine", ALLOCATE)
    for folder, file in (("program", mine), ("python", BOOK / "first_fit.py")):
        assert (
            run("compile", tmp_path / "small.tpu", "--replace", f"allocate={file}", "-o", tmp_path / folder, "--emit", "asm,tpub,stats")
            == 0
        )
    made, expected = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("program", "python"))
    assert made == expected
    assert run("judge", tmp_path / "small.tpu", "--replace", f"allocate={mine}") == 0
    assert run("run", tmp_path / "small.tpu", "--replace", f"allocate={mine}", "--check", "--trust") == 0
    assert "small.tpu: equal" in capsys.readouterr().out


AS_BUILT_IN = {
    "order": """print(json.dumps({"result": [tile["index"] for tile in asked["tiles"]]}))""",
    "synchronise": """
engines = ["host", "matrix", "activation"]
listing = [instruction for instruction in asked["listing"] if instruction["engine"] in engines]
waits = [[each["index"], each["engine"], [other for other in engines if other != each["engine"]]] for each in listing]
print(json.dumps({"result": waits}))
""",
    "lower_fc": """
layer, lines = asked["layer"], []
(rows,), step = layer["shape"], layer["steps"][0]
for n, result in enumerate(layer["results"]):
    lines += [f"set_configuration block={layer['blocks'][n]}", f".groups [{rows}]"]
    more = ""
    for level in layer["levels"]:
        if level["tiles"][n] is not None:
            source = f"{level['buffer']}+{level['start']} ub_stride={level['steps'][0]}"
            lines.append(f"convolve ub={source} acc=g{n} inner={rows} tile={level['tiles'][n]}, switch{more}")
            more = ", accumulate"
    lines.append(f"activate acc=g{n} ub={result}+{layer['start']} ub_stride={step} inner={rows}")
assert rows <= layer["target"]["accumulator_rows"]
print(json.dumps({"result": lines}))
""",
}
"""A program for each of the other stages, right and plain."""


@each({stage: (stage, text) for stage, text in AS_BUILT_IN.items()})
def test_each_stage_may_be_a_program(stage: str, text: str, tmp_path: Path) -> None:
    mine = program(tmp_path / "mine", PYTHON + text)
    exe = tpucc.compile_source(SMALL, stages=stages_of_files({stage: mine}))
    assert tpucc.judge(exe).equal


def test_a_program_reads_every_field_of_what_python_gets() -> None:
    """The names of the stage's arguments, and below them the fields of their classes, but functions."""
    asked: dict[str, tuple[Any, ...]] = {}

    def noted(stage: str) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            asked.setdefault(stage, arguments)
            return getattr(built_in, stage)(*arguments)

        return called

    built_in = tpucc.Stages()
    stages = ("lower_fc", "allocate", "order", "synchronise")
    tpucc.compile_source(SMALL, stages=tpucc.Stages(**{stage: noted(stage) for stage in stages}))
    read = {stage: json.loads(question(stage, asked[stage])) for stage in stages}
    for stage, found in read.items():
        assert (found["version"], found["stage"]) == (1, stage)
    lives, rows = asked["allocate"]
    expected = {"first": lives.first.tolist(), "last": lives.last.tolist(), "rows": lives.rows.tolist()}
    assert read["allocate"] == {"version": 1, "stage": "allocate", "lives": expected, "rows": rows}
    (layer,) = asked["lower_fc"]
    assert set(read["lower_fc"]["layer"]) == {field.name for field in fields(layer)} - {"builtin"}
    assert read["lower_fc"]["layer"]["levels"][0]["tiles"] == list(layer.levels[0].tiles)
    assert read["lower_fc"]["layer"]["target"]["mxu"] == layer.target.mxu
    for stage, name in (("order", "tiles"), ("synchronise", "listing")):
        for found, instruction in zip(read[stage][name], asked[stage][0], strict=True):
            assert is_dataclass(instruction)
            assert list(found) == [field.name for field in fields(instruction)]
            assert (found["index"], found["text"], found["engine"]) == (instruction.index, instruction.text, str(instruction.engine))
            assert found["writes"]["buffer"] == instruction.writes.buffer.tolist()
            assert found["reads"]["accumulators"] == instruction.reads.accumulators.tolist()


@each(
    {
        "nothing": (b" \n", "wrote nothing to standard output"),
        "no JSON": (b"starts: 1, 2", "wrote starts: 1, 2, which can't be read: JSON is malformed: invalid character (byte 0)"),
        "two objects": (b'{"result": []}{"result": []}', "which can't be read: JSON is malformed: trailing characters (byte 15)"),
        "bytes": (b'{"result": "\xff"}', "which can't be read"),
        "lists in lists": (b"[" * 10**6, "which can't be read"),
        "a list": (b"[1, 2]", "wrote [1, 2], expected an object"),
        "another name": (b'{"version": 1, "starts": [1]}', "wrote an object with starts, expected result, or TooLarge with a text"),
        "more names": (b'{"result": [1], "rows": 3}', "wrote an object with result and rows, expected result"),
        "no names": (b"{}", "wrote an object with nothing in it, expected result"),
        "another version": (b'{"version": 2, "result": [1]}', "wrote an answer of version 2, expected 1"),
        "both": (
            b'{"result": [0], "TooLarge": "no"}',
            "wrote an object with result and TooLarge, expected result, or TooLarge with a text",
        ),
        "no text": (b'{"TooLarge": true}', "wrote an object with TooLarge, expected result, or TooLarge with a text"),
    }
)
def test_an_answer_of_another_form_is_told(text: bytes, words: str) -> None:
    with pytest.raises(Unfit) as caught:
        answer_of(text)
    assert words in caught.value.message
    assert 'such as {"version": 1, "result": [0, 12]}' in caught.value.help[0]


def test_an_answer_may_leave_out_its_version() -> None:
    assert answer_of(b'{"result": [3]}') == answer_of(b'\n{"version": 1, "result": [3]}\n') == [3]


ENDS = {
    "a status": ("echo '{\"result\": []}'; exit 3", "ended with exit status 3; 0 says that there is an answer"),
    "a signal": ("kill -SEGV $$", "was ended by signal 11 (Segmentation fault)"),
    "too much": ("yes", f"wrote more than {MOST:,} bytes to standard output"),
}


@each(ENDS)
def test_a_program_that_ends_badly_is_told(body: str, words: str, tmp_path: Path) -> None:
    with pytest.raises((Failed, Unfit)) as caught:
        allocator(program(tmp_path / "mine", f"{SHELL}{body}\n"))(lives_of(Random(1)), 100)
    assert caught.value.message == words


@each(
    {
        "no interpreter": ("#!/no/such/interpreter\n", "can't be started: No such file or directory"),
        "no program": ("starts = [0, 0]\n", "can't be started: Exec format error"),
    }
)
def test_a_file_that_cannot_be_started_is_told(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(Unfit) as caught:
        allocator(program(tmp_path / "mine", text))(lives_of(Random(1)), 100)
    assert (caught.value.code, caught.value.message) == ("E0521", words)
    assert "#!/usr/bin/env python3" in caught.value.help[0]


def test_a_program_need_not_read_what_it_gets(tmp_path: Path) -> None:
    """More than a pipe holds."""
    many = np.arange(10**5)
    allocate = allocator(program(tmp_path / "mine", f"{SHELL}exec <&-\necho '{{\"result\": [1]}}'\n"))
    assert allocate(Lives(many, many, many), 100) == [1]


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, *options: str) -> str:
    """What `judge` says on standard error of a program as the allocator."""
    (tmp_path / "small.tpu").write_text(SMALL)
    mine = program(tmp_path / "mine", f"{SHELL}{body}\n")
    assert run("compile", tmp_path / "small.tpu", "-o", tmp_path / "made", "--replace", f"allocate={mine}", *options) == 1
    assert not (tmp_path / "made").exists()
    return capsys.readouterr().err


@pytest.mark.long
@each(
    {
        "status": ("exit 3", "mine: error E0521: the stage allocate ended with exit status 3"),
        "form": ("echo '[]'", "mine: error E0523: the stage allocate wrote [], expected an object\nhelp: a program writes one object"),
        "length": ("echo '{\"result\": [0]}'", "mine: error E0523: the stage allocate returned int64 of shape [1], expected "),
        "type": ('echo \'{"result": "0"}\'', "mine: error E0523: the stage allocate returned '0', expected "),
        "range": ("echo '{\"result\": [-1, 0, 0]}'", "mine: error E0523: the stage allocate put buffer 0 (x.i8.0) on rows -1 to "),
    }
)
def test_the_command_names_the_program_and_the_stage(body: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(tmp_path, capsys, f"echo looking >&2; {body}")
    assert words in text
    assert text.startswith("looking\n")


def test_a_program_that_waits_is_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it has started; by the clock, as nobody knows whether it waits or what it started computes."""
    monkeypatch.setattr(files, "BY_THE_CLOCK", 2)
    text = told(tmp_path, capsys, f"echo $$ > {tmp_path}/started; sleep 600 & sleep 600", "--plugin-timeout", "0.2")
    assert "mine: error E0522: the stage allocate takes longer than 0.4 s by the clock" in text
    words = ["ps", "-o", "stat=", "-p", (tmp_path / "started").read_text().strip()]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()[:1] in ("", "Z")  # nobody may have asked how


@pytest.mark.long
def test_a_program_that_computes_without_end_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BY_THE_CLOCK", 300)
    text = told(tmp_path, capsys, "while :; do :; done", "--plugin-timeout", "0.2")
    assert "mine: error E0522: the stage allocate takes longer than 0.2 s of processor time" in text


def test_what_is_no_program_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    mine = program(tmp_path / "mine", ALLOCATE)
    with pytest.raises(tpucc.UsageError, match=r"E0513: .*mine is not a Python file; a file with passes ends in \.py"):
        passes_of_file(mine)
    mine.chmod(0o644)
    (tmp_path / "small.tpu").write_text(SMALL)
    assert run("check", tmp_path / "small.tpu", "--replace", f"allocate={mine}") == 2
    said = capsys.readouterr().err
    assert "error E0513" in said
    assert f"help: chmod +x {mine} makes a program of it" in said
    mine.chmod(0o755)
    monkeypatch.setattr(files, "IN_A_PAGE", True)
    with pytest.raises(tpucc.UsageError, match="a page can't start programs"):
        stages_of_files({"allocate": mine})


def test_each_call_is_one_run(tmp_path: Path) -> None:
    notes = tmp_path / "runs"
    stages = stages_of_files(
        {"allocate": program(tmp_path / "mine", ALLOCATE + f"open({str(notes)!r}, 'a').write(asked['stage'] + ' ')\n")}
    )
    calls: list[int] = []

    def counted(lives: Lives, rows: int) -> Any:
        calls.append(rows)
        return stages.allocate(lives, rows)

    tpucc.compile_source(SMALL, stages=tpucc.Stages(allocate=counted))
    assert notes.read_text().split() == ["allocate"] * len(calls) != []


def test_the_book_shows_the_real_program() -> None:
    assert (BOOK / "first_fit.js").read_text("utf-8") in (ROOT / "docs" / "stages.md").read_text("utf-8")
    assert os.access(BOOK / "first_fit.js", os.X_OK)
