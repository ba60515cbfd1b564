"""`tpucc lab mine`: a student's functions of several labs as one compiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.command_line import run
from tests.support.lab_solutions import reference
from tpucc.guest.files import CHILD
from tpucc.interop.programs import examples
from tpucc.labs import find
from tpucc.labs.lab import AS_WRITTEN
from tpucc.labs.mine import parts_in, trial
from tpucc.labs.start import start

LABS = ("passes", "tiling", "allocation", "order", "waits")
MODEL = """
param batch = 6
weights random(seed=1)
model residual(x: f32[batch, 24] in [-1.0, 1.0]) -> f32[batch, 24]:
    weight w: f32[24, 24]
    weight v: f32[24, 24]
    return relu(x @ w) @ v + x
"""
NOWHERE = "import numpy as np\n\n\ndef allocate(lives, rows):\n    return np.zeros(len(lives.rows), int)\n"
"""All buffers in the same rows."""
WITHOUT = """

def without(node):
    return replace(node, op="abs") if node.op == "relu" else node
"""
"""Another function in the place of relu."""
Mine = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def course(tmp_path: Path) -> Iterator[Path]:
    """The folders of the labs, in which nothing is written yet, and a model."""
    for name in LABS:
        start(find(name), tmp_path / name)
    (tmp_path / "model.tpu").write_text(MODEL)
    yield tmp_path
    CHILD.close()


def solve(course: Path, *names: str) -> None:
    for name in names:
        lab = find(name)
        (course / name / lab.file).write_text(lab.filled(reference(lab).read_text("utf-8"), AS_WRITTEN))


@pytest.fixture
def mine(course: Path, capsys: pytest.CaptureFixture[str]) -> Mine:
    def asked(*options: str | Path) -> tuple[int, dict[str, Any]]:
        status = run("lab", "mine", course, course / "model.tpu", "--json", *options)
        return status, json.loads(capsys.readouterr().out)

    return asked


def test_what_is_not_begun_is_tpucc_s(course: Path, mine: Mine) -> None:
    """A lab that is missing, and functions that are as they were: comments and layout don't count."""
    (course / "waits" / "waits.py").unlink()
    (course / "passes" / "passes.py").write_text("def fuse_bias_later(graph): ...\n")
    (course / "order" / "order.py").write_text("# soon\n" + (course / "order" / "order.py").read_text())
    status, found = mine()
    assert status == 0
    assert [each["function"] for each in found["functions"] if each["begun"]] == []
    assert [each["function"] for each in found["functions"] if each["file"] is None] == ["synchronise"]
    assert found["together"]["cycles"] == found["cycles"], "all of it is tpucc's"


def test_functions_of_several_labs_are_one_compiler(course: Path, mine: Mine, tmp_path: Path) -> None:
    solve(course, *LABS)
    page = tmp_path / "page.html"
    status, found = mine("-o", page)
    functions = {each["function"]: each for each in found["functions"]}
    assert status == 0, [each["problem"] for each in found["functions"]]
    assert all(each["begun"] for each in functions.values())
    assert [name for name, each in functions.items() if not each["called"]] == ["lower_conv"], "the model has no convolution"
    assert set(found["together"]["functions"]) == set(functions)
    assert found["together"]["cycles"] > 0
    assert "<html" in page.read_text()


def test_the_passes_of_lab_2_stand_in_the_place_of_tpucc_s(course: Path) -> None:
    """A pass that fuses nothing leaves an activation to a layer of its own."""
    passes = course / "passes" / "passes.py"
    passes.write_text(passes.read_text().replace('rewriter = Rewriter(graph, "fuse-activation")', 'rewriter = Rewriter(graph, "nothing")'))
    (own,) = (part for part in parts_in(course) if part.begun)
    plain = tpucc.compile(course / "model.tpu")
    made = trial(course / "model.tpu", (own,), plain, 60)
    assert (own.function, made.problem) == ("fuse_activation", "")
    assert made.exe is not None
    assert len(made.exe.layers.value) > len(plain.layers.value)


def test_a_pass_that_changes_the_meaning_is_wrong(course: Path, mine: Mine) -> None:
    """The integers are right for its layers, and wrong for the source."""
    solve(course, "passes")
    passes = course / "passes" / "passes.py"
    passes.write_text(passes.read_text() + "\n\ndef fuse_activation(graph):\n    return graph.with_nodes(map(without, graph))\n" + WITHOUT)
    status, found = mine()
    problems = {each["function"]: each["problem"] for each in found["functions"] if each["begun"]}
    assert status == 1
    assert "(the pass fuse-activation)" in problems["fuse_activation"]


def test_a_wrong_function_is_left_out(course: Path, mine: Mine, capsys: pytest.CaptureFixture[str]) -> None:
    solve(course, "order")
    (course / "allocation" / "allocation.py").write_text(NOWHERE)
    status, found = mine()
    problems = {each["function"]: each["problem"] for each in found["functions"] if each["begun"]}
    assert status == 1
    assert "E0523" in problems["allocate"]
    assert problems["order"] == ""
    assert found["together"]["functions"] == ["order"]
    assert run("lab", "mine", course, course / "model.tpu") == 1
    printed = capsys.readouterr().out
    assert "allocate is wrong, and left out below:" in printed
    assert "your compiler, with order: " in printed
    assert max(len(line) for line in printed.splitlines() if "error E0523" not in line) <= 80


def test_files_that_may_be_meant_are_one(course: Path) -> None:
    (course / "copy").mkdir()
    (course / "copy" / "waits.py").write_text("")
    with pytest.raises(Exception, match=r"may both be the file of lab 7"):
        parts_in(course)


def test_a_folder_without_labs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"has no file of a lab whose functions a compiler calls"):
        parts_in(tmp_path)


@pytest.mark.long
def test_passes_that_fuse_less_may_have_the_noise_of_less_fusing(course: Path) -> None:
    """Lab 2 is about products of matrices: the convolutions' activations stay layers of their own, each of which rounds once more."""
    solve(course, "passes")
    model = examples()["digits_cnn"].source
    parts = [part for part in parts_in(course) if part.function in ("fuse_bias", "fuse_activation")]
    assert trial(model, parts, tpucc.compile(model), 60).problem == ""
