"""The way of a student and of an instructor: start, check, grade, a whole class, archives, the leaderboard."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.labs.test_jails import run_here
from tests.support import lab_solutions
from tests.support.cases import one_of
from tests.support.command_line import run
from tests.support.lab_results import Here
from tests.support.lab_solutions import files_of, main_file, mistakes, reference
from tests.support.package_copies import keep_compiled, plain_environment
from tpucc.cli import lab_grading, progress
from tpucc.diagnostics import UsageError
from tpucc.guest import jails
from tpucc.guest.jails import JAILS, NONE, Finding
from tpucc.labs import child, find, labs, packing, workers
from tpucc.labs.classes import Row, as_csv, earlier_seed, grade_all
from tpucc.labs.grading import Contents, Grade, Result, check, chosen, random_seed
from tpucc.labs.grading import run as graded
from tpucc.labs.lab import AS_WRITTEN, Lab, Outcome, Term, Test
from tpucc.labs.packing import for_gradescope, for_students
from tpucc.labs.published import as_page, as_text, board
from tpucc.labs.results import as_json, report
from tpucc.labs.start import starting_files
from tpucc.labs.strip import MarkerError, stripped
from tpucc.labs.submissions import Variants, digest_of_graded, submissions
from tpucc.plugins.failures import Failed, failing

LAB = find("allocation")
EXPLOITS = Path(__file__).parent / "exploits"

pytestmark = pytest.mark.usefixtures("made_before")


def solution(term: Term = AS_WRITTEN, wrong: str = "", lab: Lab = LAB) -> str:
    return main_file(lab, wrong, term)


@pytest.mark.long
def test_a_student_begins_checks_and_mends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "lab5"
    assert run("lab", "start", "5", folder, "--term", "spring") == 0
    assert "tpucc lab check" in capsys.readouterr().out
    assert run("lab", "start", "5", folder) == 2
    assert "is there already" in capsys.readouterr().err
    (folder / LAB.file).write_text(solution(Term("spring"), "last_is_free"))
    assert run("lab", "check", folder, "--only", "random lives") == 1
    said = capsys.readouterr().out
    assert "share rows while both are alive" in said
    assert f"tpucc lab check {folder} --only 'random lives'" in said
    assert (folder / "check" / "random_lives.svg").read_text().startswith("<svg")
    (folder / LAB.file).write_text(solution(Term("spring")))
    assert run("lab", "check", folder) == 0
    assert "45 of 45 points" in capsys.readouterr().out


def test_what_a_folder_does_not_say_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "allocation.py").write_text(solution())
    assert run("lab", "check", tmp_path / "allocation.py") == 2
    assert "error E0551" in capsys.readouterr().err
    assert run("lab", "check", tmp_path / "allocation.py", "--lab", "allocation", "--only", "three buffers") == 0
    assert run("lab", "check", tmp_path / "allocation.py", "--lab", "99") == 2
    assert "there are" in capsys.readouterr().err
    assert run("lab", "check", tmp_path / "allocation.py", "--lab", "5", "--only", "memori") == 2
    capsys.readouterr()
    for name in (" spring", "spring/2", "s" * 65):
        assert run("lab", "check", tmp_path / "allocation.py", "--lab", "5", "--term", name) == 2
        assert "can't be a term's name" in capsys.readouterr().err


@pytest.mark.long
def test_a_students_file_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The term is the grader's; where the student's file has another, or can't be read, the results say so."""
    folder, results = tmp_path / "anna", tmp_path / "results.json"
    folder.mkdir()
    (folder / LAB.file).write_text(solution(Term("fall")))
    (folder / "lab.toml").write_text('lab = 5\nterm = "fall"\n')
    asked = ("lab", "grade", folder, "--trust", "--seed", "1", "--only", "three buffers", "--json", results)
    assert run(*asked) == 2
    assert "takes the term from --term, and lab.toml says term fall" in capsys.readouterr().err
    assert run(*asked, "--term", "fall") == 0
    assert "--lab isn't given: lab 5 is what lab.toml says" in capsys.readouterr().out
    assert json.loads(results.read_text())["output"] == ""
    assert run(*asked, "--lab", "5", "--term", "2027 autumn") == 1
    said = "lab.toml says lab 5, term fall; this is lab 5, term 2027 autumn"
    assert f"note: {said}" in capsys.readouterr().out
    told = json.loads(results.read_text())
    assert (told["output"], told["extra_data"]["complete"]) == (said, True)
    (folder / "lab.toml").write_text("lab = [")
    assert run(*asked, "--lab", "5", "--term", "fall") == 0
    assert "can't be read" in json.loads(results.read_text())["output"]


@pytest.mark.long
def test_two_terms_are_compared_for_every_lab(capsys: pytest.CaptureFixture[str]) -> None:
    """What differs by the terms' names only is the same."""
    assert run("lab", "list", "--terms", "2026-autumn", "2027-Spring") == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(labs())
    assert said[3] == " 3  quantisation    the same in both terms"
    assert said[4] == " 4  tiling          differs in handout.md, tiling.py; 2027-spring: accumulators in two halves"
    assert said[5] == " 5  allocation      differs in handout.md, allocation.py"
    for given, words in ((("--terms", "a", "b", "c"), "compares two terms: c is one too many"), (("a", "b"), "named by --terms A B")):
        assert run("lab", "list", *given) == 2
        assert words in capsys.readouterr().err
    assert run("lab", "list", "--terms", "a", "A") == 0
    assert capsys.readouterr().out.count("the same in both terms") == len(labs())


def test_what_is_graded_is_repeated_with_the_graders_term_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lab.toml").write_text('lab = 5\nterm = "fall"\n')
    (tmp_path / LAB.file).write_text("def allocate(lives, rows):\n    return 0\n")
    for name, quoted in (("hidden: memory", "'hidden: memory'"), ("memory", "memory")):
        assert run("lab", "grade", tmp_path, "--lab", "5", "--term", "fall", "--trust", "--seed", "1", "--only", name) == 1
        assert f"again:    tpucc lab grade {tmp_path} --lab 5 --term fall --seed 1 --only {quoted}\n" in capsys.readouterr().out


@pytest.mark.long
def test_each_student_of_lab_0_has_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A loose file doesn't say whose it is; it is named."""
    folder = tmp_path / "class"
    (folder / "anna").mkdir(parents=True)
    for name in ("anna/puzzle01.asm", "puzzle01.asm", "puzzle02.py"):
        (folder / name).write_text("halt")
    assert [path.name for path in submissions(folder, find("puzzles"))] == ["anna"]
    assert [path.name for path in submissions(folder, LAB)] == ["anna", "puzzle02.py"]
    assert run("lab", "grade", "--all", folder, "--lab", "0", "--seed", "1", "--jobs", "1") == 0
    said = capsys.readouterr()
    assert "no folders, of which each student of this lab needs one: puzzle01.asm, puzzle02.py" in said.err
    assert "1 submission:" in said.out


def test_a_function_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "allocation.py").write_text("x = 1")
    assert run("lab", "check", tmp_path, "--lab", "5", "--only", "three buffers") == 1
    said = capsys.readouterr()
    assert "allocation.py defines no function allocate" in said.out
    assert not said.err


