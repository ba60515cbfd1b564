"""Kinds of networks in plain PyTorch, small, with their inputs; and those of torchvision, where it is installed.

    python tests/support/torch_zoo.py FOLDER NAME…    # writes the networks named, or all, as ONNX files

Their weights are random. The batch is the first axis of every input, and left open, unless a network says otherwise.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WORDS = 40
"""Of a vocabulary."""


@dataclass(frozen=True)
class Ids:
    """An input of words."""

    shape: tuple[int, ...]


Input = Ids | tuple[int, ...]


@dataclass(frozen=True)
class Network:
    make: Callable[[], nn.Module]
    inputs: tuple[Input, ...]
    open_batch: bool = True

    def module(self) -> nn.Module:
        """In `eval()`, with weights and statistics that are the same each time."""
        torch.manual_seed(0)
        made = self.make().eval()
        for part in made.modules():
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d) and part.running_var is not None and part.running_mean is not None:
                part.running_var.uniform_(0.5, 1.5)
                part.running_mean.normal_(0, 0.2)
        return made

    def example(self) -> tuple[Tensor, ...]:
        return tuple(torch.randint(0, WORDS, x.shape) if isinstance(x, Ids) else torch.randn(*x) for x in self.inputs)


def export(network: Network, path: Path) -> None:
    """Writes the network as PyTorch's newer exporter does."""
    module, example = network.module(), network.example()
    sizes = tuple({0: torch.export.Dim("batch", min=2, max=64)} for _ in example) if network.open_batch else None
    torch.onnx.export(module, example, str(path), dynamo=True, external_data=False, verbose=False, dynamic_shapes=sizes)


def images(size: int = 16, channels: int = 3) -> tuple[Input, ...]:
    return ((2, channels, size, size),)


class Fn(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Tensor) -> Tensor:
        return self.function(*given)


