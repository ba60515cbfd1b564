"""What a student types in the first hours: misspelt keywords, values of another kind, stages that place nothing."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import SMALL, run
from tpucc.cli.commands import COMMANDS
from tpucc.explain.quality import Accuracy, quality
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives

ROOT = Path(__file__).resolve().parents[2]


@each(
    [
        ({"param": {"batch": 3}}, "no keyword param\nhelp: did you mean params?"),
        ({"set": {"mxu": 16}}, "no keyword set\nhelp: did you mean overrides?"),
        ({"foo": 1}, "no keyword foo\nhelp: there are target, "),
        ({"stage": tpucc.Stages()}, "did you mean stages?"),
        ({"weights": {"w": np.zeros(3)}}, "weights is the path of a file, found dict\nhelp: np.savez("),
        ({"weights": 3}, "weights is the path of a file, found int"),
        ({"calibration": np.zeros(3)}, "calibration is the path of a file, found ndarray"),
        ({"stages": {"allocate": len}}, "stages is a tpucc.Stages, found dict\nhelp: tpucc.Stages(allocate=mine)"),
        ({"passes": len}, "passes is a tuple of passes"),
        ({"params": "batch=3"}, "params is a dict, found str"),
        ({"weights": ""}, "weights is the path of a file, found an empty text"),
        ({"level": "2"}, "level is 0, 1 or 2, found str"),
    ]
)
def test_keywords_are_checked(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(tpucc.UsageError) as caught:
        tpucc.compile_source(SMALL, **asked)
    assert "E0529" in str(caught.value)
    assert words in str(caught.value)


@each(
    [
        (
            lambda: tpucc.resume("iris.tile"),
            "text of a stage, found the path iris.tile\nhelp: did you mean tpucc.resume(Path(path).read_text()",
        ),
        (lambda: tpucc.resume(Path("iris.tile")), "found the path iris.tile"),  # type: ignore[arg-type]
        (lambda: tpucc.resume("graph m", like=SMALL), "like takes the path of a file, found a text of "),
        (lambda: tpucc.compile(SMALL), "path of a file, found a text of 9 lines\nhelp: did you mean tpucc.compile_source(text)?"),
        (lambda: tpucc.compile(3), "compile takes the path of a file, found int"),  # type: ignore[arg-type]
        (lambda: tpucc.compile_source("iris.tpu"), "text of a source, found the path iris.tpu\nhelp: did you mean tpucc.compile(path)?"),
        (lambda: tpucc.compile_source(Path("iris.tpu")), "found the path iris.tpu"),  # type: ignore[arg-type]
        (lambda: tpucc.compile(""), "compile takes the path of a file, found an empty text"),
        (lambda: tpucc.load(SMALL), "load takes the path of a file, found a text"),
    ]
)
def test_a_path_for_a_text_and_a_text_for_a_path(call: Callable[[], object], words: str) -> None:
    with pytest.raises(tpucc.UsageError) as caught:
        call()
    assert "E0529" in str(caught.value)
    assert words in str(caught.value)


NO_FILES = ("new", "programs", "explain", "ops", "passes", "targets", "paper", "systolic", "rtl", "lab", "doctor")
"""The commands that don't begin with a file."""
UNNAMED = [("lab", "check", ""), ("report", "m.tpu", "-o", ""), ("check", "m.tpu", "--weights", ""), ("new", "m", "-o", "")]


