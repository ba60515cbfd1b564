"""What platforms give for all submissions becomes a folder for each student; what was taken for what is said."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.cases import each
from tests.support.lab_solutions import reference
from tpucc.cli.main import main
from tpucc.diagnostics import UsageError
from tpucc.labs import find
from tpucc.labs.collecting import collect
from tpucc.labs.lab import Term

LAB = find("allocation")
FILE = LAB.file
TERM = Term("")
CODE = "def allocate(lives, rows):\n    return [0]\n"


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def export(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    path = folder / "export.zip"
    path.write_bytes(zipped(files))
    return path


@each(
    [
        (
            "Moodle, in folders",
            {"Anna Berg_123_assignsubmission_file/allocation.py": CODE, "Ben Öl_7_assignsubmission_file/sub/allocation.py": CODE},
            {"Anna Berg": [FILE], "Ben Öl": [FILE]},
        ),
        (
            "Moodle, flat, within a folder",
            {"lab5/Anna Berg_123_assignsubmission_file_allocation.py": CODE, "lab5/Carl_9_assignsubmission_file_notes.md": "mine"},
            {"Anna Berg": [FILE]},
        ),
        (
            "Canvas, late, and in versions",
            {"berganna_1_22_allocation.py": "old", "berganna_1_23_allocation-1.py": CODE, "olben_LATE_4_55_allocation.py": CODE},
            {"berganna": [FILE], "olben": [FILE]},
        ),
        (
            "archives of students",
            {
                "berganna_1_22_my_lab_5.zip": zipped({"work/allocation.py": CODE, "__MACOSX/._allocation.py": "x"}),
                "ben.zip": zipped({FILE: CODE}),
            },
            {"berganna": [FILE], "ben": [FILE]},
        ),
        (
            "folders and files",
            {"anna/allocation.py": CODE, "anna/helper.py": "X = 1", "ben.py": CODE},
            {"anna": [FILE, "helper.py"], "ben": [FILE]},
        ),
        ("other names", {"anna/Allocation (2).PY": CODE, "ben/solution.py": CODE}, {"anna": [FILE], "ben": [FILE]}),
        ("a file among others, by its functions", {"anna/a.py": "X = 1", "anna/b.py": CODE}, {"anna": ["a.py", FILE]}),
        (
            "two students of one name",
            {f"Anna Berg_{n}_assignsubmission_file/{FILE}": CODE for n in (1, 2)},
            {"Anna Berg-1": [FILE], "Anna Berg-2": [FILE]},
        ),
        (
            "names that lead elsewhere",
            {"../../anna.py": CODE, "/etc/ben.py": CODE, "..\\carl.py": CODE},
            {"anna": [FILE], "ben": [FILE], "carl": [FILE]},
        ),
    ]
)
def test_layouts(title: str, files: Mapping[str, str | bytes], expected: Mapping[str, list[str]], tmp_path: Path) -> None:
    folder = tmp_path / title.replace(" ", "_")
    folder.mkdir()
    found = collect(export(folder, files), LAB, TERM)
    assert {student: sorted(names) for student, names in found.files.items()} == {name: sorted(names) for name, names in expected.items()}
    assert all(names[FILE].decode() == CODE for names in found.files.values())


def test_what_was_taken_and_what_was_left_is_said(tmp_path: Path) -> None:
    files = {"anna/solution.py": CODE, "ben/a.py": "X = 1", "ben/b.py": "Y = 2", "carl/photo.jpg": b"\xff", "dora/broken.zip": b"PK no"}
    found = collect(export(tmp_path, files), LAB, TERM)
    assert found.taken == [f"anna: solution.py is {FILE}"]
    said = "\n".join(found.left)
    assert "ben: none of 2 files is named allocation.py" in said
    assert "dora/broken.zip: a damaged archive" in said
    assert list(found.files) == ["anna"]
    assert found.without == ["ben", "carl", "dora"]


def test_a_folder_where_one_was_unpacked_is_the_same(tmp_path: Path) -> None:
    files = {"Anna Berg_123_assignsubmission_file/allocation.py": CODE, "Ben_7_assignsubmission_file/allocation.py": CODE + "#\n"}
    with zipfile.ZipFile(BytesIO(zipped(files))) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert collect(tmp_path / "unpacked", LAB, TERM) == collect(export(tmp_path, files), LAB, TERM)


def test_a_lab_of_texts_takes_each_by_its_name(tmp_path: Path) -> None:
    lab = find("puzzles")
    first, second, *_ = lab.files(TERM)
    found = collect(export(tmp_path, {f"anna/{first}": "nop", f"anna/x/{second.upper()}": "halt"}), lab, TERM)
    assert sorted(found.files["anna"]) == sorted([first, second])


DEEP = zipped({"inner.zip": zipped({"inner.zip": zipped({"inner.zip": zipped({"inner.zip": zipped({FILE: CODE})})})})})
DAMAGED = zipped({FILE: CODE * 100})[:-30] + bytes(30)


@each(
    [
        ("many bytes", zipped({f"{n}.py": b"#" * 2_000_000 for n in range(40)}), "more than 5,000 files or 67,108,864 bytes"),
        ("many files", zipped({f"{n}.py": b"" for n in range(5_100)}), "more than 5,000 files or 67,108,864 bytes"),
        ("archives in archives", DEEP, "an archive in 3 others"),
        ("a damaged archive", DAMAGED, "a damaged archive"),
        ("a long name", zipped({f"{'a' * 300}.py": CODE}), "a name of more than 100 characters"),
        ("a name that is slow to match", zipped({f"a{'-' * 90}{n}.py": CODE for n in range(9)}), "more than one could be it"),
        ("a number of many digits", zipped({f"allocation-{'1' * 80}.py": "no", "b.py": "no"}), "more than one could be it"),
    ]
)
def test_what_one_student_hands_in_stops_nobody(title: str, archive: bytes, said: str, tmp_path: Path) -> None:
    folder = tmp_path / title.replace(" ", "_")
    folder.mkdir()
    files = {"Anna_1_assignsubmission_file/allocation.py": CODE, "Eve_5_assignsubmission_file/w.zip": archive}
    found = collect(export(folder, files), LAB, TERM)
    assert found.files == {"Anna": {FILE: CODE.encode()}}
    assert said in "\n".join(found.left)
    assert found.without == ["Eve"]


@each(
    [
        ("Moodle", "Eve_5_assignsubmission_file/w.zip", {"Anna Berg/allocation.py": CODE}),
        ("Moodle's names", "Eve_5_assignsubmission_file/w.zip", {"Anna Berg_1_assignsubmission_file_allocation.py": CODE}),
        ("Canvas's names", "eve_5_6_w.zip", {"annaberg_1_2_allocation.py": CODE, "Ben_1_assignsubmission_file_allocation.py": CODE}),
    ]
)
def test_nobody_hands_in_for_another_one(title: str, place: str, inside: Mapping[str, str], tmp_path: Path) -> None:
    """What an archive has is its student's, whatever it is called, and alone in an export, too."""
    folder = tmp_path / title.replace(" ", "_")
    folder.mkdir()
    found = collect(export(folder, {place: zipped(inside)}), LAB, TERM)
    assert {*found.files, *found.without} == {place.partition("_")[0]}


