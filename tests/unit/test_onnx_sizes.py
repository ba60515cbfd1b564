"""Large files: what is read and written of a node takes about as long however many there are, and how many there may be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import SOAK, one_of
from tests.support.onnx_files import model_of
from tpucc.diagnostics import ProgramError
from tpucc.interop.onnx.reading.files import bounds

onnx = pytest.importorskip("onnx")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
SIZE = 250
Made = tuple[Sequence[Any], Sequence[Any], dict[str, list[int]]]
"""Nodes, constants, and the shapes of inputs."""


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{index}" for index in range(count)]


def drawn(letter: str, count: int, *shape: int) -> list[Any]:
    random = np.random.default_rng(count)
    return [array(random.normal(0, 0.5, shape).astype(np.float32), name) for name in names(letter, count)]


def parts(count: int) -> Made:
    split = node("Split", ["x"], names("p", count), axis=1, num_outputs=count)
    return [split, node("Concat", names("p", count), ["y"], axis=1)], [], {"x": [2, count]}


def fan(count: int) -> Made:
    products = [node("Mul", ["x", weight], [part]) for weight, part in zip(names("w", count), names("p", count), strict=True)]
    return [*products, node("Concat", names("p", count), ["y"], axis=1)], drawn("w", count, 8), {"x": [2, 8]}


def inputs(count: int) -> Made:
    return [node("Concat", names("x", count), ["y"], axis=1)], [], {name: [2, 3] for name in names("x", count)}


def constants(count: int) -> Made:
    return [node("Concat", ["x", *names("w", count)], ["y"], axis=1)], drawn("w", count, 2, 3), {"x": [2, 3]}


def matrices(count: int) -> Made:
    values = ["x", *names("h", count - 1), "y"]
    layers = [node("MatMul", [values[index], f"onnx::MatMul_{index}"], [values[index + 1]]) for index in range(count)]
    return layers, drawn("onnx::MatMul_", count, 3, 3), {"x": [2, 3]}


def residuals(count: int) -> Made:
    values = ["x", *names("h", count - 1), "y"]
    pairs = [(node("Tanh", [values[i]], [f"t{i}"]), node("Add", [values[i], f"t{i}"], [values[i + 1]])) for i in range(count)]
    return [each for pair in pairs for each in pair], [], {"x": [2, 3]}


def calls_of(function: Callable[[], object]) -> int:
    """How many functions written in Python are called: a measure of time that is the same each time."""
    count = 0

    def profile(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.long
@pytest.mark.parametrize("make", one_of(3, [parts, fan, inputs, residuals, constants, matrices], SOAK))
def test_twice_as_many_nodes_or_results_take_about_twice_as_long(make: Callable[[int], Made], tmp_path: Path) -> None:
    def taken(count: int) -> int:
        nodes, constants, shapes = make(count)
        onnx.save(model_of(nodes, constants, shapes), tmp_path / "net.onnx")
        return calls_of(lambda: tpucc.import_onnx(tmp_path / "net.onnx"))

    taken(4)  # what is made once
    few, many = taken(SIZE), taken(2 * SIZE)
    assert many < 2.1 * few, (few, many)


def test_results_of_nodes_are_bounded_as_nodes_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_NODES", 10)
    nodes, constants, shapes = parts(9)
    onnx.save(model_of(nodes, constants, shapes), tmp_path / "ten.onnx")
    assert tpucc.import_onnx(tmp_path / "ten.onnx").weights == {}
    nodes, constants, shapes = parts(10)
    onnx.save(model_of(nodes, constants, shapes), tmp_path / "eleven.onnx")
    with pytest.raises(ProgramError, match=r"E1003: eleven\.onnx: it has more than 10 results of nodes"):
        tpucc.import_onnx(tmp_path / "eleven.onnx")
