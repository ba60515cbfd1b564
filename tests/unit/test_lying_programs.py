"""Binaries whose checksums are right and whose host's part or sizes are wrong: refused when they are read, with status 3 or 4."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import run
from tpucc.isa.container import encode
from tpucc.isa.program import Division, Program
from tpucc.runtime.runtime import Runtime

SOURCE = """
weights random(seed=0)
model m(x: f32[4, 6] in [-1.0, 1.0]):
    weight w: f32[6, 12]
    weight v: f32[12, 12]
    s = softmax(relu(x @ w + 0.5))
    y = tanh(s @ v)
    return y, argmax(y, axis=1), x[0]
"""
Edit = Callable[[Program], Program]


@cache
def program() -> Program:
    found: Program = tpucc.compile_source(SOURCE, target="tiny").program.value
    return found


def prologue(old: str, new: str) -> Edit:
    return lambda p: replace(p, prologue=replaced(p.prologue, old, new))


def epilogue(old: str, new: str) -> Edit:
    return lambda p: replace(p, epilogue=replaced(p.epilogue, old, new))


def replaced(text: str, old: str, new: str) -> str:
    changed, count = re.subn(old, new, text)
    assert count, text
    return changed


def layer(**fields: object) -> Edit:
    return lambda p: replace(p, layers=(replace(p.layers[0], **fields), *p.layers[1:]))  # type: ignore[arg-type]


REFUSED: dict[str, tuple[str, Edit]] = {
    "an axis that isn't there": ("E0304", epilogue(r"axis=1", "axis=7")),
    "a scale below zero": ("E0307", epilogue(r"scale=[0-9.e-]+", "scale=-1.0")),
    "a zero point that is no int8": ("E0307", prologue(r"zero_point=[0-9-]+", "zero_point=500")),
    "a type that the operator doesn't give": ("E0783", epilogue(r"i32\[4\]", "i32[5]")),
    "an operator of the device": (
        "E0780",
        epilogue(r"argmax\(y\.f32, axis=1\)", 'pool(y.f32, function="max", size=(1, 1), stride=(1, 1), sides=(0, 0, 0, 0))'),
    ),
    "an output that is called otherwise": ("E0708", prologue(r'as "x\.i8"', 'as "z"')),
    "integers that mean something else": ("E0708", epilogue(r"zero(_point=| )-?[0-9]+", r"zero\g<1>5")),
    "more elements than the port has": ("E0708", prologue(r"\b4, 6\]", "5, 6]")),
    "products without weights": ("V0102", layer(weights=(0, 0))),
    "more products than anything has": ("V0102", layer(macs=2**60)),
    "groups that don't divide the weights": ("V0102", layer(group=(1000, 1))),
    "a division that ends at no layer": ("V0102", lambda p: replace(p, division=Division(2, 2, until="nowhere"))),
    "a division into one part": ("V0102", lambda p: replace(p, division=Division(1, 4))),
    "a division into parts without items": ("V0102", lambda p: replace(p, division=Division(2, 0))),
    "a division in no order": ("V0102", lambda p: replace(p, division=Division(2, 2, "any"))),
    "weights larger than any memory": ("V0102", layer(weights=(2**31, 2**31))),
    "an input that fills the memory": ("E0640", prologue(r"\nx = input", "\nbig = input : f32[2147483647]\nx = input")),
}


@each(list(REFUSED))
def test_what_lies_is_refused_when_it_is_read(name: str, tmp_path: Path) -> None:
    code, edit = REFUSED[name]
    (path := tmp_path / "p.tpub").write_bytes(encode(edit(program())))
    with pytest.raises((tpucc.ProgramError, tpucc.LimitError)) as caught:
        Runtime.load(path)
    assert code in {d.code for d in caught.value.diagnostics}
    assert run("run", path) in (3, 4)


def test_what_is_true_is_not(tmp_path: Path) -> None:
    (path := tmp_path / "p.tpub").write_bytes(encode(program()))
    assert run("run", path, "--check", "--quiet") == 0


def test_views_of_each_other_end(tmp_path: Path) -> None:
    """The epilogue gives a value the name that a step has for what it is made of: looking for its origin must not go round for ever."""
    text = (
        "weights random(seed=0)\nmodel m(x: f32[4, 4]):\n    weight w: f32[4, 4]\n    h = softmax(relu(x @ w))\n    y = relu(h @ w)\n"
        "    return y, reshape(h, [16])\n"
    )
    p: Program = tpucc.compile_source(text, target="tiny").program.value
    step = p.host_steps[0]
    views = "a = reshape(h, shape=(2, 8)) : f32[2, 8] @ 1:1-2\nb = reshape(a, shape=(16,)) : f32[16] @ 1:1-2\n\nreturn"
    graph = replaced(step.graph, r"\nreturn", views).rstrip() + ', b as "b"\n'
    views = '\nb = input : f32[16] @ 1:1-2\na = reshape(b, shape=(2, 8)) : f32[2, 8] @ 1:1-2\n\nreturn a as "a"'
    ending = replaced(p.epilogue, r"\nreturn.*", views)
    lying = replace(p, host_steps=(replace(step, graph=graph), *p.host_steps[1:]), epilogue=ending)
    (path := tmp_path / "p.tpub").write_bytes(encode(lying))
    assert run("run", path, "--quantized-output", tmp_path / "q.npz", "--quiet") in (0, 3)


def test_a_file_is_read_with_no_more_memory_than_it_has_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reserves as much as `read` is asked for: the four gigabytes that a file may have are more than many a machine lends."""
    import tracemalloc

    from tpucc.files import CHUNK, read_file

    (path := tmp_path / "f").write_bytes(b"abc" * 1000)
    tracemalloc.start()
    try:
        assert read_file(path) == b"abc" * 1000
        assert tracemalloc.get_traced_memory()[1] < 2 * CHUNK
    finally:
        tracemalloc.stop()
    assert read_file(path, most=3000) == b"abc" * 1000
    with pytest.raises(tpucc.LimitError, match="E0611"):
        read_file(path, most=2999)
