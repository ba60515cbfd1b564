"""The programs that come with tpucc, and a model made from one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import each, one_of
from tests.support.command_line import run
from tpucc.interop.programs import examples


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_list_names_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("programs") == 0
    printed = capsys.readouterr().out
    assert len(examples()) >= 13
    assert all(f"\n{name} " in f"\n{printed}" and example.summary for name, example in examples().items())
    assert max(map(len, printed.split("\n")[:-2])) <= 80


@pytest.mark.parametrize("name", one_of(2, ["digits_mlp", "digits_cnn", "digits_lstm", "digits_resnet", "iris", "wine"]))
def test_a_new_model_with_data_is_right_at_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new", "mine", "--from", name) == 0
    data = ("mine.npz", "mine_calibration.npz", "mine_train.npz", "mine_test.npz")
    assert {path.name for path in Path("mine").iterdir()} == {"mine.tpu", *data}
    assert run("run", "mine/mine.tpu", "--check") == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.split("\n"))) <= 80
    assert "of mine_test.npz: float32 9" in printed
    assert "check: equal" in printed


@pytest.mark.long
def test_a_new_model_trains_at_once() -> None:
    assert run("new", "mine", "--from", "digits_resnet") == 0
    assert "model mine(" in Path("mine/mine.tpu").read_text()
    assert run("train", "mine/mine.tpu", "-D", "batch=32", "--steps", "2", "--quiet") == 0
    assert Path("build/mine/weights.npz").is_file()


def test_what_it_makes_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("new", "hello") == 0
    assert "8×8" not in Path("hello/hello.tpu").read_text()
    assert run("new", "hello") == 2
    assert "hello is there already" in capsys.readouterr().err
    assert run("new", "../x") == 2
    assert run("new", "x", "--from", "04_digits_mlp") == 0
    assert run("new", "y", "--from", "digits_mpl") == 2
    assert "did you mean digits_mlp?" in capsys.readouterr().err
    Path("there").mkdir()
    assert run("new", "z", "-o", "there") == 0
    assert Path("there/z.tpu").is_file()


@pytest.mark.long
@each(["if", "relu", "len", "softmax", "dense", "batch", "weights", "model", "range", "3d", "my-net", "a.b", "mine"])
def test_a_new_model_of_any_name_is_no_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word of the language, one that the source uses, and what is no name: the model keeps the example's name, and a line says so."""
    like, model = ("digits_mlp", "digits") if name == "dense" else ("iris", "iris")
    assert run("new", name, "--from", like) == 0
    kept = f"its model is named {model}, as no model there can be named {name}" in capsys.readouterr().out
    assert kept == (name != "mine")
    assert f"model {model if kept else name}(" in Path(name, f"{name}.tpu").read_text()
    assert run("check", f"{name}/{name}.tpu") == 0


@each(["digits_mlp", "04_digits_mlp.tpu", "nowhere/digits_mlp.tpu"])
def test_a_program_that_is_not_there_is_offered(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", path) == 2
    assert "help: tpucc new digits_mlp writes the program of this name" in capsys.readouterr().err
    assert run("compile", "elsewhere.tpu") == 2
    assert "tpucc new" not in capsys.readouterr().err


def test_a_forgotten_suffix_is_offered_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the folder of a similar name, the program of the same name, and a file of another kind."""
    for name in ("digits.tpu", "iris.tpu", "iris.npz"):
        Path(name).write_text("model iris(x: f32[2, 2]):\n    weight w: f32[2, 2]\n    return x @ w\n")
    Path("digit").mkdir()
    for wanted, *arguments in (("digits.tpu", "digits"), ("iris.tpu", "iris"), ("iris.npz", "iris.tpu", "--weights", "iris")):
        assert run("check", *arguments) == 2
        assert capsys.readouterr().err.endswith(f"help: did you mean {wanted}?\n")


@pytest.mark.long
@pytest.mark.parametrize("name", ["digits_vit", "digits_mobilenet"])
def test_a_program_of_the_gallery_comes_with_the_data_that_it_shares(name: str) -> None:
    assert run("new", "mine", "--from", name) == 0
    assert run("check", "mine/mine.tpu") == 0
    assert {path.name for path in Path("mine").glob("*.npz")} >= {"mine.npz", "mine_test.npz", "digits_calibration.npz"}
