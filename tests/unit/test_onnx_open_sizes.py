"""Sizes that a file leaves open, as params of the source: their multiples are so for all their values; else they are numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tpucc.diagnostics import Source
from tpucc.ir import Graph
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse

onnx = pytest.importorskip("onnx")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array


def drawn(name: str, *shape: int) -> Any:
    return array(np.random.default_rng(0).normal(0, 0.5, shape).astype(np.float32), name)


def whole(name: str, *numbers: int) -> Any:
    return array(np.array(numbers, np.int64), name)


def graph_of(source: str, params: Mapping[str, int]) -> Graph:
    """The graph of a text, with other values of its params."""
    text = Source("m.tpu", source)
    return elaborate(parse(text), text, {name: str(value) for name, value in params.items()}).graph


def shifted(stride: int, least: int) -> Any:
    """A convolution of x [batch, length] that takes a window of 2 · stride values, and the places −`least` to −4 of x, added to it."""
    nodes = [
        node("Unsqueeze", ["x", "one"], ["u"]),
        node("Conv", ["u", "w"], ["c"], strides=[stride]),
        node("Conv", ["c", "w3"], ["d"], pads=[1, 1]),
        node("Slice", ["x", "start", "stop", "one"], ["last"]),
        node("Unsqueeze", ["last", "one"], ["l"]),
        node("Add", ["d", "l"], ["y"]),
    ]
    constants = [drawn("w", 8, 1, 2 * stride), drawn("w3", 3, 8, 3), whole("one", 1), whole("start", -least), whole("stop", -4)]
    return model_of(nodes, constants, {"x": ("batch", "length")})


@each([(2, 640), (1, 640), (3, 640), (2, 647), (4, 655)])
def test_a_size_is_not_tied_to_the_batch_by_chance(batch: int, length: int, tmp_path: Path) -> None:
    onnx.save(shifted(128, 8), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": batch, "length": length}).source
    assert f"x[:, {length - 8}:{length - 4}]" in source
    assert f"leaves length open; this is the model for length = {length}" in source
    for other in (1, 2, 5):
        assert [each.type.shape for each in graph_of(source, {"batch": other}).inputs] == [(other, length)]


def test_two_sizes_and_their_product_are_told_apart(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", ["x", "rows"], ["r"]),
        node("MatMul", ["r", "w"], ["m"]),
        node("Shape", ["x"], ["sizes"]),
        node("Slice", ["sizes", "zero", "two"], ["first"]),
        node("Concat", ["first", "last"], ["wanted"], axis=0),
        node("Reshape", ["m", "wanted"], ["y"]),
    ]
    constants = [whole("rows", -1, 4), drawn("w", 4, 6), whole("zero", 0), whole("two", 2), whole("last", 2, 3)]
    onnx.save(model_of(nodes, constants, {"x": ("batch", "time", 4)}), tmp_path / "m.onnx")
    for batch, time in ((2, 7), (1, 4), (4, 4)):
        source = tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": batch, "time": time}).source
        assert f"param batch = {batch}\nparam time = {time}\n" in source
        assert "(batch, time, 2, 3)" in source
        for other in ({"batch": 5, "time": 3}, {"batch": 1, "time": 1}):
            graph = graph_of(source, other)
            assert graph[graph.outputs[0].node].type.shape == (other["batch"], other["time"], 2, 3)


def strided(kernel: int, stride: int, pad: int) -> Any:
    """A convolution of images [batch, 3, kernel, width], then a Reshape to [batch, its width, 2, 3]."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], strides=[stride, stride], pads=[0, pad, 0, pad]),
        node("Squeeze", ["c", "two"], ["s"]),
        node("Transpose", ["s"], ["t"], perm=[0, 2, 1]),
        node("Shape", ["t"], ["sizes"]),
        node("Gather", ["sizes", "index"], ["width"], axis=0),
        node("Concat", ["rest", "width", "parts"], ["wanted"], axis=0),
        node("Reshape", ["t", "wanted"], ["y"]),
    ]
    constants = [drawn("w", 6, 3, kernel, kernel), whole("two", 2), whole("index", 1), whole("rest", -1), whole("parts", 2, 3)]
    return model_of(nodes, constants, {"x": ("batch", 3, kernel, "width")})


