"""An LSTM over a sequence, with a dense layer on its last state; weights as Keras lays them out, gates in the order i, f, c, o."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hand.descent import Array, Labels, Parameters, logits_gradient, sigmoid


@dataclass(frozen=True)
class Step:
    """What a step read and made: input, state and cell before, the gates after their activations, the new cell's tanh."""

    x: Array
    h: Array
    c: Array
    gates: tuple[Array, Array, Array, Array]
    shown: Array


@dataclass(frozen=True)
class Lstm:
    """Of `units`."""

    units: int

    def gradients(self, parameters: Parameters, x: Array, y: Labels) -> Parameters:
        """Backpropagation through time."""
        steps, h = self._run(parameters, x)
        delta = logits_gradient(h @ parameters["fc.w"] + parameters["fc.b"], y)
        found = {key: np.zeros_like(p) for key, p in parameters.items()}
        found["fc.w"], found["fc.b"] = h.T @ delta, delta.sum(axis=0)
        dh, dc = delta @ parameters["fc.w"].T, np.zeros_like(h)
        for step in reversed(steps):
            dz, dc = _gate_gradients(step, dh, dc)
            found["lstm.kernel"] += step.x.T @ dz
            found["lstm.recurrent"] += step.h.T @ dz
            found["lstm.bias"] += dz.sum(axis=0)
            dh = dz @ parameters["lstm.recurrent"].T
        return found

    def _run(self, parameters: Parameters, x: Array) -> tuple[list[Step], Array]:
        """All steps over `x` [rows, steps, inputs], and the last state."""
        h = c = np.zeros((len(x), self.units), np.float32)
        steps = []
        for t in range(x.shape[1]):
            z = x[:, t] @ parameters["lstm.kernel"] + h @ parameters["lstm.recurrent"] + parameters["lstm.bias"]
            zi, zf, zg, zo = np.split(z, 4, axis=1)
            gates = i, f, g, o = sigmoid(zi), sigmoid(zf), np.tanh(zg), sigmoid(zo)
            cell = f * c + i * g
            steps.append(Step(x[:, t], h, c, gates, np.tanh(cell)))
            h, c = o * steps[-1].shown, cell
        return steps, h


def _gate_gradients(step: Step, dh: Array, dc: Array) -> tuple[Array, Array]:
    """By the gates' sums [rows, 4 * units] and by the cell before, from those by the state and the cell after."""
    i, f, g, o = step.gates
    dc = dc + dh * o * (1 - step.shown**2)
    parts = dc * g * i * (1 - i), dc * step.c * f * (1 - f), dc * i * (1 - g**2), dh * step.shown * o * (1 - o)
    return np.concatenate(parts, axis=1), dc * f
