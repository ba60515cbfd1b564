"""The backends for large products: NumPy in float32, or ONNX Runtime in 8-bit integers. Both give the same bits.

ONNX Runtime's `MatMulInteger` is fast where its activations are unsigned. So signed ones are shifted by 128. That adds to each column 128
times the sum of the weights that they meet, which is taken off the result. With signed weights some of its kernels add pairs of products in
16 bits, and saturate, on processors without VNNI. Those for unsigned weights, which have the zero point 128, are exact there, and a little
slower. So both are tried in turn, when one is first needed, on products of the largest values. The first that is exact is taken.

`auto` is ONNX Runtime for programs of many multiplications, where it is installed and exact; else NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, UsageError, listed
from tpucc.numerics import INT32_MAX, Int8, Int32, Int64, column_bound
from tpucc.onnxruntime import session

Backend = Literal["auto", "numpy", "onnxruntime"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
UInt8 = npt.NDArray[np.uint8]
Kind = type[np.int8] | type[np.uint8]
KINDS: tuple[Kind, ...] = np.int8, np.uint8
"""How ONNX Runtime gets weights, the faster way first."""
SHIFT = 128
SMALLEST = 2**14
"""Weights of a product: for fewer, calling ONNX Runtime takes longer than NumPy's product."""
LARGE = 2**31
"""Multiplications of a run: for fewer, loading ONNX Runtime takes longer than it saves in some tens of runs."""


@dataclass(frozen=True, eq=False, slots=True)
class Integers:
    """A product of unsigned 8-bit inputs [M, K] with prepared weights [K, N]: exact, int32 [M, N].

    `correction` [N] is to be added to the result: it takes off what shifting the signed inputs by 128 has added.
    """

    multiply: Callable[[UInt8], Int32]
    correction: Int32


def integers(backend: Backend, weights: Int8, signed: npt.NDArray[np.bool_]) -> Integers | None:
    """The product of inputs with `weights` [K, N] by ONNX Runtime; None for another backend, where NumPy's float32 is faster, and where
    sums exceed int32.

    `signed` [K] says which inputs were signed before they were shifted. `require` has found ONNX Runtime exact.
    """
    if backend != "onnxruntime" or weights.size < SMALLEST or (column_bound(weights, 255) > INT32_MAX).any():
        return None
    kind = exact_kind()
    assert kind is not None
    sums: Int64 = weights[signed].sum(axis=0, dtype=np.int64)
    return Integers(_prepared(weights, kind), (-SHIFT * sums).astype(np.int32))


def chosen(backend: Backend, multiplications: Callable[[], int]) -> Backend:
    """The backend for `backend`, which may be `auto`; `multiplications` counts the multiplications of a run."""
    if backend != "auto":
        return backend
    return "onnxruntime" if multiplications() >= LARGE and _is_usable() else "numpy"


def _is_usable() -> bool:
    """Whether ONNX Runtime is installed, and exact in some way on this machine."""
    try:
        require("onnxruntime")
    except UsageError:
        return False
    return True


def require(backend: str) -> None:
    """Raises `UsageError` E0541 where the backend isn't known, isn't installed, or is exact in no way on this machine."""
    if backend not in BACKENDS:
        raise _refused(f"there is no backend {backend}", f"the backends are {listed(BACKENDS)}")
    if backend == "onnxruntime":
        _package()
        if exact_kind() is None:
            text = "ONNX Runtime's 8-bit products are not exact on this machine, neither with signed weights nor with unsigned ones"
            raise _refused(text, "the backend numpy is exact everywhere, and gives the same results")


def _refused(message: str, help: str) -> UsageError:
    return UsageError(Diagnostic("E0541", message, help=(help,)))


def _package() -> Any:
    """The package onnx. Raises `UsageError` E0541 where it or ONNX Runtime isn't installed."""
    try:
        import onnx
        import onnxruntime  # noqa: F401
    except ImportError as error:
        help = "python -m pip install 'tpucc[onnxruntime]' installs what it needs"
        raise _refused(f"the backend onnxruntime needs a package that isn't installed: {error.name}", help) from None
    return onnx


@cache
def exact_kind() -> Kind | None:
    """How ONNX Runtime gets weights so that its products are exact on this machine; None if neither is."""
    return next((kind for kind in KINDS if _is_exact(kind)), None)


def _is_exact(kind: Kind) -> bool:
    """Whether products of the largest numbers, of both signs and of sizes with a remainder, are exact."""
    random = np.random.default_rng(0)
    for rows, depth, columns in ((1, 256, 256), (3, 257, 65), (16, 64, 31), (33, 1000, 130)):
        for extreme in (True, False):
            if extreme:
                x, w = np.where(random.integers(0, 8, (rows, depth)) > 0, 255, 0), np.full((depth, columns), 127)
                w[:, ::2] = -128
            else:
                x, w = random.integers(0, 256, (rows, depth)), random.integers(-128, 128, (depth, columns))
            if not np.array_equal(_prepared(w.astype(np.int8), kind)(x.astype(np.uint8)), x @ w):
                return False
    return True


def _prepared(weights: Int8, kind: Kind) -> Callable[[UInt8], Int32]:
    """The product with these weights: a session whose weights are packed once."""
    onnx = _package()
    helper, types = onnx.helper, onnx.TensorProto
    zero = 0 if kind is np.int8 else SHIFT
    constants = {"w": np.ascontiguousarray(weights + np.int16(zero), kind), "x_zero": np.uint8(0), "w_zero": kind(zero)}
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w", "x_zero", "w_zero"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", types.UINT8, [None, weights.shape[0]])],
        [helper.make_tensor_value_info("y", types.INT32, [None, weights.shape[1]])],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    threads = [int(os.environ[name]) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS") if os.environ.get(name, "").isdigit()]
    made = session(model.SerializeToString(), threads[-1] if threads else 0, optimised=True)

    def multiply(x: UInt8) -> Int32:
        found: Int32 = made.run(["y"], {"x": x})[0]
        return found

    return multiply
