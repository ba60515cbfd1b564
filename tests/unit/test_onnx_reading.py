"""ONNX files in: the float reference of what is read equals ONNX Runtime, images have their channels last, and no transpose is left."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.cases import each, one_of

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import pytest

import tpucc
from tests.support.command_line import run
from tests.support.onnx_files import model_of, quantised_network
from tests.support.onnxruntime import session as session_of
from tpucc.cli.main import main
from tpucc.data.weights import bind_arrays
from tpucc.explain.noise import Noise
from tpucc.interop.onnx.reading import Imported
from tpucc.interop.onnx.reading.files.decoding import decoded
from tpucc.interop.onnx.reading.network_of import Built
from tpucc.interop.onnx.reading.operators import gather_elements
from tpucc.interop.onnx.reading.operators.rows import ROWS
from tpucc.interop.sources import open_sizes
from tpucc.ir import Graph
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.numerics import AnyArray, dequantise, quantise
from tpucc.ops.evaluate import evaluate

onnx = pytest.importorskip("onnx")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
DRAW = np.random.default_rng(0)
START = DRAW.bit_generator.state


@pytest.fixture(autouse=True)
def draws() -> None:
    """Each test draws the same, whatever ran before. Of a quantised file ONNX Runtime's floats round one value in 70,000 to the other side
    of a tie than its integers would, so that what is drawn here decides whether all are equal."""
    DRAW.bit_generator.state = START


def drawn(name: str, *shape: int) -> Any:
    return array(DRAW.normal(0, 0.5, shape).astype(np.float32), name)


def whole(name: str, *numbers: int) -> Any:
    return array(np.array(numbers, np.int64), name)


def built(model: Any, layout: Any = "nhwc", **sizes: int) -> Built:
    return Imported("m", "m.onnx", decoded(model.SerializeToString(), None), layout).built(sizes)


def compared(model: Any, layout: Any = "nhwc", **sizes: int) -> Graph:
    """The graph of a model, whose values on random inputs are those of ONNX Runtime."""
    made = built(model, layout, **sizes)
    session = session_of(model)
    given: dict[str, AnyArray] = {}
    ours: dict[str, AnyArray] = {}
    for wanted, value in zip(session.get_inputs(), made.graph.inputs, strict=True):
        order = made.layouts.get(value.name, tuple(range(value.type.rank)))
        ours[value.name] = DRAW.normal(size=value.type.shape).astype(np.float32)
        given[wanted.name] = ours[value.name].transpose(np.argsort(order))
    found = evaluate(bind_arrays(made.graph, made.weights), ours)
    for output, expected in zip(made.graph.outputs, session.run(None, given), strict=True):
        order = made.layouts.get(output.name, tuple(range(expected.ndim)))
        result = found[output.node].transpose(np.argsort(order))
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    return made.graph


def ops(graph: Graph) -> list[str]:
    return [found.op for found in graph if found.op not in ("input", "weight", "constant")]


IMAGE = {"x": (2, 4, 7, 9)}


@each(
    [
        (
            [node("Conv", ["x", "w", "b"], ["y"], pads=[1, 0, 2, 1], strides=[2, 1])],
            [drawn("w", 6, 4, 3, 2), drawn("b", 6)],
            ["conv2d", "add"],
        ),
        ([node("Conv", ["x", "w"], ["y"], group=4, dilations=[2, 2])], [drawn("w", 8, 1, 3, 3)], ["conv2d"]),
        ([node("Conv", ["x", "w"], ["y"], auto_pad="SAME_LOWER", strides=[2, 2])], [drawn("w", 3, 4, 2, 3)], ["conv2d"]),
        (
            [node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[2, 3], output_padding=[1, 2])],
            [drawn("w", 4, 5, 3, 2), drawn("b", 5)],
            None,
        ),
        ([node("ConvTranspose", ["x", "w"], ["y"], group=2, dilations=[2, 1], pads=[1, 0, 1, 1])], [drawn("w", 4, 3, 3, 2)], None),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 3], output_shape=[20, 26])], [drawn("w", 4, 2, 2, 2)], None),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 4], output_shape=[21, 36])], [drawn("w", 4, 2, 1, 2)], None),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3], auto_pad="SAME_UPPER")], [drawn("w", 4, 2, 1, 1)], None),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[4, 2], auto_pad="SAME_LOWER")], [drawn("w", 4, 2, 3, 1)], None),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[4, 2], auto_pad="SAME_LOWER")], [drawn("w", 4, 2, 1, 3)], None),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1)], [], ["max_pool"]),
        ([node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)], [], ["avg_pool"]),
        ([node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_UPPER")], [], ["avg_pool"]),
        ([node("GlobalAveragePool", ["x"], ["a"]), node("Flatten", ["a"], ["y"])], [], ["global_avg_pool"]),
        ([node("ReduceMean", ["x", "n"], ["y"], keepdims=0)], [whole("n", 2, 3)], ["global_avg_pool"]),
        ([node("ReduceProd", ["x", "n"], ["y"], keepdims=0)], [whole("n", 1)], None),
        ([node("ReduceProd", ["x", "n"], ["y"])], [whole("n", 0, 1)], None),
        ([node("GlobalMaxPool", ["x"], ["y"])], [], ["max", "reshape"]),
        ([node("LRN", ["x"], ["y"], size=3)], [], ["lrn"]),
        ([node("InstanceNormalization", ["x", "s", "t"], ["y"])], [drawn("s", 4), drawn("t", 4)], None),
        ([node("GroupNormalization", ["x", "s", "t"], ["y"], num_groups=2)], [drawn("s", 4), drawn("t", 4)], None),
        ([node("Flatten", ["x"], ["a"]), node("Gemm", ["a", "w", "b"], ["y"], transB=1)], [drawn("w", 5, 252), drawn("b", 5)], None),
        ([node("Add", ["x", "c"], ["y"])], [drawn("c", 4, 1, 1)], ["add"]),
        ([node("Mul", ["x", "c"], ["y"])], [drawn("c", 7, 9)], ["mul"]),
        ([node("Concat", ["x", "x"], ["y"], axis=1)], [], ["concat"]),
        ([node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Sub", ["b", "a"], ["y"])], [], ["slice", "slice", "sub"]),
        ([node("Pad", ["x", "p"], ["y"])], [whole("p", 0, 0, 1, 2, 0, 0, 0, 3)], ["pad"]),
        ([node("Pad", ["x", "p"], ["y"], mode="reflect")], [whole("p", 0, 0, 2, 1, 0, 0, 1, 0)], None),
        ([node("Pad", ["x", "p", "v"], ["y"])], [whole("p", 0, 1, 0, 0, 0, 0, 0, 1), array(np.float32(2.5), "v")], None),
        (
            [node("Resize", ["x", "", "s"], ["y"], coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
            [array(np.array([1, 1, 2, 3], np.float32), "s")],
            ["resize"],
        ),
        ([node("Resize", ["x", "", "", "n"], ["y"], mode="linear")], [whole("n", 2, 4, 5, 12)], ["resize"]),
        (
            [node("Resize", ["x", "", "", "n"], ["y"], mode="linear", coordinate_transformation_mode="align_corners")],
            [whole("n", 2, 4, 5, 12)],
            None,
        ),
        ([node("Resize", ["x", "", "", "n"], ["y"], mode="cubic")], [whole("n", 2, 4, 14, 6)], None),
        ([node("DepthToSpace", ["x"], ["y"], blocksize=2)], [], ["reshape", "transpose", "reshape"]),
        ([node("Softmax", ["x"], ["y"], axis=1)], [], ["softmax"]),
        (
            [node("ArgMax", ["x"], ["a"], axis=1, keepdims=0), node("Gather", ["t", "a"], ["y"])],
            [drawn("t", 4, 3)],
            ["argmax", "embedding"],
        ),
        (
            [node("BatchNormalization", ["x", *"stmv"], ["y"])],
            [drawn("s", 4), drawn("t", 4), drawn("m", 4), array(np.full(4, 0.5, np.float32), "v")],
            ["batch_norm"],
        ),
        ([node("Sigmoid", ["x"], ["a"]), node("Mul", ["a", "x"], ["y"])], [], ["silu"]),
        ([node("HardSigmoid", ["x"], ["a"], alpha=1 / 6), node("Mul", ["a", "x"], ["y"])], [], ["hard_swish"]),
        ([node("PRelu", ["x", "s"], ["y"])], [drawn("s", 4, 1, 1)], None),
    ]
)
def test_operators_on_images(nodes: Sequence[Any], constants: Sequence[Any], wanted: list[str] | None) -> None:
    """A convolution before them makes their input an image with its channels last."""
    first = node("Conv", ["i", "k"], ["x"])
    model = model_of([first, *nodes], [array(DRAW.normal(size=(4, 3, 1, 1)).astype(np.float32), "k"), *constants], {"i": (2, 3, 7, 9)})
    graph = compared(model)
    assert graph.inputs[0].type.shape == (2, 7, 9, 3)
    if wanted is not None:
        assert ops(graph)[1:] == wanted
    compared(model, "nchw")


@each(
    [
        ([node("DepthToSpace", ["x"], ["y"], blocksize=2)], [], (12, 16)),
        ([node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD")], [], (12, 16)),
    ]
)
def test_images_have_their_channels_last_where_channels_become_pixels(
    nodes: list[Any], constants: list[Any], pixels: tuple[int, int]
) -> None:
    """As results, alone and beside an input that only joins them, also with a single channel; and as inputs."""
    for channels in (4, 8):
        kernel = array(DRAW.normal(size=(channels, 3, 1, 1)).astype(np.float32), "k")
        before, after = node("Conv", ["i", "k"], ["x"]), node("Add", ["y", "j"], ["z"])
        graph = compared(model_of([before, *nodes, after], [kernel, *constants], {"i": (2, 3, 6, 8), "j": (2, 1, *pixels)}, ("y", "z")))
        assert [value.type.shape for value in graph.inputs] == [(2, 6, 8, 3), (2, *pixels, 1)]
        assert {graph[output.node].type.shape[1:3] for output in graph.outputs} == {pixels}
    made = built(
        model_of([*nodes, node("Relu", ["y"], ["r"]), node("GlobalMaxPool", ["r"], ["g"])], constants, {"x": (2, 8, 6, 8)}, ("g",))
    )
    assert made.graph.inputs[0].type.shape == (2, 6, 8, 8)


@each(
    [
        (node("Resize", ["x", "", "", "n"], ["y"], mode="linear"), [whole("n", 2, 4, 7, 9)]),
        (node("Resize", ["x", "", "", "n"], ["y"], mode="cubic", coordinate_transformation_mode="align_corners"), [whole("n", 2, 4, 7, 9)]),
        (node("Mul", ["x", "n"], ["y"]), [array(np.ones((4, 7, 9), np.float32), "ones_like")]),
        (node("Div", ["x", "n"], ["y"]), [array(np.ones((2, 1, 1, 9), np.float32), "ones_like")]),
    ]
)
def test_what_changes_nothing_is_left_out(step: Any, constants: list[Any]) -> None:
    """A resize to the size that is there, and whole constants of ones, as masks that aren't given are."""
    before = [node("Expand", ["one", "s"], ["n"])] if constants[0].name == "ones_like" else []
    given = [array(np.float32(1), "one"), whole("s", *constants[0].dims)] if before else constants
    assert [found.op for found in compared(model_of([*before, step], given, IMAGE), "nchw")] == ["input"]


def test_the_first_comment_says_which_values_of_four_axes_are_no_images(tmp_path: Path) -> None:
    nodes = [node("Conv", ["i", "k"], ["y"]), node("MatMul", ["a", "a"], ["s"])]
    onnx.save(model_of(nodes, [drawn("k", 4, 3, 1, 1)], {"i": (2, 3, 6, 8), "a": (2, 3, 5, 5)}, ("y", "s")), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx").source
    assert "in the file: i and y." in source.replace("\n# ", " ")
    assert "The axes of a and s are in the file's order." in source.replace("\n# ", " ")


SEQUENCE = {"x": (3, 5, 6)}


@each(
    [
        ([node("Erf", ["x"], ["y"])], []),
        (
            [node("ArgMax", ["x"], ["i"], axis=2, keepdims=0), node("OneHot", ["i", "n", "v"], ["y"], axis=1)],
            [whole("n", 6), array(np.array([-1, 3], np.float32), "v")],
        ),
        (
            [
                *(node("ArgMax", ["x"], ["i"], axis=2, keepdims=0), node("Unsqueeze", ["i", "last"], ["j"])),
                *(node("Equal", ["all", "j"], ["m"]), node("Cast", ["m"], ["y"], to=1)),
            ],
            [whole("last", -1), whole("all", *range(6))],
        ),
        ([node("Softplus", ["x"], ["y"])], []),
        ([node("LogSoftmax", ["x"], ["y"], axis=1)], []),
        ([node("Selu", ["x"], ["y"])], []),
        ([node("Celu", ["x"], ["y"], alpha=0.7)], []),
        ([node("Pow", ["x", "p"], ["y"])], [array(np.float32(3), "p")]),
        ([node("Exp", ["x"], ["a"]), node("Pow", ["a", "p"], ["y"])], [array(np.float32(-1 / 3), "p")]),
        ([node("Pow", ["x", "p"], ["y"])], [array(np.full((2, 1, 5, 1), 2, np.float32), "p")]),
        (
            [node("ReduceMax", ["x", "last"], ["a"]), node("Pow", ["a", "p"], ["y"])],
            [whole("last", 2), array(np.full(4, 2, np.float32), "p")],
        ),
        ([node("Pow", ["p", "x"], ["y"])], [array(np.full((1, 1, 1, 1), 2, np.float32), "p")]),
        ([node("Clip", ["x", "", "h"], ["y"])], [array(np.float32(0.5), "h")]),
        ([node("Where", ["m", "x", "z"], ["y"])], [array(np.tri(6)[:5] > 0, "m"), array(np.float32(-9), "z")]),
        ([node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("MatMul", ["a", "w"], ["y"])], [drawn("w", 5, 4)]),
        ([node("Einsum", ["x", "w"], ["y"], equation="bij,kj->bki")], [drawn("w", 4, 6)]),
        ([node("Einsum", ["x"], ["y"], equation="bij->jb")], []),
        ([node("Einsum", ["x", "x", "w"], ["y"], equation="bij, bkj, ci -> bkc")], [drawn("w", 4, 5)]),
        ([node("Einsum", ["w", "x", "v"], ["y"], equation="wij,bij,bi->bj")], [drawn("w", 2, 5, 6), drawn("v", 3, 5)]),
        ([node("Einsum", ["x", "w"], ["y"], equation="...j,kj->...k")], [drawn("w", 4, 6)]),
        ([node("Einsum", ["x", "w"], ["y"], equation="...ij,...i")], [drawn("w", 1, 5)]),
        ([node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("MatMul", ["x", "a"], ["y"])], []),
        ([node("LayerNormalization", ["x", "g", "b"], ["y"])], [drawn("g", 6), drawn("b", 6)]),
        ([node("LayerNormalization", ["x", "g", "b"], ["y"])], [drawn("g", 5, 6), drawn("b", 6)]),
        ([node("LayerNormalization", ["x", "g"], ["y"], axis=1)], [drawn("g", 3, 1, 1)]),
        ([node("RMSNormalization", ["x", "g"], ["y"])], [drawn("g", 6)]),
        ([node("GatherND", ["x", "i"], ["y"])], [array(np.array([[1, -5], [0, 4]]), "i")]),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[7], strides=[4], ceil_mode=1)], []),
        ([node("Gather", ["x", "i"], ["y"], axis=1)], [whole("i", 4, 0, 0, 2)]),
        ([node("Slice", ["x", "s", "e", "a", "t"], ["y"])], [whole("s", -1), whole("e", -9), whole("a", 2), whole("t", -2)]),
        ([node("Slice", ["x", "s", "e", "a", "t"], ["y"])], [whole("s", -1), whole("e", -9), whole("a", 2), whole("t", -(2**63))]),
        ([node("ReduceL2", ["x", "a"], ["y"])], [whole("a", 0, 2)]),
        ([node("ReduceLogSumExp", ["x", "a"], ["y"], keepdims=0)], [whole("a", 1)]),
        ([node("Reshape", ["x", "n"], ["a"]), node("Transpose", ["a"], ["y"], perm=[2, 0, 3, 1])], [whole("n", 3, 5, 2, 3)]),
        ([node("Expand", ["x", "n"], ["y"])], [whole("n", 2, 1, 1, 6)]),
        ([node("Tile", ["x", "n"], ["y"])], [whole("n", 1, 2, 1)]),
        ([node("Trilu", ["x"], ["y"], upper=0)], []),
        ([node("Trilu", ["x", "k"], ["y"])], [array(np.array(-(2**62)), "k")]),
        ([node("Conv", ["x", "w"], ["y"], strides=[2], pads=[1, 0])], [drawn("w", 4, 5, 3)]),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[2], output_padding=[0], pads=[1, 1])], [drawn("w", 5, 3, 4)]),
        ([node("ConvTranspose", ["x", "w"], ["y"], strides=[2], output_padding=[1])], [drawn("w", 5, 3, 4)]),
        (
            [node("GreaterOrEqual", ["x", "z"], ["m"]), node("Not", ["m"], ["n"]), node("Where", ["n", "z", "x"], ["y"])],
            [array(np.float32(0.1), "z")],
        ),
    ]
)
def test_operators_on_sequences(nodes: Sequence[Any], constants: Sequence[Any]) -> None:
    compared(model_of(nodes, constants, SEQUENCE, opset=21 if nodes[0].op_type != "RMSNormalization" else 23))