@pytest.mark.parametrize(
    ("text", "problem"),
    one_of(
        2,
        [
            ("x = 1\ndef allocate(:", "allocation.py:2: SyntaxError: invalid syntax\n    def allocate(:\n                 ^\n"),
            ("import helper", "helper.py:2: SyntaxError: '(' was never closed\n    y = (\n        ^\n"),
            ("import gone", "allocation.py:1: ModuleNotFoundError: No module named 'gone'\n  allocation.py:1 in <module>: import gone\n"),
            (
                "import os\nos.abort()",
                "allocation.py:2: loading the file: calls os.abort, which ends its process\n  allocation.py:2 in <module>: os.abort()\n",
            ),
            (None, "the submission has no allocation.py; it has helper.py\n"),
        ],
    ),
)
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_file_that_cannot_be_loaded_is_told_once(
    text: str | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One error, and the results have every test nevertheless."""
    folder, results = tmp_path / "anna", tmp_path / "r.json"
    folder.mkdir()
    (folder / "helper.py").write_text("x = 1\ny = (\n")
    if text is not None:
        (folder / LAB.file).write_text(text)
    assert run("lab", "grade", folder, "--lab", "5", "--trust", "--seed", "1", "--json", results) == 1
    said = capsys.readouterr()
    assert f"{problem}for that reason no test was run: 9 tests with 0 points\n0 of 100 points; 9 tests\n" in said.out
    assert "FAIL" not in said.out
    assert not said.err
    told = json.loads(results.read_text())
    assert told["output"] == problem.rstrip()
    assert (len(told["tests"]), told["max_score"], told["extra_data"]["complete"]) == (9, 100, True)
    assert {test["output"].split(":")[0] for test in told["tests"]} == {"not run", "no points"}


RAISES = """
import numpy as np
from helper import mean

def allocate(lives, rows):
    np.float32(1e38) * np.float32(1e38)
    for k in range(30):
        print(k, __file__)
    return mean(lives, len(lives.rows))
"""


def test_an_exception_is_shown_with_the_students_calls_and_what_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the grader's own calls, and no path of where the submission ran."""
    (tmp_path / LAB.file).write_text(RAISES)
    (tmp_path / "helper.py").write_text("def mean(lives, n):\n    return n // (n - n)\n")
    results = tmp_path / "r.json"
    assert run("lab", "check", tmp_path, "--lab", "5", "--only", "three buffers", "--json", results) == 1
    said = capsys.readouterr().out.replace(str(tmp_path), "lab5")
    assert (
        """
      helper.py:2: ZeroDivisionError: integer division or modulo by zero
        allocation.py:9 in allocate: return mean(lives, len(lives.rows))
        helper.py:2 in mean: return n // (n - n)
      given:    import numpy as np; from tpucc.schedule.allocate import Lives
      allocate(
        Lives(
          first=np.array([0, 4, 5], np.int64),
"""
        in said
    )
    assert "      printed:\n        allocation.py:6: RuntimeWarning: overflow" in said
    assert "\n        7 allocation.py\n        … 22 more lines; --json RESULTS.json writes them\n" in said
    assert json.loads(results.read_text())["tests"][0]["output"].endswith("\n  29 allocation.py")
    assert not re.search(r"(^|[\s\"'(])/\w", said + results.read_text())


def test_an_exception_is_shown_once_and_later_tests_name_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its message may differ from test to test; the results have all of it."""
    (tmp_path / LAB.file).write_text("def allocate(lives, rows):\n    raise ValueError(rows) if rows > 99 else KeyError(rows)\n")
    assert run("lab", "check", tmp_path, "--lab", "5", "--json", tmp_path / "r.json") == 1
    said = capsys.readouterr().out
    assert said.count("allocation.py:2: ValueError") == said.count("allocation.py:2: KeyError") == 1
    assert said.count("\n      the same exception as in `three buffers`\n") == 3
    tests = json.loads((tmp_path / "r.json").read_text())["tests"]
    assert [test["output"].split("(")[0].splitlines()[0].split(":")[0] for test in tests] == ["allocation.py"] * 5


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, *more in (("check",), ("check", "--lab", "5"), ("grade", "--lab", "5"), ("grade", "--all", "--lab", "5")):
        assert run("lab", command, tmp_path / "nosuch", *more) == 2
        assert f"error E0551: there is no folder {tmp_path / 'nosuch'}\n" in capsys.readouterr().err


def test_what_is_printed_without_end_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / LAB.file).write_text("def allocate(lives, rows):\n    print('x' * 99_999)\n")
    assert run("lab", "check", tmp_path, "--lab", "5", "--only", "three buffers") == 1
    assert "\n        … 90,000 more characters are not kept\n" in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="alarms are POSIX's")
def test_a_call_that_takes_too_long_says_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(child, "CALL", 0.3)
    monkeypatch.setattr(child, "BY_THE_CLOCK", 300)
    (tmp_path / LAB.file).write_text("def allocate(lives, rows):\n    wait()\ndef wait():\n    while True: pass\n")
    assert run("lab", "check", tmp_path, "--lab", "5", "--only", "three buffers") == 1
    said = capsys.readouterr().out
    stopped = "allocation.py:4: allocate: takes longer than 0.3 s of processor time, and was stopped there"
    assert f"{stopped}\n        allocation.py:2 in allocate: wait()\n" in said
    assert "\n        allocation.py:4 in wait: while True: pass\n      given:    import numpy as np; from tpucc" in said


def test_pictures_are_not_written_through_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "memory.svg").write_text("precious")
    (tmp_path / "mine" / LAB.file).write_text("def allocate(lives, rows): return 0")
    (tmp_path / "mine" / "check").symlink_to(tmp_path / "others")
    assert run("lab", "check", tmp_path / "mine", "--lab", "5", "--only", "three buffers") == 2
    assert "check: it is a link" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "others").iterdir()] == ["memory.svg"]


SMUGGLES = """
def allocate(lives, rows):
    print("MARK", lives.rows)
    class MARK(Exception): pass
    raise MARK(f"MARK {lives.rows} {rows}")
"""


@pytest.mark.long
def test_students_read_nothing_that_their_code_says_in_a_hidden_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of exceptions and prints could have hidden inputs in them; only instructors read these."""
    (tmp_path / LAB.file).write_text(SMUGGLES)
    asked = ("lab", "grade", tmp_path, "--lab", "5", "--trust", "--seed", "1", "--json", tmp_path / "r.json")
    told = {}
    for details in ((), ("--details",)):
        assert run(*asked, *details) == 1
        told[bool(details)] = json.loads((tmp_path / "r.json").read_text())
    hidden = [test for test in told[False]["tests"] if test["name"].startswith("hidden")]
    assert {test["output"] for test in hidden} == {"no points: it raised an exception"}
    assert {test["visibility"] for test in hidden} == {"after_published"}
    assert told[False]["extra_data"]["printed"] == ""
    assert told[False]["stdout_visibility"] == "hidden"
    public = [test for test in told[False]["tests"] if test not in hidden]
    assert all("MARK" in test["output"] for test in public)
    for_instructors = [test for test in told[True]["tests"] if test["name"].startswith("hidden")]
    assert all("MARK [" in test["output"] and test["visibility"] == "hidden" for test in for_instructors)
    assert all("printed:\n  MARK [" in test["output"] for test in (*public, *for_instructors))


@pytest.mark.parametrize(("answer", "said"), [("np.zeros(len(lives.rows), int)", ""), ("'rows'", ": an answer has the wrong form")])
def test_only_a_wrong_form_is_said_to_be_one(answer: str, said: str) -> None:
    """Buffers that share rows are a wrong answer of the right form."""
    test = next(test for test in LAB.hidden(AS_WRITTEN, 1) if test.name == "hidden: another program")
    result = graded(test, Here({LAB.file: f"import numpy as np\ndef allocate(lives, rows):\n    return {answer}\n"}))
    assert as_json(Grade(LAB, AS_WRITTEN, "none", (result,), (test,), seed=1))["tests"][0]["output"] == f"no points{said}"


def test_check_says_when_much_of_the_budget_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / LAB.file).write_text(solution())
    for spent, told in ((19.0, False), (40.2, True)):
        monkeypatch.setattr(child.Child, "spent", spent)
        run("lab", "check", tmp_path, "--lab", "5", "--only", "three buffers")
        said = "the calls took 40 of 60 s of processor time; grade makes about twice as many"
        assert (said in capsys.readouterr().out) is told


