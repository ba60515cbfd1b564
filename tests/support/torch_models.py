"""The numbered programs once more, in PyTorch: written from the papers and from Keras's documentation, not from our graphs.

Each function takes the weights by key and the input as the program has it (NHWC), both as tensors of one precision, and returns the
logits: what the last softmax or sigmoid reads.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = Mapping[str, Tensor]


def same_pads(size: int, window: int, stride: int) -> tuple[int, int]:
    """TensorFlow's guide to "same" padding: by the remainder of the size; the odd pixel comes last."""
    total = max(window - stride, 0) if size % stride == 0 else max(window - size % stride, 0)
    return total // 2, total - total // 2


def padded(x: Tensor, window: tuple[int, int], stride: tuple[int, int], value: float = 0.0) -> Tensor:
    """An NCHW image with Keras's "same" padding made explicit, which torch's own can't be: it is the same on both sides."""
    top, bottom = same_pads(x.shape[2], window[0], stride[0])
    left, right = same_pads(x.shape[3], window[1], stride[1])
    return F.pad(x, (left, right, top, bottom), value=value)


def nchw(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2)


def nhwc(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1)


def conv(x: Tensor, kernel: Tensor, bias: Tensor | None = None, stride: int = 1, padding: str | int = "same") -> Tensor:
    """An NCHW image with a kernel in Keras's layout, HWIO."""
    if padding == "same":
        x, padding = padded(x, (kernel.shape[0], kernel.shape[1]), (stride, stride)), 0
    return F.conv2d(x, kernel.permute(3, 2, 0, 1), bias, stride, padding)


def dense(x: Tensor, w: Weights, name: str, parts: str = "kernel bias") -> Tensor:
    kernel, bias = (w[f"{name}.{part}"] for part in parts.split())
    return F.linear(x, kernel.T, bias)


def conv_bn(x: Tensor, w: Weights, name: str, stride: int, padding: str | int, epsilon: float) -> Tensor:
    x = conv(x, w[f"{name}.kernel"], None, stride, padding)
    mean, variance, gamma, beta = (w[f"{name}.{part}"] for part in ("mean", "variance", "gamma", "beta"))
    return F.batch_norm(x, mean, variance, gamma, beta, eps=epsilon)


def digits_cnn(w: Weights, image: Tensor) -> Tensor:
    h = F.max_pool2d(F.relu(conv(nchw(image), w["conv1.w"], w["conv1.b"])), 2)
    h = F.max_pool2d(F.relu(conv(h, w["conv2.w"], w["conv2.b"])), 2)
    return dense(F.relu(dense(nhwc(h).flatten(1), w, "fc1", "w b")), w, "fc2", "w b")


def mnist_cnn(w: Weights, image: Tensor) -> Tensor:
    """Keras flattens NHWC: torch's own order of the 1,568 values would be another."""
    h = F.max_pool2d(F.relu(conv(nchw(image), w["conv1.kernel"], w["conv1.bias"])), 2)
    h = F.max_pool2d(F.relu(conv(h, w["conv2.kernel"], w["conv2.bias"])), 2)
    return dense(F.relu(dense(nhwc(h).flatten(1), w, "fc1")), w, "fc2")


def fashion_cnn(w: Weights, image: Tensor) -> Tensor:
    """ReLU stands before the pool here, which must make no difference."""
    h = F.max_pool2d(F.relu(conv(nchw(image), w["conv.kernel"], w["conv.bias"], padding=0)), 2)
    return dense(nhwc(h).flatten(1), w, "fc")


