"""The backends for large products: NumPy in float32, or ONNX Runtime in 8-bit integers. Both give the same bits.

ONNX Runtime's `MatMulInteger` is fast where its activations are unsigned. So signed ones are shifted by 128. That adds to each column 128
times the sum of its weights, which is taken off the result. Without VNNI some of its kernels add pairs of
products in 16 bits, and saturate. So the backend is tried on the largest products when it is chosen, and refused where they are wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, UsageError, listed
from tpucc.numerics import INT32_MAX, Int8, Int32, Int64
from tpucc.values import dataclass

Backend = Literal["numpy", "onnxruntime"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
UInt8 = npt.NDArray[np.uint8]
SHIFT = 128
SMALLEST = 2**14
"""Weights of a product: for fewer, calling ONNX Runtime takes longer than NumPy's product."""


@dataclass(frozen=True, eq=False, slots=True)
class Integers:
    """A product of unsigned 8-bit inputs [M, K] with prepared weights [K, N]: exact, int32 [M, N].

    `correction` [N] is to be added to the result: it takes off what shifting the signed inputs by 128 has added.
    """

    multiply: Callable[[UInt8], Int32]
    correction: Int32


def integers(backend: Backend, weights: Int8, signed: npt.NDArray[np.bool_]) -> Integers | None:
    """The product of inputs with `weights` [K, N] by the backend; None where NumPy's float32 is better, or int32 too small.

    `signed` [K] says which inputs were signed.
    """
    if backend == "numpy" or weights.size < SMALLEST:
        return None
    wide = np.abs(weights.astype(np.int64))
    if (wide.sum(axis=0) * 255 > INT32_MAX).any():
        return None
    sums: Int64 = weights[signed].sum(axis=0, dtype=np.int64)
    return Integers(_prepared(weights), (-SHIFT * sums).astype(np.int32))


def require(backend: str) -> None:
    """Raises `UsageError` E0541 where the backend isn't known, isn't installed, or is wrong on this machine."""
    if backend not in BACKENDS:
        raise _refused(f"there is no backend {backend}", f"the backends are {listed(BACKENDS)}")
    if backend == "onnxruntime":
        _runtime()
        if not _is_exact():
            text = "ONNX Runtime's 8-bit products are not exact on this machine: it saturates sums of two products"
            raise _refused(text, "processors with VNNI have exact ones; the backend numpy is exact everywhere")


def _refused(message: str, help: str) -> UsageError:
    return UsageError(Diagnostic("E0541", message, help=(help,)))


def _runtime() -> tuple[Any, Any]:
    """The packages onnxruntime and onnx.helper."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        help = "python -m pip install 'tpucc[onnxruntime]' installs what it needs"
        raise _refused(f"the backend onnxruntime needs a package that isn't installed: {error.name}", help) from None
    return onnxruntime, onnx


@cache
def _is_exact() -> bool:
    """Whether products of the largest numbers, of both signs and of sizes with a remainder, are exact."""
    random = np.random.default_rng(0)
    for rows, depth, columns in ((1, 256, 256), (3, 257, 65), (16, 64, 31), (33, 1000, 130)):
        for extreme in (True, False):
            x = np.where(random.integers(0, 8, (rows, depth)) > 0, 255, 0) if extreme else random.integers(0, 256, (rows, depth))
            w = np.full((depth, columns), 127) if extreme else random.integers(-128, 128, (depth, columns))
            w[:, ::2] = -128 if extreme else w[:, ::2]
            if not np.array_equal(_prepared(w.astype(np.int8))(x.astype(np.uint8)), x @ w):
                return False
    return True


def _prepared(weights: Int8) -> Callable[[UInt8], Int32]:
    """The product with these weights: a session whose weights are packed once."""
    ort, onnx = _runtime()
    helper, types = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", types.UINT8, [None, weights.shape[0]])],
        [helper.make_tensor_value_info("y", types.INT32, [None, weights.shape[1]])],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(weights), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdigit():
            options.intra_op_num_threads = int(os.environ[name])
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def multiply(x: UInt8) -> Int32:
        found: Int32 = session.run(["y"], {"x": x})[0]
        return found

    return multiply
