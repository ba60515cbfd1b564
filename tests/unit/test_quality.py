"""Labels of every kind, and inputs that are hardly meant: each gets its measure, or a word."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import run
from tpucc.explain.quality import Accuracy, Regression, held_ranges, notices, quality

CLASSES = """
param batch = 4
weights random(seed=1)
model m(x: f32[batch, 6] in [0.0, 1.0]) -> f32[batch, 3]:
    weight w: f32[6, 3]
    return x @ w
"""
ONE = CLASSES.replace("-> f32[batch, 3]", "-> f32[batch, 1]").replace("f32[6, 3]", "f32[6, 1]")
X = np.random.default_rng(0).uniform(0, 1, (10, 6)).astype(np.float32)


def measured(source: str, labels: object, x: np.ndarray = X) -> Accuracy | Regression | str:
    exe = tpucc.compile_source(source)
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    return quality(exe.runtime, exe.compilation.graph, {"x": x}, np.asarray(labels))


def truth(source: str) -> np.ndarray:
    return tpucc.compile_source(source).run(X)["out"]


def test_classes_one_hot_or_as_numbers() -> None:
    classes = truth(CLASSES).argmax(axis=1)
    found = measured(CLASSES, classes)
    assert found == Accuracy(10, found.float32, 1.0)  # type: ignore[union-attr]
    assert (
        found
        == measured(CLASSES, classes[:, None])
        == measured(CLASSES, np.eye(3)[classes])
        == measured(CLASSES, np.eye(3, dtype=int)[classes])
    )
    assert measured(CLASSES, (classes + 1) % 3).quantised == 0.0  # type: ignore[union-attr]


def test_labels_beyond_int64_are_no_classes() -> None:
    assert isinstance(measured(CLASSES, np.full(10, 1e300)), str)
    assert isinstance(measured(CLASSES, np.full(10, 1.0)), Accuracy)


def test_the_first_row_is_the_example() -> None:
    outputs = truth(CLASSES)
    wanted = outputs.argmax(axis=1)
    wanted[0] = (wanted[0] + 1) % 3
    found = measured(CLASSES, wanted)
    assert isinstance(found, Accuracy)
    assert found.example is not None
    assert (found.example.answer, found.example.label) == (outputs[0].argmax(), wanted[0])
    assert np.array_equal(found.example.output, outputs[0])
    assert np.array_equal(found.example.inputs["x"], X[0])


def test_values_have_their_own_measures() -> None:
    wanted = truth(ONE).astype(np.float64)
    wanted[0] += 0.5
    found = measured(ONE, wanted)
    assert isinstance(found, Regression)
    assert found.quantised.rmse == pytest.approx(0.5 / np.sqrt(10))
    assert found.quantised.r2 == pytest.approx(1 - 0.25 / np.square(wanted - wanted.mean()).sum())
    assert found == measured(ONE, wanted[:, 0])
    assert isinstance(measured(ONE, np.arange(10)), Regression)
    assert isinstance(measured(ONE, np.arange(10) % 2), Accuracy)
    assert isinstance(measured(CLASSES, truth(CLASSES)), Regression)


@each(
    [
        (np.zeros(9, int), "there are 9 labels for 10 rows of inputs"),
        (np.zeros((3, 10)), "labels of shape [3, 10] for 10 rows"),
        (np.full(10, 3), "3 isn't a class of an output of 3 columns: classes are 0 to 2"),
        (np.full(10, -1), "-1 isn't a class"),
        (np.full(10, 0.5), "fit no output of shape [4, 3]"),
        (np.zeros((10, 2)), "fit no output of shape [4, 3]"),
        (np.array(["a"] * 10), "expected numbers"),
        (np.full((10, 3), np.inf), "NaN or infinity"),
        (np.full(10, np.nan), "NaN or infinity"),
    ]
)
def test_labels_that_fit_nothing_get_a_word(labels: np.ndarray, words: str) -> None:
    found = measured(CLASSES, labels)
    assert isinstance(found, str)
    assert words in found


def test_an_image_has_no_classes_and_axes_of_one_make_no_image() -> None:
    """The brightest of its pixels is none."""
    image, row = (
        CLASSES.replace("[batch, 3]:", f"{shape}:").replace("return x @ w", f"return reshape(x @ w, {values})") for shape, values in SHAPED
    )
    classes = np.zeros(10, int)
    assert "fit no output of shape [4, 2, 3]" in measured(image.replace("f32[6, 3]", "f32[6, 6]"), classes)
    assert isinstance(measured(row, classes), Accuracy)


SHAPED = (("[batch, 2, 3]", "(batch, 2, 3)"), ("[batch, 1, 3]", "(batch, 1, 3)"))


def test_inputs_outside_the_declared_range_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exe = tpucc.compile_source(CLASSES)
    with pytest.warns(tpucc.InputWarning, match=r"x: 60 values of 60 \(100 %\) are outside \[0, 1\].*found 16 to 16: scale the inputs"):
        exe.run(np.full((10, 6), 16.0, np.float32))
    many = np.zeros((2004, 6), np.float32)
    many[0, 0] = 16.0
    assert next(notices(exe.runtime.inputs, {"x": many})).startswith("x: 1 value of 12,024 (under 0.1 %) is outside [0, 1], the range")
    exe.run(X)
    exe.run(X + np.float32(1e-4))  # rounding is no other scale
    (tmp_path / "m.tpu").write_text(CLASSES)
    np.savez(tmp_path / "x.npz", x=X * 16)
    assert run("run", tmp_path / "m.tpu", "--input", tmp_path / "x.npz") == 0
    assert "are outside [0, 1]" in capsys.readouterr().err.replace("\n ", "")


def test_numbers_of_rows_are_not_said_to_be_cut_off() -> None:
    ids = "weights random(seed=1)\nmodel m(t: i32[4] in [0, 2]) -> f32[4, 4]:\n    weight e: f32[3, 4]\n    return embedding(t, e)\n"
    with pytest.raises(tpucc.InputError, match="E0454"):
        tpucc.compile_source(ids).run(np.full(4, 3, np.int32))


def test_numbers_that_the_type_can_not_hold_are_counted() -> None:
    exe = tpucc.compile_source(CLASSES.replace(" in [0.0, 1.0]", " in [0.0, 33554432.0]"))
    exe.run(X.astype(np.float64))
    exe.run(X.tolist())
    with pytest.warns(tpucc.InputWarning, match=r"x: 24 values of 24 change as int64 becomes float32"):
        exe.run(np.full((4, 6), 2**24 + 1))


def test_inputs_of_another_scale_than_the_integers_are_told() -> None:
    """Not those that are a little larger, or a few outliers; of a range that the source declares, every one."""
    exe = tpucc.compile_source(CLASSES.replace(" in [0.0, 1.0]", ""))
    measured, usual = held_ranges(exe.runtime.host.prologue)["x"], np.zeros((4, 6), np.float32)
    low, high = measured.low, measured.high
    with pytest.warns(
        tpucc.InputWarning, match=r"x: 24 values of 24 \(100 %\) are outside .*the range of the integers that hold them, .* calibrate with"
    ):
        exe.run(usual + 100 * high)
    outlier = usual.copy()
    outlier[0, 0] = 100 * high
    for near in (usual + 1.2 * high, usual + 1.2 * low, outlier):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exe.run(near)


def test_the_labels_of_a_file_of_training_examples_are_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text(ONE)
    for key in ("label", "labels"):
        np.savez(tmp_path / "x.npz", x=X, **{key: truth(ONE)})
        assert run("run", tmp_path / "m.tpu", "--input", tmp_path / "x.npz") == 0
        assert "on 10 rows of the given inputs" in capsys.readouterr().out, key


@each(
    [
        ("compile", "--batch", "-D batch="),
        ("profile", "--optimise", "the level is -O"),
        ("ops", "--batch", "No such option"),
        ("run", "--lr", "No such"),
    ]
)
def test_options_of_other_tools_are_told_where_they_mean_something(
    command: str, option: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "m.tpu", option, "8") == 2
    assert said in capsys.readouterr().err


def test_a_file_beside_the_source_that_has_no_labels_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text(ONE)
    np.savez(tmp_path / "m_test.npz", x=X, y=truth(ONE))
    np.savez(tmp_path / "x.npz", x=X)
    for command in (["run"], ["check"], ["compile", "-o", tmp_path / "out"], ["profile", "--error", "--calibrate", tmp_path / "x.npz"]):
        assert run(command[0], tmp_path / "m.tpu", *command[1:]) == 0
        told = " ".join(capsys.readouterr().err.split())
        assert told.count("m_test.npz has no array labels, which accuracy is measured by; it has x and y") == 1, command
        assert run(command[0], tmp_path / "m.tpu", *command[1:], "--quiet") == 0
        assert capsys.readouterr().err == ""


@pytest.mark.long
def test_the_command_line_says_what_it_made_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text(ONE)
    np.savez(tmp_path / "m_test.npz", x=X, labels=truth(ONE))
    assert run("run", tmp_path / "m.tpu") == 0
    assert "errors on 10 rows of m_test.npz: float32 RMSE" in capsys.readouterr().out
    np.savez(tmp_path / "m_test.npz", x=X, labels=np.zeros(3, int))
    assert run("run", tmp_path / "m.tpu") == 0
    printed = capsys.readouterr()
    assert "errors" not in printed.out
    assert "there are 3 labels for 10 rows of inputs" in printed.err.replace("\n ", "")
    assert run("compile", tmp_path / "m.tpu", "-o", tmp_path / "out") == 0
    assert "there are 3 labels" in capsys.readouterr().err
    for command in (["run"], ["compile", "-o", tmp_path / "out"]):
        assert run(*command[:1], tmp_path / "m.tpu", *command[1:], "--quiet") == 0
        assert capsys.readouterr() == ("", "")