@pytest.mark.usefixtures("made_before")
def test_a_class_hears_of_files_of_another_term_and_of_what_has_no_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Terms that differ in case only are one."""
    for name, term in (("anna", "2027-SPRING"), ("ben", "fall")):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "lab.toml").write_text(f'lab = 5\nterm = "{term}"\n')
    tests = [{"name": said, "score": 0, "output": said, "status": "failed"} for said in ("f.py:2: takes long", "not asked")]
    late = {"score": 0, "output": "", "tests": tests, "extra_data": {}}
    monkeypatch.setattr(workers.Graders, "_graded", lambda *_: late)
    assert run("lab", "grade", "--all", tmp_path / "class", "--lab", "5", "--term", "2027-Spring", "--trust", "--jobs", "1") == 0
    said = capsys.readouterr()
    assert said.err == "warning: lab.toml doesn't say lab 5, term 2027-spring: ben\n"
    assert "     0  anna  f.py:2: takes long\n" in said.out


@pytest.mark.usefixtures("made_before")
def test_a_class_that_takes_long_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In lines on standard error, where that is no terminal; the table's lines on standard output stay as they are."""
    for name in ("anna", "ben"):
        (tmp_path / "class" / name).mkdir(parents=True)
    monkeypatch.setattr(progress, "PAUSE", 0.02)
    monkeypatch.setattr(workers.Graders, "_graded", lambda _, given, number: (given(number), time.sleep(0.1), workers.ungraded("late"))[2])
    assert run("lab", "grade", "--all", tmp_path / "class", "--lab", "5", "--seed", str(2**40), "--trust", "--jobs", "1") == 0
    said = capsys.readouterr()
    assert "0 of 2 graded; being graded: anna (0 s)\n" in said.err
    assert "1 of 2 graded; being graded: ben (0 s)\n" in said.err
    assert said.out.splitlines()[2:4] == ["     0  anna  late", "     0  ben  late"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.usefixtures("made_before")
def test_a_table_is_closed_where_submissions_could_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "class" / "anna").mkdir(parents=True)
    monkeypatch.setattr(jails.OtherUser, "reaches", lambda *_: False)
    monkeypatch.setattr(lab_grading, "isolated", jails.OtherUser)
    monkeypatch.setattr(workers.Graders, "_graded", lambda *_: workers.ungraded("late"))
    assert run("lab", "grade", "--all", tmp_path / "class", "--lab", "5", "--jobs", "1", "-o", tmp_path / "grades.csv") == 0
    assert (tmp_path / "grades.csv").stat().st_mode & 0o077 == 0


def test_a_graders_limit_leaves_room_for_judging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading, then all calls by the clock, are half of what a submission may hold the grader; that ends it whatever happens."""
    assert child.START + child.BUDGET * child.BY_THE_CLOCK <= workers.LONGEST * 0.6
    assert child.PATIENCE * child.CALL <= child.BUDGET / 2
    monkeypatch.setattr(workers, "LONGEST", 0.01)
    graders = workers.Graders(5, 3, NONE, 1)
    assert [found["output"] for _, found in graders.results([0], lambda _: None)] == ["the grader took longer than 0.01 s"]  # type: ignore[arg-type,return-value]
    graders.close()


def test_what_is_printed_stands_with_the_test_that_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a line that has no end, of a process that is gone, and of tests that pass; the first test has what loading printed."""
    text = """
import os
print("LOADED", end=" ")
right = allocate
def allocate(lives, rows):
    print(f"ROWS {len(lives.rows)}.", end="")
    if len(lives.rows) > 12: os._exit(1)
    return right(lives, rows)
"""
    (tmp_path / LAB.file).write_text(solution() + text)
    asked = ("--only", "three buffers", "--only", "a program", "--only", "random lives", "--json", tmp_path / "r.json")
    assert run("lab", "check", tmp_path, "--lab", "5", *asked) == 1
    assert "      printed:\n        LOADED ROWS 3.\nok" in capsys.readouterr().out
    outputs = [test["output"].partition("printed:\n")[2] for test in json.loads((tmp_path / "r.json").read_text())["tests"]]
    assert outputs[0] == "  LOADED ROWS 3."
    assert set(outputs[1].strip().split(".")) == {"ROWS 12", ""}
    assert outputs[2] == "  ROWS 62."


def test_what_a_file_that_cannot_be_loaded_printed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / LAB.file).write_text("print('here')\n1 / 0\n")
    assert run("lab", "grade", tmp_path, "--lab", "5", "--trust", "--seed", "1", "--json", tmp_path / "r.json") == 1
    assert "\nprinted:\n  here\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "r.json").read_text())["extra_data"]["printed"] == "here"


def test_points_are_halves() -> None:
    """In hundredths, those of hidden tests would say more of their inputs."""
    shares = (0.999, 0.5, 0.049, 0.05, 1 - 0.9, 1.2, -1)
    assert [Result(Test("t", 10, lambda _: Outcome(0, "")), Outcome(share, ""), 0).score for share in shares] == [9.5, 5, 0, 0.5, 1, 10, 0]
    told = as_json(graded_as(Outcome(0.876, ""), Outcome(0.123, "")))
    assert ([test["score"] for test in told["tests"]], told["score"]) == ([8.5, 1], 9.5)


def graded_as(public: Outcome, *hidden: Outcome) -> Grade:
    """A grade of one public test and of hidden ones."""
    tests = [Test(f"test {number}", 10, lambda _: public, number > 0) for number in range(1 + len(hidden))]
    results = (Result(test, outcome, 0.0) for test, outcome in zip(tests, (public, *hidden), strict=True))
    return Grade(LAB, AS_WRITTEN, "none", tuple(results), tuple(tests), seed=1)


def measured(value: float, share: float = 0) -> Outcome:
    return Outcome(share, "", measures={LAB.ranks: value})


