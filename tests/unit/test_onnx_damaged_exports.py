"""Networks as exporters write them, with one thing changed: what is said of each names the file, the node and what is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of

onnx = pytest.importorskip("onnx")
node, array, TensorProto = onnx.helper.make_node, onnx.numpy_helper.from_array, onnx.TensorProto
SECONDS = 5
"""In which a message is there, also on a machine with other work."""


def drawn(name: str, *shape: int) -> Any:
    return array(np.random.default_rng(len(name)).normal(0, 0.1, shape).astype(np.float32), name)


def images() -> Any:
    """As PyTorch writes convolutions."""
    nodes = [
        node("Conv", ["image", "conv.weight", "conv.bias"], ["a"], pads=[1, 1, 1, 1], name="/conv/Conv"),
        node("BatchNormalization", ["a", *["bn.weight"] * 4], ["n"], epsilon=1e-5, name="/bn"),
        node("Relu", ["n"], ["r"], name="/relu"),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2], name="/pool"),
        node("Flatten", ["p"], ["f"], axis=1, name="/flat"),
        node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], transB=1, name="/fc/Gemm"),
    ]
    ones = array(np.ones(4, np.float32), "bn.weight")
    weights = [drawn("conv.weight", 4, 1, 3, 3), drawn("conv.bias", 4), ones, drawn("fc.weight", 5, 64), drawn("fc.bias", 5)]
    return model_of(nodes, weights, {"image": ("batch", 1, 8, 8)})


def channels_last() -> Any:
    """As tf2onnx writes convolutions of Keras."""
    nodes = [
        node("Transpose", ["x:0"], ["net/t:0"], perm=[0, 3, 1, 2], name="net/t"),
        node("Conv", ["net/t:0", "net/k/ReadVariableOp:0"], ["net/c:0"], auto_pad="SAME_UPPER", strides=[1, 1], name="net/c"),
        node("Transpose", ["net/c:0"], ["y"], perm=[0, 2, 3, 1], name="net/u"),
    ]
    return model_of(nodes, [drawn("net/k/ReadVariableOp:0", 4, 3, 3, 3)], {"x:0": ("unk__6", 8, 8, 3)})


def steps() -> Any:
    """As PyTorch writes an LSTM."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2], name="/turned"),
        node("LSTM", ["t", "W", "R", "B"], ["h", "last"], hidden_size=4, direction="forward", layout=0, name="/lstm/LSTM"),
        node("Squeeze", ["last", "axes"], ["l"], name="/squeezed"),
        node("MatMul", ["l", "fc"], ["y"], name="/fc"),
    ]
    weights = [drawn("W", 1, 16, 3), drawn("R", 1, 16, 4), drawn("B", 1, 32), array(np.array([0]), "axes"), drawn("fc", 4, 2)]
    return model_of(nodes, weights, {"x": ("batch", 5, 3)})


def integers() -> Any:
    """As ONNX Runtime's quantiser writes a product in the form QDQ."""
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q1"),
        node("DequantizeLinear", ["q", "s", "z"], ["d"], name="d1"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1, name="dw"),
        node("MatMul", ["d", "wd"], ["m"], name="mm"),
        node("QuantizeLinear", ["m", "s", "z"], ["p"], name="q2"),
        node("DequantizeLinear", ["p", "s", "z"], ["y"], name="d2"),
    ]
    scales = [array(np.float32(0.05), "s"), array(np.uint8(128), "z"), array(np.float32([0.01, 0.02, 0.03]), "ws")]
    weights = [array(np.arange(12, dtype=np.int8).reshape(4, 3), "w"), array(np.zeros(3, np.int8), "wz")]
    return model_of(nodes, [*scales, *weights], {"x": ("batch", 4)})


def words() -> Any:
    """As PyTorch writes an attention of the rows of a table."""
    nodes = [
        node("Gather", ["table", "ids"], ["e"], axis=0, name="/rows"),
        node("LayerNormalization", ["e", "g", "b"], ["n"], axis=-1, epsilon=1e-5, name="/norm"),
        node("Transpose", ["n"], ["k"], perm=[0, 2, 1], name="/turned"),
        node("MatMul", ["n", "k"], ["s"], name="/scores"),
        node("Softmax", ["s"], ["p"], axis=-1, name="/shares"),
        node("MatMul", ["p", "n"], ["y"], name="/mixed"),
    ]
    model = model_of(nodes, [drawn("table", 10, 8), drawn("g", 8), drawn("b", 8)], {"ids": ("batch", 6)})
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return model


Change = Callable[[Any], None]


def constant(name: str, value: Any) -> Change:
    """Another value of a constant."""
    return lambda model: next(tensor for tensor in model.graph.initializer if tensor.name == name).CopyFrom(array(np.asarray(value), name))


def attribute(name: str, where: str, value: Any) -> Change:
    """Another value of an attribute that a node has."""

    def change(model: Any) -> None:
        (found,) = [one for each in model.graph.node if each.name == where for one in each.attribute if one.name == name]
        found.CopyFrom(onnx.helper.make_attribute(name, value))

    return change


