"""Bias correction: the mean error of each column is taken off, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.operator_graphs import FUSIONS, Model, applied, placed
from tpucc.ir import Graph
from tpucc.numerics import AnyArray, quantise_weights, weight_scales
from tpucc.passes.base import Context
from tpucc.passes.bias_correction import with_corrected_biases
from tpucc.passes.calibrate import calibrate
from tpucc.passes.rewriter import constant_of
from tpucc.target import load_target

X = np.random.default_rng(0).uniform(0, 1, (40, 24)).astype(np.float32)
"""Inputs with means far from zero, as behind a ReLU."""
W = np.random.default_rng(1).standard_normal((24, 5)).astype(np.float32)
B = np.random.default_rng(2).standard_normal(5).astype(np.float32)


def context() -> Context:
    return Context(load_target("tpu_v1"), {"x": X})


def calibrated(bias: bool, activation: str = "") -> Graph:
    model = Model()
    h = model.op("matmul", model.input("x", 8, 24), model.constant("w", W), name="h")
    h = model.op("add", h, model.constant("b", B), name="s") if bias else h
    graph = model.build(model.op(activation, h, name="a") if activation else h)
    return applied(placed(graph), calibrate, *FUSIONS, calibration={"x": X})


def held(per_channel: bool) -> AnyArray:
    """The weights as int8 has them."""
    scales = weight_scales(W, per_channel)
    return quantise_weights(W, scales) * scales


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("bias", "activation"), [(False, ""), (True, ""), (True, "relu"), (True, "tanh")])
def test_the_bias_loses_the_mean_error_of_the_rounded_weights(bias: bool, activation: str, per_channel: bool) -> None:
    graph = with_corrected_biases(calibrated(bias, activation), context(), per_channel=per_channel)
    (product,) = (node for node in graph if node.op == "linear")
    corrected = constant_of(graph[product.operands[2]])
    assert corrected is not None
    errors = X.mean(axis=0).astype(np.float64) @ (held(per_channel).astype(np.float64) - W)
    assert corrected.data == pytest.approx(B * bias - errors, abs=np.abs(errors).max() * 2**-9)
    assert graph.outputs == calibrated(bias, activation).outputs


def test_values_that_the_source_quantises_saturate_before_means_are_taken(tmp_path: Path) -> None:
    """All products of the first layer are below 0, so that the second one has nothing to correct."""
    np.savez(tmp_path / "x.npz", x=X)
    np.savez(tmp_path / "w.npz", w=-np.abs(W), v=W[:5])
    text = (
        'weights "w.npz"\ncalibration "x.npz"\nmodel m(x: f32[40, 24] in [0.0, 1.0]):\n    weight w: f32[24, 5]\n    weight v: f32[5, 5]\n'
        "    return dequantize(quantize(x @ w, 0.01, zero_point=-128)) @ v\n"
    )
    biases = []
    for asked in (False, True):
        exe = tpucc.compile_source(text, folder=tmp_path, settings={"quantise": {"bias_correction": asked}})
        assert exe.compilation is not None
        assert exe.compilation.layers is not None
        biases.append([node for node in exe.compilation.layers if node.name.endswith(".bias")][-1].attributes)
    assert biases[0] == biases[1]


def test_columns_keep_their_means_when_it_is_asked_for(tmp_path: Path) -> None:
    """Columns of 400 inputs around 5: the rounding errors of their weights add up to a shift of all results."""
    draw = np.random.default_rng(3)
    x, w = draw.normal(5, 0.5, (64, 400)).astype(np.float32), draw.standard_normal((400, 6)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    np.savez(tmp_path / "w.npz", w=w)
    source = 'weights "w.npz"\ncalibration "x.npz"\nmodel m(x: f32[64, 400]) -> f32[64, 6]:\n    weight w: f32[400, 6]\n    return x @ w\n'
    shifts = []
    for asked in (False, True):
        exe = tpucc.compile_source(source, folder=tmp_path, activation_bits=16, settings={"quantise": {"bias_correction": asked}})
        shifts.append(np.abs((exe.run(x=x)["out"].astype(np.float64) - x @ w).mean(axis=0)))
    assert shifts[1].max() < 0.02 * shifts[0].max()