def test_students_read_rounded_measures_of_hidden_tests_on_the_leaderboard_only() -> None:
    """All digits would let a small seed be found by trying, and inputs be told through them."""
    for value, shown in ((1.0325981126573096, 1.03), (0.98765, 0.99), (-45.236, -45.2), (12345.6, 12300), (0.0, 0.0)):
        grade = graded_as(measured(2.0), measured(value))
        for_students, for_instructors = as_json(grade), as_json(grade, details=True)
        assert [row["value"] for row in for_students["leaderboard"]] == [shown]
        assert "measures" not in for_students["extra_data"]
        assert for_instructors["extra_data"]["measures"] == {LAB.ranks: value}
        assert for_instructors["leaderboard"][0]["value"] == value
    public = replace(graded_as(measured(1.23456)), seed=None)
    assert as_json(public)["extra_data"]["measures"] == {LAB.ranks: 1.23456}


def test_measures_are_of_hidden_tests_and_of_right_programs() -> None:
    """One that answers the public inputs from a table, and is wrong elsewhere, has no place on the board."""
    wrong, right = Outcome(0, "wrong"), Outcome(1, "")
    assert graded_as(measured(1.0), right, measured(1.5)).measures == {LAB.ranks: 1.5}
    assert graded_as(measured(1.0), right, wrong).measures == {}
    assert graded_as(measured(1.0), wrong, measured(1.5)).measures == {}
    whole = graded_as(measured(1.0), measured(1.5), right)
    assert replace(whole, results=whole.results[:2]).measures == {}


