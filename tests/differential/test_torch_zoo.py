"""Kinds of networks as PyTorch exports them: the import computes ONNX Runtime's float32, and the device the layers' integers."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; it comes with the extra: pip install -e '.[dev,torch]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed; it comes with the same extra")
pytest.importorskip("onnxruntime")

from tests.support.torch_zoo import NETWORKS, export, of_torchvision

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
ALL = NETWORKS | of_torchvision()
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("name", [*NETWORKS, *(pytest.param(name, marks=pytest.mark.soak) for name in ALL if name not in NETWORKS)])
def test_a_network_computes_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    path = tmp_path / f"{name}.onnx"
    export(ALL[name], path)
    found = importlib.import_module("imported").measured(path)
    assert found.difference < 1e-4
    assert found.equal
    assert found.signal > 15
