"""Gradient descent on the mean cross-entropy, for any network that knows its gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from data import Array, Data, Labels

Parameters = dict[str, Array]
"""The weights by key, as the program declares them."""

BATCH = 32
RATE = 0.002


class Network(Protocol):
    """What is trained: a function from inputs [rows, ...] to logits [rows, classes]."""

    def initial(self, generator: np.random.Generator) -> Parameters:
        """Weights to start from."""

    def logits(self, parameters: Parameters, x: Array) -> Array: ...

    def gradients(self, parameters: Parameters, x: Array, y: Labels) -> Parameters:
        """The gradients of the mean cross-entropy, in the order of the parameters."""


def train(network: Network, data: Data, epochs: int, decay: float, seed: int = 0) -> Parameters:
    """Adam (Kingma and Ba, arXiv 1412.6980) on mini-batches, with weight decay."""
    generator = np.random.default_rng(seed)
    parameters = network.initial(generator)
    moments = {key: (np.zeros_like(p), np.zeros_like(p)) for key, p in parameters.items()}
    step = 0
    for _ in range(epochs):
        order = generator.permutation(len(data.y_train))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            step += 1
            for key, g in network.gradients(parameters, data.x_train[rows], data.y_train[rows]).items():
                p, (m, v) = parameters[key], moments[key]
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= RATE * (m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8) + decay * p)
    return parameters


def logits_gradient(logits: Array, y: Labels) -> Array:
    """The gradient of the mean cross-entropy of the softmax, by the logits."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return np.asarray(p / len(y))


def he_normal(generator: np.random.Generator, *shape: int) -> Array:
    """Weights for ReLU: deviation sqrt(2 / inputs), where the last size are the outputs (He et al., arXiv 1502.01852)."""
    return generator.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))