@pytest.mark.parametrize(("seed", "warned"), [(1, True), (2**32 - 1, True), (2**63, False), (None, False)])
def test_a_seed_that_can_be_found_by_trying_is_warned_of(
    seed: int | None, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tpucc.labs.packing.for_gradescope", lambda *_: b"")
    (tmp_path / "class").mkdir()
    given = () if seed is None else ("--seed", str(seed))
    for words in (("pack", "5", "--gradescope", "-o", tmp_path / "a.zip"), ("grade", "--all", tmp_path / "class", "--lab", "5", "--trust")):
        assert run("lab", *words, *given) == 0
        assert capsys.readouterr().err.count("take a random one of 12 to 15 digits") == warned
    assert run("lab", "grade", tmp_path, "--lab", "5", "--trust", "--seed", "1") == 1
    assert "15 digits" not in capsys.readouterr().err


def test_only_takes_names_and_their_first_words() -> None:
    """An exact name wins; `puzzle 1` is not the beginning of `puzzle 10: …`."""
    tests = find("puzzles").public(AS_WRITTEN)
    assert [test.name.split(":")[0] for test in chosen(tests, ["puzzle 10", "puzzle 1"])] == ["puzzle 1", "puzzle 10"]
    assert len(chosen(tests, ["puzzle"])) == len(chosen(tests, [])) == len(tests)
    both = [replace(tests[0], name=name) for name in ("a network", "a network that is small")]
    assert chosen(both, ["a network"]) == both[:1]
    for name in ("puzz", "puzzle 1x", ""):
        with pytest.raises(UsageError, match="no test is named"):
            chosen(tests, [name])
    with pytest.raises(UsageError, match=r"did you mean puzzle 1\?"):
        chosen(tests, ["puzzle1"])
    with pytest.raises(UsageError, match=r"did you mean memory\?"):
        chosen(find("allocation").public(AS_WRITTEN), ["memry"])


@pytest.mark.long
def test_without_isolation_nothing_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tpucc.labs.grading.probed", lambda jail, cell: Finding(jail, False, "not here"))
    (tmp_path / "allocation.py").write_text(solution())
    results = tmp_path / "results.json"
    assert run("lab", "grade", tmp_path, "--lab", "5", "--json", results) == 2
    assert "error E0552" in capsys.readouterr().err
    told = json.loads(results.read_text())
    assert told["score"] == 0
    assert "bubblewrap: not here" in told["output"]
    assert run("lab", "grade", tmp_path, "--lab", "5", "--json", results, "--trust", "--seed", "1") == 0
    told = json.loads(results.read_text())
    assert (told["score"], told["max_score"], told["extra_data"]["complete"]) == (100, 100, True)
    assert {test["visibility"] for test in told["tests"]} == {"visible", "after_published"}
    assert told["leaderboard"][0]["name"] == LAB.ranks


def test_results_are_whole_after_every_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr("tpucc.cli.lab_shared.write_json", lambda grade, path, details: seen.append(len(grade.results)))
    (tmp_path / "allocation.py").write_text("def allocate(lives, rows):\n    return 0\n")
    assert run("lab", "check", tmp_path, "--lab", "5", "--json", tmp_path / "r.json") == 1
    assert seen == [1, 2, 3, 4, 5]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A class: three who did it, and three whose files are no answer."""
    folder = tmp_path / "class"
    (folder / "anna").mkdir(parents=True)
    (folder / "anna" / LAB.file).write_text(solution())
    (folder / "=1+1.py").write_text(solution(wrong="first_fit_in_time"))
    (folder / "syntax.py").write_text("def allocate(:")
    (folder / "empty").mkdir()
    (folder / "check").mkdir()
    (folder / "late.zip").write_bytes(b"")
    shutil.copyfile(EXPLOITS / "exits.py", folder / "exits.py")
    return folder


@pytest.mark.usefixtures("made_before")
def test_results_of_a_run_that_ended_in_the_middle_are_graded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "anna.py").write_text("def allocate(:")
    monkeypatch.setattr(workers.Graders, "_run", run_here)
    (row,) = grade_all(Variants(LAB, AS_WRITTEN), tmp_path / "class", 3, tmp_path / "results", NONE)
    file = tmp_path / "results" / "anna.py.json"
    for complete, points in ((True, 50), (False, row.results["score"])):
        told = {**row.results, "score": 50, "extra_data": {**row.results["extra_data"], "complete": complete}}
        file.write_text(json.dumps(told))
        (again,) = grade_all(Variants(LAB, AS_WRITTEN), tmp_path / "class", 3, tmp_path / "results", NONE)
        assert again.results["score"] == points


@pytest.mark.soak
def test_a_class_is_graded_once(course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By this process; the test below has graders of their own."""
    monkeypatch.setattr(workers.Graders, "_run", run_here)
    into = tmp_path / "results"
    rows = grade_all(Variants(LAB, AS_WRITTEN), course, 3, into, NONE)
    assert (
        [path.name for path in submissions(course, LAB)]
        == [row.name for row in rows]
        == ["=1+1.py", "anna", "empty", "exits.py", "syntax.py"]
    )
    scores = {row.name: row.results["score"] for row in rows}
    assert scores["anna"] == 100
    assert 50 < scores["=1+1.py"] < 90
    assert scores["empty"] == scores["exits.py"] == scores["syntax.py"] == 0
    table = list(csv.reader(io.StringIO(as_csv(rows))))
    assert table[1][0] == "'=1+1.py"
    assert table[0][-7:] == ["term", "seed", "submission", "problem", "why", "note", "like"]
    assert {tuple(row[-7:-5]) for row in table[1:]} == {("", "3")}
    assert "has no allocation.py" in table[3][-4]
    assert "SyntaxError" in table[5][-4]
    assert re.fullmatch(r"memory: peak ÷ lower bound is [^|]* \| hidden: [^|]* \| hidden: memory: peak [^|]*", table[1][-3])
    assert table[2][-3] == table[3][-3] == table[5][-3] == "", "who passes has no reason, nor whoever has one problem"
    assert as_csv(rows).startswith('"name","score",')

    row = rows[1]
    for seed, kept in ((10**15 - 1, str(10**15 - 1)), (10**15, f"'{10**15}")):
        more = {**row.results["extra_data"], "seed": seed}
        line = next(csv.DictReader(io.StringIO(as_csv([Row("anna", {**row.results, "extra_data": more})]))))
        assert line["seed"] == kept, "spreadsheets keep 15 digits of a number"
    assert all(len(str(random_seed())) == 15 for _ in range(50))

    ranked = board(into)
    assert list(ranked.entries) == ["anna", "=1+1.py"]
    assert as_text(ranked).splitlines()[1].startswith("1  anna")
    assert "<td>anna</td>" in as_page(ranked)

    assert earlier_seed(into, LAB, {""}) == 3
    assert earlier_seed(into, LAB, {"spring"}) is None
    graded: list[str] = []
    monkeypatch.setattr(
        workers.Graders, "_graded", lambda _, given, number: graded.append(Path(given(number).origin).name) or workers.ungraded("")
    )
    (course / "syntax.py").write_text("def allocate(lives, rows): return []")
    (course / "anna" / "notes.md").write_text("not graded again, as the hash is the same")
    assert len({row.results["extra_data"]["digest"] for row in rows if row.results["tests"]}) == 5
    again = grade_all(Variants(LAB, AS_WRITTEN), course, 3, into, NONE)
    assert graded == ["empty", "syntax.py"]
    assert [row.results for row in again if row.name not in graded] == [row.results for row in rows if row.name not in graded]
    grade_all(Variants(LAB, AS_WRITTEN), course, 4, into, NONE)
    assert len(graded) == 2 + len(rows)


@pytest.mark.usefixtures("made_before")
def test_results_are_kept_for_what_they_were_graded_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their isolation, version, lab, term and seed. Without isolation a submission can find the answers, and each version draws its own."""
    graded: list[str] = []

    def results(graders: workers.Graders, given: Callable[[int], Contents], number: int) -> workers.Results:
        (lab, seed, jail, _), contents = graders._asked, given(number)
        graded.append(jail.name)
        tests = (Test("one", 1, lambda _: Outcome(1, "")),)
        digest = contents.digest
        return as_json(Grade(find(str(lab)), contents.term, jail.name, tests=tests, problem="not loaded", seed=seed, digest=digest))

    monkeypatch.setattr(workers.Graders, "_graded", results)
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "anna.py").write_text("")

    def again(jail: jails.Jail, *, seed: int = 3, lab: Lab = LAB, term: Term = AS_WRITTEN) -> list[str]:
        graded.clear()
        grade_all(Variants(lab, term), tmp_path / "class", seed, tmp_path / "results", jail)
        return graded

    assert again(NONE) == ["none"]
    assert again(NONE) == []
    assert again(JAILS[1]) == ["namespaces"]
    assert again(JAILS[1]) == []
    for other in ({"seed": 4}, {"lab": find("order")}, {"term": Term("spring")}):
        assert again(JAILS[1], **other) == ["namespaces"]
    assert again(JAILS[1]) == ["namespaces"]
    monkeypatch.setattr("tpucc.labs.classes.VERSION", "0.0.1")
    assert again(JAILS[1]) == ["namespaces"]
    assert again(NONE) == ["none"]


def test_a_file_of_another_term_is_a_note_and_no_problem() -> None:
    grade = replace(graded_as(Outcome(1, ""), Outcome(1, "")), note="lab.toml says lab 5, term fall")
    said = list(csv.DictReader(io.StringIO(as_csv([Row("anna", as_json(grade))]))))
    assert [(row["problem"], row["note"]) for row in said] == [("", grade.note)]
    failed = replace(grade, problem="no file")
    assert [Row("", as_json(replace(failed, note=note))).problem for note in (grade.note, "no file")] == ["no file"] * 2


def test_a_folder_whose_name_is_none_for_a_submission_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("check", ".hidden"):
        (tmp_path / "class" / name).mkdir(parents=True)
    (tmp_path / "class" / ".DS_Store").write_text("")
    assert run("lab", "grade", "--all", tmp_path / "class", "--lab", "5", "--trust") == 0
    assert capsys.readouterr().err == "not graded, as no submission may have such a name: .hidden, check\n"


@pytest.mark.soak
def test_no_name_is_an_option_and_nothing_stops_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be called as an option is, have a name that no file's ending fits behind, be no text, or lead elsewhere. Two processes
    grade as this one does, and nothing in the folder from which a class is graded is imported."""
    folder, into = tmp_path / "class", tmp_path / "results"
    wrong = "def allocate(lives, rows):\n    return 0\n"
    (folder / "--trust").mkdir(parents=True)
    (folder / "--trust" / LAB.file).write_text(wrong)
    (folder / "linked").symlink_to("--trust")
    odd = folder / (os.fsdecode(b"\xff") * (sys.platform == "linux") + "a" * 249 + ".py")
    odd.write_text(wrong)
    (folder / "string.py").write_text("raise SystemExit('imported by the grader')")  # a module of Python's own is called so
    monkeypatch.chdir(folder)
    begun: list[str] = []
    rows = {row.name: row for row in grade_all(Variants(LAB, AS_WRITTEN), folder, 3, into, NONE, 2, begun=begun.append)}
    assert sorted(begun) == sorted(rows.keys() - {"linked"})
    assert rows["linked"].problem.startswith("it is a link")
    for name in ("--trust", odd.name):
        assert rows[name].results["extra_data"]["complete"]
        assert len(rows[name].results["tests"]) == 9
    monkeypatch.setattr(workers.Graders, "_run", run_here)
    alone = grade_all(Variants(LAB, AS_WRITTEN), folder, 3, tmp_path / "alone", NONE)
    assert as_csv(list(rows.values())).encode() == as_csv(alone).encode()
    assert [path.read_bytes() for path in sorted(into.iterdir())] == [path.read_bytes() for path in sorted((tmp_path / "alone").iterdir())]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("pipe", "lab.toml is no regular file"),
        ("folder", "lab.toml is no regular file"),
        ("link", "lab.toml is a link; a submission is made of regular files"),
        ("large", "lab.toml is larger than 4,096 bytes"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX's")
def test_a_file_of_another_kind_is_that_submissions_own_error(
    kind: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(workers.Graders, "_run", run_here)
    odd, good = tmp_path / "class" / "odd", tmp_path / "class" / "good"
    for folder in (odd, good):
        folder.mkdir(parents=True)
        (folder / LAB.file).write_text("def allocate(lives, rows):\n    return 0\n")
    make: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "folder": os.mkdir,
        "link": lambda path: path.symlink_to("/dev/zero"),
        "large": lambda path: path.write_text("#" * 5000),
    }
    make[kind](odd / "lab.toml")
    rows = {row.name: row for row in grade_all(Variants(LAB, AS_WRITTEN), odd.parent, 3, tmp_path / "results", NONE)}
    assert rows["odd"].problem == problem
    assert len(rows["odd"].results["tests"]) == len(rows["good"].results["tests"]) == 9
    assert rows["good"].results["tests"][0]["output"].startswith("returned")
    assert str(tmp_path) not in json.dumps([row.results for row in rows.values()])
    assert run("lab", "check", odd) == 2
    assert f"error E0551: {problem}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "measures", ["[1]", "null", '{"peak ÷ bound": "x"}', '{"peak ÷ bound": null}', '{"peak ÷ bound": 1' + "0" * 400 + "}"]
)
def test_a_board_leaves_out_what_is_no_result(measures: str, tmp_path: Path) -> None:
    good = '{"extra_data": {"lab": 5, "measures": {"peak ÷ bound": 1.5, "\\u001b[31m": 2}}}'
    (tmp_path / "good.json").write_text(good)
    (tmp_path / "bad.json").write_text(f'{{"extra_data": {{"lab": 5, "measures": {measures}}}}}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "none.json").write_text('{"extra_data": {"lab": 5}}')
    lost = '[{"name": "memory", "score": 0}, {"name": "hidden: memory", "score": 0, "visibility": "hidden"}]'
    (tmp_path / "hidden.json").write_text(f'{{"output": "n", "tests": {lost}, "extra_data": {{"lab": 5, "measures": {{}}, "note": "n"}}}}')
    (tmp_path / "problem.json").write_text('{"output": "no file\\nb", "extra_data": {"lab": 5}}')
    (tmp_path / "truth.json").write_text('{"extra_data": {"lab": true}}')
    found = board(tmp_path)
    assert list(found.entries) == ["good"]
    assert "\x1b" not in as_text(found)
    reasons = dict(said.split(".json: ") for said in found.left_out)
    assert reasons["bad"].startswith(("it has no results of a lab: ", f"it has no {LAB.ranks}: "))
    assert reasons["deep"].startswith("it has no results of a lab")
    assert reasons["none"] == f"it has no {LAB.ranks}: --details was not given to grade"
    assert reasons["hidden"] == f"it has no {LAB.ranks}: no points for hidden: memory"
    assert reasons["problem"] == f"it has no {LAB.ranks}: no file"
    assert reasons["truth"].startswith("it has no results of a lab: Expected `int`, got `bool`")
    assert reasons["folder"].startswith("it is no regular file")


def test_every_handout_says_how_long_code_may_run() -> None:
    """And how points are rounded."""
    for lab in labs():
        handout = starting_files(lab, AS_WRITTEN)["handout.md"]
        limits = "may take 10 seconds of processor time, and all calls of one `check` or `grade` 60 seconds together"
        assert (limits in handout) is bool(lab.functions)
        assert "rounded down to halves" in handout


@pytest.mark.parametrize(("other", "what"), [('"lab": 9', "lab"), ('"lab": 5, "term": "fall"', "term")])
def test_a_board_is_of_one_lab_and_one_term(other: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"extra_data": {"lab": 5, "term": "spring", "measures": {"peak ÷ bound": 1.5}}}')
    (tmp_path / "b.json").write_text(f'{{"extra_data": {{{other}, "measures": {{"peak ÷ bound": 1.5}}}}}}')
    with pytest.raises(UsageError, match=f"has the results of more than one {what}"):
        board(tmp_path)


def test_a_board_says_which_files_have_no_place_and_shows_names_that_are_printable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = '{"extra_data": {"lab": 5, "measures": {"peak ÷ bound": 1.5}, "date": "\\u001b[2J"}}'
    (tmp_path / "\x1b[31mred\u202e.json").write_text(good)
    for number in range(7):
        (tmp_path / f"\x1bbad{number}.json").write_text("{")
    assert run("lab", "board", tmp_path) == 0
    said = capsys.readouterr()
    assert said.err.startswith("not on the board: 7 files\n  \\x1bbad0.json: it has no results of a lab: ")
    assert said.err.endswith("\n  … 2 more\n")
    assert not set("\x1b\u202e") & set(said.out + said.err)
    assert list(board(tmp_path).entries) == ["\\x1b[31mred\\u202e"]


def test_the_doctor_marks_the_isolation_that_is_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    works = dict(zip(jails.JAILS, (False, True, True), strict=True))
    monkeypatch.setattr("tpucc.cli.doctor_command.isolation", lambda: [Finding(jail, works[jail], "not here") for jail in works])
    assert run("doctor") == 0
    marked = [
        line[:12]
        for line in capsys.readouterr().out.partition("isolation")[2].partition("the kernel")[0].splitlines()[1:]
        if line[2] != " "
    ]
    assert marked == ["  bubblewrap", "→ namespaces", "  user      "]


@pytest.mark.parametrize(
    ("filtered", "words"),
    [
        ((True, True, True), "  yes  refuses shared memory, queues, keys and new namespaces"),
        ((None, True, None), "  yes  refuses"),
        ((True, False, None), "  no   a submission can take memory that no limit counts (memfd_create)"),
        ((None, None, None), "  ?    not known: no isolation can be tried here"),
    ],
)
def test_the_doctor_says_whether_system_calls_are_refused(
    filtered: tuple[bool | None, ...], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Finding(jail, True, "", seen) for jail, seen in zip(jails.JAILS, filtered, strict=True)]
    monkeypatch.setattr("tpucc.cli.doctor_command.isolation", lambda: iter(found))
    assert run("doctor") == 0
    assert capsys.readouterr().out.partition("(seccomp), in each of them:\n")[2].startswith(words)


def test_a_terminal_cuts_what_the_results_have_whole() -> None:
    """Every buffer that was given is in results.json, to be tried again; a terminal says that it has cut."""
    test = next(test for test in LAB.public(Term("spring")) if test.name == "random lives")
    result = graded(test, Here({LAB.file: "def allocate(lives, rows):\n    return [0] * len(lives.rows)\n"}))
    grade = Grade(LAB, Term("spring"), "none", (result,), (test,))
    whole, cut = as_json(grade)["tests"][0]["output"], report(result, grade, whole=False)
    (lives,) = re.findall(r"rows=np.array\((\[.*\]), np.int64\)", whole)
    assert len(json.loads(lives)) == len(json.loads(result.outcome.found)) > 12
    assert "--json RESULTS.json writes all of it" in cut
    assert "--json" not in whole
    assert max(map(len, cut.split("given:")[1].partition("\nagain:")[0].splitlines())) <= 110


def test_the_table_says_why_tests_lost_points() -> None:
    """The first line of each reason, in one cell; what a submission says is no formula, and is cut."""
    long = f"=1+1 {'x' * 300}\nthe rest"
    grade = graded_as(Outcome(1, ""), Outcome(0, "wrong\x1b\nmore"), Outcome(0.5, "slow"), Outcome(0, long))
    tests = [*grade.results, replace(grade.results[1], test=replace(grade.tests[1], name="=test"))]
    whole = replace(grade, results=tuple(tests))
    rows = [Row("anna", as_json(whole, details=True)), Row("ben", as_json(grade))]
    said = [row["why"] for row in csv.DictReader(io.StringIO(as_csv(rows)))]
    assert said[0] == f"test 1, =test: wrong\\x1b | test 2: slow | test 3: =1+1 {'x' * 194}…"
    assert "wrong" not in said[1], "what students read of hidden tests has no reasons"
    assert Row("", as_json(graded_as(Outcome(0, "all"), Outcome(0, "all")), details=True)).why == ""


@pytest.mark.parametrize(
    ("text", "shown"), [("=1+1", "'=1+1"), ("  =1+1", "'  =1+1"), ("\uff1d1+1", "'\uff1d1+1"), ("a=1", "a=1"), ("", "")]
)
def test_no_cell_is_a_formula_or_too_long(text: str, shown: str) -> None:
    results = {"output": f"{text}{'x' * 400_000}", "tests": [], "extra_data": {"note": text, "like": [text]}}
    (row,) = csv.DictReader(io.StringIO(as_csv([Row(text, results)])))
    assert [row["name"], row["note"], row["like"]] == [shown] * 3
    assert max(map(len, row.values())) <= 5001


def test_equal_submissions_have_equal_hashes_whatever_lies_beside_them() -> None:
    """The lab's file, whatever it is called, and all that it can read; of a lab of texts, the files that it asks for."""
    puzzles, main = find("puzzles"), b'exec(open("hel" + "per.txt").read())'
    files = {"allocation.py": main, "helper.txt": b"import more", "more.py": b"", "parts/one.py": b"", "check/x.md": b""}

    def hashed(files: dict[str, bytes], main: str = LAB.file) -> str:
        return digest_of_graded(files, LAB, (), main)

    assert hashed(files) == hashed(files | {"notes.md": b"mine"}) != ""
    assert len({hashed(files), *(hashed(files | {name: b"x = 1"}) for name in (*files, "scratch.py"))}) == 6
    assert hashed({"emil.py": main}, "emil.py") == hashed({LAB.file: main})
    assert hashed({"notes.md": b""}) == ""
    texts = {"puzzle01.asm": b"halt", "puzzle02.asm": b""}
    changed = texts | {"puzzle02.asm": b"halt"}
    told = [digest_of_graded(each, puzzles, texts, "") for each in (texts, texts | {"notes.md": b""}, changed, {})]
    assert told[0] == told[1] != told[2]
    assert told[3] == ""


TRUSTED = """import helper
def allocate(lives, rows):
    print("here")
    breakpoint()
    return helper.starts(lives)
"""


def test_trusted_code_runs_in_this_process(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """There a breakpoint has the terminal, and the calls that led to an exception are told as ever."""
    stops: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(sys._getframe(1).f_code.co_name))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    (tmp_path / LAB.file).write_text(TRUSTED)
    (tmp_path / "helper.py").write_text("def starts(lives):\n    raise ValueError('no')\n")
    words = ["lab", "check", tmp_path, "--lab", "5", "--only", "three buffers", "--trust"]
    assert run(*words) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[1] == "here"
    assert f"helper.py:2: ValueError: no\n        {tmp_path}/{LAB.file}:5 in allocate" in said
    (tmp_path / LAB.file).write_text(solution())
    assert run(*words) == 0
    (tmp_path / LAB.file).write_text("def allocate(:\n")
    assert run(*words) == 1
    assert "SyntaxError" in capsys.readouterr().out
    assert stops == ["allocate"]


def test_a_digest_is_of_names_and_contents() -> None:
    """Of what a process of the submission sees: notes count for nothing."""
    files: list[dict[str, bytes]] = [{}, {"a.py": b"x"}, {"a.py": b"y"}, {"below/a.py": b"y"}]
    found = {digest_of_graded({LAB.file: b"", **more}, LAB, (), LAB.file) for more in files}
    assert len(found) == len(files)
    assert digest_of_graded({LAB.file: b"", "notes.md": b""}, LAB, (), LAB.file) in found
    assert digest_of_graded({"a.py": b""}, LAB, (), LAB.file) == ""


@pytest.mark.long
def test_too_many_files_and_what_has_no_words_are_that_submissions_own_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "class" / "odd" / "a").mkdir(parents=True)
    (tmp_path / "class" / "odd" / LAB.file).write_text(solution())
    monkeypatch.setattr("tpucc.labs.submissions.ENTRIES", 1)
    (row,) = grade_all(Variants(LAB, AS_WRITTEN), tmp_path / "class", 3, tmp_path / "results", NONE)
    assert row.problem == "a submission's folders have at most 1 files and folders of all kinds"
    with pytest.raises(Failed, match="x can't be read: MemoryError"), failing("file", "x"):
        raise MemoryError