def test_halves_of_shuffled_channels_are_cut_from_the_shuffled_image() -> None:
    """The shuffle is an operator of the device then, as in ShuffleNet; a half of its two axes had stopped it at the host for each block."""
    nodes = [
        node("Conv", ["x", "k"], ["h"]),
        node("Reshape", ["h", "apart"], ["a"]),
        node("Transpose", ["a"], ["b"], perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["b", "joined"], ["c"]),
        node("Split", ["c"], ["left", "right"], axis=1, num_outputs=2),
        node("Conv", ["right", "w"], ["r"]),
        node("Concat", ["left", "r"], ["y"], axis=1),
    ]
    constants = [drawn("k", 8, 3, 1, 1), drawn("w", 4, 4, 1, 1), whole("apart", 2, 2, 4, 3, 5), whole("joined", 2, 8, 3, 5)]
    model = model_of(nodes, constants, {"x": (2, 3, 3, 5)})
    compared(model)
    graph = built(model).graph
    (shuffled,) = [made for made in graph if made.op == "transpose"]
    (joined,) = graph.users[shuffled.name]
    assert joined.type.shape == (2, 3, 5, 8)
    assert [reader.op for reader in graph.users[joined.name]] == ["slice", "slice"]


MASKS: dict[str, tuple[str, list[Any], str]] = {
    "taken from 1": ("INT64", [node("Cast", ["m"], ["f"], to=1), node("Sub", ["one", "f"], ["g"]), node("Mul", ["g", "low"], ["h"])], "0"),
    "compared with 0": ("INT32", [node("Equal", ["m", "none"], ["e"]), node("Where", ["e", "low", "one"], ["h"])], "0"),
    "repeated": (
        "INT64",
        [node("Expand", ["m", "n"], ["e"]), node("Cast", ["e"], ["b"], to=9), node("Where", ["b", "one", "low"], ["h"])],
        "0",
    ),
    "booleans counted": ("BOOL", [node("Not", ["m"], ["b"]), node("Cast", ["b"], ["i"], to=7), node("Cast", ["i"], ["h"], to=1)], "0"),
    "numbers": ("INT64", [node("Mul", ["m", "m"], ["i"]), node("ReduceSum", ["i"], ["k"]), node("Cast", ["k"], ["h"], to=1)], ""),
    "a quotient of floats": ("INT32", [node("CastLike", ["m", "x"], ["f"]), node("Div", ["f", "low"], ["h"])], ""),
    "a known number like a computed one": (
        "INT32",
        [
            *(node("Cast", ["m"], ["f"], to=1), node("CastLike", ["none", "x"], ["z"])),
            *(node("Add", ["f", "z"], ["g"]), node("Mul", ["g", "low"], ["h"])),
        ],
        "",
    ),
    "small numbers": ("UINT8", [node("Cast", ["m"], ["h"], to=1)], "255"),
    "padding among rows": (
        "INT64",
        [node("Gather", ["t", "m"], ["g"]), node("Equal", ["m", "none"], ["e"]), node("Where", ["e", "low", "g"], ["h"])],
        "i32",
    ),
}


@each(list(MASKS))
def test_inputs_of_integers_that_are_masks_or_numbers(name: str) -> None:
    type_, nodes, limit = MASKS[name]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(type_))
    constants = [
        array(np.float32(1), "one"),
        array(np.float32(-1e4), "low"),
        drawn("t", 5),
        whole("n", 3, 4),
        array(np.zeros(1, dtype), "none"),
    ]
    read = {operand for made in nodes for operand in made.input}
    model = model_of([*nodes, node("Add", ["x", "h"], ["y"])], [c for c in constants if c.name in read], {"x": (3, 4), "m": (3, 4)})
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.DataType.Value(type_)
    made = built(model)
    given = {"x": DRAW.normal(size=(3, 4)).astype(np.float32), "m": DRAW.integers(0, 2, (3, 4)).astype(dtype)}
    (wanted,) = session_of(model).run(None, given)
    inputs = {value.name: value.type for value in made.graph.inputs}
    found = evaluate(bind_arrays(made.graph, made.weights), given | {"m": given["m"].astype(inputs["m"].numpy)})
    np.testing.assert_allclose(found[made.graph.outputs[0].node], wanted, rtol=1e-6)
    values = {"0": "0.0 and 1.0 as f32", "": "whole numbers as f32", "255": "whole numbers as f32"}
    assert [note for note in made.notes if note.startswith("m takes")] == [
        f"m takes {values[limit]} here, and {dtype} in the file" for _ in range(limit in values)
    ]
    assert (inputs["m"].range and inputs["m"].range.high) == {"0": 1.0, "": None, "255": 255.0, "i32": 4.0}[limit]


@each(
    [
        (
            [node("Div", ["m", "m"], ["i"]), node("Cast", ["i"], ["h"], to=1)],
            "Div: it rounds a result of integers (1 node: i)",
            "Cast to float",
        ),
        (
            [node("Gather", ["t", "m"], ["g"]), node("Neg", ["m"], ["f"]), node("Mul", ["g", "f"], ["h"])],
            "Neg: ",
            "a second one of float32",
        ),
        (
            [
                node("Gather", ["t", "m"], ["g"]),
                node("Mul", ["m", "m"], ["i"]),
                node("Max", ["i", "m"], ["j"]),
                node("Cast", ["j"], ["h"], to=1),
            ],
            "Max: the network computes its numbers",
            "a second one of float32",
        ),
    ]
)
def test_integers_that_are_computed_are_refused_with_what_to_do(nodes: list[Any], says: str, mend: str) -> None:
    model = model_of([*nodes, node("Add", ["x", "h"], ["y"])], [drawn("t", 5)], {"x": (3, 4), "m": (3, 4)})
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    with pytest.raises(tpucc.CompileError) as raised:
        built(model)
    assert [(d.code, d.message.startswith(f"m.onnx: {says}"), mend in d.help[0]) for d in raised.value.diagnostics] == [
        ("E1007", True, True)
    ]


@each(
    [
        [node("Cast", ["m"], ["f"], to=1), node("Mul", ["g", "f"], ["h"])],
        [node("Mul", ["m", "m"], ["i"]), node("Cast", ["i"], ["h"], to=1)],
        [node("Less", ["m", "two"], ["b"]), node("Not", ["b"], ["n"]), node("Where", ["n", "g", "x"], ["h"])],
    ]
)
def test_what_is_computed_of_numbers_of_rows_alone_is_a_table(nodes: list[Any]) -> None:
    model = model_of(
        [node("Gather", ["t", "m"], ["g"]), *nodes, node("Add", ["x", "h"], ["y"])],
        [drawn("t", 5), array(np.array(2), "two")][: 1 + (nodes[0].op_type == "Less")],
        {"x": (3, 4), "m": (3, 4)},
    )
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    given = {"x": DRAW.normal(size=(3, 4)).astype(np.float32), "m": DRAW.integers(0, 5, (3, 4))}
    (wanted,) = session_of(model.SerializeToString()).run(None, given)
    made = built(model)
    found = evaluate(bind_arrays(made.graph, made.weights), given | {"m": given["m"].astype(np.int32)})
    np.testing.assert_allclose(found[made.graph.outputs[0].node], wanted, rtol=1e-6)


def test_a_transposed_convolution_of_more_pixels_than_its_windows_reach_is_refused() -> None:
    model = model_of([node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3], output_shape=[14, 28])], [drawn("w", 4, 2, 1, 1)], IMAGE)
    with pytest.raises(tpucc.Error, match=r"E1007: m.onnx: ConvTranspose: an output_shape with 28 pixels(.|\n)*it has at most 27"):
        built(model)


def test_the_page_lists_the_operators_that_are_read() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "onnx.md").read_text("utf-8")
    listed = page.partition("Abs, Add, And")[1:]
    names = "".join(listed).partition(".\n\n")[0].replace("\n", " ").split(", ")
    read = [name for name, row in ROWS.items() if row.build is not None]
    assert sorted(names) == sorted(read)
    table = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "onnx.md").read_text("utf-8")
    assert sorted(op for line in table.split("\n") if " | " in line for op in line.split(" | ")[0][2:].split(", ")) == sorted(
        [*read, "operator"]
    )
    assert "| Pad | `mode` | pads, value, axes |" in table
    assert "padding to … places (an axis has at most 65,536 then)" in table


def test_the_parts_of_one_product_are_parts_of_its_columns_and_a_scale_is_beside_it() -> None:
    """As in attention: queries, keys and values of one product, whose columns a reshape has split."""
    nodes = [
        node("MatMul", ["x", "w"], ["z"]),
        node("Reshape", ["z", "shape"], ["split"]),
        node("Transpose", ["split"], ["turned"], perm=[2, 0, 3, 1, 4]),
        node("Gather", ["turned", "one"], ["k"]),
        node("Mul", ["k", "s"], ["y"]),
        node("Slice", ["turned", "start", "end"], ["rest"]),
        node("Transpose", ["rest"], ["v"], perm=[1, 0, 2, 3, 4]),
    ]
    constants = [drawn("w", 6, 24), whole("shape", 3, 5, 3, 2, 4), array(np.array(1), "one"), array(np.float32(0.5), "s")]
    model = model_of(nodes, [*constants, whole("start", 1), whole("end", 3)], SEQUENCE, ["y", "v"])
    graph = compared(model)
    assert [graph[one.operands[0]].op for one in graph if one.op in ("slice", "mul")] == ["matmul", "slice", "matmul"]


def test_an_exponent_that_an_exporter_has_rounded_is_the_root_that_is_meant() -> None:
    """`pairwise_distance` by PyTorch's older exporter."""
    nodes = [node("Abs", ["x"], ["a"]), node("Pow", ["a", "p"], ["y"])]
    assert ops(compared(model_of(nodes, [array(np.float32(0.49999976), "p")], SEQUENCE))) == ["abs", "sqrt"]


def gelu(x: str, y: str) -> list[Any]:
    steps = (("Div", [x, "root"], "d"), ("Erf", ["d"], "e"), ("Add", ["e", "one"], "s"), ("Mul", [x, "s"], "p"), ("Mul", ["p", "half"], y))
    return [node(op, inputs, [output]) for op, inputs, output in steps]


def gelu_by_tanh(x: str, y: str) -> list[Any]:
    steps = (
        ("Mul", [x, x], "q"),
        ("Mul", ["q", x], "c"),
        ("Mul", ["c", "share"], "m"),
        ("Add", [x, "m"], "a"),
        ("Mul", ["a", "factor"], "f"),
        ("Tanh", ["f"], "t"),
        ("Add", ["t", "one"], "s"),
        ("Mul", [x, "s"], "p"),
        ("Mul", ["p", "half"], y),
    )
    return [node(op, inputs, [output]) for op, inputs, output in steps]


def test_a_gelu_and_a_layer_norm_that_were_taken_apart() -> None:
    numbers = {"root": 2**0.5, "one": 1.0, "half": 0.5, "two": 2.0, "eps": 1e-5}
    constants = [array(np.float32(value), name) for name, value in numbers.items()]
    assert ops(compared(model_of(gelu("x", "y"), constants, SEQUENCE))) == ["gelu"]
    steps = (
        ("Sub", ["x", "mean"], "d"),
        ("Pow", ["d", "two"], "q"),
        ("ReduceMean", ["q", "last"], "v"),
        ("Add", ["v", "eps"], "a"),
        ("Sqrt", ["a"], "r"),
        ("Div", ["d", "r"], "n"),
        ("Mul", ["n", "g"], "m"),
        ("Add", ["m", "b"], "y"),
    )
    nodes = [node("ReduceMean", ["x", "last"], ["mean"]), *(node(op, inputs, [output]) for op, inputs, output in steps)]
    constants += [whole("last", -1), drawn("g", 6), drawn("b", 6)]
    assert ops(compared(model_of(nodes, constants, SEQUENCE))) == ["layer_norm"]


@each(
    {
        "same rows": (np.broadcast_to([2, 0, -1], (2, 3, 4, 3)), 3, 2**24),
        "of one axis": (np.broadcast_to((np.arange(4)[:, None] - np.arange(3)) % 5, (2, 3, 4, 3)), 3, 2**24),
        "of two axes": (np.broadcast_to(np.arange(24).reshape(2, 1, 4, 3) % 5, (2, 3, 4, 3)), -1, 2**24),
        "along the first": (np.arange(36).reshape(1, 3, 4, 3) % 2, 0, 2**24),
        "of fewer rows": (np.arange(4).reshape(1, 2, 2, 1) % 5, 3, 2**24),
        "rows apart": (np.broadcast_to((np.arange(4)[:, None] - np.arange(3)) % 5, (2, 3, 4, 3)), 3, 200),
    }
)
def test_fixed_places_that_are_others_in_each_row(places: AnyArray, axis: int, most: int) -> None:
    nodes = [node("GatherElements", ["x", "i"], ["y"], axis=axis)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather_elements, "MOST_PICKS", most)
        compared(model_of(nodes, [array(np.ascontiguousarray(places), "i")], {"x": (2, 3, 4, 5)}), "nchw")


