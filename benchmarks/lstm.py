"""The baseline for recurrent networks: the forward of programs/10_imdb_lstm.tpu as one writes it in NumPy, in float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]


def sigmoid(x: Float32) -> Float32:
    """In float32."""
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def forward(weights: Mapping[str, Float32], table: Float32, ids: npt.NDArray[np.int32]) -> Float32:
    """ids [batch, time] to [batch, 1]; `table` is the scaled one. All inputs are multiplied at once, the states step by step."""
    recurrent, units = weights["lstm.recurrent"], weights["lstm.recurrent"].shape[0]
    x = table[ids] @ weights["lstm.kernel"] + weights["lstm.bias"]
    h = c = np.zeros((ids.shape[0], units), np.float32)
    for t in range(ids.shape[1]):
        z = x[:, t] + h @ recurrent
        i, f, o = sigmoid(z[:, :units]), sigmoid(z[:, units : 2 * units]), sigmoid(z[:, 3 * units :])
        c = f * c + i * np.tanh(z[:, 2 * units : 3 * units])
        h = o * np.tanh(c)
    return sigmoid(h @ weights["fc.kernel"] + weights["fc.bias"])