@pytest.mark.long
def test_folders_too_deep_are_that_submissions_own_error(tmp_path: Path) -> None:
    """Python can't walk through a thousand of them."""
    (tmp_path / "class" / "odd" / "/".join("a" * 22)).mkdir(parents=True)
    (tmp_path / "class" / "odd" / LAB.file).write_text(solution())
    problem = "a submission's folders are at most 20 deep"
    done = check(LAB, tmp_path / "class" / "odd")
    assert (done.problem, done.score, len(done.results)) == (problem, 0, len(LAB.public(AS_WRITTEN)))
    (row,) = grade_all(Variants(LAB, AS_WRITTEN), tmp_path / "class", 3, tmp_path / "results", NONE)
    assert row.problem == problem


def test_a_time_of_no_year_is_that_submissions_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LAB.file).write_text("")
    monkeypatch.setattr("tpucc.labs.submissions._newest", lambda path: 1e12)
    assert check(LAB, tmp_path).problem.startswith("the time at which the newest file was written can't be read: ")


MARKED = """def f():
    x = 1
    # lab 5 begin: write it
    return x
    # lab 5 end


def g():
    # lab 6 begin: write that
    return 2
    # lab 6 end


def h():
    # lab 7 begin (the grader asks it): write this
    return 3
    # lab 7 end
"""


