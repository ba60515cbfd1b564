"""A dense network: `fc1`, `fc2`, …, each with `.w` [inputs, units] and `.b` [units]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from data import Array, Labels
from descent import Parameters, he_normal, logits_gradient, sigmoid


@dataclass(frozen=True)
class Dense:
    """`sizes` from the inputs to the classes; `hidden` is the activation between: "relu" or "sigmoid"."""

    sizes: tuple[int, ...]
    hidden: str = "relu"

    def initial(self, generator: np.random.Generator) -> Parameters:
        found: Parameters = {}
        for index, (m, n) in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True), 1):
            found |= {f"fc{index}.w": he_normal(generator, m, n), f"fc{index}.b": np.zeros(n, np.float32)}
        return found

    def logits(self, parameters: Parameters, x: Array) -> Array:
        return self.values(parameters, x)[-1]

    def values(self, parameters: Parameters, x: Array) -> list[Array]:
        """The input and the values after each layer; the last are logits."""
        values, last = [x], len(self.sizes) - 1
        for index in range(1, last + 1):
            z = values[-1] @ parameters[f"fc{index}.w"] + parameters[f"fc{index}.b"]
            if index < last:
                z = np.maximum(z, 0) if self.hidden == "relu" else sigmoid(z)
            values.append(z)
        return values

    def gradients(self, parameters: Parameters, x: Array, y: Labels) -> Parameters:
        values = self.values(parameters, x)
        return self.backward(parameters, values, logits_gradient(values[-1], y))[0]

    def backward(self, parameters: Parameters, values: list[Array], delta: Array) -> tuple[Parameters, Array]:
        """The gradients by the parameters, and by the input, from those by the logits."""
        found: Parameters = {}
        for index in reversed(range(1, len(values))):
            a = values[index - 1]
            found |= {f"fc{index}.w": a.T @ delta, f"fc{index}.b": delta.sum(axis=0)}
            delta = delta @ parameters[f"fc{index}.w"].T
            if index > 1:
                delta = delta * ((a > 0) if self.hidden == "relu" else a * (1 - a))
        return found, delta
