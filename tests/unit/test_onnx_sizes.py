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
from tpucc.interop.decompile import families, repeats
from tpucc.interop.decompile.variables import Numbers
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


@pytest.mark.parametrize("make", one_of(3, [parts, fan, inputs, residuals, constants, matrices], SOAK))
@pytest.mark.parametrize("longest", [families.MOST, 3])
def test_twice_as_many_nodes_or_results_take_about_twice_as_long(
    make: Callable[[int], Made], longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lists of up to three values each value has a name of its own, as where there are more than 1,000."""
    monkeypatch.setattr(families, "MOST", longest)

    def taken(count: int) -> int:
        nodes, constants, shapes = make(count)
        onnx.save(model_of(nodes, constants, shapes), tmp_path / "net.onnx")
        return calls_of(lambda: tpucc.import_onnx(tmp_path / "net.onnx"))

    taken(4)  # what is made once
    few, many = taken(SIZE), taken(2 * SIZE)
    assert many < 2.05 * few, (few, many)


def test_results_of_nodes_are_bounded_as_nodes_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_NODES", 10)
    nodes, constants, shapes = parts(9)
    onnx.save(model_of(nodes, constants, shapes), tmp_path / "ten.onnx")
    assert tpucc.import_onnx(tmp_path / "ten.onnx").weights == {}
    nodes, constants, shapes = parts(10)
    onnx.save(model_of(nodes, constants, shapes), tmp_path / "eleven.onnx")
    with pytest.raises(ProgramError, match=r"E1003: eleven\.onnx: it has more than 10 results of nodes"):
        tpucc.import_onnx(tmp_path / "eleven.onnx")


def test_the_search_for_functions_ends_in_large_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of layers, in no order."""
    values = ["x", *names("h", 39), "y"]
    functions = np.random.default_rng(1).choice(["Tanh", "Sigmoid"], 40)
    nodes = []
    for index, function in enumerate(functions):
        nodes += [node("MatMul", [values[index], f"w{index}"], [f"a{index}"]), node("Add", [f"a{index}", f"b{index}"], [f"s{index}"])]
        nodes += [node(function, [f"s{index}"], [values[index + 1]])]
    onnx.save(model_of(nodes, [*drawn("w", 40, 4, 4), *drawn("b", 40, 4)]), tmp_path / "net.onnx")
    assert tpucc.import_onnx(tmp_path / "net.onnx").source.count("def ") > 1
    monkeypatch.setattr(repeats, "MOST_STEPS", 0)
    assert tpucc.import_onnx(tmp_path / "net.onnx").source.count("def ") == 1


def test_a_name_gets_the_first_number_that_is_free() -> None:
    """`h` and `h2` are read until place 5, and `h3` is never free."""
    ends = {"h": 5.0, "h2": 5.0, "h3": float("inf")}
    numbers = Numbers("h")

    def asked(place: int) -> str:
        name = numbers.free(place, lambda name: ends.get(name, -1.0), lambda name: ends.get(name, -1.0) > place)
        ends[name] = place + 2.0
        return name

    assert [asked(place) for place in (0, 1, 4, 5, 5, 8)] == ["h4", "h5", "h4", "h", "h2", "h"]