@each(
    {
        "same rows": (np.broadcast_to([2, 0, -1], (2, 3, 4, 3)), 3),
        "others in each row": (np.broadcast_to((np.arange(4)[:, None] - np.arange(3)) % 5, (2, 3, 4, 3)), 3),
        "along the first": (np.arange(60).reshape(1, 3, 4, 5) % 2, 0),
        "one place twice": (np.broadcast_to([[[2]], [[2]], [[0]]], (2, 3, 4, 5)), 1),
    }
)
def test_fixed_places_that_are_set(places: AnyArray, axis: int) -> None:
    shape, constants = (2, 3, 4, 5), [array(np.ascontiguousarray(places), "i")]
    for op, opset in (("ScatterElements", 21), ("Scatter", 10)):
        nodes = [node(op, ["x", "i", "new"], ["y"], axis=axis)]
        compared(model_of(nodes, constants, {"x": shape, "new": places.shape}, opset=opset), "nchw")
        compared(model_of(nodes, [*constants, drawn("new", *places.shape)], {"x": shape}, opset=opset), "nchw")
    known = [*constants, drawn("old", *shape), drawn("new", *places.shape)]
    compared(
        model_of([node("ScatterElements", ["old", "i", "new"], ["z"], axis=axis), node("Add", ["x", "z"], ["y"])], known, {"x": shape})
    )


@each(
    [
        ({"reduction": "add"}, [[0], [1]], 4, "the reduction add"),
        ({}, [[0]], 4, r"places \[1, 1\] of \[2, 4\]"),
        ({}, [[4], [0]], 4, r"\[2, 1\] with \[\[4\], \[0\]\] and"),
        ({}, [[0], [0]], 2**24, "a constant of 33,554,432 values is computed"),
    ]
)
def test_places_that_are_set_otherwise_are_refused(more: dict[str, str], places: list[list[int]], size: int, says: str) -> None:
    constants = [array(np.array(places), "i"), drawn("new", len(places), 1)]
    with pytest.raises(tpucc.Error, match=says):
        built(model_of([node("ScatterElements", ["x", "i", "new"], ["y"], axis=1, **more)], constants, {"x": (2, size)}))


WRAPPED = [("Less", ["i", "zero"], ["l"]), ("Add", ["i", "n"], ["a"]), ("Where", ["l", "a", "i"], ["w"])]


@each({"cast": ([], "i"), "reshaped": ([("Flatten", ["i"], ["f"])], "f"), "negative ones wrapped": (WRAPPED, "w")})
def test_floats_that_become_numbers_of_rows_are_integers(steps: list[tuple[str, list[str], list[str]]], rows: str) -> None:
    """As tf2onnx writes a Keras Embedding behind an Input without a type."""
    nodes = [node("Cast", ["x"], ["i"], to=6), *(node(*step) for step in steps), node("Gather", ["table", rows], ["y"])]
    numbers = [array(np.array(number, np.int32), name) for name, number in (("zero", 0), ("n", 5))] if rows == "w" else []
    model = model_of(nodes, [drawn("table", 5, 3), *numbers])
    made, x = built(model), DRAW.integers(0, 5, (2, 4)).astype(np.int32)
    assert str(made.graph.inputs[0].type).startswith("i32[2, 4] in [0")
    assert "x takes numbers of rows as i32 here, and float32 in the file" in made.notes
    given = {"x": x.astype(np.float32)}
    (wanted,) = session_of(model.SerializeToString()).run(None, given)
    assert np.array_equal(evaluate(bind_arrays(made.graph, made.weights), {"x": x})[made.graph.outputs[0].node], wanted)


def test_fixed_places_of_integers_of_a_quantised_file() -> None:
    steps = [
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("GatherElements", ["q", "i"], ["g"]),
        ("DequantizeLinear", ["g", "s", "z"], ["y"]),
    ]
    nodes = [node(*step, **({"axis": 1} if step[0] == "GatherElements" else {})) for step in steps]
    numbers = [array(np.float32(0.02), "s"), array(np.uint8(3), "z"), array(np.array([[0, 2, 1, 3], [3, 1, 0, 0]]), "i")]
    assert "quantize" in ops(compared(model_of(nodes, numbers)))


@each([(1, 2, 2, 0), (3, 5, 3, 0), (2, 5, 4, 1)])
def test_a_maximum_pool_has_a_window_where_less_than_a_stride_is_missing(height: int, size: int, stride: int, pad: int) -> None:
    """ONNX Runtime has one over the edge, and PaddleOCR's classifier of low images needs it."""
    nodes = [node("MaxPool", ["x"], ["y"], kernel_shape=[size, 2], strides=[stride, 2], pads=[pad, 0, pad, 0])]
    assert ops(compared(model_of(nodes, [], {"x": (2, 3, height, 6)}))) == ["max_pool"]


@each({"20": (20.0, []), "30": (30.0, []), "10": (10.0, ["greater", "where"])})
def test_a_softplus_that_was_taken_apart(limit: float, left: list[str]) -> None:
    """From 17 on it is x itself in float32, so that the choice of x there says nothing new."""
    nodes = [node("Greater", ["x", "c"], ["g"]), node("Softplus", ["x"], ["s"]), node("Where", ["g", "x", "s"], ["y"])]
    plain = ops(compared(model_of(nodes[1:2], outputs=["s"])))
    assert sorted(ops(compared(model_of(nodes, [array(np.float32(limit), "c")])))) == sorted([*plain, *left])


@each(
    {
        "einsum": ([node("Einsum", ["a", "b"], ["e"], equation="i,d->id"), node("Sin", ["e"], ["k"])], [drawn("a", 2), drawn("b", 4)]),
        "standardised": (
            [node("BatchNormalization", ["a", "s", "b", "b", "s"], ["k", "m", "v"], training_mode=1)],
            [drawn("a", 2, 4), array(np.ones(4, np.float32), "s"), drawn("b", 4)],
        ),
        "resized": ([node("Resize", ["a", "", "", "n"], ["k"], mode="linear")], [drawn("a", 2, 3), whole("n", 2, 4)]),
        "place": (
            [node("ArgMax", ["a"], ["p"], axis=0, keepdims=0), node("CastLike", ["p", "b"], ["f"]), node("Sin", ["f"], ["k"])],
            [drawn("a", 3, 4), drawn("b", 1)],
        ),
        "condition": (
            [
                node("ReduceL1", ["a", "i"], ["l"]),
                node("Less", ["l", "a"], ["c"]),
                node("Not", ["c"], ["d"]),
                node("Where", ["d", "a", "l"], ["k"]),
            ],
            [drawn("a", 2, 4), whole("i", 1)],
        ),
    }
)
def test_what_has_a_rule_is_computed_of_constants_too(nodes: list[Any], constants: list[Any]) -> None:
    graph = compared(model_of([*nodes, node("Add", ["x", "k"], ["y"])], constants))
    assert [found.op for found in graph] == ["input", "weight", "add"]


def test_results_of_rules_for_constants_have_the_room_of_others() -> None:
    nodes = [node("Einsum", ["a", "a"], ["e"], equation="i,j->ij"), node("Sin", ["e"], ["k"]), node("Add", ["x", "k"], ["y"])]
    with pytest.raises(tpucc.CompileError, match="a constant of 67,108,864 values is computed"):
        built(model_of(nodes, [drawn("a", 8192)]))


@each(
    {
        "silu": ([node("Sigmoid", ["z"], ["a"]), node("Mul", ["z", "a"], ["y"])], "silu"),
        "hard_swish": ([node("HardSigmoid", ["z"], ["a"], alpha=1 / 6), node("Mul", ["a", "z"], ["y"])], "hard_swish"),
        "gelu": (gelu("z", "y"), "gelu"),
        "gelu by tanh": (gelu_by_tanh("z", "y"), "gelu"),
        "twice": ([node("Sigmoid", ["z"], ["a"]), node("Mul", ["z", "a"], ["b"]), node("Mul", ["b", "half"], ["y"])], "silu mul"),
        "of another product": ([node("Sigmoid", ["z"], ["a"]), node("Mul", ["x", "a"], ["y"])], "sigmoid mul"),
        "of a part": ([node("Sigmoid", ["x"], ["a"]), node("Mul", ["z", "a"], ["y"])], "sigmoid mul"),
    }
)
def test_a_function_of_a_product_that_was_taken_apart(nodes: list[Any], wanted: str) -> None:
    """Its operand is one value there, though it is a product, too."""
    numbers = {"root": 2**0.5, "one": 1.0, "half": 0.5, "share": 0.044715, "factor": (2 / np.pi) ** 0.5}
    constants = [drawn("w", 6), *(array(np.float32(value), name) for name, value in numbers.items())]
    assert ops(compared(model_of([node("Mul", ["x", "w"], ["z"]), *nodes], constants, SEQUENCE))) == ["mul", *wanted.split()]


def response_norm(pads: list[int], size: int, exponent: float, last: str = "Div", squared: str = "x", is_made: bool = True) -> Any:
    """A convolution's result, or an input, divided by a power of neighbouring channels' squares, as of PyTorch: `AveragePool` is theirs."""
    steps = (
        node("Mul", [squared, squared], ["q"]),
        node("Unsqueeze", ["q", "one"], ["u"]),
        node("AveragePool", ["u"], ["p"], kernel_shape=[size, 1, 1], pads=[pads[0], 0, 0, pads[1], 0, 0], count_include_pad=1),
        node("Squeeze", ["p", "one"], ["s"]),
        node("Mul", ["s", "alpha"], ["m"]),
        node("Add", ["m", "bias"], ["a"]),
        node("Pow", ["a", "beta"], ["w"]),
        node(last, ["x", "w"], ["y"]),
    )
    before = [*([node("Conv", ["image", "k"], ["x"])] if is_made else []), *([node("Neg", ["x"], [squared])] if squared != "x" else [])]
    numbers = (array(np.float32(value), name) for name, value in {"alpha": 0.3, "bias": 2.0, "beta": exponent}.items())
    return model_of(
        [*before, *steps], [whole("one", 1), drawn("k", 4, 3, 1, 1), *numbers], {"image": (2, 3, 5, 6)} if is_made else {"x": (2, 4, 5, 6)}
    )


@each(
    {
        "the larger half before the channel, as PyTorch's": response_norm([2, 1], 4, 0.75),
        "PyTorch's": response_norm([1, 1], 3, 0.75),
        "a product with the power": response_norm([1, 1], 3, 0.75, "Mul"),
        "squares of something else": response_norm([1, 1], 3, 0.75, squared="z"),
    }.items()
)
def test_a_response_norm_that_was_taken_apart_computes_the_same(title: str, model: Any) -> None:
    assert "lrn" not in ops(compared(model)), title


def test_a_divisor_of_many_squares_is_not_followed_to_its_end() -> None:
    """Both operands of each square would be followed: 2^60 of them."""
    squares = [node("Mul", [f"s{number}"] * 2, [f"s{number + 1}"]) for number in range(60)]
    model = model_of([node("Abs", ["x"], ["s0"]), *squares, node("Div", ["x", "s60"], ["y"])], [], SEQUENCE)
    assert ops(built(model).graph) == ["abs", *["mul"] * 60, "div"]


CELLS = [("LSTM", 4, {}), ("GRU", 3, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {})]


@each([(*cell, direction) for cell in CELLS for direction in ("forward", "reverse", "bidirectional")])
def test_recurrent_networks(op: str, gates: int, more: dict[str, int], direction: str) -> None:
    count, units = (2 if direction == "bidirectional" else 1), 3
    constants = [drawn("w", count, gates * units, 6), drawn("r", count, gates * units, units), drawn("b", count, 2 * gates * units)]
    inputs = {"x": (4, 2, 6), "h": (count, 2, units)} | ({"c": (count, 2, units)} if op == "LSTM" else {})
    outputs = ["y", "yh", "yc"][: len(inputs)]
    made = node(
        op, ["x", "w", "r", "b", "", *[name for name in inputs if name != "x"]], outputs, hidden_size=units, direction=direction, **more
    )
    compared(model_of([made], constants, inputs, outputs))


@each(CELLS)
def test_a_batch_that_comes_first_is_turned_at_both_ends(op: str, gates: int, attributes: dict[str, int]) -> None:
    """First states, too, which ONNX Runtime doesn't take so."""
    constants = [drawn("w", 2, gates * 3, 6), drawn("r", 2, gates * 3, 3)]
    said = {"hidden_size": 3, "direction": "bidirectional", **attributes}
    first = model_of(
        [node(op, ["x", "w", "r", "", "", "h"], ["y", "z"], layout=1, **said)], constants, {"x": (2, 4, 6), "h": (2, 2, 3)}, ("y", "z")
    )
    turns = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("Transpose", ["h"], ["s"], perm=[1, 0, 2]),
        node(op, ["t", "w", "r", "", "", "s"], ["a", "b"], **said),
        node("Transpose", ["a"], ["y"], perm=[2, 0, 1, 3]),
        node("Transpose", ["b"], ["z"], perm=[1, 0, 2]),
    ]
    given = {"x": DRAW.normal(size=(2, 4, 6)).astype(np.float32), "h": DRAW.normal(size=(2, 2, 3)).astype(np.float32)}
    found = []
    for model in (first, model_of(turns, constants, {"x": (2, 4, 6), "h": (2, 2, 3)}, ("y", "z"))):
        made = built(model)
        values = evaluate(bind_arrays(made.graph, made.weights), given)
        found.append([values[output.node] for output in made.graph.outputs])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@each(
    [
        ("LSTM", 4, ["HardSigmoid", "Tanh", "LeakyRelu"], [0.3, 0.7], [0.4]),
        ("LSTM", 4, ["HardSigmoid", "LeakyRelu", "Elu"], [], []),
        ("GRU", 3, ["HardSigmoid", "Softsign"] * 2, [0.25, 0.15], [0.45]),
        ("GRU", 3, ["Sigmoid", "LeakyRelu", "Tanh", "Elu"], [0.3, 0.6], []),
        ("RNN", 1, ["ThresholdedRelu"], [0.2], []),
        ("RNN", 1, ["Softplus"], [], []),
    ]
)
def test_functions_of_gates_take_their_numbers_in_order(
    op: str, gates: int, functions: list[str], alpha: list[float], beta: list[float]
) -> None:
    units, count = 3, 2 if len(functions) == 4 else 1
    constants = [drawn("w", count, gates * units, 6), drawn("r", count, gates * units, units)]
    numbers = {name: values for name, values in (("activation_alpha", alpha), ("activation_beta", beta)) if values}
    direction = "bidirectional" if count == 2 else "forward"
    made = node(op, ["x", "w", "r"], ["y"], hidden_size=units, activations=functions, direction=direction, **numbers)
    compared(model_of([made], constants, {"x": (4, 2, 6)}))