def operand(where: str, place: int, name: str) -> Change:
    """Another operand of a node."""

    def change(model: Any) -> None:
        (found,) = [each for each in model.graph.node if each.name == where]
        found.input[place] = name

    return change


def called(where: str, op: str, domain: str = "", has_opset: bool = True) -> Change:
    """Another operator of a node, of a domain of which the model has an opset, or not."""

    def change(model: Any) -> None:
        (found,) = [each for each in model.graph.node if each.name == where]
        found.op_type, found.domain = op, domain
        model.opset_import.extend([onnx.helper.make_opsetid(domain, 1)] * (bool(domain) and has_opset))

    return change


def of_type(number: int) -> Change:
    """Another type of the input."""
    return lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", number)


F = np.float32
DAMAGED: dict[str, tuple[Callable[[], Any], Change, str]] = {
    "bias": (images, constant("conv.bias", F([0] * 5)), "/conv/Conv (Conv): operands of the shapes"),
    "kernel": (images, constant("conv.weight", np.ones((4, 2, 3, 3), F)), "/conv/Conv (Conv): operands of the shapes"),
    "kernel of words": (images, attribute("pads", "/conv/Conv", "SAME"), "/conv/Conv (Conv): onnx.checker says: Mismatched attribute type"),
    "kernel axes": (
        images,
        constant("conv.weight", np.ones((4, 1, 3), F)),
        "/conv/Conv (Conv): operands of the shapes",
    ),
    "statistics": (images, constant("bn.weight", F([1] * 3)), "/bn (BatchNormalization): operands of the shapes"),
    "epsilon": (images, attribute("epsilon", "/bn", [1.0]), "/bn (BatchNormalization): onnx.checker says: Mismatched attribute type"),
    "product": (
        images,
        attribute("transB", "/fc/Gemm", 0),
        "/fc/Gemm (Gemm): operands of the shapes",
    ),
    "flag": (images, attribute("transB", "/fc/Gemm", 1.0), "/fc/Gemm (Gemm): onnx.checker says: Mismatched attribute type"),
    "added": (images, constant("fc.bias", F([0] * 4)), "/fc/Gemm (Gemm): operands of the shapes"),
    "pads": (images, attribute("pads", "/conv/Conv", [-1] * 4), "/conv/Conv (Conv): operands of the shapes"),
    "few pads": (images, attribute("pads", "/conv/Conv", [1] * 3), "/conv/Conv (Conv): operands of the shapes"),
    "strides": (images, attribute("strides", "/pool", [0, 2]), "/pool (MaxPool): operands of the shapes"),
    "window": (images, attribute("kernel_shape", "/pool", [2]), "/pool (MaxPool): operands of the shapes"),
    "tensor": (
        images,
        attribute("kernel_shape", "/pool", drawn("k", 2)),
        "onnx.checker says: Mismatched attribute type",
    ),
    "flat": (images, attribute("axis", "/flat", 9), "/flat (Flatten): operands of the shapes"),
    "no type": (images, of_type(0), "an input, image, has elements of the unknown type 0"),
    "permutation": (channels_last, attribute("perm", "net/t", [0, 3, 1, 1]), "net/t (Transpose): operands of the shapes"),
    "short permutation": (channels_last, attribute("perm", "net/t", [1, 0]), "net/t (Transpose): operands of the shapes"),
    "channels": (
        channels_last,
        attribute("perm", "net/t", [0, 1, 2, 3]),
        "net/c (Conv): operands of the shapes",
    ),
    "word": (channels_last, attribute("auto_pad", "net/c", "same"), "net/c (Conv): operands of the shapes"),
    "one stride": (channels_last, attribute("strides", "net/c", [2]), "net/c (Conv): operands of the shapes"),
    "units": (
        steps,
        attribute("hidden_size", "/lstm/LSTM", 5),
        "/lstm/LSTM (LSTM): operands of the shapes",
    ),
    "directions": (steps, attribute("direction", "/lstm/LSTM", "bidirectional"), "/lstm/LSTM (LSTM): operands of the shapes"),
    "direction": (
        steps,
        attribute("direction", "/lstm/LSTM", "both"),
        "direction = 'both'",
    ),
    "no opset": (
        images,
        called("/relu", "Relu", "mine", has_opset=False),
        "/relu (Relu): it is of mine, and the model has no opset of that",
    ),
    "layout": (steps, attribute("layout", "/lstm/LSTM", 7), "/lstm/LSTM (LSTM): operands of the shapes"),
    "biases": (steps, constant("B", np.zeros((1, 16), F)), "/lstm/LSTM (LSTM): operands of the shapes"),
    "features": (steps, constant("W", np.zeros((1, 16, 2), F)), "/lstm/LSTM (LSTM): operands of the shapes"),
    "axes as floats": (steps, constant("axes", F([0])), "/squeezed (Squeeze): operands of the shapes"),
    "inner sizes": (steps, constant("fc", np.ones((3, 2), F)), "/fc (MatMul): operands of the shapes"),
    "scales": (integers, constant("ws", F([0.1] * 2)), "dw (DequantizeLinear): operands of the shapes"),
    "scales and zeros": (integers, attribute("axis", "dw", 0), "dw (DequantizeLinear): operands of the shapes"),
    "axis": (integers, attribute("axis", "dw", 5), "dw (DequantizeLinear): operands of the shapes"),
    "zeros": (
        integers,
        constant("z", np.zeros(2, np.uint8)),
        "q1 (QuantizeLinear): operands of the shapes",
    ),
    "rewired": (integers, operand("q2", 0, "q"), "q2 (QuantizeLinear): operands of the shapes"),
    "shares": (words, attribute("axis", "/shares", 3), "/shares (Softmax): operands of the shapes"),
    "norm": (words, attribute("axis", "/norm", -9), "/norm (LayerNormalization): operands of the shapes"),
    "norm's weights": (words, constant("g", np.ones(7, F)), "/norm (LayerNormalization): operands of the shapes"),
    "list": (words, attribute("axis", "/rows", [0, 1]), "/rows (Gather): onnx.checker says: Mismatched attribute type"),
    "turned": (words, attribute("perm", "/turned", [0, 2, 3]), "/turned (Transpose): operands of the shapes"),
    "circle": (words, operand("/norm", 0, "s"), "are in a circle"),
    "nothing": (words, operand("/norm", 0, "gone"), "/norm (LayerNormalization) reads gone, which nothing computes"),
}
"""What no sound file has."""
BEYOND: dict[str, tuple[Callable[[], Any], Change, str, str]] = {
    "large padding": (
        images,
        attribute("pads", "/conv/Conv", [60000] * 4),
        "Conv: a value [8, 120006, 120006, 4] takes",
        "a smaller batch",
    ),
    "large window": (
        images,
        attribute("kernel_shape", "/pool", [11, 11]),
        "MaxPool: the window's height of 11 is more than the image's 8",
        "pad the image",
    ),
    "large kernel": (
        images,
        constant("conv.weight", np.ones((4, 1, 3, 11), F)),
        "Conv: the window's width of 11 is more than the image's 8 and 2 of padding",
        "pad the image",
    ),
    "small letters": (images, called("/relu", "relu"), "tpucc has nothing for the operator relu (1 node: /relu)", "did you mean Relu?"),
    "domain": (
        images,
        called("/relu", "Relu", "mine"),
        "tpucc has nothing for the operator mine.Relu (1 node: /relu)",
        "ONNX's own operators",
    ),
    "texts": (images, of_type(TensorProto.STRING), "the input image has elements of strings", "inputs are numbers or booleans"),
    "NaN": (
        images,
        constant("bn.weight", F([np.nan] * 4)),
        "BatchNormalization: a constant is not a number (NaN) (1 node: /bn)",
        "damaged",
    ),
    "epsilon below 0": (words, attribute("epsilon", "/norm", -1.0), "LayerNormalization: epsilon must not be negative", "export it again"),
    "columns": (words, attribute("axis", "/rows", 1), "Gather: places that the network computes (1 node: /rows)", "along its first axis"),
    "no rows": (
        words,
        constant("table", np.ones((0, 8), F)),
        "Gather: the weight table has the shape [0, 8] (1 node: /rows)",
        "at least 1",
    ),
}
"""What other programs may take, with what to do."""