class Past(nn.Module):
    """x and what layers make of it, summed."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Beside(nn.Module):
    """Several layers on one x, concatenated."""

    def __init__(self, *branches: nn.Module, axis: int = 1) -> None:
        super().__init__()
        self.branches, self.axis = nn.ModuleList(branches), axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], self.axis)


class Gated(nn.Module):
    """The product of two branches."""

    def __init__(self, left: nn.Module, right: nn.Module) -> None:
        super().__init__()
        self.left, self.right = left, right

    def forward(self, x: Tensor) -> Tensor:
        return self.left(x) * self.right(x)


def conv_bn(before: int, after: int, size: int = 3, stride: int = 1, groups: int = 1, act: type[nn.Module] = nn.ReLU) -> nn.Module:
    conv = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(after), act())


def classifier(channels: int, classes: int = 10) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


# images


def lenet() -> nn.Module:
    first = (nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten())
    return nn.Sequential(*first, nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


def vgg() -> nn.Module:
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 10))


def resnet() -> nn.Module:
    block = (conv_bn(8, 8), nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
    return nn.Sequential(conv_bn(3, 8), nn.MaxPool2d(3, 2, 1), Past(*block), nn.ReLU(), conv_bn(8, 16, stride=2), classifier(16))


def densenet() -> nn.Module:
    def grown(channels: int) -> nn.Module:
        return Beside(nn.Identity(), nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 4, 3, padding=1)))

    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), grown(8), grown(12), nn.BatchNorm2d(16), nn.AvgPool2d(2), classifier(16))


def inception() -> nn.Module:
    pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(8, 4, 1))
    return nn.Sequential(conv_bn(3, 8), Beside(conv_bn(8, 4, 1), conv_bn(8, 8), conv_bn(8, 4, 5), pooled), classifier(20))


def squeezenet() -> nn.Module:
    fire = (nn.Conv2d(8, 4, 1), nn.ReLU(), Beside(nn.Conv2d(4, 8, 1), nn.Conv2d(4, 8, 3, padding=1)), nn.ReLU())
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(conv_bn(3, 8, stride=2), pool, *fire, nn.Conv2d(16, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def resnext() -> nn.Module:
    return nn.Sequential(conv_bn(3, 16), Past(conv_bn(16, 16, 1), conv_bn(16, 16, groups=4), nn.Conv2d(16, 16, 1)), classifier(16))


def mobilenet() -> nn.Module:
    def step(before: int, after: int, stride: int) -> nn.Module:
        return nn.Sequential(conv_bn(before, before, 3, stride, before, nn.ReLU6), conv_bn(before, after, 1, act=nn.ReLU6))

    return nn.Sequential(conv_bn(3, 8, stride=2), step(8, 16, 1), step(16, 32, 2), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(32, 10))


def squeezed(channels: int) -> nn.Module:
    """Weights of the channels, from their means."""
    layers = (nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.SiLU(), nn.Conv2d(4, channels, 1), nn.Sigmoid())
    return Gated(nn.Identity(), nn.Sequential(*layers))


def efficientnet() -> nn.Module:
    inner = (conv_bn(8, 32, 1, act=nn.SiLU), conv_bn(32, 32, 5, groups=32, act=nn.SiLU), squeezed(32), nn.Conv2d(32, 8, 1))
    return nn.Sequential(conv_bn(3, 8, stride=2, act=nn.SiLU), Past(*inner), classifier(8))


def mobilenet_v3() -> nn.Module:
    inner = (conv_bn(8, 16, 1, act=nn.Hardswish), conv_bn(16, 16, groups=16, act=nn.Hardswish), nn.Conv2d(16, 8, 1))
    return nn.Sequential(conv_bn(3, 8, act=nn.Hardswish), Past(*inner), nn.Hardsigmoid(), classifier(8))


def shuffled(x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


class ShuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = conv_bn(3, 8), classifier(8)
        self.right = nn.Sequential(conv_bn(4, 4, 1), conv_bn(4, 4, groups=4), conv_bn(4, 4, 1))

    def forward(self, image: Tensor) -> Tensor:
        left, right = self.stem(image).chunk(2, 1)
        return self.head(shuffled(torch.cat([left, self.right(right)], 1)))


class ConvNext(nn.Module):
    """Depthwise windows, a layer normalisation of the channels, and scales of a layer's own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.depth, self.norm = nn.Conv2d(3, 16, 4, 4), nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.LayerNorm(16)
        self.body, self.scale = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)), nn.Parameter(torch.full((16,), 0.1))
        self.head = classifier(16)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        h = self.body(self.norm(self.depth(x).permute(0, 2, 3, 1)))
        return self.head(x + (self.scale * h).permute(0, 3, 1, 2))


class UNet(nn.Module):
    def __init__(self, up: str) -> None:
        super().__init__()
        self.a, self.b, self.c = conv_bn(3, 8), conv_bn(8, 16), conv_bn(16, 32)
        self.up1, self.up2 = self.grown(32, 16, up), self.grown(16, 8, up)
        self.d1, self.d2, self.out = conv_bn(32, 16), conv_bn(16, 8), nn.Conv2d(8, 2, 1)

    @staticmethod
    def grown(before: int, after: int, up: str) -> nn.Module:
        if up == "transposed":
            return nn.ConvTranspose2d(before, after, 2, 2)
        return nn.Sequential(nn.Upsample(scale_factor=2, mode=up), nn.Conv2d(before, after, 1))

    def forward(self, image: Tensor) -> Tensor:
        a = self.a(image)
        b = self.b(F.max_pool2d(a, 2))
        h = self.d1(torch.cat([self.up1(self.c(F.max_pool2d(b, 2))), b], 1))
        return self.out(self.d2(torch.cat([self.up2(h), a], 1)))