def test_the_steps_of_an_lstm_are_calls_in_a_loop_and_a_step_reads_as_its_formulas(tmp_path: Path) -> None:
    constants = [drawn("w", 1, 16, 6), drawn("r", 1, 16, 4), drawn("b", 1, 32), drawn("fc", 4, 3)]
    nodes = [
        node("Tanh", ["x"], ["t"]),
        node("LSTM", ["t", "w", "r", "b"], ["", "h"], hidden_size=4, name="lstm"),
        node("MatMul", ["h", "fc"], ["y"]),
    ]
    (tmp_path / "m.onnx").write_bytes(model_of(nodes, constants, {"x": (5, 2, 6)}).SerializeToString())
    source = tpucc.import_onnx(tmp_path / "m.onnx").source
    lines = [line.strip() for line in source.splitlines() if "weight" not in line]
    start = lines.index("z = x @ kernel + h @ recurrent + bias")
    assert lines[start + 1 : start + 7] == [
        "i = sigmoid(z[:, 0:4])",
        "f = sigmoid(z[:, 4:8])",
        "g = tanh(z[:, 8:12])",
        "c = f * c + i * g",
        "o = sigmoid(z[:, 12:16])",
        "return o * tanh(c), c",
    ]
    assert "for t in range(5):" in lines
    assert source.count("lstm_step(") == 2, "the function and its one call"


def test_the_steps_of_a_cell_are_calls_of_one_function_also_where_its_state_is_written_twice(tmp_path: Path) -> None:
    """PyTorch's older exporter writes the state once for each use, and names all nodes of the first step after the cell."""
    constants = [drawn("cell.u", 4, 4), drawn("cell.b", 4), drawn("cell.w", 3, 4)]
    states = ("ha", "hb")
    nodes = [node("Constant", [], [name], value=array(np.zeros((2, 4), np.float32), name), name=f"/cell/{name}") for name in states]
    for t in range(5):
        scope = f"/cell_{t}" if t else "/cell"
        constants.append(array(np.array(t), f"t{t}"))
        nodes += [
            node("Gather", ["x", f"t{t}"], [f"x{t}"], axis=1, name=f"/Gather_{t}"),
            node("Gemm", [states[0], "cell.u", "cell.b"], [f"p{t}"], name=f"{scope}/Gemm"),
            node("MatMul", [f"x{t}", "cell.w"], [f"q{t}"], name=f"{scope}/MatMul_1"),
            node("Add", [f"p{t}", f"q{t}"], [f"z{t}"], name=f"{scope}/Add"),
            node("Sigmoid", [f"z{t}"], [f"s{t}"], name=f"{scope}/Sigmoid"),
            node("Sub", [states[1], f"s{t}"], [f"d{t}"], name=f"{scope}/Sub"),
        ]
        states = (f"d{t}", f"d{t}")
    onnx.save(model_of(nodes, constants, {"x": (2, 5, 3)}, ("d4",)), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx").source
    assert source.count("cell(") == 6


@pytest.mark.parametrize(("op", "used"), [("LSTM", "Gather"), ("GRU", "Gather"), ("GRU", "ReduceMean")])
def test_a_sequence_read_both_ways_becomes_a_source(op: str, used: str, tmp_path: Path) -> None:
    """As exporters write it: with an open batch, both directions side by side at each step, and the last one used, or the mean."""
    gates, units = {"LSTM": 4, "GRU": 3}[op], 5
    constants = [drawn("w", 2, gates * units, 6), drawn("r", 2, gates * units, units), drawn("b", 2, 2 * gates * units)]
    constants += [whole("shape", 4, -1, 2 * units), drawn("fc", 2 * units, 3), array(np.array(3), "last")]
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node(op, ["t", "w", "r", "b"], ["s"], hidden_size=units, direction="bidirectional"),
        node("Transpose", ["s"], ["u"], perm=[0, 2, 1, 3]),
        node("Reshape", ["u", "shape"], ["v"]),
        node("Transpose", ["v"], ["a"], perm=[1, 0, 2]),
        node("Gather", ["a", "last"], ["z"], axis=1) if used == "Gather" else node("ReduceMean", ["a"], ["z"], axes=[1], keepdims=0),
        node("MatMul", ["z", "fc"], ["y"]),
    ]
    (tmp_path / "m.onnx").write_bytes(model_of(nodes, constants, {"x": ("n", 4, 6)}).SerializeToString())
    found = tpucc.import_onnx(tmp_path / "m.onnx")
    assert "for t in range(" in found.source
    assert found.source.count("weight ") < 12
    assert "2, 5" not in found.source  # the directions stay side by side


@each(
    {
        "counted from the end": ([("Less", ["i", "zero"], ["b"]), ("Add", ["i", "rows"], ["a"]), ("Where", ["b", "a", "i"], ["k"])], True),
        "the same number twice": ([("Add", ["i", "zero"], ["a"]), ("Mul", ["a", "one"], ["k"])], True),
        "the next row": ([("Add", ["i", "one"], ["k"])], False),
        "the last row is the first": ([("Less", ["i", "last"], ["b"]), ("Where", ["b", "i", "zero"], ["k"])], False),
        "a sum of two": ([("Add", ["i", "i"], ["k"])], False),
        "rounded to bfloat16": ([("Cast16", ["i"], ["c"]), ("Cast7", ["c"], ["k"])], False),
        "the sum of many": (
            [
                ("Add", ["i", "zero"], ["i0"]),
                *(("Add", [f"i{n}", f"i{n}"], [f"i{n + 1}"]) for n in range(60)),
                ("Sub", ["i60", "i60"], ["n"]),
                ("Add", ["n", "i"], ["k"]),
            ],
            True,
        ),
    }
)
def test_a_choice_of_rows_is_the_number_itself_if_it_is_for_each_row(parts: list[tuple[str, list[str], list[str]]], is_it: bool) -> None:
    numbers = {"zero": 0, "one": 1, "last": 6, "rows": 7}
    constants = [array(np.array(number), name) for name, number in numbers.items() if any(name in inputs for _, inputs, _ in parts)]
    casts = {f"Cast{to}": to for to in (7, 16)}
    made = [node("Cast", *names, to=casts[op]) if op in casts else node(op, *names) for op, *names in parts]
    nodes = [*made, node("Gather", ["t", "k"], ["y"])]
    model = model_of(nodes, [*constants, drawn("t", 7, 3)], {"i": (4,)})
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    if is_it:
        assert ops(built(model).graph) == ["embedding"]
        return
    with pytest.raises(tpucc.CompileError, match="E1007"):
        built(model)


def test_shapes_that_the_file_computes_are_folded() -> None:
    """What exporters write for x.view(x.shape[0], -1, 3)."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axis"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = [array(np.array(0), "zero"), whole("axis", 0), whole("rest", -1, 3)]
    model = model_of(nodes, constants, {"x": ("n", 6, 7)})
    assert ops(compared(model, n=5)) == ["reshape"]
    assert built(model, n=3).graph.nodes[-1].type.shape == (3, 14, 3)


def classifier() -> Any:
    """A small network for images with an open batch."""
    nodes = [
        node("Conv", ["image", "conv.weight", "conv.bias"], ["/net/conv/Conv_output_0"], pads=[1] * 4, name="/net/conv/Conv"),
        node("Relu", ["/net/conv/Conv_output_0"], ["r"], name="/net/relu/Relu"),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2], name="/net/pool/MaxPool"),
        node("Flatten", ["p"], ["f"], name="/net/Flatten"),
        node("Gemm", ["f", "fc.weight", "fc.bias"], ["logits"], transB=1, name="/net/fc/Gemm"),
    ]
    constants = [drawn("conv.weight", 4, 3, 3, 3), drawn("conv.bias", 4), drawn("fc.weight", 5, 64), drawn("fc.bias", 5)]
    return model_of(nodes, constants, {"image": ("batch", 3, 8, 8)}, ["logits"])


def test_import_writes_a_source_that_compiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(classifier(), tmp_path / "net.onnx")
    assert main(["import", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "made.tpu")]) == 0
    text = (tmp_path / "made.tpu").read_text("utf-8")
    assert "image is" in text or "Images are" in text
    assert "param batch = 8" in text
    assert 'weights "made.npz"' in text
    assert "transpose" not in text
    assert '"conv.weight"' in text
    assert main(["check", str(tmp_path / "made.tpu"), "-D", "batch=3"]) == 0
    assert "f32[3, 8, 8, 3]" in capsys.readouterr().out


def test_every_command_takes_the_file_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(classifier(), path)
    assert main(["check", str(path), "-D", "batch=3"]) == 0
    assert "image: f32[3, 8, 8, 3]" in capsys.readouterr().out.replace("\n  ", " ")
    exe = tpucc.compile(path, params={"batch": 2}, level=1)
    images = DRAW.normal(scale=0.5, size=(2, 8, 8, 3)).astype(np.float32)  # inside the ranges that calibration draws
    session = session_of(path)
    (wanted,) = session.run(None, {"image": images.transpose(0, 3, 1, 2)})
    assert np.abs(exe.run(images)["logits"] - wanted).max() < 0.05 * np.abs(wanted).max()
    assert exe.compilation is not None
    assert exe.compilation.source.name == "net.onnx as .tpu"


def test_erf_is_a_number_where_integers_are_zero(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model_of([node("Erf", ["x"], ["y"])], [], {"x": (64, 4)}).SerializeToString())
    near = np.linspace(-3, 3, 256, dtype=np.float32).reshape(64, 4) ** 5 / 81
    (found,) = tpucc.import_onnx(tmp_path / "m.onnx").compile().run(near).values()
    assert np.abs(found - np.vectorize(math.erf)(near)).max() < 0.2


def test_what_somebody_changed_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run writes the same; an edited source stays, and weights without it, also with -o, which writes over those beside it."""
    model, source = tmp_path / "m.onnx", tmp_path / "m.tpu"
    model.write_bytes(classifier().SerializeToString())
    assert run("import", model) == 0
    assert run("import", model) == 0
    source.write_text(source.read_text() + "# mine\n")
    assert run("import", model) == 2
    assert "m.tpu is there already, with other contents" in capsys.readouterr().err
    assert source.read_text().endswith("# mine\n")
    assert run("export", source) == 2
    assert "m.onnx is there already" in capsys.readouterr().err
    assert run("export", source, "--quantized") == 0
    assert (tmp_path / "m.int8.onnx").is_file()
    assert run("import", model, "-o", source) == 2
    assert "move this file away" in capsys.readouterr().err
    assert source.read_text().endswith("# mine\n")
    source.unlink()
    weights = source.with_suffix(".npz")
    weights.write_bytes(b"")
    assert run("import", model) == 2
    assert "m.npz is there already" in capsys.readouterr().err
    assert run("import", model, "-o", source) == 2
    assert "move this file away" in capsys.readouterr().err
    assert not source.exists()
    assert not weights.read_bytes()
    weights.unlink()
    assert run("import", model) == 0
    weights.write_bytes(b"")
    assert run("import", model) == 2
    assert run("import", model, "-o", source) == 0
    assert weights.read_bytes()


@each(
    [
        ("pkg.torch.onnx.name_scopes", "['', 'enc', 'enc.layer.0', 'linear_3']", "enc.layer.0.weight"),
        ("pkg.torch.onnx.name_scopes", "['linear_3']", "mat_mul_7.weight"),
        ("pkg.torch.onnx.name_scopes", "__import__('os')", "mat_mul_7.weight"),
        ("pkg.torch.onnx.name_scopes", f"['{'a' * 5000}', 'b']", "mat_mul_7.weight"),
        ("namespace", "['', 'enc', 'linear_3']", "mat_mul_7.weight"),
    ]
)
def test_weights_without_a_name_are_called_after_their_module(key: str, value: str, wanted: str, tmp_path: Path) -> None:
    """The exporter of PyTorch leaves a transposed matrix without its name, and says where in the network the product stands."""
    product = node("MatMul", ["x", "val_3"], ["y"], name="node_MatMul_7")
    entry = product.metadata_props.add()
    entry.key, entry.value = key, value
    onnx.save(model_of([product], [drawn("val_3", 4, 5)]), tmp_path / "net.onnx")
    assert set(tpucc.import_onnx(tmp_path / "net.onnx").weights) == {wanted}


@pytest.mark.long
@each(
    [
        (["node_gru__1", "node_GRU_45", "node_gru__2"], "['', 'enc', 'enc.cells', 'gru']", "enc.cells"),
        (["/enc/cells/GRU", "/enc/cells/GRU_1", "/enc/cells/GRU_2"], "", "enc.cells"),
        (["cells"] * 3, "", "cells"),
    ]
)
def test_the_matrices_of_a_recurrence_are_called_after_their_module(names: list[str], scopes: str, module: str, tmp_path: Path) -> None:
    """Of two layers and both directions. What is called twice has its weights once."""
    constants = [drawn("val_1", 2, 9, 3), drawn("val_2", 2, 9, 3), drawn("val_3", 2, 18), drawn("val_4", 2, 9, 3)]
    cells = []
    for index, (name, kernel) in enumerate(zip(names, ("val_1", "val_4", "val_1"), strict=True)):
        more = {"hidden_size": 3, "linear_before_reset": 1, "direction": "bidirectional"}
        cells.append(node("GRU", ["x", kernel, "val_2", "val_3"], [f"y{index}"], name=name, **more))
        entry = cells[-1].metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.name_scopes", scopes
    onnx.save(model_of(cells, constants, {"x": (2, 1, 3)}, ("y0", "y1", "y2")), tmp_path / "net.onnx")
    parts = ("kernel", "recurrent", "bias", "recurrent_bias")
    wanted = {f"{start}.{part}" for start in (module, f"{module}.reverse") for part in parts}
    second = {f"{module}.1{end}.{part}" for end in ("", ".reverse") for part in parts if part != "recurrent"}
    assert set(tpucc.import_onnx(tmp_path / "net.onnx").weights) == wanted | second


