"""Gradient descent on the mean cross-entropy, for any network that knows its gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]
Parameters = dict[str, Array]
"""The weights by key, as the program declares them."""


class Network(Protocol):
    """What is trained."""

    def gradients(self, parameters: Parameters, x: Array, y: Labels) -> Parameters:
        """Of the mean cross-entropy, of inputs [rows, …] with labels [rows]."""


class Optimizer(Protocol):
    """What changes the weights."""

    def update(self, parameters: Parameters, gradients: Parameters) -> None:
        """Changes the arrays of `parameters`."""


class Sgd:
    """Stochastic gradient descent."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def update(self, parameters: Parameters, gradients: Parameters) -> None:
        for key, g in gradients.items():
            parameters[key] -= self.rate * g


class Adam:
    """Kingma and Ba, arXiv 1412.6980."""

    def __init__(self, rate: float) -> None:
        self.rate, self.step = rate, 0
        self.moments: dict[str, tuple[Array, Array]] = {}

    def update(self, parameters: Parameters, gradients: Parameters) -> None:
        self.step += 1
        for key, g in gradients.items():
            m, v = self.moments.setdefault(key, (np.zeros_like(g), np.zeros_like(g)))
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            parameters[key] -= self.rate * (m / (1 - 0.9**self.step) / (np.sqrt(v / (1 - 0.999**self.step)) + 1e-8))


def train_epoch(network: Network, optimizer: Optimizer, parameters: Parameters, x: Array, y: Labels, batch: int) -> None:
    """One pass over the examples, in an order of its own; those that don't fill a batch are left out."""
    order = np.random.default_rng(0).permutation(len(y))
    for start in range(0, len(order) - batch + 1, batch):
        rows = order[start : start + batch]
        optimizer.update(parameters, network.gradients(parameters, x[rows], y[rows]))


def logits_gradient(logits: Array, y: Labels) -> Array:
    """The gradient of the mean cross-entropy of the softmax, by the logits."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return np.asarray(p / len(y))


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))