class Pyramid(nn.Module):
    """Two scales of features, each with a head: two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = conv_bn(3, 8, stride=2), conv_bn(8, 16, stride=2)
        self.side, self.top, self.head = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1), nn.Conv2d(8, 5, 3, padding=1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(image)
        top = self.top(self.b(a))
        return self.head(top), self.head(self.side(a) + F.interpolate(top, scale_factor=2.0, mode="nearest"))


def dilated() -> nn.Module:
    rates = (nn.Conv2d(8, 4, 3, padding=rate, dilation=rate) for rate in (1, 2, 4))
    return nn.Sequential(conv_bn(3, 8), Beside(nn.Conv2d(8, 4, 1), *rates), nn.ReLU(), nn.Conv2d(16, 3, 1))


class Attentive(nn.Module):
    """Weights of the pixels, from the mean and the maximum of their channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.spatial, self.head = conv_bn(3, 8), nn.Conv2d(2, 1, 7, padding=3), classifier(8)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        seen = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return self.head(x * torch.sigmoid(self.spatial(seen)))


def norms() -> nn.Module:
    first = (nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
    second = (nn.Conv2d(8, 8, 3, padding=1), nn.InstanceNorm2d(8, affine=True), nn.GELU())
    return nn.Sequential(*first, *second, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 3))


def alexnet() -> nn.Module:
    layers = (nn.Conv2d(3, 8, 3), nn.ReLU(), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2, 1, ceil_mode=True))
    return nn.Sequential(*layers, nn.Conv2d(8, 4, 3, stride=2, dilation=2, padding=2))


def discriminator() -> nn.Module:
    inner = (nn.Conv2d(8, 16, 4, 2, 1), nn.InstanceNorm2d(16), nn.LeakyReLU(0.2))
    return nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.LeakyReLU(0.2), *inner, nn.Conv2d(16, 1, 3, padding=1))


def generator() -> nn.Module:
    layers = (nn.Linear(10, 256), nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
    return nn.Sequential(*layers, nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())


def conv_autoencoder() -> nn.Module:
    inwards = (nn.Conv2d(1, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 4, 3, 2, 1), nn.PReLU(4))
    outwards = (nn.ConvTranspose2d(4, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 3, 2, 1, 1), nn.Sigmoid())
    return nn.Sequential(*inwards, *outwards)


def super_resolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2))


class Yolo(nn.Module):
    """A head of one box per cell: places and sizes in pixels, and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(conv_bn(3, 8, stride=2), conv_bn(8, 16, stride=2)), nn.Conv2d(16, 7, 1)
        self.register_buffer("grid", torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")), persistent=False)

    def forward(self, image: Tensor) -> Tensor:
        y = self.head(self.body(image))
        place = (torch.sigmoid(y[:, :2]) + self.grid) * 4
        return torch.cat([place, torch.exp(y[:, 2:4]) * 4, torch.sigmoid(y[:, 4:])], 1).flatten(2).transpose(1, 2)


# sequences


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.table, self.cells = nn.Embedding(WORDS, 12), kind(12, 9, batch_first=True, **options)
        self.fc = nn.Linear(18 if options.get("bidirectional") else 9, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.fc(self.cells(self.table(ids))[0][:, -1])


class Seq2Seq(nn.Module):
    """The states of one recurrence begin another."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Embedding(WORDS, 8), nn.Embedding(WORDS, 8)
        self.read, self.write, self.fc = nn.GRU(8, 10, batch_first=True), nn.GRU(8, 10, batch_first=True), nn.Linear(10, WORDS)

    def forward(self, ids: Tensor, told: Tensor) -> Tensor:
        _, state = self.read(self.a(ids))
        return self.fc(self.write(self.b(told), state)[0])


class Crnn(nn.Module):
    """Convolutions of a line of text, then a recurrence along it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.cells = nn.Sequential(conv_bn(1, 8), nn.MaxPool2d((4, 2))), nn.LSTM(16, 9, batch_first=True)
        self.fc = nn.Linear(9, 5)

    def forward(self, image: Tensor) -> Tensor:
        x = self.conv(image).permute(0, 3, 1, 2).flatten(2)
        return F.log_softmax(self.fc(self.cells(x)[0]), -1)


class Tcn(nn.Module):
    """Convolutions that see only what was before."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(8 if step else 4, 8, 3, dilation=2**step) for step in range(3))
        self.fc = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        for step, conv in enumerate(self.convs):
            x = F.relu(conv(F.pad(x, (2 * 2**step, 0))))
        return self.fc(x[:, :, -1])


