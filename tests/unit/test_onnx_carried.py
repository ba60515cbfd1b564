"""The graph that a file of `tpucc export` carries: what is read from it, and what of a file that somebody has changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.interop.onnx import carried
from tpucc.interop.programs import folder
from tpucc.runtime.check import random_inputs

onnx = pytest.importorskip("onnx")

MODEL = """
weights random(seed=1)
model net(image: f32[2, 8, 8, 3] in [-1.0, 1.0], x: f32[2, 6]) -> f32[2, 5], f32[2, 5]:
    weight k: f32[3, 3, 3, 4] = "stem.kernel"
    weight w: f32[6, 5] = "head.w"
    weight b: f32[5] = "head.b"
    weight v: f32[4, 5]
    h = relu(conv2d(image, k, padding=1))
    return global_avg_pool(h) @ v, sigmoid(x @ w + b) * 0.5
"""


def exported(path: Path, *, quantized: bool, text: str = MODEL) -> tuple[tpucc.Executable, Any]:
    exe = tpucc.compile_source(text)
    tpucc.export_onnx(exe, path, quantized=quantized)
    return exe, onnx.load(path)


def metadata(model: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def signed(model: Any) -> None:
    """Gives a file that was changed the digest that fits."""
    found = metadata(model)
    fields = [model.graph.SerializeToString(), model.opset_import[0].SerializeToString()]
    (entry,) = (entry for entry in model.metadata_props if entry.key == carried.DIGEST)
    entry.value = carried._digest(found, fields)


def test_a_float_file_is_read_as_the_graph_that_was_exported(tmp_path: Path) -> None:
    """Its names, keys, ranges and weights, bit for bit."""
    exe, _ = exported(tmp_path / "m.onnx", quantized=False)
    found = carried.graph_carried((tmp_path / "m.onnx").read_bytes(), "m.onnx")
    made = exe.compilation
    assert found is not None
    assert made is not None
    assert made.model is not None
    assert made.graph is not None
    assert [(node.name, node.op, node.operands) for node in found.graph] == [(n.name, n.op, n.operands) for n in made.model.graph]
    assert [node.type for node in found.graph.inputs] == [node.type for node in made.model.graph.inputs]
    assert found.weights.keys() == {"stem.kernel", "head.w", "head.b", "v"}
    again = tpucc.import_onnx(tmp_path / "m.onnx")
    assert "model net(image: f32[2, 8, 8, 3] in [-1.0, 1.0], x: f32[2, 6])" in again.source
    inputs = random_inputs(exe.runtime, 3)
    for one, other in zip(again.compile().run(inputs).values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@each([False, True])
def test_the_file_has_each_weight_once(quantized: bool, tmp_path: Path) -> None:
    exe, model = exported(tmp_path / "m.onnx", quantized=quantized)
    forms = metadata(model)[carried.WEIGHTS]
    assert forms.count('"values"') == (1 if quantized else 0)  # the bias, of which the device has other integers
    assert forms.count('"largest"') == (3 if quantized else 0)
    found = carried.graph_carried((tmp_path / "m.onnx").read_bytes(), "m.onnx")
    assert found is not None
    assert exe.compilation is not None
    source = carried.graph_carried(_float(exe, tmp_path), "m.onnx")
    assert source is not None
    for key, array in source.weights.items():
        step = 0.0 if not quantized or array.ndim == 1 else np.abs(array).max() / 127 / 2 * (1 + 1e-6)
        np.testing.assert_allclose(found.weights[key], array, rtol=0, atol=step)


def _float(exe: tpucc.Executable, folder: Path) -> bytes:
    tpucc.export_onnx(exe, folder / "float.onnx")
    return (folder / "float.onnx").read_bytes()


def test_a_network_takes_hardly_more_for_the_graph_that_it_carries(tmp_path: Path) -> None:
    exe = tpucc.compile(folder() / "gallery" / "mlperf_resnet8.tpu")
    for quantized in (False, True):
        tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=quantized)
        model = onnx.load(tmp_path / "m.onnx")
        entries = sum(len(entry.value) for entry in model.metadata_props)
        assert entries < 0.25 * (tmp_path / "m.onnx").stat().st_size


def test_saving_a_file_anew_changes_nothing(tmp_path: Path) -> None:
    _, model = exported(tmp_path / "m.onnx", quantized=True)
    assert model.SerializeToString() == (tmp_path / "m.onnx").read_bytes()


def _another_weight(model: Any) -> None:
    (found,) = (each for each in model.graph.initializer if each.name == "head.w")
    found.CopyFrom(onnx.numpy_helper.from_array(2 * onnx.numpy_helper.to_array(found), "head.w"))


def _without_a_node(model: Any) -> None:
    (node,) = (node for node in model.graph.node if node.op_type == "Relu")
    for reader in model.graph.node:
        for place, name in enumerate(reader.input):
            if name == node.output[0]:
                reader.input[place] = node.input[0]
    model.graph.node.remove(node)


def _another_opset(model: Any) -> None:
    model.opset_import[0].version = 20


def _another_text(model: Any) -> None:
    (entry,) = (entry for entry in model.metadata_props if entry.key == carried.GRAPH)
    entry.value = entry.value.replace("sigmoid(", "tanh(")


def _without_the_digest(model: Any) -> None:
    (entry,) = (entry for entry in model.metadata_props if entry.key == carried.DIGEST)
    model.metadata_props.remove(entry)


@pytest.mark.long
@each([_another_weight, _without_a_node, _another_opset, _another_text, _without_the_digest])
def test_a_file_that_was_changed_is_read_by_its_nodes(change: Callable[[Any], None], tmp_path: Path) -> None:
    _, model = exported(tmp_path / "m.onnx", quantized=False)
    change(model)
    onnx.save(model, tmp_path / "m.onnx")
    again = tpucc.import_onnx(tmp_path / "m.onnx")
    noted = "has been changed since tpucc wrote it" in re.sub(r"\n# ", " ", again.source)
    assert noted == (change is not _without_the_digest)
    assert ("relu(" in again.source) == (change is not _without_a_node)
    assert "sigmoid(" in again.source
    exported(tmp_path / "own.onnx", quantized=False)
    own = tpucc.import_onnx(tmp_path / "own.onnx").weights
    for key, array in again.weights.items():
        np.testing.assert_array_equal(array, 2 * own[key] if change is _another_weight and key == "head.w" else own[key])
    again.compile()


WRONG: dict[str, tuple[str, str, str]] = {
    "no text of a graph": (carried.GRAPH, r"(?s).*", "graph"),
    "an operator with a wrong type": (carried.GRAPH, r"f32\[2, 8, 8, 4\]", "f32[2, 8, 8, 5]"),
    "another input": (carried.GRAPH, r"x = input : f32\[2, 6\]", "x = input : i32[2, 6]"),
    "weights of another shape": (carried.WEIGHTS, "head.b", "head.c"),
    "no list of weights": (carried.WEIGHTS, r"(?s).*", '{"key": 1}'),
    "another order of axes": (carried.WEIGHTS, r"\[3,2,0,1\]", "[3,3,0,1]"),
    "an order of fewer axes": (carried.WEIGHTS, r"\[3,2,0,1\]", "[1,0]"),
    "another initializer": (carried.WEIGHTS, '"initializer":"head.w"', '"initializer":"nothing"'),
    "values that are none": (carried.WEIGHTS, '"initializer":"head.w"', '"values":"AAA"'),
    "values of another size": (carried.WEIGHTS, '"initializer":"head.w"', '"values":"AAAAAA=="'),
}


@each(WRONG)
def test_a_graph_with_a_digest_that_fits_is_verified_all_the_same(key: str, pattern: str, other: str, tmp_path: Path) -> None:
    _, model = exported(tmp_path / "m.onnx", quantized=False)
    (entry,) = (entry for entry in model.metadata_props if entry.key == key)
    changed = re.sub(pattern, other, entry.value, count=1)
    assert changed != entry.value
    entry.value = changed
    signed(model)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(tpucc.Error) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx")
    assert isinstance(raised.value, tpucc.ProgramError)


def test_a_graph_whose_outputs_are_others_than_the_files_is_refused(tmp_path: Path) -> None:
    _, model = exported(tmp_path / "m.onnx", quantized=False)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7
    signed(model)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(tpucc.ProgramError, match=r"E1001.*other inputs or outputs"):
        tpucc.import_onnx(tmp_path / "m.onnx")


def test_a_graph_whose_text_is_too_long_is_not_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that a file carries nevertheless isn't read."""
    exported(tmp_path / "whole.onnx", quantized=False)
    for bound in ("MOST_TEXT", "MOST_LINES"):
        with monkeypatch.context() as patch:
            patch.setattr(carried, bound, 5)
            _, model = exported(tmp_path / "m.onnx", quantized=False)
            assert not model.metadata_props
            assert "conv2d(" in tpucc.import_onnx(tmp_path / "m.onnx").source
            with pytest.raises(tpucc.ProgramError, match=r"E1001.*its text is longer"):
                tpucc.import_onnx(tmp_path / "whole.onnx")


