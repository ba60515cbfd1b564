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
from tpucc.labs import collecting, find
from tpucc.labs.collecting import collect
from tpucc.labs.lab import Term

LAB = find("allocation")
FILE = LAB.file
TERM = Term("")
CODE = "def allocate(lives, rows):\n    return [0]\n"


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
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
    assert found.taken == [f"anna: anna/solution.py is {FILE}"]
    said = "\n".join(found.left)
    for words in (
        "ben: none of 2 files is named allocation.py",
        "carl/photo.jpg: no file of the lab's",
        "dora/broken.zip: File is not a zip file",
    ):
        assert words in said
    assert list(found.files) == ["anna"]


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


def test_archives_that_are_made_to_fill_a_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped({f"{n}.py": b"#" * 1000 for n in range(50)})
    for _ in range(5):
        bomb = zipped({"inner.zip": bomb, "again.zip": bomb})
    (tmp_path / "export.zip").write_bytes(bomb)
    monkeypatch.setattr(collecting, "TOTAL", 20_000)
    with pytest.raises(UsageError, match="more than 50,000 files or 20,000 bytes"):
        collect(tmp_path / "export.zip", LAB, TERM)
    with pytest.raises(UsageError, match="more than 50,000 files or 20,000 bytes"):
        collect(export(tmp_path, {"a.zip": zipped({f"{n}.py": b"#" * 1000 for n in range(50)})}), LAB, TERM)


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no")
    with pytest.raises(UsageError, match="is neither a folder nor a zip file"):
        collect(tmp_path / "text", LAB, TERM)


def test_a_collected_class_is_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = LAB.filled(reference(LAB).read_text(), TERM)
    path = export(tmp_path, {"berganna_1_22_allocation-2.py": right, "olben_LATE_4_55_mine.py": dict(LAB.files(TERM))[FILE]})
    assert main(["lab", "collect", str(path), "--lab", "5", "-o", str(tmp_path / "class")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "olben: olben_LATE_4_55_mine.py is allocation.py" in out
    assert "2 submissions in" in out
    given = ["lab", "grade", str(tmp_path / "class"), "--lab", "5", "--all", "--trust", "--seed", str(10**12), "--jobs", "1"]
    assert main(given) == 0
    rows = {row["name"]: float(row["score"]) for row in csv.DictReader((tmp_path / "class-results.csv").read_text().splitlines())}
    assert rows["berganna"] == 100
    assert rows["olben"] < 40
    assert main(["lab", "collect", str(path), "--lab", "5", "-o", str(tmp_path / "class")]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["lab", "collect", str(path), "-o", str(tmp_path / "other")]) == 2