@each(
    [
        ({"batch": ("batch", 4)}, "y", "model m(batch_2: f32[batch, 4]) -> f32[batch, 4]:", ["the input batch to batch_2"]),
        ({"x": ("batch", 4)}, "batch", "model m(x: f32[batch, 4]) -> f32[batch, 4]:", ["the output batch to batch_2"]),
        ({"a/b:0": ("n b", 4)}, "y", "model m(a_b: f32[n_b, 4]) -> f32[n_b, 4]:", ["the size n b to n_b", "the input a/b:0 to a_b"]),
        (
            {"a.b": ("n.b", 4), "a_b": (1, 4)},
            "y",
            "model m(a_b_2: f32[n_b, 4], a_b: f32[1, 4])",
            ["the size n.b to n_b", "the input a.b to a_b_2"],
        ),
        ({"tokens": ("batch", 4)}, "y", "model m(tokens: f32[batch, 4]) -> f32[batch, 4]:", []),
        ({"a": ("unk__3", 4), "b": ("unk__7", 4)}, "y", "model m(a: f32[batch, 4], b: f32[batch, 4]) -> f32[batch, 4]:", []),
        ({"a": ("unk__7", "unk__7", 4)}, "y", "model m(a: f32[batch, batch, 4]) -> f32[batch, batch, 4]:", []),
        ({"a": (4, "unk__7"), "b": ("unk__7", 4)}, "y", "model m(a: f32[4, batch], b: f32[batch, 4]) -> f32[4, 4]:", []),
        ({"x__1": ("n__1", 4)}, "y__0", "model m(x__1: f32[n__1, 4]) -> f32[n__1, 4]:", []),
        ({"x/_1": ("if", 4)}, "y__1", "model m(x_1: f32[if_, 4]) -> f32[if_, 4]:", ["the size if to if_", "the input x/_1 to x_1"]),
    ]
)
def test_names_of_the_file_stay_apart_and_a_comment_says_which_are_others(
    inputs: dict[str, tuple[str, int]], output: str, head: str, renamed: list[str], tmp_path: Path
) -> None:
    names = list(inputs)
    op = "Relu" if len(names) == 1 else "Add" if isinstance(inputs[names[0]][0], str) else "MatMul"
    nodes = [node(op, names, [output])]
    onnx.save(model_of(nodes, (), inputs, (output,)), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx").source
    assert head in source
    assert "open; this is the model for" not in source
    comment = f"# Renamed here: {' and '.join(renamed)}." if renamed else ""
    assert [line for line in source.split("\n") if line.startswith("# Renamed")] == [comment] * bool(renamed)
    tpucc.compile_source(source)


@each(
    [
        ({"seq-len": 4, "unk__12": 5}, ""),
        ({"seq_len": 4, "unk__12": 5}, ""),
        ({"seq-len": 4, "seq_len": 4, "unk__12": 5}, ""),
        (
            {"unk__12": 4},
            "m.onnx leaves the size seq_len (seq-len in the file) open\n"
            'help: say it: -D seq_len=…, in Python params={"seq_len": …}; the name in the file does, too',
        ),
        ({"seq-len": 4, "seq_len": 3}, "m.onnx has one size seq_len (seq-len in the file), and 4 and 3 are given for it"),
        (
            {"tokens": 4},
            "m.onnx leaves no size open that is named tokens\nhelp: there are batch, seq_len (seq-len in the file) and unk__12",
        ),
    ]
)
def test_a_size_may_be_given_by_the_name_in_the_file_or_by_that_in_the_source(
    sizes: dict[str, int], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To commands and from Python, and again of the source that was read."""
    path = tmp_path / "m.onnx"
    onnx.save(model_of([node("Relu", ["x"], ["y"])], (), {"x": ("batch", "seq-len", "unk__12")}), path)
    code = run("check", path, *(f"-D{name}={size}" for name, size in sizes.items()))
    assert (code == 0) is not says
    assert says in capsys.readouterr().err
    if not says:
        made = tpucc.import_onnx(path, params=sizes)
        assert "x: f32[batch, seq_len, unk__12]" in made.source
        exe = made.compile(params={"batch": 1, "unk__12": 3})
        assert exe.compilation is not None
        assert exe.compilation.model is not None
        assert exe.compilation.model.graph["x"].type.shape == (1, 4, 3)


def test_open_sizes_of_one_value_stay_apart(tmp_path: Path) -> None:
    nodes = [node("Relu", ["a"], ["y"]), node("Relu", ["b"], ["z"])]
    onnx.save(model_of(nodes, (), {"a": ("batch", "s"), "b": ("n", "t")}, ("y", "z")), tmp_path / "m.onnx")
    assert "b: f32[n, t]" in tpucc.import_onnx(tmp_path / "m.onnx", params={"s": 5, "t": 5}).source


@each(
    [
        ({"x": ("batch_size", 1, "h", 8)}, "h=10", ["batch_size = 8"]),
        ({"x": ("n.b", 1, "h", 8)}, "h=10 n.b=3", ["n_b = 3"]),
        ({"x": (None, 1, "h", 8)}, "h=10", ["batch = 8"]),
        ({"x": ("N", 1, "h", 8), "y": ("h", 4)}, "h=10", ["N = 8"]),
        ({"x": ("N", 1, "h", 8), "y": ("M", "h")}, "h=10", ["N = 8", "M = 8"]),
    ]
)
def test_a_batch_of_any_name_is_a_param_where_another_size_is_a_number(
    inputs: dict[str, Any], given: str, params: list[str], tmp_path: Path
) -> None:
    """A convolution with stride has no size in the language's words for a height that is open."""
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1] * 4, strides=[2, 2]), *(node("Relu", [name], [f"{name}_out"]) for name in inputs)]
    onnx.save(model_of(nodes, [drawn("w", 2, 1, 3, 3)], inputs, ("c", *(f"{name}_out" for name in inputs))), tmp_path / "m.onnx")
    sizes = {name: int(size) for name, _, size in (pair.partition("=") for pair in given.split())}
    source = tpucc.import_onnx(tmp_path / "m.onnx", params=sizes).source
    assert [line.removeprefix("param ") for line in source.split("\n") if line.startswith("param ")] == params
    assert "open; this is the model for h = 10." in source


def test_a_batch_of_one_is_a_param_where_axes_of_size_1_are_left_out(tmp_path: Path) -> None:
    """The scores of an attention with two heads."""
    steps = [
        node("Reshape", ["x", "heads"], ["h"]),
        node("Transpose", ["h"], ["q"], perm=[0, 2, 1, 3]),
        node("Transpose", ["h"], ["k"], perm=[0, 2, 3, 1]),
        node("MatMul", ["q", "k"], ["y"]),
    ]
    onnx.save(model_of(steps, [whole("heads", 0, 4, 2, 3)], {"x": ("batch", 4, 6)}), tmp_path / "m.onnx")
    one, three = (tpucc.import_onnx(tmp_path / "m.onnx", params={"batch": batch}) for batch in (1, 3))
    assert "param batch = 1\n" in one.source
    assert one.source.replace("batch = 1", "batch = 3") == three.source
    compared(onnx.load(tmp_path / "m.onnx"), batch=1)
    exe = one.compile()
    given = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 4, 6)
    heads = given.reshape(1, 4, 2, 3).transpose(0, 2, 1, 3)
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    (found,) = (evaluate(exe.compilation.graph, {"x": given})[output.node] for output in exe.compilation.graph.outputs)
    np.testing.assert_allclose(found, heads @ heads.swapaxes(2, 3), rtol=1e-5, atol=1e-6)


@each(
    [
        ({"s": "3"}, "E1008: s: '3' is no size: sizes are whole numbers from 1 on"),
        ({"s": 3.0}, "E1008: s: 3.0 is no size"),
        ({"s": True}, "E1008: s: True is no size"),
        ({"s": 0}, "E1008: s: 0 is no size"),
        ({"s": 2**31}, "E1008: s: 2147483648 is too large: sizes are at most 2,147,483,647"),
        ({3: 3}, "no size open that is named 3\nhelp: there is s"),
        ([("s", 3)], "E0529: params is a dict, found list"),
    ]
)
def test_sizes_from_python_are_whole_numbers(params: Any, says: str, tmp_path: Path) -> None:
    onnx.save(model_of([node("Relu", ["x"], ["y"])], (), {"x": (2, "s")}), tmp_path / "m.onnx")
    with pytest.raises(tpucc.UsageError) as caught:
        tpucc.import_onnx(tmp_path / "m.onnx", params=params)
    assert says in str(caught.value)
    assert "param s = 3" in tpucc.import_onnx(tmp_path / "m.onnx", params={"s": np.int64(3)}).source


def test_sizes_of_the_command_line_are_whole_numbers() -> None:
    assert open_sizes({"s": "0" * 50 + "3"}) == {"s": 3}
    for text, says in (("3.0", "no size"), ("-1", "no size"), ("9" * 5000, "too large")):
        with pytest.raises(tpucc.UsageError, match=f"E1008: s: .* is {says}"):
            open_sizes({"s": text})


def test_names_begin_a_comment_as_they_are(tmp_path: Path) -> None:
    model = model_of([node("Where", ["mask", "x", "y"], ["z"])], (), {"x": (2, 3), "y": (2, 3), "mask": (2, 3)}, ("z",))
    model.graph.input[2].type.tensor_type.elem_type = onnx.TensorProto.BOOL
    onnx.save(model, tmp_path / "m.onnx")
    assert "\n# mask takes 0.0 and 1.0 as f32 here, and bool in the file.\n" in tpucc.import_onnx(tmp_path / "m.onnx").source


def test_nodes_in_another_order_are_sorted() -> None:
    """As float16 converters write them; also where only a graph inside a node reads what comes later, and inside that graph."""
    make = onnx.helper.make_graph
    value = onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)
    branch = make([node("Relu", ["q"], ["r"]), node("Neg", ["n"], ["q"])], "then", [], [value])
    nodes = [node("If", ["c"], ["y"], then_branch=branch, else_branch=branch), node("Mul", ["m", "x"], ["n"]), node("Neg", ["x"], ["m"])]
    graph = compared(model_of(nodes[1:], (), outputs=("n",)))
    assert ops(graph) == ["mul", "mul"]
    assert ops(built(model_of(nodes, [array(np.array(True), "c")])).graph)[-1] == "relu"


def test_images_and_sequences_have_comments_of_their_own(tmp_path: Path) -> None:
    nodes = [node("Conv", ["image", "k"], ["p"]), node("Conv", ["audio", "l"], ["q"]), node("Relu", ["other"], ["r"])]
    inputs = {"image": (2, 3, 8, 8), "audio": (2, 3, 16), "other": (2, 3, 4)}
    onnx.save(model_of(nodes, [drawn("k", 4, 3, 3, 3), drawn("l", 4, 3, 3)], inputs, ("p", "q", "r")), tmp_path / "m.onnx")
    lines = tpucc.import_onnx(tmp_path / "m.onnx").source.split("\n\n")[0].split("\n")
    comment = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
    assert "Images are [batch, height, width, channels] here, and [batch, channels, height, width] in the file: image and p." in comment
    assert "Sequences are [batch, length, channels] here, and [batch, channels, length] in the file: audio and q." in comment
    assert "The axes of other and r are in the file's order." in comment


def test_nodes_in_any_order_are_one_network() -> None:
    """Of branches that nothing orders the file's order stays; the values are the same bits, and the weights the same."""
    nodes = [
        node("Conv", ["x", "k1"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["x", "k2"], ["c"], pads=[0, 0, 0, 0]),
        node("Sigmoid", ["c"], ["d"]),
        node("Add", ["b", "d"], ["e"]),
        node("MaxPool", ["e"], ["f"], kernel_shape=[2, 2]),
        node("GlobalAveragePool", ["f"], ["g"]),
        node("GlobalMaxPool", ["f"], ["h"]),
        node("Concat", ["g", "h"], ["i"], axis=1),
        node("Flatten", ["i"], ["j"]),
        node("MatMul", ["j", "w"], ["y"]),
    ]
    constants = [drawn("k1", 6, 4, 3, 3), drawn("k2", 6, 4, 1, 1), drawn("w", 12, 3)]
    x = DRAW.normal(size=(2, 7, 9, 4)).astype(np.float32)
    found: list[tuple[Any, set[str], list[str]]] = []
    for _ in range(6):
        made = built(model_of(nodes, constants, IMAGE))
        values = evaluate(bind_arrays(made.graph, made.weights), {"x": x})[made.graph.outputs[0].node]
        found.append((values.tobytes(), set(made.weights), sorted(ops(made.graph))))
        nodes = [nodes[place] for place in DRAW.permutation(len(nodes))]
    assert all(each == found[0] for each in found)


@each(
    [
        (
            node("Gelu", ["x"], ["y"], domain="com.microsoft"),
            "ONNX Runtime's optimizer and its quantiser write such operators: import the file that they were given",
        ),
        (node("Relu6", ["x"], ["y"], domain="mine"), "not those of mine: export the model without them"),
        (node("Asin", ["x"], ["y"]), "make the model without it, or end the model before it"),
        (node("Tan", ["x"], ["y"]), "make the model without it, or end the model before it"),
        (node("Frobnicate", ["x"], ["y"]), "ONNX's opsets up to 28 have no such operator"),
        (node("SigmoId", ["x"], ["y"]), "did you mean Sigmoid?"),
    ]
)
def test_what_is_suggested_instead_of_an_operator(made: Any, says: str) -> None:
    with pytest.raises(tpucc.CompileError, match="E1006") as caught:
        built(model_of([made]))
    help = "".join(caught.value.diagnostics[0].help)
    assert says in help


def test_files_that_are_none_are_named_and_a_source_is_known(tmp_path: Path) -> None:
    (tmp_path / "m.tpu").write_text("model m(x: f32[2]):\n    return x\n")
    with pytest.raises(tpucc.ProgramError, match=r"E1001: m\.tpu is a source of tpucc already"):
        tpucc.import_onnx(tmp_path / "m.tpu")
    (tmp_path / "m.tpu").rename(tmp_path / "m.onnx")
    with pytest.raises(tpucc.ProgramError, match=r"E1001: m\.onnx: not a model in ONNX's format: it is a text"):
        tpucc.import_onnx(tmp_path / "m.onnx")
    whole = model_of([node("Relu", ["x"], ["y"])]).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(whole[:-5])
    with pytest.raises(tpucc.ProgramError, match=r"E1001: m\.onnx: not a model in ONNX's format"):
        tpucc.import_onnx(tmp_path / "m.onnx")
    (tmp_path / "n.tpu").write_bytes(whole)
    with pytest.raises(tpucc.CompileError, match=r"n\.tpu is a model in ONNX's format, not the source(.|\n)*a name that ends in \.onnx"):
        tpucc.compile(tmp_path / "n.tpu")
    assert tpucc.import_onnx(tmp_path / "n.tpu").source
    for content, words in ((b"", "not a model in ONNX's format"), (b"PK\3\4", "is an archive of arrays")):
        (tmp_path / "n.tpu").write_bytes(content)
        with pytest.raises(tpucc.ProgramError, match=words):
            tpucc.import_onnx(tmp_path / "n.tpu")


def test_a_file_is_imported_before_it_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model_of([node("Softmax", ["x"], ["y"])]), tmp_path / "m.onnx")
    assert run("train", tmp_path / "m.onnx") == 1
    assert "help: tpucc import m.onnx writes its source; there write `train(" in capsys.readouterr().err


def test_calibration_inputs_with_their_channels_first_have_a_help(tmp_path: Path) -> None:
    onnx.save(model_of([node("GlobalMaxPool", ["x"], ["y"])], (), {"x": (2, 3, 6, 6)}), tmp_path / "m.onnx")
    np.savez(tmp_path / "c.npz", x=np.zeros((2, 3, 6, 6), np.float32))
    with pytest.raises(tpucc.InputError, match=r"E0443[^$]*images have their channels last here: x\.transpose\(0, 2, 3, 1\)"):
        tpucc.compile(tmp_path / "m.onnx", calibration=tmp_path / "c.npz")


def test_each_layer_keeps_the_keys_of_its_weights() -> None:
    """Also where the values of two are equal, as those of norms are that nobody has trained."""
    ones = [array(np.ones(4, np.float32), f"norm{index}.weight") for index in range(2)]
    nodes = [node("Mul", ["x", "norm0.weight"], ["a"]), node("Relu", ["a"], ["b"]), node("Mul", ["b", "norm1.weight"], ["c"])]
    slope = node("PRelu", ["c", "onnx::PRelu_9"], ["y"], name="/act/PRelu")
    model = model_of([*nodes, slope], [*ones, drawn("onnx::PRelu_9", 4)])
    assert set(built(model).weights) == {"norm0.weight", "norm1.weight", "act.weight"}


