"""A convolutional network: `conv1`, `conv2`, … with ReLU and 2×2 pools, then a dense network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hand.dense import Dense
from hand.descent import Array, Labels, Parameters, logits_gradient


@dataclass(frozen=True)
class Convolutional:
    """`layers` convolutions, each with ReLU and a pool, then a dense network.

    `conv1.w` is [size, size, channels in, channels out] and `conv1.b` [channels out]; images are [rows, height, width, channels]. Sizes are
    odd, and padding is "same".
    """

    layers: int
    dense: Dense

    def gradients(self, parameters: Parameters, x: Array, y: Labels) -> Parameters:
        maps = self._maps(parameters, x)
        values = self.dense.values(parameters, maps[-1].reshape(len(x), -1))
        found, delta = self.dense.backward(parameters, values, logits_gradient(values[-1], y))
        delta = (delta @ parameters["fc1.w"].T).reshape(maps[-1].shape)
        for index in range(self.layers, 0, -1):
            before, activation, pooled = maps[2 * index - 2 : 2 * index + 1]
            delta = unpool(delta, activation, pooled) * (activation > 0)
            w = parameters[f"conv{index}.w"]
            found[f"conv{index}.w"] = (patches(before, len(w)).T @ delta.reshape(-1, delta.shape[3])).reshape(w.shape)
            found[f"conv{index}.b"] = delta.sum(axis=(0, 1, 2))
            if index > 1:
                delta = convolve(delta, w[::-1, ::-1].transpose(0, 1, 3, 2))
        return found

    def _maps(self, parameters: Parameters, x: Array) -> list[Array]:
        """The image, then after each convolution its activation and what the pool makes of it."""
        maps = [x]
        for index in range(1, self.layers + 1):
            activation = np.maximum(convolve(maps[-1], parameters[f"conv{index}.w"]) + parameters[f"conv{index}.b"], 0)
            maps += [activation, pool(activation)]
        return maps


def patches(x: Array, size: int) -> Array:
    """The window around each pixel, with zeros past the border: [rows * height * width, size * size * channels]."""
    border = size // 2
    padded = np.pad(x, ((0, 0), (border, border), (border, border), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, size * size * x.shape[3])


def convolve(x: Array, w: Array) -> Array:
    """The convolution with an odd kernel [size, size, channels in, channels out] that keeps height and width."""
    return (patches(x, w.shape[0]) @ w.reshape(-1, w.shape[3])).reshape(*x.shape[:3], w.shape[3])


def pool(x: Array) -> Array:
    """The largest of every 2×2 pixels."""
    return np.asarray(_cells(x).max(axis=(2, 4)))


def unpool(delta: Array, x: Array, pooled: Array) -> Array:
    """The gradient by the pool's input `x`: it goes to the pixels that are the largest of theirs."""
    largest = _cells(x) == pooled[:, :, np.newaxis, :, np.newaxis]
    return np.asarray(largest * delta[:, :, np.newaxis, :, np.newaxis]).reshape(x.shape)


def _cells(x: Array) -> Array:
    """Axes 2 and 4 are the pixels of a pool's cell."""
    rows, height, width, channels = x.shape
    return x.reshape(rows, height // 2, 2, width // 2, 2, channels)