def test_what_stands_between_markers_becomes_a_stub() -> None:
    one = stripped(MARKED, frozenset({5}))
    assert "raise NotImplementedError('lab 5: write it')" in one
    assert "return x" not in one
    assert "return 2" in one
    assert "return 3" in stripped(MARKED, frozenset({7}))
    assert "return 3" not in stripped(MARKED)
    space: dict[str, object] = {}
    exec(stripped(MARKED), space)
    with pytest.raises(NotImplementedError, match="lab 6: write that"):
        space["g"]()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# lab 5 begin: a\n# lab 6 begin: b\n# lab 6 end\n# lab 5 end\n", "m:1: `# lab 5 begin: a` stands alone"),
        ("pass\n# lab 5 begin: a\n", "m:2: `# lab 5 begin: a` stands alone: a solution begins with"),
        ("# lab 5 end\n", "m:1: `# lab 5 end` stands alone"),
        ("# lab 5 begin: a\n# lab 6 end\n", "m:1: `# lab 5 begin: a` stands alone"),
        ("# lab 5 begin: a\n# lab 5 end\n# lab 5 begin\n# lab 5 end\n", "m:3: `# lab 5 begin` stands alone"),
    ],
)
def test_markers_that_are_wrong_are_errors(text: str, message: str) -> None:
    with pytest.raises(MarkerError, match=message):
        stripped(text, name="m")


@pytest.mark.long
def test_every_lab_has_its_stubs_and_the_copy_can_be_imported(tmp_path: Path) -> None:
    """Nothing that a child needs is taken away with a solution."""
    from tpucc.labs.cells import workshop

    with workshop(sorted({module for number in (5, 9) for module in find(number).modules})) as shared:
        assert "NotImplementedError" in (shared / "lib" / "tpucc" / "schedule" / "allocate.py").read_text()
        assert "lab 9: compute equal nodes once" in (shared / "lib" / "tpucc" / "passes" / "common_subexpressions.py").read_text()
        assert not (shared / "lib" / "tpucc" / "labs").exists()


