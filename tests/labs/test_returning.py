"""A page for each student of a class has what the student may see, and nothing that a hidden test found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpucc.cli.main import main
from tpucc.labs import find
from tpucc.labs.lab import Term

LAB = find("allocation")


def graded(folder: Path) -> Path:
    """The results of a class: one that is wrong, and one that can't be loaded."""
    wrong = dict(LAB.files(Term("")))[LAB.file] + "\nprint('<b>mine</b>')\n"
    for name, text in (("anna <i>", wrong), ("ben", "def f(:")):
        (folder / "class" / name).mkdir(parents=True)
        (folder / "class" / name / LAB.file).write_text(text)
    given = ["lab", "grade", str(folder / "class"), "--lab", "5", "--all", "--trust", "--seed", str(987654321012345), "--jobs", "1"]
    assert main(given) == 0
    return folder / "class-results"


@pytest.mark.long
def test_pages_have_public_findings_and_no_hidden_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = graded(tmp_path)
    assert main(["lab", "return", str(results), "-o", str(tmp_path / "pages")]) == 0
    assert "2 pages in" in capsys.readouterr().out
    told = json.loads((results / "anna <i>.json").read_text())
    page = (tmp_path / "pages/anna <i>.html").read_text()
    assert "<i>" not in page
    assert "<b>mine" not in page
    public = [test for test in told["tests"] if test["visibility"] == "visible"]
    hidden = [test for test in told["tests"] if test["visibility"] != "visible"]
    assert public
    assert hidden
    for test in public:
        first = test["output"].splitlines()[0]
        assert first.partition("<")[0].partition("'")[0].partition('"')[0] in page
    for test in hidden:
        assert test["name"] in page
        assert not [line for line in test["output"].splitlines() if len(line) > 30 and line in page and line not in str(public)]
    assert str(told["extra_data"]["seed"]) not in page
    assert f"{told['score']:g} of 100 points" in page


def test_a_folder_without_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("[1, 2]")
    assert main(["lab", "return", str(tmp_path), "-o", str(tmp_path / "pages")]) == 2
    assert "has no results of a class" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()