def refused(model: Any, folder: Path) -> tpucc.Error:
    """The error of a file, which comes soon."""
    onnx.save(model, folder / "m.onnx")
    started = time.process_time()
    with pytest.raises(tpucc.Error) as raised:
        tpucc.import_onnx(folder / "m.onnx")
    assert time.process_time() - started < SECONDS
    return raised.value


@each([images, channels_last, steps, integers, words])
def test_the_networks_are_sound(make: Callable[[], Any], tmp_path: Path) -> None:
    onnx.save(make(), tmp_path / "m.onnx")
    tpucc.import_onnx(tmp_path / "m.onnx").compile()


@each(DAMAGED)
def test_what_is_damaged(make: Callable[[], Any], change: Change, says: str, tmp_path: Path) -> None:
    change(model := make())
    error = refused(model, tmp_path)
    assert error.exit_status == 3
    (found,) = error.diagnostics
    assert found.code in ("E1001", "E1002")
    assert found.message.startswith("m.onnx: ")
    assert says in found.message
    assert found.help


@each(BEYOND)
def test_what_is_beyond_tpucc(make: Callable[[], Any], change: Change, says: str, mend: str, tmp_path: Path) -> None:
    change(model := make())
    error = refused(model, tmp_path)
    assert error.exit_status == 1
    found = error.diagnostics[0]
    assert found.code in ("E1006", "E1007")
    assert found.message.startswith(f"m.onnx: {says}")
    assert mend in found.help[0]
