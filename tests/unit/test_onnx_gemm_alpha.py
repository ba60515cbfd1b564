"""A quantised Gemm with alpha is one layer, whose integers are those of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of
from tests.support.onnxruntime import session as session_of

onnx = pytest.importorskip("onnx")
node = onnx.helper.make_node
UNITS = {"x": 2.0**-6, "w": 2.0**-7, "b": 2.0**-13, "y": 0.02}
"""The scales of the values; the bias is in units of the product."""


@each([(0.5, 1.0), (2.0, 1.0), (-0.5, 1.0), (0.25, 0.5), (1.0, 4.0)])
def test_alpha_is_in_the_scale_of_the_weight(alpha: float, beta: float, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    weights = random.integers(-127, 128, (5, 8)).astype(np.int8)
    integers = {"wq": weights, "bq": random.integers(-3000, 3000, 5).astype(np.int32)}
    scales = {f"{name}_scale": np.float32(unit) for name, unit in UNITS.items()}
    constants = [
        onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (integers | scales | {"zero": np.int8(0)}).items()
    ]
    nodes = [
        node("QuantizeLinear", ["x", "x_scale", "zero"], ["xq"]),
        node("DequantizeLinear", ["xq", "x_scale", "zero"], ["xr"]),
        node("DequantizeLinear", ["wq", "w_scale", "zero"], ["w"]),
        node("DequantizeLinear", ["bq", "b_scale"], ["b"]),
        node("Gemm", ["xr", "w", "b"], ["g"], alpha=alpha, beta=beta, transB=1),
        node("QuantizeLinear", ["g", "y_scale", "zero"], ["gq"]),
        node("DequantizeLinear", ["gq", "y_scale", "zero"], ["y"]),
    ]
    onnx.save(model_of(nodes, constants, {"x": [64, 8]}), tmp_path / "net.onnx")
    x = random.uniform(-2, 2, (64, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    program = tpucc.import_onnx(tmp_path / "net.onnx").compile(calibration=tmp_path / "x.npz")
    (wanted,) = session_of(tmp_path / "net.onnx", optimised=False).run(None, {"x": x})
    (found,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
