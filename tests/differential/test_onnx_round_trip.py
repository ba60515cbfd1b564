"""What is exported is imported as the same graph: the same operators in the same order, and so the same bits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.unit.test_onnx_export import ALL, compiled_at
from tpucc.ir.graph import Graph
from tpucc.numerics import dequantise
from tpucc.ops.evaluate import evaluate
from tpucc.passes.model_inputs import drawn
from tpucc.runtime.export import exported

reading = pytest.importorskip("tpucc.interop.onnx.reading")
"""The importer, where it is."""
ANOTHER = {
    "06_digits_lstm": "the product of the first state, zeros, is folded",
    "10_imdb_lstm": "as the LSTM of digits",
    "imdb_lstm": "as the LSTM of digits",
    "13_quadric": "the transpose of a weight is folded",
    "attention": "two transposes are one, and a bias has the rank of what it is added to",
    "broadcasts": "a value has the rank of what it is added to",
    "scalars": "a value has the rank of what it is multiplied by",
    "explicit_quantisation": "an integer that two read is dequantised for each",
    "host_only": "zeros are a full",
    "no_inputs": "all is known, and folded",
}
"""Programs whose graph has other operators, and why. It computes the same."""
GIVEN = frozenset({"constant", "weight"})
CLOSE = 1e-5


def operators(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph if node.op not in GIVEN)


@pytest.mark.parametrize("path", ALL)
def test_an_exported_program_is_imported_as_it_was(path: Path, tmp_path: Path) -> None:
    made = compiled_at(path, "weights")
    assert made.graph is not None
    (tmp_path / "model.onnx").write_bytes(exported(made, quantised=False)[1])
    again = reading.read(tmp_path / "model.onnx").built({})
    assert [(node.name, node.type.plain()) for node in again.graph.inputs] == [(node.name, node.type.plain()) for node in made.graph.inputs]
    if path.stem not in ANOTHER:
        assert operators(again.graph) == operators(made.graph)
        assert made.model is not None
        assert again.weights.keys() == {node.attributes.key for node in made.model.graph if node.op == "weight"}
    generator = np.random.default_rng(0)
    inputs = {node.name: drawn(generator, node.type) for node in made.graph.inputs}
    first = evaluate(made.graph, inputs)
    second = evaluate(again.graph, inputs, {"weight": lambda node, _: again.weights[node.attributes.key]})
    for before, after in zip(made.graph.outputs, again.graph.outputs, strict=True):
        wanted, found, held = first[before.node], second[after.node], made.graph[before.node].type.quantisation
        if held is not None:  # integers are imported as the real values that they stand for
            wanted = dequantise(wanted, held.scale, held.zero_point)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if path.stem in ANOTHER:
            np.testing.assert_allclose(found, wanted, rtol=CLOSE, atol=CLOSE * np.abs(wanted).max())
        else:
            np.testing.assert_array_equal(found, wanted)