def cifar_resnet(w: Weights, image: Tensor, gain: float = 0.25) -> Tensor:
    """As many blocks as there are weights for."""

    def layer(x: Tensor, name: str, stride: int = 1) -> Tensor:
        return conv_bn(x, w, name, stride, "same", 0.001)

    def block(x: Tensor, name: str, stride: int) -> Tensor:
        h = layer(F.relu(layer(x, f"{name}.conv1", stride)), f"{name}.conv2") * gain
        return F.relu(h + (layer(x, f"{name}.shortcut", stride) if f"{name}.shortcut.kernel" in w else x))

    h = F.relu(layer(nchw(image), "stem"))
    for name in blocks_of(w):
        h = block(h, name, 2 if name in ("stage2.block1", "stage3.block1") else 1)
    return dense(h.mean(dim=(2, 3)), w, "fc")


def resnet50(w: Weights, image: Tensor, gain: float = 0.25) -> Tensor:
    """torchvision's resnet50, functionally: padding of 3 and 1 on all sides, the stride in the 3×3 convolutions, epsilon 1e-5."""

    def layer(x: Tensor, name: str, stride: int = 1, padding: int = 0) -> Tensor:
        return conv_bn(x, w, name, stride, padding, 1e-5)

    def block(x: Tensor, name: str, stride: int) -> Tensor:
        h = F.relu(layer(x, f"{name}.conv1"))
        h = F.relu(layer(h, f"{name}.conv2", stride, 1))
        h = layer(h, f"{name}.conv3") * gain
        return F.relu(h + (layer(x, f"{name}.shortcut", stride) if f"{name}.shortcut.kernel" in w else x))

    h = F.max_pool2d(F.relu(layer(nchw(image), "stem", 2, 3)), 3, 2, 1)
    for name in blocks_of(w):
        h = block(h, name, 2 if name.endswith(".block1") and name != "stage1.block1" else 1)
    return dense(F.adaptive_avg_pool2d(h, 1).flatten(1), w, "fc")


def blocks_of(w: Weights) -> list[str]:
    """`stage1.block1`, `stage1.block2`, …: all there are, in order."""
    names = {key.rpartition(".conv1")[0] for key in w if key.endswith(".conv1.kernel")}
    return sorted(names, key=lambda name: [int(part) for part in name.replace("stage", "").split(".block")])


def lstm(w: Weights, x: Tensor) -> Tensor:
    """The last state. torch has i, f, g, o, which are Keras's i, f, c, o; it holds kernels transposed, and has a second bias."""
    inputs, units = w["lstm.kernel"].shape[0], w["lstm.recurrent"].shape[0]
    module = torch.nn.LSTM(inputs, units, batch_first=True, dtype=x.dtype)
    bias = w["lstm.bias"]
    state = {"weight_ih_l0": w["lstm.kernel"].T, "weight_hh_l0": w["lstm.recurrent"].T}
    module.load_state_dict({**state, "bias_ih_l0": bias, "bias_hh_l0": torch.zeros_like(bias)})
    with torch.no_grad():
        return module(x)[0][:, -1]


def digits_lstm(w: Weights, image: Tensor) -> Tensor:
    return dense(lstm(w, image), w, "fc", "w b")


def imdb_lstm(w: Weights, ids: Tensor) -> Tensor:
    return dense(lstm(w, F.embedding(ids, w["embedding"]) * 86.6), w, "fc")


def mlp_mixer_block(w: Weights, x: Tensor) -> Tensor:
    """The sum itself: the program ends with it. Patches are mixed by convolutions of size 1 over them, without a transpose."""

    def affine(x: Tensor, name: str) -> Tensor:
        return torch.addcmul(w[f"block1.{name}.beta"], x, w[f"block1.{name}.alpha"])

    def mix(x: Tensor, fc: str) -> Tensor:
        return F.conv1d(x, w[f"block1.tokens.{fc}.kernel"].T[:, :, None], w[f"block1.tokens.{fc}.bias"])

    x = x + mix(F.gelu(mix(affine(x, "norm1"), "fc1")), "fc2")
    h = F.gelu(dense(affine(x, "norm2"), w, "block1.channels.fc1"))
    return x + dense(h, w, "block1.channels.fc2")
