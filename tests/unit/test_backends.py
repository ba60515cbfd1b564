"""The backend onnxruntime: the bits of NumPy's, or a refusal with its reason."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.random_machine import RandomProgram
from tpucc.diagnostics import UsageError
from tpucc.sim.fast import backends
from tpucc.sim.fast.execute import Interpreter, Simulator

pytestmark = pytest.mark.skipif(not (find_spec("onnxruntime") and find_spec("onnx")), reason="ONNX Runtime is not installed")
ROOT = Path(__file__).resolve().parents[2]
SHAPES = [(1, 1, 1), (2, 3, 5), (7, 255, 9), (8, 256, 256), (3, 257, 5), (33, 700, 513), (200, 64, 31)]


def test_a_processor_with_vnni_is_taken() -> None:
    """The tests below are skipped where products aren't exact; this one sees to it that they aren't skipped for a fault of the probe."""
    flags = Path("/proc/cpuinfo")
    if not flags.is_file() or not re.search(r"\bavx(512)?_vnni\b", flags.read_text()):
        pytest.skip("no processor that is known to have exact 8-bit products")
    assert backends._is_exact()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products go to ONNX Runtime too. Skips where its products aren't exact."""
    if not backends._is_exact():
        pytest.skip("ONNX Runtime's 8-bit products are not exact on this machine")
    monkeypatch.setattr(backends, "SMALLEST", 0)


@each(SHAPES)
def test_ragged_products_have_the_same_bits(rows: int, depth: int, columns: int, always: None) -> None:
    source = f"""
weights random(seed={rows})
model m(x: f32[{rows}, {depth}]):
    weight w: f32[{depth}, {columns}]
    weight b: f32[{columns}]
    weight v: f32[{columns}, 4]
    return sigmoid(relu(x @ w + b) @ v)
"""
    exe = tpucc.compile_source(source)
    x = np.random.default_rng(1).standard_normal((2 * rows + 1, depth), np.float32)
    expected, found = exe.run(x), exe.with_backend("onnxruntime").run(x)
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("seed", one_of(3, range(40)))
def test_random_programs_leave_the_same_memory(always: None, seed: int) -> None:
    program = RandomProgram(seed, length=80, wide=seed % 4 == 0).make()
    (port,) = program.inputs
    x = np.random.default_rng(seed).integers(port.format.low, port.format.high + 1, port.shape).astype(port.format.numpy)
    plain, fast = Interpreter(program), Simulator(program, "onnxruntime")
    for _ in range(2):
        assert np.array_equal(plain.run({"x": x})["y"], fast.run({"x": x})["y"])
    assert np.array_equal(plain.machine.ub, fast._machine.ub)


@pytest.mark.parametrize("name", ["04_digits_mlp", "05_digits_cnn", "06_digits_lstm"])
def test_programs_have_the_same_bits(always: None, name: str) -> None:
    exe = tpucc.compile(ROOT / "programs" / f"{name}.tpu", params={"batch": 4})
    inputs = {key: np.random.default_rng(2).random(kind.shape, np.float32) for key, kind in exe.runtime.inputs.items()}
    expected, found = exe.run(inputs), exe.with_backend("onnxruntime").run(inputs)
    assert all(np.array_equal(expected[key], found[key]) for key in expected)


def test_a_column_that_int32_cannot_hold_stays_with_numpy() -> None:
    weights = np.full((70_000, 1), 127, np.int8)
    assert backends.integers("onnxruntime", weights, np.ones(70_000, bool)) is None


def test_a_processor_that_saturates_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def saturating(weights: Any) -> Any:
        return lambda x: np.minimum(x.astype(np.int64) @ weights, 2**15)

    monkeypatch.setattr(backends, "_prepared", saturating)
    backends._is_exact.cache_clear()
    with pytest.raises(UsageError) as caught:
        backends.require("onnxruntime")
    backends._is_exact.cache_clear()
    assert [d.code for d in caught.value.diagnostics] == ["E0541"]
    assert "saturates" in str(caught.value)


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    exe = tpucc.compile(ROOT / "programs" / "02_iris.tpu")
    with pytest.raises(UsageError, match="isn't installed: onnxruntime") as caught:
        exe.with_backend("onnxruntime")
    assert "pip install 'tpucc[onnxruntime]'" in caught.value.diagnostics[0].help[0]


def test_an_unknown_backend_is_refused() -> None:
    exe = tpucc.compile(ROOT / "programs" / "02_iris.tpu")
    with pytest.raises(UsageError, match="there is no backend torch"):
        exe.with_backend("torch")  # type: ignore[arg-type]


@pytest.mark.long
def test_the_command_line() -> None:
    if not backends._is_exact():
        pytest.skip("ONNX Runtime's 8-bit products are not exact on this machine")
    command = [sys.executable, "-m", "tpucc", "run", "programs/04_digits_mlp.tpu", "--check"]
    found = [subprocess.run([*command, "--backend", name], cwd=ROOT, capture_output=True, text=True) for name in backends.BACKENDS]
    assert found[0].returncode == found[1].returncode == 0, found[1].stderr
    assert found[0].stdout == found[1].stdout
