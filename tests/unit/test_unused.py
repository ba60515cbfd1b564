"""Inputs, weights and code that no output needs get a warning at their place, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cases import LONG, one_of
from tests.support.command_line import run
from tpucc.diagnostics import CompileError, Source
from tpucc.driver import front_end
from tpucc.interop.sources import read_source
from tpucc.options import Options

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted([*(ROOT / "programs").rglob("*.tpu"), *(ROOT / "tests" / "programs").glob("*.tpu")])
HEAD = "weights random(seed=0)\n"


def warned(text: str) -> list[tuple[str, int]]:
    return [(found.code, found.labels[0].span.line) for found in front_end(Source("m.tpu", HEAD + text), Options()).warnings]


@pytest.mark.parametrize(
    "path", one_of(6, [path for path in PROGRAMS if path.stem not in ("cnn1", "11_resnet50")], LONG), ids=lambda path: path.stem
)
def test_our_programs_use_all_that_they_say(path: Path) -> None:
    assert front_end(read_source(path), Options()).warnings == ()


def test_each_kind_has_its_place() -> None:
    assert warned(
        """
def never(x):
    return x

model m(x: f32[2, 3], y: f32[2, 3]) -> f32[2, 3]:
    weight w: f32[3, 3]
    weight b: f32[3]
    h = x @ w
    z = tanh(h)
    return relu(h)
"""
    ) == [("W0204", 3), ("W0201", 6), ("W0202", 8), ("W0203", 10)]


def test_what_comes_after_a_return_is_told_once_a_block() -> None:
    assert warned(
        """
def f(x, n):
    if n > 1:
        return relu(x)
        x = tanh(x)
    elif n > 0:
        return x
    else:
        for i in range(2):
            return x
            y = x
    if n > 2:
        return x
    else:
        return tanh(x)
    x = relu(x)
    return x

model m(x: f32[2, 3]):
    if x.shape[0] > 1:
        return f(x, 1)
    return f(x, 2)
    x = nothing_is_named_so
    weight w: f32[3]
"""
    ) == [("W0209", 6), ("W0209", 12), ("W0209", 17), ("W0209", 24)]


def test_a_def_that_nothing_calls_is_checked_as_far_as_its_arguments_and_params_do_not_matter() -> None:
    text = """
param groups = 0
def grouped(x):
    weight w: f32[16 // groups, 4]
    for i in range(0, 10, groups):
        x = x @ w
    return x if groups > 1 else x[:, i:groups]
def head(x, units):
    weight w: f32[units, 4] = "w"
    return x @ w
def todo(x):
    pass
model m(x: f32[8, 16]):
    weight w: f32[16, 4]
    if groups > 0:
        return head(grouped(x), 7)
    return x @ w
"""
    assert warned(text) == [("W0204", 12)]
    uncalled = "def unused(x):\n    y = relu(x, 3) + nowhere\n    return grouped(relux(y), 1)\n"
    with pytest.raises(CompileError) as caught:
        front_end(Source("m.tpu", HEAD + text + uncalled), Options())
    places = [(found.code, found.labels[0].span.line) for found in caught.value.diagnostics]
    assert places == [("E0210", 20), ("E0201", 20), ("E0203", 21), ("E0210", 21)]


def test_a_weight_of_all_turns_of_a_loop_is_told_unless_a_key_says_so() -> None:
    """Once, also where a loop is in a loop."""
    text = """
model m(x: f32[3, 3]):
    weight r: f32[3, 3]
    for i in range(2):
        weight a: f32[3, 3] = "a{i}"
        weight b: f32[3, 3] = "b"
        x = relu(x @ a @ b @ r)
        for j in range(2):
            if i == j:
                weight c: f32[3, 3]
                x = relu(x @ c)
    return x
"""
    assert warned(text) == [("W0208", 11)]
    assert warned(text.replace("i == j", "i == 0 and j == 1")) == []
    assert warned(text.replace("i in range(2)", "i in range(1)")) == []


def test_only_the_end_of_what_is_not_used_is_told() -> None:
    assert warned("model m(x: f32[2, 3]):\n    a = tanh(x)\n    b = relu(a)\n    c = a + b\n    return x * 2\n") == [("W0203", 5)]


def test_what_is_used_at_one_time_is_used() -> None:
    """A `def` with two results of which one call uses both, a loop whose last round is for nothing."""
    text = """
def both(x):
    return relu(x), tanh(x)

model m(x: f32[2, 3]):
    a, b = both(x)
    c, d = both(a + b)
    for k in range(3):
        e = c + k
    return e, a
"""
    assert warned(text) == []


def test_a_def_that_calls_only_itself_is_not_called() -> None:
    assert warned("def f(n):\n    if n < 1:\n        return n\n    return f(n - 1)\n\nmodel m(x: f32[2, 3]):\n    return relu(x)\n") == [
        ("W0204", 2)
    ]


def test_check_and_compile_tell_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tpu").write_text("model m(x: f32[2, 3], y: f32[2, 3]):\n    return relu(x)\n")
    for command in (["check"], ["compile", "-o", tmp_path / "out", "--emit", "stats"]):
        assert run(command[0], tmp_path / "m.tpu", *command[1:]) == 0
        assert "m.tpu:1:23: warning W0201: the input y isn't used" in capsys.readouterr().err
    assert run("check", tmp_path / "m.tpu", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert run("check", tmp_path / "m.tpu", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_source_with_a_hundred_of_them_gets_twenty() -> None:
    lines = "\n".join(f"    h{k} = x + {k}" for k in range(100))
    assert len(warned(f"model m(x: f32[2, 3]):\n{lines}\n    return relu(x)\n")) == 20