def test_integers_that_no_initializer_has_are_carried_as_values(tmp_path: Path) -> None:
    """As those of weights with one scale for all columns of another granularity, and what a vector layer reads."""
    text = "weights random(1)\nmodel m(x: f32[4, 6]):\n    weight w: f32[6, 6]\n    return relu(x @ w) * w[:4]\n"
    _, model = exported(tmp_path / "m.onnx", quantized=True, text=text)
    assert '"largest"' in metadata(model)[carried.WEIGHTS]


@pytest.mark.long
@each([(bits, granularity) for bits in (8, 16) for granularity in ("per_channel", "per_tensor")])
def test_weights_have_the_same_integers_again(bits: int, granularity: str, tmp_path: Path) -> None:
    settings: dict[str, dict[str, object]] = {"quantise": {"granularity": granularity}}
    exe = tpucc.compile_source(MODEL, settings=settings, activation_bits=bits)
    tpucc.export_onnx(exe, tmp_path / "m.onnx", quantized=True)
    assert '"largest"' in metadata(onnx.load(tmp_path / "m.onnx"))[carried.WEIGHTS]
    inputs = random_inputs(exe.runtime, 3)
    again = tpucc.import_onnx(tmp_path / "m.onnx").compile(settings=settings)
    for one, other in zip(again.run(inputs).values(), exe.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