@each([(words,) for words in (*((name, "") for name in COMMANDS if name not in NO_FILES), *UNNAMED)])
def test_a_file_without_a_name(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """As of a variable of the shell that isn't set: it isn't the current folder."""
    assert run(*arguments) == 2
    assert ": the name is empty\n" in capsys.readouterr().err


@each(
    [
        (("export", "."), "can't read .: is a directory\nhelp: name a file in it"),
        (("import", "/"), "can't read /: is a directory"),
        (("asm", "."), "can't read .: is a directory"),
        (("watch", "."), "can't read .: is a directory"),
        (("watch", "smal.tpu"), "no such file\nhelp: did you mean small.tpu?"),
        (("check", "small.tpu", "--replace", "allocate="), "'allocate=' is not STAGE=FILE"),
        (("check", "small.tpu", "--target", ""), "the name of the target is empty\nhelp: the targets are "),
        (("new", ""), "an empty text can't name a model's files"),
    ]
)
def test_a_folder_for_a_file_and_no_name_at_all(
    arguments: tuple[str, ...], words: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err
    assert list(Path().iterdir()) == [Path("small.tpu")]


def test_a_file_of_another_kind_is_not_watched(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No save makes a source of it, so no server is started."""
    np.savez("weights", w=np.zeros(3))
    assert run("watch", "weights.npz") == 1
    assert "error E0121: weights.npz is an archive of arrays, not the source of a model" in capsys.readouterr().err


def test_the_class_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "class").mkdir()
    monkeypatch.chdir(tmp_path / "class")
    assert run("lab", "grade", ".", "--all", "--lab", "5", "--trust") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["class", "class-results", "class-results.csv"]


X = np.zeros((4, 6), np.float32)


@each(
    [
        (lambda exe: exe.run(X, x=X), "E0529: given twice: x, before the keywords and as one"),
        (lambda exe: exe.run({"x": X}, x=X), "E0529: given twice: x"),
        (lambda exe: exe.run_quantized(X, x=X), "E0529: given twice: x"),
        (lambda exe: exe.runtime.run(X, x=X), "E0529: given twice: x"),
        (lambda exe: exe.run([[1, 2, 3], [1]]), "E0433: input x is no array: its rows differ in length"),
        (lambda exe: exe.run(x=[[1, 2, 3], [1]]), "E0433: input x is no array"),
        (lambda exe: tpucc.judge(exe, {"x": [[1, 2, 3], [1]]}), "E0433: input x is no array"),  # type: ignore[dict-item]
        (lambda exe: tpucc.judge(exe, against="foo"), "E0529: judge's against is 'onnxruntime', found 'foo'"),  # type: ignore[arg-type]
        (lambda exe: tpucc.judge(exe, against=["onnxruntime"]), "E0529: judge's against is 'onnxruntime', found list"),  # type: ignore[arg-type]
        (lambda exe: tpucc.judge(exe, against=""), "E0529: judge's against is 'onnxruntime', found ''"),  # type: ignore[arg-type]
        (lambda _: tpucc.import_onnx("m.onnx", layout="NHWC"), "the layout is 'nhwc' or 'nchw', found 'NHWC'\nhelp: did you mean nhwc?"),  # type: ignore[arg-type]
        (lambda _: tpucc.import_onnx("m.onnx", layout=None), "E0529: the layout is 'nhwc' or 'nchw', found NoneType"),  # type: ignore[arg-type]
        (lambda _: tpucc.from_torch(None, None, layout="channels_last"), "E0529: the layout is 'nhwc' or 'nchw', found 'channels_last'"),  # type: ignore[arg-type]
        (lambda exe: tpucc.export_onnx(exe, "m.onnx", quantized="no"), "E0529: quantized is True or False, found str"),  # type: ignore[arg-type]
        (lambda _: tpucc.train("small.tpu", epoch=3), "E0529: training has no keyword epoch\nhelp: did you mean epochs?"),  # type: ignore[arg-type]
    ]
)
def test_what_a_call_cannot_mean_is_refused(call: Callable[[tpucc.Executable], object], words: str) -> None:
    with pytest.raises(tpucc.Error) as caught:
        call(tpucc.compile_source(SMALL))
    assert words in str(caught.value)


def test_errors_have_the_names_by_which_they_are_caught() -> None:
    def wrong(lives: Lives, rows: int) -> Int64:
        raise ValueError

    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile_source(SMALL, stages=tpucc.Stages(allocate=wrong))
    assert "tpucc.PluginError: " in "".join(traceback.format_exception_only(caught.value))
    assert {getattr(tpucc, name).__module__ for name in tpucc.__all__ if name.endswith("Error")} == {"tpucc"}


def test_what_a_stage_shows_can_be_resumed_as_it_is() -> None:
    exe = tpucc.compile_source(SMALL)
    assert str(tpucc.resume(exe.tiles, like=exe).program) == str(exe.program)
    with pytest.raises(tpucc.UsageError, match="E0529"):
        tpucc.resume(exe, like=exe)  # type: ignore[arg-type]


def test_an_epilogue_that_adds_another_zero_than_its_type_has_is_refused() -> None:
    exe = tpucc.compile_source(SMALL)
    text = str(exe.layers)
    zero = next(line for line in text.split("\n") if "requantise(zero=" in line and "table=true" not in line)
    old = zero[zero.index("requantise(zero=") :].split(",")[0].split(")")[0]
    with pytest.raises(tpucc.ProgramError, match=r"E0824.*its epilogue adds -100, and the zero point of its type is"):
        tpucc.resume(text.replace(zero, zero.replace(old, "requantise(zero=-100", 1)), like=exe)


@pytest.mark.parametrize(("old", "new", "equal"), [("relu(", "sigmoid(", False), ("relu(", "relu(", True)])
def test_a_graph_that_computes_something_else_than_its_model_is_not_equal(old: str, new: str, equal: bool) -> None:
    exe = tpucc.compile_source(SMALL)
    edited = tpucc.resume(str(exe.graph).replace(old, new), like=exe)
    verdict = tpucc.judge(edited)
    assert verdict.equal is equal
    assert equal or "float32" in verdict.first_difference.stage  # type: ignore[union-attr]


def test_an_allocator_that_places_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def never(lives: Lives, rows: int) -> Int64:
        raise tpucc.TooLarge

    verdict = tpucc.judge(tpucc.compile_source(SMALL, stages=tpucc.Stages(allocate=never)))
    (note,) = verdict.notes
    assert note.startswith("the allocator found no place for all buffers in the 98,304 rows")
    (tmp_path / "small.tpu").write_text(SMALL)
    (tmp_path / "mine.py").write_text("import tpucc\ndef allocate(lives, rows): raise tpucc.TooLarge\n")
    assert run("judge", tmp_path / "small.tpu", "--replace", f"allocate={tmp_path / 'mine.py'}") == 0
    assert "note: the allocator found no place" in capsys.readouterr().out


def test_an_overlap_is_told_in_the_allocator_s_own_terms() -> None:
    stages = tpucc.Stages(allocate=lambda lives, rows: np.zeros(len(lives.rows), int))
    with pytest.raises(tpucc.PluginError) as caught:
        tpucc.compile(ROOT / "programs" / "05_digits_cnn.tpu", stages=stages)
    message = str(caught.value)
    assert "E0523: the stage allocate put two buffers on the same rows: buffer " in message
    assert message.count("alive from instruction") == 2


def test_classes_as_floats_are_classes() -> None:
    exe = tpucc.compile_source(SMALL)
    x = np.random.default_rng(0).uniform(-1, 1, (8, 6)).astype(np.float32)
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    found = quality(exe.runtime, exe.compilation.graph, {"x": x}, exe.run(x)["out"].argmax(axis=1).astype(np.float64))
    assert isinstance(found, Accuracy)
    assert found.quantised == 1.0


def test_a_pass_of_no_level_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    text = "class Mine:\n    name, summary, level = 'mine', 'x', 5\n    def run(self, graph, context): return graph\n"
    (tmp_path / "mine.py").write_text(text)
    assert run("check", tmp_path / "small.tpu", "--pass", tmp_path / "mine.py") == 2
    assert "level is 0, 1 or 2" in capsys.readouterr().err


def test_a_new_model_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("new", "mine", "--from", "iris") == 0
    capsys.readouterr()
    assert run("check", "mine/mine.tpu") == 0
    assert "mine.tpu: mine(" in capsys.readouterr().out
