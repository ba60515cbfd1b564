"""A dense network: `fc1`, `fc2`, …, each with `.w` [inputs, units] and `.b` [units]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hand.descent import Array, Labels, Parameters, logits_gradient, sigmoid


@dataclass(frozen=True)
class Dense:
    """`layers` with an activation between: "relu" or "sigmoid". With "relu", hidden values are zero with probability `dropout`."""

    layers: int
    hidden: str = "relu"
    dropout: float = 0.0

    def gradients(self, parameters: Parameters, x: Array, y: Labels) -> Parameters:
        values = self.values(parameters, x)
        return self.backward(parameters, values, logits_gradient(values[-1], y))[0]

    def values(self, parameters: Parameters, x: Array) -> list[Array]:
        """The input and the values after each layer; the last are logits."""
        values = [x]
        for index in range(1, self.layers + 1):
            z = values[-1] @ parameters[f"fc{index}.w"] + parameters[f"fc{index}.b"]
            values.append(z if index == self.layers else self._activation(z))
        return values

    def backward(self, parameters: Parameters, values: list[Array], delta: Array) -> tuple[Parameters, Array]:
        """The gradients by the parameters, and by the sums of the first layer, from those by the logits."""
        found: Parameters = {}
        for index in range(self.layers, 0, -1):
            a = values[index - 1]
            found |= {f"fc{index}.w": a.T @ delta, f"fc{index}.b": delta.sum(axis=0)}
            if index > 1:
                delta = delta @ parameters[f"fc{index}.w"].T * self._slope(a)
        return found, delta

    def _activation(self, z: Array) -> Array:
        if self.hidden == "sigmoid":
            return sigmoid(z)
        z = np.maximum(z, 0)
        return z * (np.random.default_rng().random(z.shape, np.float32) >= self.dropout) / (1 - self.dropout) if self.dropout else z

    def _slope(self, a: Array) -> Array:
        """The derivative of the activation, from its value; a value that was dropped is zero."""
        return a * (1 - a) if self.hidden == "sigmoid" else (a > 0) / np.float32(1 - self.dropout)