def wavenet() -> nn.Module:
    def gate(rate: int) -> nn.Module:
        def branch(act: nn.Module) -> nn.Module:
            return nn.Sequential(nn.Conv1d(8, 8, 3, padding=rate, dilation=rate), act)

        return Past(Gated(branch(nn.Tanh()), branch(nn.Sigmoid())), nn.Conv1d(8, 8, 1))

    return nn.Sequential(nn.Conv1d(2, 8, 1), gate(1), gate(2), nn.ReLU(), nn.Conv1d(8, 4, 1))


def resnet_1d() -> nn.Module:
    stem = (nn.Conv1d(3, 8, 5, 2, 2), nn.BatchNorm1d(8), nn.ReLU(), Past(nn.Conv1d(8, 8, 3, padding=1)), nn.MaxPool1d(2))
    return nn.Sequential(*stem, nn.Flatten(), nn.Linear(64, 4))


def keyword_spotting() -> nn.Module:
    steps = (conv_bn(16, 16, groups=16), conv_bn(16, 16, 1))
    return nn.Sequential(nn.Conv2d(1, 16, (10, 4), 2, (5, 1)), nn.BatchNorm2d(16), nn.ReLU(), *steps, classifier(16, 12))


def text_cnn() -> nn.Module:
    def window(width: int) -> nn.Module:
        return nn.Sequential(nn.Conv1d(8, 4, width), nn.ReLU(), nn.AdaptiveMaxPool1d(1))

    table = nn.Sequential(nn.Embedding(WORDS, 8), Fn(lambda x: x.transpose(1, 2)))
    return nn.Sequential(table, Beside(*(window(width) for width in (2, 3, 4))), nn.Flatten(), nn.Linear(12, 2))


def bag_of_words() -> nn.Module:
    return nn.Sequential(nn.Embedding(WORDS, 8), Fn(lambda x: x.mean(1)), nn.Linear(8, 4))


# transformers


class Attention(nn.Module):
    def __init__(self, size: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(d, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(d // self.heads)
        if self.causal:
            scores = scores.masked_fill(~torch.tril(torch.ones(t, t, dtype=torch.bool)), -math.inf)
        return self.out((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, d))


def block(size: int, causal: bool = False, approximate: str = "none") -> nn.Module:
    mlp = (nn.Linear(size, 2 * size), nn.GELU(approximate), nn.Linear(2 * size, size))
    return nn.Sequential(Past(nn.LayerNorm(size), Attention(size, 2, causal)), Past(nn.LayerNorm(size), *mlp))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 16), nn.Embedding(16, 16)
        self.blocks = nn.Sequential(*(block(16, causal=True, approximate="tanh") for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, WORDS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.words(ids) + self.places(torch.arange(ids.shape[1])))))


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.place, self.blocks, self.head = nn.Parameter(torch.randn(1, 17, 16)), nn.Sequential(block(16), block(16)), nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.blocks(x)[:, 0])


class Encoder(nn.Module):
    """PyTorch's own transformer layers."""

    def __init__(self, activation: str, norm_first: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation=activation, norm_first=norm_first)
        self.table, self.layers, self.fc = (
            nn.Embedding(WORDS, 16),
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            nn.Linear(16, 5),
        )

    def forward(self, ids: Tensor) -> Tensor:
        return self.fc(self.layers(self.table(ids)).mean(1))