@each(
    {
        "sum": [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "{b}"], ["y"])],
        "difference": [node("MatMul", ["x", "w"], ["h"]), node("Sub", ["{b}", "h"], ["y"])],
        "gemm": [node("Gemm", ["x", "w", "{b}"], ["y"])],
        "factor": [node("MatMul", ["x", "w"], ["h"]), node("Mul", ["h", "{b}"], ["y"])],
    }
)
def test_a_constant_of_one_value_is_a_weight_if_it_has_a_name(*nodes: Any) -> None:
    parameters = ("scale", "layer.gamma", "fc.bias", "b", "act/alpha", "blocks.0.ls1.lambda_x", "dense_1/BiasAdd/ReadVariableOp:0", "beta1")
    numbers = ("Constant_12", "onnx::Add_17", "val_3", "/fc/Constant_output_0", "model/mul/y:0", "m.model.lifted_tensor_0")
    for name in (*parameters, *numbers):
        for node_ in nodes:
            node_.input[:] = [name if operand in ("{b}", *parameters, *numbers) else operand for operand in node_.input]
        made = compared(model_of(nodes, [drawn("w", 4, 1), drawn(name, 1)], {"x": (3, 4)}))
        others = [found.attributes.key for found in made if found.op == "weight" and found.attributes.key != "w"]
        assert len(others) == (name in parameters), name
        assert others == [name] or name in numbers or (":0" in name and others in (["dense_1.bias"], ["dense_1.scale"]))


@each(
    {
        "a divisor": (node("Div", ["x", "w"], ["y"]),),
        "a divisor of one value": (node("Div", ["x", "temperature"], ["y"]),),
        "factors of Gemm": (node("Gemm", ["x", "w", "temperature"], ["y"], alpha=0.5, beta=3.0),),
    }
)
def test_a_weight_has_the_values_that_the_file_has_for_its_key(reader: Any) -> None:
    arrays = {"w": np.float32(2 * np.eye(4) + 1), "temperature": np.float32([4])}
    read_ = {name: made for name, made in arrays.items() if name in reader.input}
    model = model_of([reader], [array(made, name) for name, made in read_.items()], {"x": (3, 4)} if "w" not in read_ else {"x": (4, 4)})
    compared(model)
    weights = built(model).weights
    assert weights.keys() == read_.keys()
    assert all(np.array_equal(weights[name], made) for name, made in read_.items())


@each([2, 3, 8])
def test_a_batch_stays_open_beside_a_state_of_any_size(units: int, tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"], end=1),
        node("Concat", ["s", "units"], ["shape"], axis=0),
        node("Expand", ["h0", "shape"], ["h"]),
        node("MatMul", ["h", "u"], ["hu"]),
        node("MatMul", ["x", "w"], ["xw"]),
        node("Add", ["xw", "hu"], ["y"]),
    ]
    constants = [whole("units", units), drawn("h0", 1, units), drawn("u", units, units), drawn("w", 6, units)]
    onnx.save(model_of(nodes, constants, {"x": ("batch", 6)}), tmp_path / "m.onnx")
    assert "param batch = 8" in tpucc.import_onnx(tmp_path / "m.onnx").source


def test_what_gemm_takes_no_times_is_left_out() -> None:
    """As jax2onnx writes a product without a bias."""
    made = compared(model_of([node("Gemm", ["x", "w", "nothing"], ["y"], beta=0.0)], [drawn("w", 4, 5), drawn("nothing")], {"x": (3, 4)}))
    assert ops(made) == ["matmul"]
    made = compared(model_of([node("Gemm", ["x", "w", "half"], ["y"], beta=3.0)], [drawn("w", 4, 5), drawn("half")], {"x": (3, 4)}))
    assert ops(made) == ["matmul", "add"]


def test_keys_made_of_a_path_begin_with_its_first_module() -> None:
    product_ = node("MatMul", ["x", "onnx::MatMul_9"], ["h"], name="/net/fc/MatMul")
    model = model_of(
        [product_, node("Add", ["h", "onnx::Add_3"], ["y"], name="/net/fc/Add")], [drawn("onnx::MatMul_9", 4, 5), drawn("onnx::Add_3", 5)]
    )
    assert set(built(model).weights) == {"net.fc.weight", "net.fc.bias"}


def test_a_number_that_is_added_to_several_outputs_is_no_bias() -> None:
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "val_3"], ["y"])]
    assert ops(compared(model_of(nodes, [drawn("w", 4, 5), drawn("val_3", 1)], {"x": (3, 4)}))) == ["matmul", "add"]
    found = built(model_of(nodes, [drawn("w", 4, 5), drawn("val_3", 1)], {"x": (3, 4)})).weights
    assert list(found) == ["w"]


def test_a_number_without_axes_behind_a_product_stays_a_number() -> None:
    """But for a parameter of a module, whose name is its path."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "{b}"], ["y"])]
    for name, keys in (("b", {"w"}), ("clip.logit_scale", {"w", "clip.logit_scale"})):
        nodes[1].input[1] = name
        made = built(model_of(nodes, [drawn("w", 4, 1), array(np.float32(0.25), name)], {"x": (3, 4)}))
        assert set(made.weights) == keys
        assert made.weights.get(name, np.float32(0)).shape == ()


FOREIGN = {
    "file": "file",
    "../../etc/w": "etc/w",
    "\\": "_",
    "_": "_.1",
    "..\\.": ".._.",
    "a/./b//c": "a/b/c",
    "..": "block.weight",
    "x\n\t\x00": "x___",
    "{i}": "{i}",
    'q"': 'q"',
    "a" * 5000: "a" * 1000,
}


def test_keys_of_weights_are_names_that_an_archive_can_have(tmp_path: Path) -> None:
    """What another archive would unpack elsewhere, or tpucc itself refuse; each weight keeps a key of its own."""
    names = list(FOREIGN)
    nodes = [node("MatMul", [f"h{index}", name], [f"h{index + 1}"], name="block") for index, name in enumerate(names)]
    model = model_of(nodes, [drawn(name, 4, 4) for name in names], inputs={"h0": (2, 4)}, outputs=[f"h{len(names)}"])
    onnx.save(model, tmp_path / "net.onnx")
    assert run("import", tmp_path / "net.onnx", "-o", tmp_path / "net.tpu") == 0
    with np.load(tmp_path / "net.npz") as weights:
        assert sorted(weights.files) == sorted(FOREIGN.values())
    assert tpucc.compile(tmp_path / "net.tpu").run(np.ones((2, 4), np.float32))


def test_what_is_not_finite_gives_no_warnings_of_numpy() -> None:
    made = built(model_of([node("Div", ["x", "zero"], ["y"])], [array(np.float32(0), "zero")]))
    assert ops(made.graph).count("div") == 1
    noise = Noise()
    noise.add(np.array([np.inf, 1.0]), np.array([np.inf, np.inf]))
    assert math.isinf(noise.mean)


def test_import_onnx_gives_source_and_weights(tmp_path: Path) -> None:
    onnx.save(classifier(), tmp_path / "net.onnx")
    made = tpucc.import_onnx(tmp_path / "net.onnx", params={"batch": 2})
    assert set(made.weights) == {"conv.weight", "conv.bias", "fc.weight", "fc.bias"}
    assert made.weights["conv.weight"].shape == (3, 3, 3, 4)
    assert "param batch = 2" in made.source
    made.save(tmp_path / "other.tpu")
    images = DRAW.normal(size=(2, 8, 8, 3)).astype(np.float32)
    saved, direct = tpucc.compile(tmp_path / "other.tpu"), made.compile()
    assert np.array_equal(saved.run(images)["logits"], direct.run(images)["logits"])


def test_open_sizes_other_than_the_batch_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(model_of([node("Relu", ["x"], ["y"])], (), {"x": ("batch", "length", 3)}), path)
    with pytest.raises(tpucc.UsageError, match="leaves the size length open"):
        tpucc.import_onnx(path)
    with pytest.raises(tpucc.UsageError, match="named lengths"):
        tpucc.import_onnx(path, params={"lengths": 3})
    made = tpucc.import_onnx(path, params={"length": 5})
    assert "param length = 5" in made.source
    assert "f32[batch, length, 3]" in made.source


def test_a_negative_size_and_one_called_by_a_question_mark_are_open(tmp_path: Path) -> None:
    """As versions of Paddle2ONNX write them."""
    inputs = {"x": ("p2o.DynamicDimension.0", 3, "?", "?"), "z": (-1, 2)}
    onnx.save(model_of([node("Relu", ["x"], ["y"])], (), inputs), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx", params={"x_size2": 5, "x_size3": 6}, layout="nchw").source
    assert "x: f32[batch, 3, x_size2, x_size3], z: f32[batch, 2]" in source


def test_a_batch_that_nobody_gave_is_1_where_the_network_takes_no_other(tmp_path: Path) -> None:
    onnx.save(model_of([node("Squeeze", ["x", "first"], ["y"])], [whole("first", 0)], {"x": ("n", 3)}), tmp_path / "m.onnx")
    source = tpucc.import_onnx(tmp_path / "m.onnx").source
    assert "m(x: f32[1, 3])" in source
    assert "leaves n open; this is the model for n = 1" in source
    with pytest.raises(tpucc.Error, match=r"E1007: .* with n = 7"):
        tpucc.import_onnx(tmp_path / "m.onnx", params={"n": 7})


def with_branches(condition: list[Any], **given: int) -> Any:
    """y = x · 2 or -x, by a condition; `given` has inputs of one integer or boolean, by ONNX's types."""
    value = onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2, 4])
    then, other = node("Mul", ["x", "two"], ["z"]), node("Neg", ["x"], ["z"])
    branches = {name: onnx.helper.make_graph([step], name, [], [value]) for name, step in (("then_branch", then), ("else_branch", other))}
    model = model_of([*condition, node("If", ["c"], ["y"], **branches)], [array(np.float32(2), "two"), array(np.array(16000), "rate")])
    model.graph.input.extend(onnx.helper.make_tensor_value_info(name, type_, []) for name, type_ in given.items())
    return model


@each(
    [
        ([node("Equal", ["sr", "rate"], ["c"])], {"sr": onnx.TensorProto.INT64}, {"sr": 16000}, {"sr": 8000}),
        ([], {"c": onnx.TensorProto.BOOL}, {"c": 1}, {"c": 0}),
    ]
)
def test_a_value_of_an_input_of_one_integer_decides_a_branch(
    steps: list[Any], types: dict[str, int], then: dict[str, int], other: dict[str, int], tmp_path: Path
) -> None:
    onnx.save(with_branches(steps, **types), tmp_path / "m.onnx")
    (name,) = types
    for given, wanted in ((then, "y = x * 2.0"), (other, "y = -x")):
        source = tpucc.import_onnx(tmp_path / "m.onnx", params=given).source
        assert wanted in source
        assert "m(x: f32[2, 4])" in source
        assert f"# {name} is {given[name]} here, and an input in the file." in source
    with pytest.raises(tpucc.Error, match=rf"If: its condition is computed (.|\n)*-D {name}=… gives this input a value"):
        tpucc.import_onnx(tmp_path / "m.onnx")


def test_every_command_takes_a_value_of_an_input_of_one_integer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(with_branches([node("Equal", ["sr", "rate"], ["c"])], sr=onnx.TensorProto.INT64), tmp_path / "m.onnx")
    assert run("run", tmp_path / "m.onnx", "-D", "sr=16000", "--check") == 0
    assert "check: equal" in capsys.readouterr().out


