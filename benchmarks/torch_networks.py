"""The networks of `benchmarks/quantisation.py` as modules of PyTorch, which it can quantise: from the images NHWC to the logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Weights = Mapping[str, npt.NDArray[np.float32]]


def linear(w: Weights, name: str, parts: tuple[str, str] = ("w", "b")) -> nn.Linear:
    kernel, bias = w[f"{name}.{parts[0]}"], w[f"{name}.{parts[1]}"]
    made = nn.Linear(*kernel.shape)
    made.load_state_dict({"weight": torch.from_numpy(kernel.T.copy()), "bias": torch.from_numpy(bias)})
    return made


def conv(kernel: npt.NDArray[np.float32], bias: npt.NDArray[np.float32] | None = None, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution without padding, from a kernel HWIO."""
    rows, columns, channels, filters = kernel.shape
    made = nn.Conv2d(channels * groups, filters, (rows, columns), stride, groups=groups, bias=bias is not None)
    state = {"weight": torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy())}
    made.load_state_dict(state if bias is None else {**state, "bias": torch.from_numpy(bias)})
    return made


class DigitsCnn(nn.Module):
    def __init__(self, w: Weights) -> None:
        super().__init__()
        self.conv1, self.conv2 = (conv(w[f"{name}.w"], w[f"{name}.b"]) for name in ("conv1", "conv2"))
        for layer in (self.conv1, self.conv2):
            layer.padding = (1, 1)
        self.fc1, self.fc2 = linear(w, "fc1"), linear(w, "fc2")
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()

    def forward(self, image: Tensor) -> Tensor:
        h = F.max_pool2d(self.relu1(self.conv1(image.permute(0, 3, 1, 2))), 2)
        h = F.max_pool2d(self.relu2(self.conv2(h)), 2)
        return self.fc2(self.relu3(self.fc1(h.permute(0, 2, 3, 1).flatten(1))))


class DigitsLstm(nn.Module):
    """Each step has modules of its own, though their weights are the same: a quantised module has one range for all of its results."""

    def __init__(self, w: Weights) -> None:
        super().__init__()
        units = w["lstm.recurrent"].shape[0]
        self.kernels = nn.ModuleList(linear(w, "lstm", ("kernel", "bias")) for _ in range(8))
        self.recurrents = nn.ModuleList(nn.Linear(units, 4 * units, bias=False) for _ in range(8))
        for layer in self.recurrents:
            layer.load_state_dict({"weight": torch.from_numpy(w["lstm.recurrent"].T.copy())})
        self.fc = linear(w, "fc")

    def forward(self, image: Tensor) -> Tensor:
        i, _, g, o = self.kernels[0](image[:, 0]).chunk(4, 1)
        c = torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        for row in range(1, 8):
            i, f, g, o = (self.kernels[row](image[:, row]) + self.recurrents[row](h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.fc(h)


class Block(nn.Module):
    """A block of a transformer, 16 tokens of 32 in four heads."""

    def __init__(self, w: Weights, name: str) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (linear(w, f"{name}.attention.{part}") for part in ("q", "k", "v", "out"))
        self.fc1, self.fc2 = linear(w, f"{name}.fc1"), linear(w, f"{name}.fc2")
        self.norm1, self.norm2 = norm(w, f"{name}.norm1"), norm(w, f"{name}.norm2")

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (part(y).reshape(-1, 16, 4, 8).permute(0, 2, 1, 3) for part in (self.q, self.k, self.v))
        mixed = torch.matmul(F.softmax(torch.matmul(q, k.permute(0, 1, 3, 2)) * 0.3535, dim=-1), v)
        x = x + self.out(mixed.permute(0, 2, 1, 3).reshape(-1, 16, 32))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


def norm(w: Weights, name: str) -> nn.LayerNorm:
    made = nn.LayerNorm(32, eps=1e-5)
    made.load_state_dict({"weight": torch.from_numpy(w[f"{name}.gamma"]), "bias": torch.from_numpy(w[f"{name}.beta"])})
    return made


class DigitsVit(nn.Module):
    def __init__(self, w: Weights) -> None:
        super().__init__()
        self.patches = conv(w["patches"], stride=2)
        self.position = nn.Parameter(torch.from_numpy(w["position"]))
        self.blocks = nn.Sequential(*(Block(w, f"block{i}") for i in range(3)))
        self.norm, self.head = norm(w, "norm"), linear(w, "head")

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).reshape(-1, 16, 32) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


class ConvBn(nn.Module):
    """A convolution with TensorFlow's "same" padding and batch norm, and relu6 unless it is a projection."""

    def __init__(self, w: Weights, name: str, stride: int = 1, groups: int = 1, active: bool = True) -> None:
        super().__init__()
        kernel = w[f"{name}.kernel"]
        self.conv, self.bn = conv(kernel, stride=stride, groups=groups), nn.BatchNorm2d(kernel.shape[3], eps=0.001)
        parts = {"weight": "gamma", "bias": "beta", "running_mean": "mean", "running_var": "variance"}
        state = {ours: torch.from_numpy(w[f"{name}.{theirs}"]) for ours, theirs in parts.items()}
        self.bn.load_state_dict({**state, "num_batches_tracked": torch.tensor(0)})
        self.act = nn.ReLU6() if active else nn.Identity()
        total = max(kernel.shape[0] - stride, 0)
        self.pads = (total // 2, total - total // 2) * 2

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(F.pad(x, self.pads) if any(self.pads) else x)))


class Bottleneck(nn.Module):
    def __init__(self, w: Weights, name: str, stride: int, past: bool) -> None:
        super().__init__()
        hidden = w[f"{name}.expand.kernel"].shape[3]
        self.expand, self.project = ConvBn(w, f"{name}.expand"), ConvBn(w, f"{name}.project", active=False)
        self.depthwise = ConvBn(w, f"{name}.depthwise", stride, hidden)
        self.past = past

    def forward(self, x: Tensor) -> Tensor:
        h = self.project(self.depthwise(self.expand(x)))
        return x + h if self.past else h


class DigitsMobilenet(nn.Module):
    def __init__(self, w: Weights) -> None:
        super().__init__()
        steps = [(1, True), (2, False), (1, True), (2, False)]
        blocks = [Bottleneck(w, f"block{i}", stride, past) for i, (stride, past) in enumerate(steps)]
        self.body = nn.Sequential(ConvBn(w, "stem"), *blocks, ConvBn(w, "top"))
        self.fc = linear(w, "fc")

    def forward(self, image: Tensor) -> Tensor:
        return self.fc(self.body(image.permute(0, 3, 1, 2)).mean((2, 3)))


NETWORKS: Mapping[str, Callable[[Weights], nn.Module]] = {
    "digits CNN": DigitsCnn,
    "digits LSTM": DigitsLstm,
    "digits ViT": DigitsVit,
    "digits MobileNet": DigitsMobilenet,
}
