"""Networks that Keras has exported: what tpucc reads of them predicts what Keras does. tests/support/keras_zoo.py writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, one_of
from tpucc.runtime.check import float_reference

FOLDER = Path(__file__).parents[1] / "support" / "keras"
NETWORKS = sorted(FOLDER.glob("*.onnx"))


@pytest.mark.parametrize("path", one_of(3, NETWORKS, LONG), ids=lambda path: path.stem)
def test_a_network_of_keras_predicts_the_same(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as known:
        x, y = known["x"], known["y"]
    model = tpucc.import_onnx(path)
    assert "transpose" not in model.source, "images have their channels last in both"
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
    assert "for t in range(1, 5):" in model.source


def test_words_count_from_the_start() -> None:
    source = tpucc.import_onnx(FOLDER / "words.onnx").source
    assert "i32[batch, 7] in [0, 19]" in source
    assert "where" not in source
