"""Networks that PyTorch has quantised itself: what its exporter writes of them is imported, and has ONNX Runtime's integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnxruntime import session as session_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it comes with the extra: pip install -e '.[dev,torch]'")
nn = torch.nn

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

IMAGES, ROWS = (3, 8, 8), (16,)


class Residual(nn.Module):  # type: ignore[misc, name-defined]
    """A sum with an activation, and an average of all pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.fc = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 10)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Any) -> Any:
        h = torch.relu(self.a(x))
        h = torch.relu(h + self.norm(self.b(h)))
        return self.fc(nn.functional.adaptive_avg_pool2d(h, 1).flatten(1))


class Joined(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 8, 1), nn.Conv2d(16, 4, 3, 2, 1)

    def forward(self, x: Any) -> Any:
        return self.c(torch.cat([torch.relu(self.a(x)), self.b(x)], 1))


class Gated(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 10)

    def forward(self, x: Any) -> Any:
        return self.c(self.a(x) * torch.sigmoid(self.b(x)))


class Decoder(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.up = nn.Linear(16, 32), nn.ConvTranspose2d(8, 3, 4, 2, 1)

    def forward(self, x: Any) -> Any:
        return self.up(torch.relu(self.fc(x)).reshape(-1, 8, 2, 2))


def dense() -> Any:
    return nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 10))


def normalised() -> Any:
    return nn.Sequential(nn.Linear(16, 24), nn.LayerNorm(24), nn.Linear(24, 10))


NETWORKS: Mapping[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "dense": (dense, ROWS),
    "normalised": (normalised, ROWS),
    "gated": (Gated, ROWS),
    "residual": (Residual, IMAGES),
    "joined": (Joined, IMAGES),
    "decoder": (Decoder, ROWS),
}
"""By what it has the network, and the shape of its input."""
SCHEMES = {"qnnpack": 0.12, "fbgemm": 0.25}
"""Configurations of PyTorch, with one scale for a weight and one for each of its columns, and how many results differ, at most: weights of
-128 are -127 here, and columns whose largest integer isn't 127 are quantised anew."""
MOST = 3
"""By how many integers a result differs."""


def quantised(module: Any, shape: tuple[int, ...], scheme: str) -> Any:
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    torch.backends.quantized.engine = "fbgemm"
    mapping = quantization.get_default_qconfig_mapping(scheme)
    if scheme == "fbgemm":
        mapping = mapping.set_object_type(nn.ConvTranspose2d, quantization.default_qconfig)  # PyTorch has no other scheme for it
    prepared = prepare_fx(module.eval(), mapping, (torch.zeros(2, *shape),))
    with torch.no_grad():
        prepared(torch.randn(64, *shape))
    return convert_fx(prepared)


@each(NETWORKS)
def test_a_quantised_network_has_the_integers_of_onnx_runtime(make: Callable[[], Any], shape: tuple[int, ...], tmp_path: Path) -> None:
    for scheme, share in SCHEMES.items():
        torch.manual_seed(0)
        made, x, path = quantised(make(), shape, scheme), torch.randn(64, *shape), tmp_path / f"{scheme}.onnx"
        axes = {"x": {0: "batch"}, "y": {0: "batch"}}
        torch.onnx.export(
            made, (x[:2],), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"], dynamic_axes=axes
        )
        wanted = session_of(path).run(None, {"x": x.numpy()})[0]
        found = tpucc.import_onnx(path, layout="nchw").compile(params={"batch": 64}).run(x.numpy())["y"]
        step = np.diff(np.unique(wanted)).min()
        apart = np.abs(np.rint((found - wanted) / step))
        assert apart.max() <= MOST, scheme
        assert (apart > 0).mean() <= share, scheme