@each(
    [
        (
            "Gradescope",
            {"assignment_1_export/submission_metadata.yml": "x", **{f"assignment_1_export/submission_{n}/{FILE}": CODE for n in (11, 12)}},
            {"submission_11", "submission_12"},
        ),
        ("a table beside", {"lab5/grades.csv": "x", f"lab5/anna/{FILE}": CODE, f"lab5/ben/{FILE}": CODE}, {"anna", "ben"}),
        ("one late submission", {f"Anna Berg_123_assignsubmission_file/lab5/{FILE}": CODE}, {"Anna Berg"}),
        ("one student", {f"anna/{FILE}": CODE, "anna/helpers/util.py": "X = 1"}, {"anna"}),
        ("a mark of the byte order", {"anna/solution.py": "\ufeff" + CODE, "anna/test.py": "X = 1", f"ben/{FILE}": CODE}, {"anna", "ben"}),
        ("capital letters", {"anna.ZIP": zipped({FILE: CODE}), "ben.zip": zipped({FILE: CODE})}, {"anna", "ben"}),
    ]
)
def test_students_of_other_exports(title: str, files: Mapping[str, str | bytes], students: set[str], tmp_path: Path) -> None:
    folder = tmp_path / title.replace(" ", "_")
    folder.mkdir()
    found = collect(export(folder, files), LAB, TERM)
    assert set(found.files) == students


def test_modules_keep_their_folders_and_what_is_elsewhere_stays_there(tmp_path: Path) -> None:
    """The archive of `lab pack`, with a student's work inside, and an environment of Python."""
    inside = {
        f"work/lab5/{FILE}": CODE,
        "work/lab5/helpers/util.py": "X = 1",
        "work/lab5/.venv/lib/os.py": "no",
        "work/tpucc/random.py": "no",
        "work/old/deeper/allocation.py": "old",
    }
    found = collect(export(tmp_path, {"anna_1_2_w.zip": zipped(inside), "ben_3_4_allocation.py": CODE}), LAB, TERM)
    assert sorted(found.files["anna"]) == [FILE, "helpers/util.py"]
    assert found.files["anna"][FILE].decode() == CODE


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no")
    with pytest.raises(UsageError, match="is neither a folder nor a zip file"):
        collect(tmp_path / "text", LAB, TERM)
    with pytest.raises(UsageError, match="there is no "):
        collect(tmp_path / "elsewhere", LAB, TERM)


def test_folders_of_an_export_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export has an entry for each folder, too; only files count as many."""
    for bound in ("STUDENTS", "ENTRIES"):
        monkeypatch.setattr(f"tpucc.labs.collecting.{bound}", 2)
    path = export(tmp_path, {**{f"{name}/empty/": "" for name in ("ann", "ben", "eve")}, f"ann/{FILE}": CODE, f"ben/{FILE}": CODE})
    assert set(collect(path, LAB, TERM).files) == {"ann", "ben"}
    with pytest.raises(UsageError, match="has 3 files, and at most 2 are read"):
        collect(export(tmp_path, {f"{name}/{FILE}": CODE for name in ("ann", "ben", "eve")}), LAB, TERM)


@pytest.mark.soak
def test_a_collected_class_is_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = LAB.filled(reference(LAB).read_text(), TERM)
    path = export(tmp_path, {"berganna_1_22_allocation-2.py": right, "olben_LATE_4_55_mine.py": dict(LAB.files(TERM))[FILE]})
    assert main(["lab", "collect", str(path), "--lab", "5", "-o", str(tmp_path / "class")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "olben: mine.py is allocation.py" in out
    assert "2 submissions in" in out
    given = ["lab", "grade", str(tmp_path / "class"), "--lab", "5", "--all", "--trust", "--seed", str(10**12), "--jobs", "1"]
    assert main(given) == 0
    rows = {row["name"]: float(row["score"]) for row in csv.DictReader((tmp_path / "class-results.csv").read_text().splitlines())}
    assert rows["berganna"] == 100
    assert rows["olben"] < 40
    assert main(["lab", "collect", str(path), "--lab", "5", "-o", str(tmp_path / "class")]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["lab", "collect", str(path), "-o", str(tmp_path / "other")]) == 2