@each([("true", "y = x * 2.0"), ("False", "y = -x"), ("1", "y = x * 2.0")])
def test_a_boolean_on_the_command_line_is_true_or_false(
    given: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(with_branches([], c=onnx.TensorProto.BOOL), tmp_path / "m.onnx")
    assert run("import", tmp_path / "m.onnx", "-D", f"c={given}", "-o", tmp_path / "m.tpu") == 0
    assert wanted in (tmp_path / "m.tpu").read_text()
    assert run("import", tmp_path / "m.onnx", "-D", "c=yes", "-o", tmp_path / "n.tpu") == 2
    assert "c: yes is no size" in (said := " ".join(capsys.readouterr().err.split()))
    assert "of an input of one integer or boolean, -D takes a number from 0 on, true or false" in said


def test_of_a_computed_condition_both_branches_are_computed_and_one_is_chosen() -> None:
    steps = [node("ReduceMax", ["x"], ["m"], keepdims=1), node("Greater", ["m", "two"], ["c"])]
    model = with_branches(steps)
    for number in (1.0, 3.0):
        x = np.full((2, 4), number, np.float32)
        made = built(model)
        (wanted,) = session_of(model.SerializeToString()).run(None, {"x": x})
        assert np.array_equal(evaluate(bind_arrays(made.graph, made.weights), {"x": x})[made.graph.outputs[0].node], wanted)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("axes", [(4,), ()])
def test_quantised_files_have_the_integers_of_onnx_runtime(axes: tuple[int, ...], kind: Any, tmp_path: Path) -> None:
    onnx.save(quantised_network(kind, axes), tmp_path / "q.onnx")
    exe = tpucc.compile(tmp_path / "q.onnx")
    images = DRAW.normal(size=(6, 8, 8, 3)).astype(np.float32)
    session = session_of(tmp_path / "q.onnx")
    (wanted,) = session.run(None, {"x": images.transpose(0, 3, 1, 2)})
    assert np.abs(wanted).max() > 1
    np.testing.assert_array_equal(exe.run(images)["y"], wanted)


def test_a_part_of_a_part_is_one_slice(tmp_path: Path) -> None:
    """As the first state of a layer, of those of all layers."""
    constants = [whole("one", 1), whole("four", 4), whole("ends", 2), whole("zero", 0)]
    nodes = [node("Slice", ["x", "one", "four", "zero"], ["p"]), node("Slice", ["p", "one", "ends", "zero"], ["q"])]
    onnx.save(
        model_of([*nodes, node("Squeeze", ["q", "zero"], ["s"]), node("Relu", ["s"], ["y"])], constants, {"x": (5, 3)}), tmp_path / "m.onnx"
    )
    assert "relu(x[2:3])" in tpucc.import_onnx(tmp_path / "m.onnx").source


@pytest.mark.parametrize(("least", "name", "key"), [(-128, "w", "w"), (-127, "w", ""), (-128, "val_61", "fc.weight")])
def test_weights_below_those_of_a_layer_are_said(least: int, name: str, key: str) -> None:
    """By the name in the file."""
    integers = f"{name}_quantized"
    constants = [array(np.array([[least, 3], [5, 9]], np.int8), integers), array(np.float32(0.02), "ws"), array(np.int8(0), "wz")]
    nodes = [node("DequantizeLinear", [integers, "ws", "wz"], ["wd"]), node("MatMul", ["x", "wd"], ["y"], name="/fc/MatMul")]
    made = built(model_of(nodes, constants, {"x": (2, 2)}))
    assert made.notes == ((f"The integers -128 of {name} are -127 here where they are weights of a layer",) if key else ())
    assert not key or key in made.weights


def test_operators_on_integers_have_those_of_onnx_runtime(tmp_path: Path) -> None:
    weights, fc = (DRAW.integers(-127, 128, shape).astype(np.int8) for shape in ((4, 3, 3, 3), (4, 5)))
    constants = [
        array(np.float32(0.0213), "xs"),
        array(np.uint8(120), "z"),
        array(weights, "w"),
        array(np.float32(0.0071), "ws"),
        array(np.int8(0), "wz"),
        array(np.float32(0.0911), "hs"),
        array(DRAW.integers(-900, 900, 4).astype(np.int32), "b"),
        array(fc, "fc"),
        array(np.float32(0.0217), "ys"),
        whole("n", 6, 4, 64),
    ]
    nodes = [
        node("QuantizeLinear", ["x", "xs", "z"], ["q"]),
        node("QLinearConv", ["q", "xs", "z", "w", "ws", "wz", "hs", "z", "b"], ["h"], pads=[1] * 4),
        node("Reshape", ["h", "n"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        node("QLinearMatMul", ["t", "hs", "z", "fc", "ws", "wz", "ys", "z"], ["g"]),
        node("DequantizeLinear", ["g", "ys", "z"], ["y"]),
    ]
    onnx.save(model_of(nodes, constants, {"x": (6, 3, 8, 8)}), tmp_path / "q.onnx")
    images = DRAW.normal(size=(6, 8, 8, 3)).astype(np.float32)
    session = session_of(tmp_path / "q.onnx")
    (wanted,) = session.run(None, {"x": images.transpose(0, 3, 1, 2)})
    np.testing.assert_array_equal(tpucc.compile(tmp_path / "q.onnx").run(images)["y"], wanted)


def collecting(steps: str, condition: str) -> list[Any]:
    """A loop that gives columns of x, times their numbers, and their sum."""
    value = onnx.helper.make_tensor_value_info
    integer, float_ = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    inside = [
        node("Gather", ["x", "i"], ["column"], axis=1),
        node("Cast", ["i"], ["number"], to=1),
        node("Mul", ["column", "number"], ["each"]),
        node("Add", ["so_far", "each"], ["sum"]),
        node("Less", ["i", "limit"], ["more"]),
    ]
    given = [value("i", integer, []), value("go", onnx.TensorProto.BOOL, []), value("so_far", float_, [2])]
    made = [value("more", onnx.TensorProto.BOOL, []), value("sum", float_, [2]), value("column", float_, [2])]
    return [
        node(
            "Loop",
            [steps, condition, "zeros"],
            ["total", "columns"],
            body=onnx.helper.make_graph(inside, "body", given, made),
        ),
    ]


@each([("four", "true"), ("four", ""), ("many", "true"), ("", "true")])
def test_a_loop_of_known_steps_is_written_out(steps: str, condition: str) -> None:
    """As torch.nn.EmbeddingBag is exported: a `for`, a `for` that ends early, and a `while`."""
    constants = [
        array(np.array(4), "four"),
        array(np.array(100), "many"),
        array(np.array(3), "limit"),
        array(np.array(True), "true"),
        array(np.zeros(2, np.float32), "zeros"),
    ]
    made = compared(model_of(collecting(steps, condition), constants, {"x": (2, 5)}, ("total", "columns")))
    assert "concat" in ops(made)


@pytest.mark.soak
def test_a_loop_without_an_end_or_of_unknown_length_is_refused() -> None:
    value = onnx.helper.make_tensor_value_info
    go, on = value("go", onnx.TensorProto.BOOL, []), value("on", onnx.TensorProto.BOOL, [])
    inside = [node("Identity", ["go"], ["on"]), node("Relu", ["a"], ["b"])]
    given = [value("i", onnx.TensorProto.INT64, []), go, value("a", onnx.TensorProto.FLOAT, [2, 4])]
    body = onnx.helper.make_graph(inside, "body", given, [on, value("b", onnx.TensorProto.FLOAT, [2, 4])])
    loop = node("Loop", ["", "true", "x"], ["y"], body=body, name="/repeat")
    constants = [array(np.array(True), "true"), array(np.float32(0), "zero")]
    with pytest.raises(
        tpucc.Error, match=r"E1007: m.onnx: Loop: the steps of loops have more than 16,384 nodes together \(1 node: /repeat\)"
    ):
        built(model_of([loop], constants))
    inside[0] = node("Greater", ["s", "zero"], ["on"])
    inside.insert(0, node("ReduceSum", ["a"], ["s"], keepdims=0))
    body = onnx.helper.make_graph(inside, "body", given, [on, value("b", onnx.TensorProto.FLOAT, [2, 4])])
    with pytest.raises(tpucc.Error, match=r"E1007: m.onnx: Loop: the network computes how many steps it has"):
        built(model_of([node("Loop", ["", "true", "x"], ["y"], body=body)], constants))


def rounded(value: str, result: str, scale: str = "hs") -> list[Any]:
    """QuantizeLinear and DequantizeLinear of a value, as quantisers write them behind every operator."""
    integers = f"{result}_integers"
    return [node("QuantizeLinear", [value, scale, "z"], [integers]), node("DequantizeLinear", [integers, scale, "z"], [result])]


def test_what_lies_on_a_grid_is_not_rounded_again(tmp_path: Path) -> None:
    """A convolution's result has two roundings, and those of its reshape, its transpose and its slices are none."""
    constants = [
        array(np.float32(0.0213), "xs"),
        array(np.uint8(120), "z"),
        array(DRAW.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), "w"),
        array(np.float32(0.0071), "ws"),
        array(np.int8(0), "wz"),
        array(np.float32(0.0911), "hs"),
        array(DRAW.integers(-127, 128, (4, 5)).astype(np.int8), "fc"),
        array(np.float32(0.217), "ys"),
        whole("n", 6, 4, 64),
        *(whole(name, number) for name, number in (("zero", 0), ("half", 32), ("end", 64), ("axis", 1))),
    ]
    nodes = [
        *rounded("x", "image", "xs"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["kernel"]),
        node("Conv", ["image", "kernel"], ["c"], pads=[1] * 4),
        *rounded("c", "c1"),
        *rounded("c", "c2"),
        node("Reshape", ["c1", "n"], ["r"]),
        *rounded("r", "r1"),
        node("Transpose", ["r1"], ["t"], perm=[0, 2, 1]),
        *rounded("t", "t1"),
        node("Slice", ["t1", "zero", "half", "axis"], ["front"]),
        node("Slice", ["t1", "half", "end", "axis"], ["back"]),
        *rounded("front", "front1"),
        *rounded("back", "back1"),
        node("DequantizeLinear", ["fc", "ws", "wz"], ["matrix"]),
        node("MatMul", ["front1", "matrix"], ["g"]),
        *rounded("g", "y", "ys"),
        node("MatMul", ["back1", "matrix"], ["k"]),
        *rounded("k", "k1", "ys"),
        node("Relu", ["c2"], ["e"]),
        *rounded("e", "e1"),
    ]
    model = model_of(nodes, constants, {"x": (6, 3, 8, 8)}, ("y", "k1", "e1"))
    onnx.save(model, tmp_path / "q.onnx")
    assert ops(built(model).graph).count("quantize") == len(["x", "w", "c", "fc", "fc", "y", "k1", "e1"])  # a weight once for each reader
    images = DRAW.normal(size=(6, 8, 8, 3)).astype(np.float32)
    session = session_of(tmp_path / "q.onnx")
    wanted = session.run(None, {"x": images.transpose(0, 3, 1, 2)})
    wanted[2] = wanted[2].transpose(0, 2, 3, 1)
    for result, expected in zip(tpucc.compile(tmp_path / "q.onnx").run(images).values(), wanted, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_max_pool_a_concatenation_and_rows_of_a_table_are_not_rounded_again(tmp_path: Path) -> None:
    constants = [
        array(np.float32(0.0213), "xs"),
        array(np.uint8(120), "z"),
        array(DRAW.integers(-127, 128, (4, 4, 1, 1)).astype(np.int8), "w"),
        array(DRAW.integers(-127, 128, (4, 8, 1, 1)).astype(np.int8), "w2"),
        array(np.float32(0.0071), "ws"),
        array(np.int8(0), "wz"),
        array(np.float32(0.0911), "hs"),
    ]
    nodes = [
        *rounded("x", "image", "xs"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["kernel"]),
        node("DequantizeLinear", ["w2", "ws", "wz"], ["kernel2"]),
        node("Conv", ["image", "kernel"], ["c"]),
        *rounded("c", "c1"),
        node("MaxPool", ["c1"], ["p"], kernel_shape=[3, 3], pads=[1] * 4),
        *rounded("p", "p1"),
        node("Concat", ["p1", "c1"], ["j"], axis=1),
        *rounded("j", "j1"),
        node("Conv", ["j1", "kernel2"], ["d"]),
        *rounded("d", "y"),
    ]
    model = model_of(nodes, constants, {"x": (2, 4, 6, 8)})
    assert ops(built(model).graph).count("quantize") == len(["x", "w", "w2", "c", "y"])
    same_integers(model, tmp_path)
    table = [node("DequantizeLinear", ["e", "ts", "tz"], ["f"]), node("QuantizeLinear", ["f", "ts", "tz"], ["g"])]
    product = node("QLinearMatMul", ["g", "ts", "tz", "w", "ws", "wz", "ys", "yz"], ["h"])
    model = rows_of_integers(*table, product, node("DequantizeLinear", ["h", "ys", "yz"], ["y"]), kind=np.uint8)
    assert ops(built(model).graph).count("quantize") == len(["table", "w", "h"])
    same_integers(model, tmp_path, IDS)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_rounding_of_what_was_rounded_changes_nothing(bits: int) -> None:
    """For every integer, and scales over all of float32: so the import leaves the second rounding out."""
    of = INTEGER_FORMATS[f"i{bits}"]
    integers = np.arange(of.low, of.high + 1)
    for scale in 10.0 ** DRAW.uniform(-37, 32, 400):
        zero = int(DRAW.choice([0, of.low, of.high, int(DRAW.integers(of.low, of.high))]))
        held = dequantise(integers, float(np.float32(scale)), zero)
        np.testing.assert_array_equal(quantise(held, float(np.float32(scale)), zero, of), integers)


def same_integers(model: Any, folder: Path, ids: AnyArray | None = None) -> None:
    """The results of a quantised model are those of ONNX Runtime, bit for bit. Its inputs are `x`, or the numbers of rows `ids`."""
    onnx.save(model, folder / "q.onnx")
    session = session_of(folder / "q.onnx")
    exe = tpucc.compile(folder / "q.onnx")
    shape = session.get_inputs()[0].shape
    given = DRAW.normal(0, 1.5, shape).astype(np.float32) if ids is None else ids
    found = exe.run(given.transpose(0, 2, 3, 1) if given.ndim == 4 else given)
    layouts = built(model).layouts
    for (name, result), wanted in zip(found.items(), session.run(None, {session.get_inputs()[0].name: given}), strict=True):
        assert len(np.unique(wanted)) > 2
        np.testing.assert_array_equal(result, wanted.transpose(layouts.get(name, range(wanted.ndim))))


def rows_of_integers(*nodes: Any, outputs: tuple[str, ...] = ("y",), kind: Any = np.int8) -> Any:
    """A model that takes rows e [2, 6, 8] of a table of integers, by `ids`."""
    low, zero = (0, 117) if kind is np.uint8 else (-127, 0)
    constants = [
        array(DRAW.integers(low, low + 255, (20, 8)).astype(kind), "table"),
        array(np.float32(0.0213), "ts"),
        array(kind(zero), "tz"),
        array(np.float32(0.0471), "other"),
        array(kind(zero + 9), "oz"),
        array(DRAW.integers(-127, 128, (8, 5)).astype(np.int8), "w"),
        array(np.float32(0.0071), "ws"),
        array(np.int8(0), "wz"),
        array(np.float32(0.037), "ys"),
        array(kind(zero + 3), "yz"),
        array(np.uint8(120), "z"),
        whole("axis", 1),
    ]
    value = onnx.helper.make_tensor_value_info
    made = [value(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph = onnx.helper.make_graph(
        [node("Gather", ["table", "ids"], ["e"], name="rows"), *nodes], "m", [value("ids", onnx.TensorProto.INT64, [2, 6])], made, constants
    )
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


IDS = np.array([[3, 0, 19, 7, 7, 2], [11, 5, 4, 1, 18, 9]], np.int64)
PRODUCT = [
    node("QLinearMatMul", ["e", "ts", "tz", "w", "ws", "wz", "ys", "yz"], ["g"]),
    node("DequantizeLinear", ["g", "ys", "yz"], ["y"]),
]


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_a_table_of_integers_has_the_scale_that_is_said_later(kind: Any, tmp_path: Path) -> None:
    same_integers(rows_of_integers(*PRODUCT, kind=kind), tmp_path, IDS)
    moved = [
        node("Transpose", ["e"], ["t"], perm=[1, 0, 2]),
        node("Unsqueeze", ["t", "axis"], ["u"]),
        node("Squeeze", ["u", "axis"], ["v"]),
        node("DequantizeLinear", ["v", "ts", "tz"], ["y"]),
    ]
    same_integers(rows_of_integers(*moved, kind=kind), tmp_path, IDS)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_each_reader_of_integers_has_them_by_its_own_scale(kind: Any, tmp_path: Path) -> None:
    other = [
        node("QLinearMatMul", ["e", "other", "oz", "w", "ws", "wz", "ys", "yz"], ["h"]),
        node("DequantizeLinear", ["h", "ys", "yz"], ["k"]),
    ]
    third = node("DequantizeLinear", ["e", "other", "oz"], ["l"])
    same_integers(rows_of_integers(*PRODUCT, *other, third, outputs=("y", "k", "l"), kind=kind), tmp_path, IDS)


def test_integers_without_a_known_scale_are_refused_by_name() -> None:
    sums = node("DequantizeLinear", ["e", "s", "tz"], ["y"], name="real")
    model = rows_of_integers(node("ReduceMax", ["f"], ["s"], keepdims=0), sums)
    model.graph.input.append(onnx.helper.make_tensor_value_info("f", onnx.TensorProto.FLOAT, [4]))
    with pytest.raises(
        tpucc.Error, match=r"E1007: m.onnx: DequantizeLinear: the network computes its scale \(1 node: real\)\n.*a constant of the file"
    ):
        built(model)
    with pytest.raises(tpucc.Error, match=r"E1001: m.onnx: real \(DequantizeLinear\): operands of the shapes"):
        built(rows_of_integers(*PRODUCT, node("DequantizeLinear", ["e", "ts", "z"], ["k"], name="real"), outputs=("y", "k")))
    far = rows_of_integers(*PRODUCT, node("DequantizeLinear", ["e", "far", "tz"], ["k"], name="real"), outputs=("y", "k"))
    far.graph.initializer.append(array(np.float32(1e30), "far"))
    with pytest.raises(tpucc.Error, match=r"the scale 1e\+30 of integers that have the scale 0.0213 elsewhere"):
        built(far)


MOVING = [
    [node("ReduceMax", ["q", "axes"], ["r"])],
    [node("DepthToSpace", ["q"], ["r"], blocksize=2)],
    [node("SpaceToDepth", ["q"], ["r"], blocksize=2)],
    [node("GatherND", ["q", "places"], ["r"])],
    [node("Gather", ["q", "many"], ["r"], axis=3)],
    [node("Resize", ["q", "", "twice"], ["r"], coordinate_transformation_mode="asymmetric", nearest_mode="floor")],
    [node("Resize", ["q", "", "twice"], ["r"], mode="linear")],
    [node("Resize", ["q", "", "twice"], ["r"], nearest_mode="ceil")],
    [node("Resize", ["q", "", "half"], ["r"], mode="linear")],
    [node("Split", ["q"], ["a", "b"], axis=1, num_outputs=2), node("Concat", ["b", "a"], ["r"], axis=1)],
    [node("QuantizeLinear", ["x", "s2", "z"], ["p"]), node("Concat", ["q", "p"], ["r"], axis=1)],
    [node("com.microsoft", ["s2", "z", "q", "s", "z", "c", "s2", "z"], ["r"])],
]


@pytest.mark.parametrize(("nodes", "kind"), one_of(2, [(nodes, (np.int8, np.uint8)[index % 2]) for index, nodes in enumerate(MOVING)]))
def test_integers_that_move_keep_their_scale(nodes: list[Any], kind: Any, tmp_path: Path) -> None:
    """Each between a convolution and another one: what moves stays as the first has made it."""
    nodes = [onnx.NodeProto.FromString(found.SerializeToString()) for found in nodes]
    scale = "s"
    for found in nodes:
        if found.op_type == "com.microsoft":
            found.op_type, found.domain, scale = "QLinearConcat", "com.microsoft", "s2"
            found.attribute.append(onnx.helper.make_attribute("axis", 1))
    info = np.iinfo(kind)
    constants = [
        array(np.float32(0.0213), "s"),
        array(np.float32(0.0331), "s2"),
        array(kind((info.min + info.max + 1) // 2 - 8), "z"),
        array(DRAW.integers(-127, 128, (4, 4, 1, 1)).astype(np.int8), "w"),
        array(np.float32(0.0071), "ws"),
        array(np.int8(0), "wz"),
        array(DRAW.integers(info.min, info.max + 1, (2, 3, 6, 8)).astype(kind), "c"),
        array(np.array([1, 1, 2, 2], np.float32), "twice"),
        array(np.array([1, 1, 0.5, 0.5], np.float32), "half"),
        array(np.array([[0, 1, 2], [1, 3, 5], [1, 2, 0]], np.int64), "places"),
        array(np.array([7, 0, 3, 3, 1, 6, 2, 5, 4, 0, 7, 1, 0, 5], np.int64), "many"),
        whole("axes", 2, 3),
    ]
    first = [node("QuantizeLinear", ["x", "s", "z"], ["i"]), node("QLinearConv", ["i", "s", "z", "w", "ws", "wz", "s", "z"], ["q"])]
    model = model_of([*first, *nodes, node("DequantizeLinear", ["r", scale, "z"], ["y"])], constants, {"x": (2, 4, 6, 8)})
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    same_integers(model, tmp_path)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("second", ["p", "c"])
def test_a_choice_of_integers_is_that_of_onnx_runtime(second: str, kind: Any, tmp_path: Path) -> None:
    """QLinearWhere of two values, or of a value and a constant, whose scales differ."""
    constants = [
        *(array(np.float32(scale), name) for name, scale in (("s", 0.0213), ("s2", 0.0331), ("s3", 0.0277), ("ws", 0.0071))),
        *(array(kind(128 * (kind is np.uint8) + zero), name) for name, zero in (("z", -8), ("z2", 3), ("z3", 11))),
        array(DRAW.integers(-127, 128, (6, 6)).astype(np.int8), "w"),
        array(np.int8(0), "wz"),
        array(kind(77), "c"),
        array(np.array([True, False, False, True, True, False]), "mask"),
    ]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["i"]),
        node("QLinearMatMul", ["i", "s", "z", "w", "ws", "wz", "s", "z"], ["q"]),
        node("QuantizeLinear", ["x", "s2", "z2"], ["p"]),
        node("QLinearWhere", ["mask", "q", "s", "z", second, "s2", "z2", "s3", "z3"], ["r"], domain="com.microsoft"),
        node("DequantizeLinear", ["r", "s3", "z3"], ["y"]),
    ]
    model = model_of(nodes, constants, {"x": (5, 6)})
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    same_integers(model, tmp_path)


def test_the_gates_of_a_product_with_a_bias_and_a_constant_of_its_own_scale_are_those_of_onnx_runtime(tmp_path: Path) -> None:
    """A cell's first step: its bias is added to the sums of each gate, and the product of the first state is a constant."""
    scales = {"s": 0.0213, "ws": 0.0071, "gs": 0.0277, "cs": 0.0119, "hs": 0.0349, "ys": 1 / 256}
    constants = [
        *(array(np.float32(scale), name) for name, scale in scales.items()),
        *(array(np.int8(zero), name) for name, zero in (("z", 3), ("wz", 0), ("gz", -7), ("cz", 11), ("hz", 5), ("yz", -128))),
        array(DRAW.integers(-127, 128, (6, 8)).astype(np.int8), "w"),
        array(DRAW.integers(-3000, 3000, 8).astype(np.int32), "b"),
        array(DRAW.integers(-90, 60, (5, 8)).astype(np.int8), "c"),
        whole("halves", 4, 4),
    ]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["i"]),
        node("QGemm", ["i", "s", "z", "w", "ws", "wz", "b", "gs", "gz"], ["g"], domain="com.microsoft"),
        node("QLinearAdd", ["g", "gs", "gz", "c", "cs", "cz", "hs", "hz"], ["h"], domain="com.microsoft"),
        node("Split", ["h", "halves"], ["first", "second"], axis=1),
        node("QLinearSigmoid", ["first", "hs", "hz", "ys", "yz"], ["r"], domain="com.microsoft"),
        node("DequantizeLinear", ["r", "ys", "yz"], ["y"]),
        node("DequantizeLinear", ["second", "hs", "hz"], ["v"]),
    ]
    same_integers(model_of(nodes, constants, {"x": (5, 6)}, ("y", "v")), tmp_path)


def test_a_zero_point_that_is_left_out_is_0_of_the_operands_type(tmp_path: Path) -> None:
    constants = [array(np.float32(0.05), "s"), array(np.int8(0), "z")]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"])]
    nodes += [node("QLinearAdd", ["q", "s", "z", "q", "s", "z", "s"], ["p"], domain="com.microsoft")]
    same_integers(model_of([*nodes, node("DequantizeLinear", ["p", "s", "z"], ["y"])], constants, {"x": (2, 6)}), tmp_path)


@each([("int16", -300), ("uint16", 40_000)])
def test_zero_points_of_sixteen_bits_are_read(kind: str, zero: int, tmp_path: Path) -> None:
    constants = [array(np.float32(0.0002), "s"), array(np.dtype(kind).type(zero), "z")]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("Relu", ["d"], ["r"])]
    nodes += [node("QuantizeLinear", ["r", "s", "z"], ["p"]), node("DequantizeLinear", ["p", "s", "z"], ["y"])]
    same_integers(model_of(nodes, constants, {"x": (2, 6)}), tmp_path)


@pytest.mark.parametrize("integers", ["x", "c"])
def test_an_infinite_scale_is_refused_with_what_to_do(integers: str) -> None:
    """As quantisers write it where a mask has -inf."""
    constants = [array(np.float32(np.inf), "s"), array(np.uint8(0), "z"), array(np.ones((2, 3), np.uint8), "c")]
    quantised = [node("QuantizeLinear", ["x", "s", "z"], ["q"])] if integers == "x" else []
    read = node("DequantizeLinear", ["q" if integers == "x" else "c", "s", "z"], ["d"], name="mask")
    with pytest.raises(tpucc.Error, match=r"the scale (s|of c) is inf") as caught:
        built(model_of([*quantised, read, node("Add", ["x", "d"], ["y"])], constants, {"x": (2, 3)}))
    assert "mask by -30 in the place of -inf" in " ".join(caught.value.diagnostics[0].help)


def test_only_infinite_constants_are_said_to_be_infinite() -> None:
    for number, said in ((-np.inf, True), (np.finfo(np.float32).min, False)):
        made = built(model_of([node("Add", ["x", "m"], ["y"])], [array(np.float32([0, number, 1]), "m")], {"x": (2, 3)}))
        assert any("Infinite constants" in note for note in made.notes) is said


def test_numbers_of_rows_of_a_table_of_integers_have_its_range() -> None:
    """Without it calibration draws the first row only, and what stands behind has the ranges of that row."""
    constants = [array(np.float32(0.01), "s"), array(np.int8(0), "z"), array(DRAW.integers(-127, 128, (9, 4)).astype(np.int8), "t")]
    nodes = [node("DequantizeLinear", ["t", "s", "z"], ["table"]), node("Gather", ["table", "ids"], ["y"])]
    model = model_of(nodes, constants, {"ids": (2, 3)})
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    (ids,) = built(model).graph.inputs
    assert ids.type.dtype == "i32"
    assert (ids.type.range.low, ids.type.range.high) == (0, 8)


def rounded_by(x: str, scale: str, y: str) -> list[Any]:
    return [node("QuantizeLinear", [x, scale, "z"], [f"{y}.q"]), node("DequantizeLinear", [f"{y}.q", scale, "z"], [y])]


def test_a_constant_of_16_bits_is_computed_in_float32(tmp_path: Path) -> None:
    """A first state of zeros makes the first step's product a constant, which quantisers round as any value."""
    constants = [
        *(array(np.float32(scale), name) for name, scale in (("s", 0.0002), ("s2", 0.0003), ("s3", 0.0004))),
        array(np.int16(0), "z"),
        drawn("w", 3, 3),
    ]
    state = node("ConstantOfShape", ["shape"], ["state"])
    product = [node("MatMul", ["state", "w"], ["a"]), node("Sigmoid", ["a"], ["b"]), *rounded_by("b", "s", "c")]
    nodes = [state, *product, *rounded_by("x", "s2", "d"), node("Mul", ["c", "d"], ["e"]), *rounded_by("e", "s3", "y")]
    model = model_of(nodes, [*constants, whole("shape", 2, 3)], {"x": (2, 3)})
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    x = DRAW.normal(0, 1, (2, 3)).astype(np.float32)
    found = tpucc.import_onnx(path).compile().run(x=x)["y"]
    (wanted,) = session_of(path).run(None, {"x": x})
    assert np.abs(found - wanted).max() <= 0.0004 * 1.01


def test_cubic_interpolation_of_integers_is_refused() -> None:
    model = of_integers(node("Resize", ["q", "", "sizes"], ["r"], mode="cubic"))
    model.graph.initializer.append(array(np.array([1, 2], np.float32), "sizes"))
    with pytest.raises(tpucc.Error, match=r"E1007: m.onnx: Resize: cubic interpolation of integers(.|\n)*ONNX Runtime has none"):
        built(model)


def of_integers(*nodes: Any) -> Any:
    """A model of nodes from the integers q of x to r, which are uint8."""
    constants = [
        array(np.float32(0.0213), "s"),
        array(np.uint8(120), "z"),
        whole("pads", 0, 1, 2, 0),
        array(np.uint8(133), "value"),
        array(DRAW.integers(0, 256, (3, 6)).astype(np.uint8), "c"),
    ]
    ends = node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["r", "s", "z"], ["y"])
    return model_of([ends[0], *nodes, ends[1]], constants, {"x": (3, 5)})


def test_constants_beside_integers_stand_for_real_values() -> None:
    compared(of_integers(node("Pad", ["q", "pads", "value"], ["p"]), node("Concat", ["p", "c"], ["r"], axis=0)))
    compared(of_integers(node("Pad", ["q", "pads"], ["r"])))


def test_a_computation_with_integers_of_a_scale_is_refused() -> None:
    for found in ([node("Cast", ["q"], ["f"], to=1), node("Cast", ["f"], ["r"], to=2)], [node("Max", ["q", "value"], ["r"])]):
        with pytest.raises(tpucc.Error, match=r"computes with the integers of quantised values(.|\n)*DequantizeLinear before it"):
            built(of_integers(*found))
    product = [node("MatMulInteger", ["q", "m", "z"], ["i"]), node("Cast", ["i"], ["r"], to=2)]
    for zero in ([], ["other"]):
        product[0].input[2:] = zero
        model = of_integers(*product)
        model.graph.initializer.extend([array(np.ones((5, 2), np.int8), "m"), array(np.uint8(119), "other")])
        with pytest.raises(tpucc.Error, match="MatMulInteger: integers with another zero point than that of their QuantizeLinear"):
            built(model)


@each(
    [
        ("Conv", (6, 4, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
        ("Conv", (4, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
        ("Conv", (8, 1, 2, 2), {"group": 4}),
        ("ConvTranspose", (4, 3, 3, 2), {"strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ]
)
def test_kernels_may_be_computed(op: str, kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    nodes = [node("Tanh", ["k"], ["t"]), node(op, ["x", "t", "b"], ["y"], **attributes)]
    filters = kernel[0] if op == "Conv" else kernel[1]
    compared(model_of(nodes, [], {"x": (2, 4, 7, 9), "k": kernel, "b": (filters,)}))


def test_a_network_of_dynamic_filters_has_a_kernel_for_each_image() -> None:
    """A product makes the kernels, and each image is a group: [1, N·C, H, W] with [N·F, C, 3, 3]."""
    nodes = [
        node("MatMul", ["z", "w"], ["k"]),
        node("Reshape", ["k", "kernels"], ["kernel"]),
        node("Reshape", ["x", "groups"], ["image"]),
        node("Conv", ["image", "kernel"], ["c"], group=2, pads=[1, 1, 1, 1]),
        node("Reshape", ["c", "images"], ["y"]),
    ]
    constants = [drawn("w", 5, 72), whole("kernels", 4, 4, 3, 3), whole("groups", 1, 8, 7, 9), whole("images", 2, 2, 7, 9)]
    assert "conv2d" in ops(compared(model_of(nodes, constants, IMAGE | {"z": (2, 5)})))


def test_a_transposed_convolution_with_a_computed_kernel_has_no_groups() -> None:
    nodes = [node("Tanh", ["k"], ["t"]), node("ConvTranspose", ["x", "t"], ["y"], group=2)]
    with pytest.raises(tpucc.Error, match="its kernel is computed and would get zeros"):
        built(model_of(nodes, [], IMAGE | {"k": (4, 3, 2, 2)}))


def test_dynamic_quantisation_is_computed_with_real_values() -> None:
    weights = DRAW.integers(-127, 128, (6, 5)).astype(np.int8)
    constants = [array(weights, "w"), array(np.int8(0), "wz"), array(np.float32(0.01), "ws")]
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        node("Cast", ["i"], ["f"], to=1),
        node("Mul", ["s", "ws"], ["m"]),
        node("Mul", ["f", "m"], ["y"]),
    ]
    made = built(model_of(nodes, constants, {"x": (3, 6)}))
    x = DRAW.normal(size=(3, 6)).astype(np.float32)
    (value,) = evaluate(bind_arrays(made.graph, made.weights), {"x": x}).values()
    np.testing.assert_allclose(value, x @ (weights * np.float32(0.01)), rtol=1e-4, atol=1e-5)
    assert any("calibration" in note for note in made.notes)
