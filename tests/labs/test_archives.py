"""A student's archive, unpacked, gives each submission the points that the whole package gives it: `check` is no guess at the grade."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.lab_solutions import files_of, mistakes, reference
from tests.support.package_copies import keep_compiled, plain_environment
from tpucc.labs import labs
from tpucc.labs.lab import Lab, Term
from tpucc.labs.packing import for_students
from tpucc.labs.start import starting_files

ROOT = Path(__file__).parents[2]
TERM = Term("spring")
LACKING = {"break_it": "detector "}
"""How the tests begin for which an archive has no rule. The submission's own stands for it, so that the points of a wrong rule differ."""
CHECKED = """
import json, pathlib, pickle, sys
import tpucc
from tpucc.labs.grading import run
from tpucc.labs.here import Here, executed
from tpucc.labs.start import place

class Apart:
    def __init__(self, file):
        self._here = executed(file.read_text("utf-8"), file)
    def call(self, function, *arguments, seconds=None):
        return self._here.call(function, *pickle.loads(pickle.dumps(arguments)))
    def defines(self):
        return self._here.defines()

found = {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    lab, term = place(folder)
    texts = Here({}, folder, {path.name: path.read_bytes() for path in folder.iterdir()})
    submission = Apart(folder / lab.file) if lab.functions else texts
    results = [run(test, submission) for test in lab.public(term)]
    found[folder.name] = {result.test.name: [result.score, result.fault] for result in results}
pathlib.Path(sys.argv[2]).write_text(json.dumps([tpucc.__file__, found]))
"""
"""Writes which tpucc it is, and the points of each public test for the submissions of a folder, by their names; a call gets copies."""


@pytest.mark.soak
@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_an_archive_gives_the_points_of_the_whole_package(lab: Lab, tmp_path: Path) -> None:
    archive, submissions = tmp_path / "archive", tmp_path / "submissions"
    with zipfile.ZipFile(io.BytesIO(for_students(lab, TERM))) as packed:
        packed.extractall(archive)
    keep_compiled(archive / "tpucc")
    begun = starting_files(lab, TERM)
    for name, path in {"skeleton": None, **{path.stem: path for path in (reference(lab), *mistakes(lab))}}.items():
        own = {} if path is None else {file: lab.filled(text, TERM) for file, text in files_of(lab, path).items()}
        (submissions / name).mkdir(parents=True)
        for file, text in (begun | own).items():
            (submissions / name / file).write_text(text, "utf-8")
    whole = points_of(lab, submissions, ROOT, os.environ | {"PYTHONPATH": str(ROOT)})
    assert points_of(lab, submissions, archive, plain_environment(archive)) == whole


def points_of(lab: Lab, submissions: Path, package: Path, environment: Mapping[str, str]) -> Mapping[str, Mapping[str, object]]:
    """The points of each test for each submission, found in one process by the tpucc of a folder; of a wrong rule without those that it
    decides itself."""
    file = submissions.with_name("points.json")
    words = [sys.executable, "-c", CHECKED, str(submissions), str(file)]
    done = subprocess.run(words, env=environment, cwd=submissions, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    used, found = json.loads(file.read_text())
    assert Path(used).is_relative_to(package)
    own = LACKING.get(lab.name, "no test")
    return {
        name: {test: points for test, points in tests.items() if name == "reference" or not test.startswith(own)}
        for name, tests in found.items()
    }
