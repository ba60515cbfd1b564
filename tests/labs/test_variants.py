"""A variant of a term for each student: a term by itself, which the instructor's key gives again."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest

from tests.support.cases import each
from tests.support.lab_solutions import reference
from tpucc.cli.main import main
from tpucc.labs import find
from tpucc.labs.lab import Term
from tpucc.labs.submissions import Variants, folder_name

LAB = find("allocation")
KEY = b"a secret of sixteen bytes and more"
SPRING = Variants(LAB, Term("spring"), KEY)
ASKED = ["--lab", "5", "--term", "spring"]


def written(folder: Path, *students: str) -> Path:
    """A class whose students began with the instructor's folders and wrote the reference, each for the own variant; and the key's file."""
    key = folder / "key"
    key.write_bytes(KEY + b"\n")
    for student in students:
        place = folder / "class" / student
        assert main(["lab", "start", "5", str(place), "--term", "spring", "--student", student, "--key", str(key)]) == 0
        term = Term(tomllib.loads((place / "lab.toml").read_text())["term"])
        (place / LAB.file).write_text(LAB.filled(reference(LAB).read_text(), term))
    return key


def test_a_variant_follows_from_key_term_lab_and_student() -> None:
    one = SPRING.of_student("anna")
    assert one == SPRING.of_student(" Anna ") == SPRING.of(Path("class/anna")) == SPRING.of(Path("class/anna.py"))
    assert SPRING.of_student("O'Brien,  Zoe\u0308") == SPRING.of(Path(folder_name("O'Brien, Zo\u00eb"))), "as a collected folder is called"
    assert one.name.startswith("spring-")
    assert len(one.name) == len("spring-") + 16
    others = [
        SPRING.of_student("ben"),
        Variants(LAB, Term("autumn"), KEY).of_student("anna"),
        Variants(find("tiling"), Term("spring"), KEY).of_student("anna"),
        Variants(LAB, Term("spring"), KEY + b"!").of_student("anna"),
    ]
    assert len({term.name.partition("-")[2] for term in (one, *others)}) == 5


def test_the_name_of_a_variant_is_the_same_for_ever() -> None:
    """Folders that were handed out are graded by a later version."""
    assert SPRING.of_student("anna").name == "spring-d1aa74551c9a5664"


def test_without_a_key_all_have_the_term() -> None:
    assert Variants(LAB, Term("spring")).of(Path("anna")) == Term("spring")


@pytest.mark.soak
def test_students_work_without_the_key_and_are_graded_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Right solutions of one's own variant earn all; a classmate's, with that one's numbers, is told by the term in its file."""
    key = written(tmp_path, "anna", "ben")
    assert main(["lab", "check", str(tmp_path / "class/anna")]) == 0
    copied = tmp_path / "class/carl"
    copied.mkdir()
    for name in ("lab.toml", LAB.file):
        (copied / name).write_text((tmp_path / "class/anna" / name).read_text())
    capsys.readouterr()
    given = ["lab", "grade", str(tmp_path / "class"), *ASKED, "--all", "--trust", "--seed", str(10**12), "--jobs", "1"]
    assert main([*given, "--per-student", "--key", str(key)]) == 0
    rows = {row["name"]: row for row in csv.DictReader((tmp_path / "class-results.csv").read_text().splitlines())}
    assert [rows[name]["score"] for name in ("anna", "ben")] == ["100.0", "100.0"]
    assert len({row["term"] for row in rows.values()}) == 3
    assert SPRING.of_student("anna").name in rows["carl"]["note"]
    again = capsys.readouterr()
    assert "warning: lab.toml doesn't say lab 5, the variant of the student whose name the folder has: carl" in " ".join(again.err.split())
    assert main([*given, "--per-student", "--key", str(key)]) == 0
    kept = {path.name: json.loads(path.read_text())["extra_data"]["term"] for path in (tmp_path / "class-results").glob("*.json")}
    assert kept["anna.json"] == SPRING.of_student("anna").name


@pytest.mark.long
def test_one_submission_is_graded_by_its_students_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = written(tmp_path, "anna")
    given = ["lab", "grade", str(tmp_path / "class/anna"), *ASKED, "--trust", "--seed", str(10**12)]
    capsys.readouterr()
    assert main([*given, "--per-student", "--key", str(key)]) == 0
    assert SPRING.of_student("anna").name in capsys.readouterr().out


@each(
    [
        (["start", "5", "x", "--student", "anna"], "a student's own variant needs both"),
        (["start", "5", "x", "--key", "key"], "a student's own variant needs both"),
        (["grade", ".", "--lab", "5", "--per-student"], "--per-student and --key FILE belong together"),
        (["start", "5", "x", "--student", "anna", "--key", "short"], "short has 5 bytes, and a key has 16 at least"),
        (["start", "5", "x", "--student", "anna", "--key", "none"], "the key none"),
    ]
)
def test_what_is_missing_is_said(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("short")
    Path("key").write_bytes(KEY)
    assert main(["lab", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
