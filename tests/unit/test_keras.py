"""Networks that Keras has exported: what tpucc reads of them predicts what Keras does. tests/support/keras_zoo.py writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, each, one_of
from tpucc.runtime.check import float_reference

FOLDER = Path(__file__).parents[1] / "support" / "keras"
TENSORFLOW = FOLDER.with_name("keras_tensorflow")
QUANTISED = sorted(TENSORFLOW.glob("*_int8.onnx"))
NETWORKS = sorted([*FOLDER.glob("*.onnx"), *(path for path in TENSORFLOW.glob("*.onnx") if path not in QUANTISED)])


@pytest.mark.parametrize("path", one_of(4, NETWORKS, LONG), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_network_of_keras_predicts_the_same(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as known:
        x, y = known["x"], known["y"]
    model = tpucc.import_onnx(path)
    assert path.stem == "encoder" or "transpose" not in model.source, "images have their channels last in both"
    exe = model.compile(params={"batch": len(x)})
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    inputs = {exe.compilation.graph.inputs[0].name: x}
    (meant,) = float_reference(exe.compilation.graph, inputs).values()
    np.testing.assert_allclose(meant, y, atol=1e-6)
    (found,) = exe.run(inputs).values()
    np.testing.assert_allclose(found, y, atol=0.05)


def test_the_steps_of_an_lstm_have_the_same_weights_and_one_function() -> None:
    model = tpucc.import_onnx(FOLDER / "lstm.onnx")
    assert len([array for array in model.weights.values() if array.shape == (6, 24)]) == 1
    assert "for t in range(4):" in model.source


def test_words_count_from_the_start() -> None:
    source = tpucc.import_onnx(FOLDER / "words.onnx").source
    assert "i32[batch, 7] in [0, 19]" in source
    assert "where" not in source


@each(QUANTISED)
def test_what_tensorflow_lite_has_quantised_has_the_integers_of_onnx_runtime(path: Path) -> None:
    from tests.support.onnxruntime import session as session_of

    model = tpucc.import_onnx(path)
    with np.load(path.with_stem(path.stem.removesuffix("_int8")).with_suffix(".npz")) as known:
        x, y = known["x"], known["y"]
    exe = model.compile(params={"batch": len(x)})
    (found,) = exe.run(x).values()
    session = session_of(path)
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, y, atol=0.02)


def source(name: str) -> str:
    return tpucc.import_onnx(TENSORFLOW / f"{name}.onnx").source


def test_names_of_tensorflow_become_those_of_layers() -> None:
    """`sequential_1/dense_1/Cast/ReadVariableOp:0`, and in TensorFlow Lite what it has made one: `…/Relu;…/BiasAdd;…/convolution`."""
    dense = source("dense")
    assert "# Renamed here: the output Identity:0 to Identity." in dense
    assert "param batch = 8" in dense
    assert 'weight w: f32[x.shape[-1], units] = "{name}.weight"' in dense
    assert '"sequential_1.dense_1"' in dense
    keys = tpucc.import_onnx(QUANTISED[0]).weights.keys()
    assert {key.rpartition(".")[2] for key in keys} == {"weight", "bias"}
    assert not [key for key in keys if {*";/:"} & {*key}]


@pytest.mark.long
def test_parts_of_tensorflow_are_operators_again() -> None:
    """Words count from the start, also where a choice is a sum of products; the steps of a loop; layer normalisation; a causal mask."""
    assert "[batch, 7] in [0, 19]" in source("words")
    assert "for t in range(" in source("bidirectional")
    assert "[:, ::-1]" in source("bidirectional")
    assert "layer_norm(conv(" in source("normalised")
    assert "hard_swish(conv(" in source("normalised")
    encoder = source("encoder")
    assert "layer_norm(" in encoder
    assert "global_avg_pool" not in encoder, "no image is made of words"
    assert "f32[6, 6]" in encoder, "the mask is that of one example"


@pytest.mark.long
def test_a_batch_that_another_axis_is_as_large_as_stays_open() -> None:
    """The state has five units."""
    model = tpucc.import_onnx(TENSORFLOW / "masked.onnx", params={"batch": 5})
    assert "param batch = 5" in model.source
    assert len(model.weights) == len(tpucc.import_onnx(TENSORFLOW / "masked.onnx").weights)
    exe = model.compile(params={"batch": 3})
    assert exe.compilation is not None
    assert [tuple(exe.compilation.layers[output.node].type.shape) for output in exe.compilation.layers.outputs] == [(3, 3)]
