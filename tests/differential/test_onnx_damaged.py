"""Quantised exports with a number, a type or an operand that was changed: an error, or the integers that ONNX Runtime has of the changed
file; never the network of the file before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, each, one_of
from tests.support.onnxruntime import session as session_of
from tpucc.numerics import AnyArray

onnx = pytest.importorskip("onnx")
reading = pytest.importorskip("tpucc.interop.onnx.reading")

HEAD = "weights random(seed=1)\nmodel m(x: f32[{shape}] in [-2.0, 2.0]):\n"
MATRICES = (
    HEAD.format(shape="3, 4")
    + """    weight w: f32[4, 4]
    weight u: f32[4, 4]
    weight b: f32[4]
    h = relu(x @ w)
    g = tanh(x @ u + b)
    return concat([h + g, g * b, clip(h, 0.1, 0.5)])
"""
)
IMAGES = (
    HEAD.format(shape="1, 5, 5, 3")
    + """    weight k: f32[3, 3, 3, 4]
    weight b: f32[4]
    h = avg_pool(relu(conv2d(x, k, padding=1) + b), size=3, stride=2, padding=1)
    return global_avg_pool(max_pool(pad(h, ((0, 0), (1, 0), (0, 1), (0, 0)))))
"""
)
KINDS = {f"{name} of {bits} bits": (text, bits) for name, text in (("matrices", MATRICES), ("images", IMAGES)) for bits in (8, 16)}
ANEW = {("matrices of 16 bits", "mul.zero.1")}
"""The zero point of a constant, which no constant of 16 bits has in the source that is imported: it is quantised anew."""


def written(text: str, bits: int, folder: Path) -> Any:
    """The quantised export of a source, as `onnx` has it."""
    tpucc.export_onnx(tpucc.compile_source(text, activation_bits=bits), folder / "m.onnx", quantized=True)
    return onnx.load(folder / "m.onnx")


def changed(array: AnyArray) -> AnyArray:
    """Other numbers: the same ones backwards, so that weights have their scales again, or where that is no change, larger ones."""
    turned = np.flip(array)
    return turned if not np.array_equal(turned, array) else (array + np.array(3, array.dtype)).astype(array.dtype)


def damages(model: Any) -> Iterator[tuple[str, Any]]:
    """The model with one change after the other, each taken back: of every constant; and at the first node of each kind, of the type that
    it makes, and of each constant of one number that it reads, in the place of which it reads another one."""
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for tensor in model.graph.initializer:
        kept, tensor.raw_data = tensor.raw_data, changed(arrays[tensor.name]).tobytes()
        yield tensor.name, model
        tensor.raw_data = kept
    kinds = {(node.op_type, *(attribute.i for attribute in node.attribute)): node for node in reversed(model.graph.node)}
    for node in kinds.values():
        for attribute in node.attribute:
            if attribute.name == "to":
                kept, attribute.i = attribute.i, onnx.TensorProto.FLOAT16
                yield f"{node.name}: to", model
                attribute.i = kept
        for place, name in enumerate(node.input):
            alike = (other for other, array in arrays.items() if name in arrays and array.shape == arrays[name].shape == ())
            other = next((other for other in alike if arrays[other].dtype == arrays[name].dtype and arrays[other] != arrays[name]), None)
            if other is not None:
                node.input[place] = other
                yield f"{node.name}: {other} in the place of {name}", model
                node.input[place] = name


def results_of(model: Any, x: AnyArray) -> list[AnyArray]:
    """Those of ONNX Runtime, without its optimizer."""
    return [np.asarray(found) for found in session_of(model, optimised=False).run(None, {"x": x})]


def network(path: Path) -> object:
    """What a file is read as, and the values of its weights."""
    built = reading.read(path).built({})
    return [(node.op, node.operands, node.attributes) for node in built.graph], {key: a.tobytes() for key, a in built.weights.items()}


def read_or_refused(model: Any, path: Path, read: Callable[[Path], Any]) -> Any:
    """What a changed file is read as; None if that is an error, which is damage or says what isn't read."""
    path.write_bytes(model.SerializeToString())
    try:
        return read(path)
    except tpucc.Error as error:
        codes = {found.code for found in error.diagnostics}
    assert codes <= {"E1001", "E1006", "E1007"}
    return None


@pytest.mark.long
@each(KINDS)
def test_a_changed_file_is_never_read_as_it_was(text: str, bits: int, tmp_path: Path) -> None:
    model, path = written(text, bits, tmp_path), tmp_path / "m.onnx"
    undamaged = network(path)
    found = {title: read_or_refused(damaged, path, network) for title, damaged in damages(model)}
    assert sum(each is None for each in found.values()) > len(found) / 2
    assert [title for title, each in found.items() if each == undamaged] == []


@pytest.mark.parametrize("kind", one_of(4, KINDS, LONG))
def test_what_is_read_of_a_changed_file_has_the_integers_of_onnxruntime(kind: str, tmp_path: Path) -> None:
    model = written(*KINDS[kind], tmp_path)
    shape = [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).uniform(-2, 2, shape).astype(np.float32)
    for title, damaged in damages(model):
        imported = read_or_refused(damaged, tmp_path / "m.onnx", tpucc.import_onnx)
        if imported is not None and (kind, title) not in ANEW:
            for found, expected in zip(imported.compile().run(x=x).values(), results_of(damaged, x), strict=True):
                np.testing.assert_array_equal(found, expected, title)


def test_a_changed_factor_of_a_weight_that_several_layers_read_is_that_of_its_layer(tmp_path: Path) -> None:
    text = f"{HEAD.format(shape='3, 8')}    weight w: f32[8]\n    return sigmoid(tanh(sigmoid(x) * w) * w) * w\n"
    model = written(text, 8, tmp_path)
    factors = [tensor for tensor in model.graph.initializer if tensor.name.startswith("mul") and tensor.name.endswith("scale")]
    assert len(factors) == 3
    x = np.random.default_rng(0).uniform(-2, 2, (3, 8)).astype(np.float32)
    for tensor in factors:
        whole = tensor.raw_data
        tensor.raw_data = (onnx.numpy_helper.to_array(tensor) * np.float32(0.5)).tobytes()
        imported = read_or_refused(model, tmp_path / "changed.onnx", tpucc.import_onnx)
        if imported is not None:
            (found,), (expected,) = imported.compile().run(x=x).values(), results_of(model, x)
            np.testing.assert_array_equal(found, expected)
        tensor.raw_data = whole


@each([0.01, [0.01], [0.01, 0.02, 0.01], [0.01, 0.02], -0.01])
def test_scales_of_weights_may_be_one_for_all(scales: float | list[float], tmp_path: Path) -> None:
    """One, one for each column, too few of them, or one below zero; of a kernel that another convolution reads, too."""
    head = HEAD.format(shape="1, 4, 4, 3")
    model = written(f"{head}    weight k: f32[1, 1, 3, 3]\n    return conv2d(relu(conv2d(x, k)), k)\n", 8, tmp_path)
    (last,) = [node for node in model.graph.node if node.op_type == "QLinearConv"][1:]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(scales, np.float32), "scales"))
    last.input[4] = "scales"
    imported = read_or_refused(model, tmp_path / "m.onnx", tpucc.import_onnx)
    assert imported is None or np.size(scales) != 2
    if imported is not None:
        x = np.random.default_rng(0).uniform(-2, 2, (1, 4, 4, 3)).astype(np.float32)
        for found, expected in zip(imported.compile().run(x=x).values(), results_of(model, x), strict=True):
            np.testing.assert_array_equal(found, expected)
