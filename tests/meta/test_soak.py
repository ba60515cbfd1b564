"""What `make soak` says of its parts; the same seeds give the same cases, and a random test that fails says how to repeat it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests import soak
from tests.support.cases import each

ROOT = Path(__file__).resolve().parents[2]


def takes(words: Sequence[str], path: str) -> bool:
    """Whether a part runs a file of tests."""
    left_out = [word.partition("=")[2] for word in words if word.startswith("--ignore")]
    if any(path.startswith(f"{pattern}/") or fnmatch(path, pattern) for pattern in left_out):
        return False
    return any(path == word or path.startswith(f"{word}/") for word in words)


def test_each_file_of_tests_is_in_one_part() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        name = path.relative_to(ROOT).as_posix()
        assert [takes(words, name) for words in soak.PARTS.values()].count(True) == 1, name


@each(
    [
        ("1,234 random cases, of seed 7\n12 passed, 3 skipped in 4.56s\n", 0, (12, 0, 3, 1234)),
        ("5 random cases, of seed 7\nFAILED tests/unit/a.py::b\n1 failed, 2 passed, 1 error in 4.56s\n", 1, (2, 2, 0, 5)),
        ("0 random cases, of seed 7\nno tests ran in 0.01s\n", 5, (0, 0, 0, 0)),
        ("kernel Haswell: 12 passed in 4.56s\na Haswell, emulated: 1 failed, 7 passed in 4.56s\n", 1, (19, 1, 0, 0)),
    ]
)
def test_a_part_s_closing_lines_are_read(closing: str, status: int, wanted: tuple[int, ...]) -> None:
    found = soak.result_of("unit", status, closing, 1.5)
    assert (found.passed, found.failed, found.skipped, found.cases) == wanted
    last = soak.summary([found], 7).splitlines()
    assert last[-1].startswith("seed 7, on ")
    assert ("unit ended with status 5" in last) == (status == 5)


RUNS = """
print("a Haswell, emulated: 12 passed, 1 skipped in 4.56s (0:01:31)", "kernel Prescott: failed", "E   assert 3 == 5 failed", sep="\\n")
print("1 failed, 7 passed in 1.2s")
raise SystemExit(1)
"""


def test_a_part_may_be_a_script_that_runs_pytest_several_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs.py").write_text(RUNS)
    monkeypatch.setitem(soak.SCRIPTS, "processors", (str(tmp_path / "runs.py"),))
    found = soak.run("processors", 7, 25, "2")
    assert (found.status, found.passed, found.failed, found.skipped) == (1, 19, 1, 1)


def test_all_parts_are_run_in_turn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With them other processors and other versions of packages."""
    monkeypatch.setattr(soak, "run", lambda part, seed, share, workers: soak.Result(part, int(part == "versions"), 1, 0, 0, 0, 1.0))
    assert soak.main(["--seed", "7"]) == 1
    shown = capsys.readouterr().out
    for part in (*soak.PARTS, "processors", "versions"):
        assert f"\n{part} " in shown
    assert "versions ended with status 1" in shown


TEST = """
from hypothesis import given, strategies

from tests.support.examples import examples
from tests.support.seeds import at_length


@at_length(6, 3)
def test_seeds(seeds):
    print(*seeds)
    assert seeds.start % 2, "seeds"


@examples(5, 20)
@given(strategies.integers(0, 10**9))
def test_property(x):
    print("drawn", x)
"""


@pytest.mark.soak
def test_a_seed_gives_the_same_cases_and_what_fails_says_the_line_that_repeats_it() -> None:
    """In ordinary runs there is nothing to draw from but what is always the same. CI is set here, as it is where CI runs."""
    path = ROOT / "tests" / "meta" / f"test_of_seeds_{os.getpid()}.py"
    path.write_text(TEST)
    try:
        seven, eight = ("--seed", "7"), ("--seed", "8")
        first, again, other, usual, quarter = (outcome(path, *words) for words in (seven, seven, eight, (), QUARTER))
    finally:
        path.unlink()
    assert "7000000 7000001 7000002" in first
    assert "7000003 7000004 7000005" in first
    assert f"pytest --soak --seed 7 --share 100 'tests/meta/{path.name}::test_seeds[0]'" in first
    assert "26 random cases, of seed 7" in first
    drawn = [[line for line in text.splitlines() if line.startswith("drawn")] for text in (first, again, other, usual, quarter)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 20
    assert (len(drawn[3]), "random cases" in usual) == (5, False)
    assert (len(drawn[4]), "6 random cases, of seed 7" in quarter) == (5, True)


QUARTER = ("--seed", "7", "--share", "25")


def outcome(path: Path, *words: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-rP",
        *(("--soak", *words) if words else ()),
        str(path),
    ]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "CI": "true"}, capture_output=True, text=True, check=False).stdout