@each([(8, 8, 0, 160), (8, 8, 0, 163), (5, 8, 0, 160), (9, 8, 1, 160)])
def test_a_size_is_a_number_where_others_follow_from_it_by_more_than_products(
    kernel: int, stride: int, pad: int, width: int, tmp_path: Path
) -> None:
    """(width − kernel + 2 pad) // stride + 1 of them."""
    onnx.save(strided(kernel, stride, pad), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": 2, "width": width}).source
    assert f"leaves width open; this is the model for width = {width}" in source
    assert "param batch = 2" in source
    assert "param width" not in source
    assert graph_of(source, {"batch": 7}).inputs[0].type.shape[0] == 7


def test_paddle_s_newer_name_of_a_size_is_that_of_a_batch(tmp_path: Path) -> None:
    onnx.save(model_of([node("Relu", ["x"], ["y"])], (), {"x": ("DynamicDimension.0", 3)}), tmp_path / "m.onnx")
    assert "param batch = 1\n" in tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": 1}).source


def levels() -> Any:
    """Images [batch, 1, height, 16] at an eighth, and at a sixteenth that is doubled, beside each other: multiples of 16 fit."""
    nodes = [
        node("MaxPool", ["x"], ["p8"], kernel_shape=[8, 8], strides=[8, 8]),
        node("MaxPool", ["x"], ["p16"], kernel_shape=[16, 16], strides=[16, 16]),
        node("Resize", ["p16", "", "scales"], ["r"], mode="nearest"),
        node("Concat", ["p8", "r"], ["y"], axis=1),
    ]
    return model_of(nodes, [array(np.array([1, 1, 2, 2], np.float32), "scales")], {"x": ("batch", 1, "height", 16)})


@each([104, 120])
def test_given_sizes_that_do_not_fit_are_said_to_be_the_reason(height: int, tmp_path: Path) -> None:
    """Also where the sizes that differ stay the same for a height that is a little larger."""
    onnx.save(levels(), tmp_path / "m.onnx")
    assert tpucc.import_onnx(tmp_path / "m.onnx", params={"height": 96}).source
    with pytest.raises(tpucc.CompileError, match=rf"E1007: .*, with batch = 8 and height = {height}\n.*other sizes, by -D, may fit"):
        tpucc.import_onnx(tmp_path / "m.onnx", params={"height": height})


def test_a_rank_that_follows_from_a_given_size_is_no_damage(tmp_path: Path) -> None:
    """Squeeze without axes drops those of size 1: of one frame the LSTM has a sequence."""
    nodes = [
        node("MaxPool", ["x"], ["p"], kernel_shape=[4], strides=[4]),
        node("Squeeze", ["p"], ["s"]),
        node("Unsqueeze", ["s", "one"], ["u"]),
        node("LSTM", ["u", "w", "r"], ["", "h"], hidden_size=5),
        node("Relu", ["h"], ["y"]),
    ]
    constants = [whole("one", 0), drawn("w", 1, 20, 3), drawn("r", 1, 20, 5)]
    onnx.save(model_of(nodes, constants, {"x": (2, 3, "length")}), tmp_path / "m.onnx")
    assert tpucc.import_onnx(tmp_path / "m.onnx", params={"length": 4}).source
    with pytest.raises(tpucc.CompileError, match=r"E1007: .*operands of the shapes \[1, 2, 3, 2\].*, with length = 8\n"):
        tpucc.import_onnx(tmp_path / "m.onnx", params={"length": 8})


def rated() -> Any:
    """x [2, length] in frames of 8, if rate is 8, else of 5, each a product with weights; and a state [2, units] that may be added."""
    branches = [
        onnx.helper.make_graph(
            [node("Reshape", ["x", f"frames{size}"], [f"f{size}"]), node("MatMul", [f"f{size}", f"w{size}"], [f"out{size}"])],
            f"of_{size}",
            [],
            [onnx.helper.make_tensor_value_info(f"out{size}", onnx.TensorProto.FLOAT, None)],
            [whole(f"frames{size}", 2, size), drawn(f"w{size}", size, 4)],
        )
        for size in (8, 5)
    ]
    chosen = node("If", ["c"], ["o"], then_branch=branches[0], else_branch=branches[1])
    nodes = [node("Equal", ["rate", "eight"], ["c"]), chosen, node("Add", ["o", "state"], ["y"])]
    model = model_of(nodes, [array(np.array(8), "eight")], {"x": (2, "length"), "state": (2, "units")})
    model.graph.input.append(onnx.helper.make_tensor_value_info("rate", onnx.TensorProto.INT64, []))
    return model


@each(
    [
        ({"length": 8}, "E1008: .*leaves the size units open"),
        ({"length": 8, "units": 4}, "E1007: .*condition is computed.*-D rate=…"),
        (
            {"rate": 9, "length": 8, "units": 4},
            r"E1007: .*\[2, 8\] and \[2\] with \[2, 5\] don't fit .*, with rate = 9, length = 8 and units = 4\n",
        ),
    ]
)
def test_a_size_is_asked_for_and_then_the_input_that_decides(given: dict[str, int], says: str, tmp_path: Path) -> None:
    onnx.save(rated(), tmp_path / "m.onnx")
    with pytest.raises(tpucc.Error) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx", params=given)
    assert re.search(says, str(raised.value), re.DOTALL), str(raised.value)


def test_the_second_size_of_a_state_is_the_batch_where_another_input_has_one_first(tmp_path: Path) -> None:
    """As of Silero's network, whose sizes have no names: a state is [layers, batch, units]."""
    nodes = [node("ReduceSum", ["state", "first"], ["s"], keepdims=0), node("Add", ["x", "s"], ["y"])]
    onnx.save(model_of(nodes, [whole("first", 0)], {"x": (None, None), "state": (2, None, 5)}), tmp_path / "m.onnx")
    with pytest.raises(tpucc.UsageError, match="leaves the size x_size1 open"):
        tpucc.import_onnx(tmp_path / "m.onnx")
    assert "state: f32[2, batch, 5]" in tpucc.import_onnx(tmp_path / "m.onnx", params={"x_size1": 5}).source


def test_a_network_of_one_item_asks_for_its_other_sizes(tmp_path: Path) -> None:
    nodes = [node("ReduceSum", ["x", "last"], ["s"], keepdims=0), node("Reshape", ["s", "one"], ["y"])]
    onnx.save(model_of(nodes, [whole("last", 1), whole("one", 1)], {"x": ("batch", "frames")}), tmp_path / "m.onnx")
    with pytest.raises(tpucc.UsageError, match="leaves the size frames open"):
        tpucc.import_onnx(tmp_path / "m.onnx")
    assert tpucc.import_onnx(tmp_path / "m.onnx", params={"frames": 4}).source
