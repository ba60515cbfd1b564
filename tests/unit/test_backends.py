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
from tpucc.sim.fast.execute import Simulator
from tpucc.sim.interpret import Interpreter

pytestmark = pytest.mark.skipif(not (find_spec("onnxruntime") and find_spec("onnx")), reason="ONNX Runtime is not installed")
ROOT = Path(__file__).resolve().parents[2]
SHAPES = [(1, 1, 1), (2, 3, 5), (7, 255, 9), (8, 256, 256), (3, 257, 5), (33, 700, 513), (200, 64, 31)]


@pytest.fixture(params=[np.int8, np.uint8])
def always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products go to ONNX Runtime too, which gets the weights as the parameter says, or unsigned where signed ones saturate."""
    kind = request.param if backends._is_exact(request.param) else np.uint8
    monkeypatch.setattr(backends, "exact_kind", lambda: kind)
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
    assert np.array_equal(plain.memories["ub"], fast._memories["ub"])


@pytest.mark.parametrize("name", ["04_digits_mlp", "05_digits_cnn", "06_digits_lstm"])
def test_programs_have_the_same_bits(always: None, name: str) -> None:
    exe = tpucc.compile(ROOT / "programs" / f"{name}.tpu", params={"batch": 4})
    inputs = {key: np.random.default_rng(2).random(kind.shape, np.float32) for key, kind in exe.runtime.inputs.items()}
    expected, found = exe.run(inputs), exe.with_backend("onnxruntime").run(inputs)
    assert all(np.array_equal(expected[key], found[key]) for key in expected)


def test_a_column_that_int32_cannot_hold_stays_with_numpy() -> None:
    weights = np.full((70_000, 1), 127, np.int8)
    assert backends.integers("onnxruntime", weights, np.ones(70_000, bool)) is None


def saturating(*kinds: type) -> Any:
    """Products whose sums stop at 16 bits if the weights are of one of these kinds."""

    def prepared(weights: Any, kind: type) -> Any:
        return lambda x: np.minimum(x.astype(np.int64) @ weights, 2**15 if kind in kinds else 2**31)

    return prepared


@each([((), np.int8), ((np.int8,), np.uint8), ((np.int8, np.uint8), None)])
def test_the_first_exact_way_is_taken(wrong: tuple[type, ...], expected: type | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_prepared", saturating(*wrong))
    assert backends.exact_kind.__wrapped__() is expected


def test_a_processor_without_exact_products_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "exact_kind", lambda: None)
    with pytest.raises(UsageError) as caught:
        backends.require("onnxruntime")
    assert [d.code for d in caught.value.diagnostics] == ["E0541"]
    assert "not exact on this machine" in str(caught.value)


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    exe = tpucc.compile(ROOT / "programs" / "02_iris.tpu")
    with pytest.raises(UsageError, match="isn't installed: onnxruntime") as caught:
        exe.with_backend("onnxruntime")
    assert "pip install 'tpucc[onnxruntime]'" in caught.value.diagnostics[0].help[0]


@each([(2**31, True, "onnxruntime"), (2**31 - 1, True, "numpy"), (2**31, False, "numpy")])
def test_auto_is_onnxruntime_where_it_pays(multiplications: int, exact: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "exact_kind", lambda: np.uint8 if exact else None)
    assert backends.chosen("auto", lambda: multiplications) == expected
    assert backends.chosen("numpy", lambda: multiplications) == "numpy"


def test_auto_counts_what_a_run_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers of 30 × 20 and 20 × 10 weights, times 7 rows; in a network with a deeper tile, its levels together."""
    counts: list[int] = []
    monkeypatch.setattr("tpucc.sim.fast.execute.chosen", lambda backend, count: counts.append(count()) or "numpy")
    for width in (20, 300):
        text = f"model m(x: f32[7, {width}]):\n    weight w: f32[{width}, 30]\n    weight v: f32[30, 10]\n    return relu(x @ w) @ v\n"
        assert tpucc.compile_source(f"weights random(seed=0)\n{text}").runtime.simulator
    assert counts == [7 * (20 * 30 + 30 * 10), 7 * (300 * 30 + 30 * 10)]


def test_an_unknown_backend_is_refused() -> None:
    exe = tpucc.compile(ROOT / "programs" / "02_iris.tpu")
    with pytest.raises(UsageError, match="there is no backend torch"):
        exe.with_backend("torch")  # type: ignore[arg-type]


@pytest.mark.long
def test_the_command_line() -> None:
    command = [sys.executable, "-m", "tpucc", "run", "programs/04_digits_mlp.tpu", "--check"]
    found = [subprocess.run([*command, "--backend", name], cwd=ROOT, capture_output=True, text=True) for name in backends.BACKENDS]
    assert found[0].returncode == found[1].returncode == 0, found[1].stderr
    assert found[0].stdout == found[1].stdout


def test_all_sessions_are_made_by_one_function() -> None:
    """Whose integers are exact on every processor, for tests by way of `tests.support.onnxruntime`."""
    makes = re.compile(r"\bInferenceSession\((?!FILE)")
    files = [path for folder in ("tpucc", "tests", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")]
    assert [path.relative_to(ROOT).as_posix() for path in files if makes.search(path.read_text("utf-8"))] == ["tpucc/onnxruntime.py"]