class Translator(nn.Module):
    """A decoder that attends to what an encoder gives."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.fc = nn.Embedding(WORDS, 16), nn.Linear(16, WORDS)
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)

    def forward(self, ids: Tensor, told: Tensor) -> Tensor:
        return self.fc(self.decoder(self.table(told), self.encoder(self.table(ids))))


class Llama(nn.Module):
    """RMS normalisation, places by rotation, two heads of queries for each of keys, and a gated product."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm1, self.norm2 = nn.Embedding(WORDS, 16), nn.RMSNorm(16, 1e-6), nn.RMSNorm(16, 1e-6)
        self.q, self.kv, self.out = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.mlp = nn.Sequential(Gated(nn.Sequential(nn.Linear(16, 32), nn.SiLU()), nn.Linear(16, 32)), nn.Linear(32, 16))

    @staticmethod
    def turned(x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[2])[:, None] * torch.tensor([1.0, 0.1]).repeat(2)
        left, right = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-right, left], -1) * angles.sin()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        b, t, d = x.shape
        h = self.norm1(x)
        q = self.q(h).view(b, t, 4, 4).transpose(1, 2)
        k, v = (part.reshape(b, t, 2, 4).transpose(1, 2).repeat_interleave(2, 1) for part in self.kv(h).chunk(2, -1))
        mixed = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm1, self.norm2, self.fc = nn.Conv2d(3, 16, 4, 4), nn.LayerNorm(16), nn.LayerNorm(16), nn.Linear(16, 10)
        self.tokens, self.channels = (nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(2))

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return self.fc((x + self.channels(self.norm2(x))).mean(1))


# tables, sets and several inputs


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 5), nn.Softmax(-1))


def autoencoder() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 8), nn.ELU(), nn.Linear(8, 3), nn.Tanh(), nn.Linear(3, 8), nn.SELU(), nn.Linear(8, 20), nn.Sigmoid())


def activations() -> nn.Module:
    kinds = (
        *(F.silu, F.hardswish, F.hardsigmoid, F.mish, F.softplus, F.softsign, F.celu, F.selu, F.gelu, F.elu, F.logsigmoid),
        *(torch.erf, F.relu6, torch.sign, torch.square, F.leaky_relu, F.hardtanh, lambda x: F.log_softmax(x, -1), lambda x: x.abs().sqrt()),
        *(lambda x: F.gelu(x, approximate="tanh"), lambda x: x**3, lambda x: x.clamp(-0.5, 1.0)),
    )
    return nn.Sequential(nn.Linear(5, 6), Beside(*(Fn(kind) for kind in kinds)))


def highway() -> nn.Module:
    return nn.Sequential(nn.Linear(9, 16), Past(Gated(nn.Sequential(nn.Linear(16, 16), nn.Sigmoid()), nn.Linear(16, 16))), nn.Linear(16, 3))


def glu() -> nn.Module:
    return nn.Sequential(nn.Linear(9, 16), nn.GLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def maxout() -> nn.Module:
    return nn.Sequential(nn.Linear(9, 24), nn.Unflatten(1, (8, 3)), Fn(lambda x: x.amax(2)), nn.Linear(8, 3))


class Experts(nn.Module):
    """Four experts, weighted by a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(9, 4), nn.ModuleList(nn.Linear(9, 6) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        made = torch.stack([F.relu(expert(x)) for expert in self.experts], 1)
        return (F.softmax(self.gate(x), -1)[:, :, None] * made).sum(1)


class WideAndDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.wide = nn.Embedding(WORDS, 4), nn.Linear(6, 1)
        self.deep = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        return torch.sigmoid(self.wide(x) + self.deep(torch.cat([x, self.table(ids).flatten(1)], 1)))


class Dlrm(nn.Module):
    """Products of all pairs of embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(WORDS + i, 8) for i in range(3))
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        dense = self.bottom(x)
        all_ = torch.stack([dense, *(table(ids[:, i]) for i, table in enumerate(self.tables))], 1)
        rows, columns = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([dense, torch.bmm(all_, all_.transpose(1, 2))[:, rows, columns]], 1))