BEFORE = """
from tpucc.cli.main import main
print(main(["lab", "check", "lab5", "--only", "memory"]), main(["compile", "tpucc/programs/01_hello.tpu"]))
"""
"""What a student may type before there is a solution; the statuses."""


@contextmanager
def unpacked(archive: bytes, folder: Path) -> Iterator[zipfile.ZipFile]:
    """An archive, with its files in a folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        packed.extractall(folder)
        keep_compiled(folder / "tpucc")
        yield packed


@pytest.mark.soak
def test_the_students_archive_is_checked_where_it_is_unpacked(tmp_path: Path) -> None:
    archive = for_students(LAB, Term("autumn"))
    assert archive == for_students(LAB, Term("autumn"))
    with unpacked(archive, tmp_path) as packed:
        assert not any("reference" in name for name in packed.namelist() if name.startswith("tpucc/labs/"))
    words = [sys.executable, "-c", BEFORE]
    before = subprocess.run(words, cwd=tmp_path, env=plain_environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert before.returncode == 0, before.stderr
    assert before.stdout.splitlines()[-1] == "1 2"
    told = "this copy of tpucc has no solution of lab"
    assert f"error E0553: {told} 5" in before.stderr
    assert f"`E0553`: `{told} …`" in (Path(__file__).parents[2] / "docs" / "setup.md").read_text("utf-8")
    (tmp_path / "lab5" / LAB.file).write_text(solution(Term("autumn")))
    pytest_words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    tested = subprocess.run(pytest_words, cwd=tmp_path, env=plain_environment(tmp_path), capture_output=True, text=True, timeout=120)
    assert tested.returncode == 0, tested.stdout
    assert "5 passed" in tested.stdout


@pytest.mark.long
@pytest.mark.parametrize(("name", "file"), [("front_end", "comparing.py"), ("break_it", "faulty.py")])
def test_an_archive_has_no_answers_of_the_graders(name: str, file: str) -> None:
    """Whichever lab it is for: what a student could paste, beside the lab's solution, is taken out."""
    lab = find(name)
    for packed in (lab, LAB):
        held = archived(packed.name).read(f"tpucc/labs/{name}/{file}").decode()
        assert f"NotImplementedError('lab {lab.number}: " in held
        assert len(held) < len((lab.folder / file).read_text("utf-8"))


@pytest.mark.long
@pytest.mark.parametrize("name", one_of(3, [lab.name for lab in labs() if not lab.missing]))
def test_an_archive_has_no_labs_solutions(name: str) -> None:
    """Neither right nor wrong ones, whichever lab it is for; it has all handouts."""
    texts = [entry.partition("/material/")[2] for entry in archived(name).namelist() if "/material/" in entry]
    assert texts.count("handout.md") == len(labs())
    assert {text for text in texts if not text.startswith(("skeleton.", "skeleton/"))} == {"handout.md"}


@cache
def archived(name: str) -> zipfile.ZipFile:
    """What students get for a lab."""
    return zipfile.ZipFile(io.BytesIO(for_students(find(name), Term("spring"))))


@pytest.mark.parametrize("lab", [pytest.param(lab, marks=pytest.mark.soak) for lab in labs() if lab != LAB], ids=lambda lab: lab.name)
def test_every_lab_is_checked_where_it_is_unpacked(lab: Lab, tmp_path: Path) -> None:
    """As that of the test above, which has one lab's archive in each run."""
    with unpacked(for_students(lab, Term("spring")), tmp_path):
        pass
    folder = tmp_path / f"lab{lab.number}"
    for name, text in files_of(lab, reference(lab)).items():
        (folder / name).write_text(lab.filled(text, Term("spring")))
    words = [sys.executable, "-m", "tpucc", "lab", "check", folder.name]
    done = subprocess.run(words, cwd=tmp_path, env=plain_environment(tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="Gradescope's containers are Linux")
def test_gradescope_as_the_platform_lays_it_out(tmp_path: Path) -> None:
    root = tmp_path / "autograder"
    for name in ("source", "submission", "results"):
        (root / name).mkdir(parents=True)
    with unpacked(for_gradescope(LAB, Term("spring 2027"), 7), root / "source"):
        pass
    shutil.copyfile(root / "source" / "run_autograder", root / "run_autograder")
    (root / "submission" / LAB.file).write_text(solution(Term("spring 2027")))
    environment = {"PATH": os.environ["PATH"], "AUTOGRADER_ROOT": str(root), "TPUCC_ENVIRONMENT": sys.prefix, "HOME": str(tmp_path)}
    subprocess.run(["bash", str(root / "source" / "setup.sh")], env=environment, check=True, capture_output=True, timeout=200)
    assert (root / "grader").stat().st_mode & 0o077 == 0
    done = subprocess.run(["bash", str(root / "run_autograder")], env=environment, capture_output=True, text=True, timeout=200)
    told = json.loads((root / "results" / "results.json").read_text())
    if "keep the tests secret" in told.get("output", ""):
        pytest.skip(told["output"])
    assert told["score"] == 100, done.stdout + done.stderr
    assert told["extra_data"]["term"] == "spring 2027"


@pytest.mark.parametrize("term", ["", "spring 2027", "-", "--all"])
@pytest.mark.skipif(os.name != "posix", reason="Gradescope's containers are Linux")
def test_gradescope_grades_the_term_that_was_packed(term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name is. The interpreter is one that says what it is called with; it reads the archive's `lab.json` as Python does."""
    monkeypatch.setattr(packing, "_package", lambda *_, **__: {})
    with unpacked(for_gradescope(LAB, Term(term), 7), tmp_path / "grader"):
        pass
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nprintf "%s\\n" "$TPUCC_SEED" "$@"\n')
    python.chmod(0o755)
    script = tmp_path / "grader" / "run_autograder"
    environment = {"PATH": os.environ["PATH"], "AUTOGRADER_ROOT": str(tmp_path), "TPUCC_ENVIRONMENT": str(tmp_path)}
    seed, *words = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    asked = lab_grading.grade_lab.make_context("grade", words[words.index("grade") + 1 :]).params
    assert (seed, asked["which"], asked["term"]) == ("7", "5", term)


def test_the_reasons_of_every_jail_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(jails.shutil, "which", lambda *_, **__: None)
    from tpucc.labs.grading import strongest

    jail, findings = strongest()
    reasons = {found.jail.name: found.reason for found in findings}
    assert reasons["bubblewrap"] == "there is no bwrap"
    assert jail is NONE or jail.name == "user"
    assert child.CALL > 1


@pytest.mark.long
@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_solutions_can_be_written_as_students_hand_them_in(lab: Lab, tmp_path: Path) -> None:
    for wrong in ("", mistakes(lab)[0].stem):
        done = CliRunner().invoke(
            lab_solutions.command, [str(lab.number), wrong, "--term", "spring", "-o", str(tmp_path / (wrong or "right"))]
        )
        assert done.exit_code == 0, done.output
        texts = [path.read_text("utf-8") for path in (tmp_path / (wrong or "right")).iterdir()]
        assert texts
        assert [text for text in texts if "{{" in text.replace("{{}}", "")] == []