class FactorisationMachine(nn.Module):
    """The sum of the products of all pairs, by the square of their sum."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.bias = nn.Embedding(WORDS, 6), nn.Embedding(WORDS, 1)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        return self.bias(ids).sum(1) + (x.sum(1).square() - x.square().sum(1)).sum(1, keepdim=True) / 2


class Towers(nn.Module):
    """The cosine of what two networks make of their inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(7, 8), nn.Linear(5, 8)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return (F.normalize(self.left(a), dim=-1) * F.normalize(self.right(b), dim=-1)).sum(-1)


def point_net() -> nn.Module:
    shared = (nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1), Fn(lambda x: x.amax(2)))
    return nn.Sequential(*shared, nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


class DeepSet(nn.Module):
    """Each member less the mean of all."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.fc = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.a(x - x.mean(1, keepdim=True)))
        return self.fc(F.elu(self.b(x - x.mean(1, keepdim=True))).sum(1))


class GraphConvolution(nn.Module):
    """On a graph that is fixed: a ring."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)
        ring = torch.eye(6) + torch.eye(6).roll(1, 0) + torch.eye(6).roll(-1, 0)
        self.register_buffer("near", ring / 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.near @ self.b(F.relu(self.near @ self.a(x)))


class TwoHeads(nn.Module):
    """A vector and an image in, two results out."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.first, self.second = nn.Linear(5, 8), nn.Conv2d(1, 4, 3), nn.Linear(12, 3), nn.Linear(12, 2)

    def forward(self, x: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.cat([F.relu(self.a(x)), F.relu(self.b(image)).mean((2, 3))], 1)
        return self.first(h), self.second(h)


class Film(nn.Module):
    """Scales and shifts of an image's channels, from a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.say, self.head = conv_bn(3, 8), nn.Linear(5, 16), classifier(8)

    def forward(self, image: Tensor, x: Tensor) -> Tensor:
        scale, shift = self.say(x)[:, :, None, None].chunk(2, 1)
        return self.head(F.relu(self.stem(image) * scale + shift))


NETWORKS = {
    "lenet": Network(lenet, images(28, 1)),
    "alexnet": Network(alexnet, images(24)),
    "vgg": Network(vgg, images()),
    "resnet": Network(resnet, images()),
    "resnext": Network(resnext, images()),
    "densenet": Network(densenet, images()),
    "inception": Network(inception, images()),
    "squeezenet": Network(squeezenet, images()),
    "mobilenet": Network(mobilenet, images()),
    "mobilenet_v3": Network(mobilenet_v3, images()),
    "efficientnet": Network(efficientnet, images()),
    "shufflenet": Network(ShuffleNet, images()),
    "convnext": Network(ConvNext, images()),
    "unet_transposed": Network(lambda: UNet("transposed"), images()),
    "unet_nearest": Network(lambda: UNet("nearest"), images()),
    "unet_bilinear": Network(lambda: UNet("bilinear"), images()),
    "pyramid": Network(Pyramid, images()),
    "dilated": Network(dilated, images()),
    "attentive": Network(Attentive, images()),
    "norms": Network(norms, images()),
    "discriminator": Network(discriminator, images()),
    "generator": Network(generator, ((2, 10),)),
    "conv_autoencoder": Network(conv_autoencoder, images(28, 1)),
    "super_resolution": Network(super_resolution, images(12, 1)),
    "yolo": Network(Yolo, images()),
    "rnn": Network(lambda: Recurrent(nn.RNN), (Ids((3, 7)),)),
    "gru": Network(lambda: Recurrent(nn.GRU), (Ids((3, 7)),)),
    "gru_two_layers": Network(lambda: Recurrent(nn.GRU, num_layers=2), (Ids((3, 7)),)),
    "lstm": Network(lambda: Recurrent(nn.LSTM), (Ids((3, 7)),)),
    "lstm_both_ways": Network(lambda: Recurrent(nn.LSTM, bidirectional=True), (Ids((3, 7)),)),
    "lstm_states": Network(lambda: nn.LSTM(6, 8), ((5, 3, 6),), open_batch=False),
    "seq2seq": Network(Seq2Seq, (Ids((3, 5)), Ids((3, 4)))),
    "crnn": Network(Crnn, ((2, 1, 8, 12),)),
    "tcn": Network(Tcn, ((2, 4, 20),)),
    "wavenet": Network(wavenet, ((2, 2, 16),)),
    "resnet_1d": Network(resnet_1d, ((2, 3, 32),)),
    "keyword_spotting": Network(keyword_spotting, ((2, 1, 49, 10),)),
    "text_cnn": Network(text_cnn, (Ids((3, 9)),)),
    "bag_of_words": Network(bag_of_words, (Ids((3, 9)),)),
    "gpt": Network(Gpt, (Ids((2, 10)),)),
    "llama": Network(Llama, (Ids((2, 6)),)),
    "vit": Network(Vit, images()),
    "mixer": Network(Mixer, images()),
    "encoder": Network(lambda: Encoder("gelu", norm_first=False), (Ids((2, 9)),)),
    "encoder_norm_first": Network(lambda: Encoder("relu", norm_first=True), (Ids((2, 9)),)),
    "translator": Network(Translator, (Ids((2, 5)), Ids((2, 4)))),
    "mlp": Network(mlp, ((3, 7),)),
    "autoencoder": Network(autoencoder, ((3, 20),)),
    "activations": Network(activations, ((3, 5),)),
    "highway": Network(highway, ((3, 9),)),
    "glu": Network(glu, ((3, 9),)),
    "maxout": Network(maxout, ((3, 9),)),
    "experts": Network(Experts, ((3, 9),)),
    "wide_and_deep": Network(WideAndDeep, ((3, 6), Ids((3, 2)))),
    "dlrm": Network(Dlrm, ((3, 13), Ids((3, 3)))),
    "factorisation_machine": Network(FactorisationMachine, (Ids((3, 5)),)),
    "towers": Network(Towers, ((3, 7), (3, 5))),
    "point_net": Network(point_net, ((2, 3, 20),)),
    "deep_set": Network(DeepSet, ((2, 6, 4),)),
    "graph_convolution": Network(GraphConvolution, ((2, 6, 4),)),
    "two_heads": Network(TwoHeads, ((3, 5), (3, 1, 9, 9))),
    "film": Network(Film, ((2, 3, 8, 8), (2, 5))),
}


OPERATORS: list[torch.library.Library] = []
"""What declares operators of torchvision; they are there as long as it is."""


def torchvision_models() -> Any:
    """The networks of torchvision. Its compiled operators, which may be those of another build of PyTorch, aren't needed for them: those
    that it asks for while it is imported are declared, without functions.

    Raises `ImportError` where it isn't installed, or Pillow isn't.
    """
    try:
        return importlib.import_module("torchvision.models")
    except RuntimeError:
        OPERATORS.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            OPERATORS[-1].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return importlib.import_module("torchvision.models")


def of_torchvision() -> dict[str, Network]:
    """None where torchvision isn't installed."""
    try:
        models = torchvision_models()
    except ImportError:
        return {}
    sizes = dict.fromkeys(TORCHVISION.split(), 64) | {"inception_v3": 96}
    bare = {name: {"aux_logits": False, "init_weights": False} for name in ("googlenet", "inception_v3")}

    def made(name: str) -> Callable[[], nn.Module]:
        return lambda: getattr(models, name)(weights=None, num_classes=10, **bare.get(name, {}))

    return {f"torchvision_{name}": Network(made(name), images(size)) for name, size in sizes.items()}


TORCHVISION = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 mnasnet0_5 mobilenet_v2 mobilenet_v3_large "
    "mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_0 squeezenet1_1 "
    "swin_t vgg11 vgg11_bn wide_resnet50_2"
)
"""Its networks, on images of 64 by 64, where they may be so small."""


def main(arguments: list[str]) -> int:
    folder, networks = Path(arguments[0]), NETWORKS | of_torchvision()
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or networks:
        export(networks[name], folder / f"{name}.onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
