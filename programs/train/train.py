"""Trains the weights of the numbered programs: plain NumPy, on the data that comes with scikit-learn.

    make train

For each model three archives are written beside its program: `NAME.npz` (the weights), `NAME_calibration.npz` (inputs from the training
part) and `NAME_test.npz` (held-out inputs and their labels, never seen in training). The same seed gives the same files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_iris, load_wine

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
PROGRAMS = Path(__file__).resolve().parent.parent
CALIBRATION_ROWS = 100


@dataclass(frozen=True)
class Data:
    """Inputs [rows, features], labels [rows], split into a training and a held-out part."""

    x_train: Array
    y_train: Labels
    x_test: Array
    y_test: Labels


@dataclass(frozen=True)
class Task:
    """A program to train: its name, the input's name, its data, the sizes of its layers, and the hidden activation."""

    name: str
    input: str
    data: Data
    sizes: tuple[int, ...]
    hidden: str
    epochs: int
    decay: float


def split(x: Array, y: Labels, held_out: float, seed: int) -> Data:
    """Holds out the fraction `held_out` of each class."""
    generator = np.random.default_rng(seed)
    test = np.zeros(len(y), bool)
    for label in np.unique(y):
        rows = generator.permutation(np.flatnonzero(y == label))
        test[rows[: round(len(rows) * held_out)]] = True
    order = generator.permutation(np.flatnonzero(~test))
    return Data(x[order], y[order], x[test], y[test])


def standardised(data: Data) -> Data:
    """Each feature with mean 0 and deviation 1 over the training part, so that one scale fits all features."""
    mean, deviation = data.x_train.mean(axis=0), data.x_train.std(axis=0)
    return Data((data.x_train - mean) / deviation, data.y_train, (data.x_test - mean) / deviation, data.y_test)


def forward(x: Array, weights: list[tuple[Array, Array]], hidden: str) -> list[Array]:
    """The values after each layer; the last are logits."""
    values = [x]
    for index, (w, b) in enumerate(weights):
        z = values[-1] @ w + b
        if index < len(weights) - 1:
            z = np.maximum(z, 0) if hidden == "relu" else 1 / (1 + np.exp(-z))
        values.append(z)
    return values


def gradients(values: list[Array], weights: list[tuple[Array, Array]], y: Labels, hidden: str) -> list[tuple[Array, Array]]:
    """Gradients of the mean cross-entropy, by backpropagation."""
    z = values[-1]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    delta, result = p / len(y), []
    for index in reversed(range(len(weights))):
        a = values[index]
        result.append((a.T @ delta, delta.sum(axis=0)))
        slope = (a > 0) if hidden == "relu" else a * (1 - a)
        delta = (delta @ weights[index][0].T) * slope
    return result[::-1]


def train(task: Task, seed: int = 0) -> list[tuple[Array, Array]]:
    """Adam on mini-batches of 32 with weight decay; returns the weights and biases."""
    generator = np.random.default_rng(seed)
    pairs = list(zip(task.sizes[:-1], task.sizes[1:], strict=True))
    weights = [(generator.normal(0, np.sqrt(2 / m), (m, n)).astype(np.float32), np.zeros(n, np.float32)) for m, n in pairs]
    flat = [p for pair in weights for p in pair]
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in flat]
    step = 0
    for _ in range(task.epochs):
        order = generator.permutation(len(task.data.y_train))
        for start in range(0, len(order), 32):
            rows = order[start : start + 32]
            values = forward(task.data.x_train[rows], weights, task.hidden)
            step += 1
            slopes = [g for pair in gradients(values, weights, task.data.y_train[rows], task.hidden) for g in pair]
            for p, g, (m, v) in zip(flat, slopes, moments, strict=True):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= 0.002 * (m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8) + task.decay * p)
    return weights


def accuracy(x: Array, y: Labels, weights: list[tuple[Array, Array]], hidden: str) -> float:
    return float((forward(x, weights, hidden)[-1].argmax(axis=1) == y).mean())


def save(task: Task, weights: list[tuple[Array, Array]]) -> None:
    named = {f"fc{i + 1}.{part}": value for i, pair in enumerate(weights) for part, value in zip("wb", pair, strict=True)}
    np.savez(PROGRAMS / f"{task.name}.npz", **named)
    np.savez(PROGRAMS / f"{task.name}_calibration.npz", **{task.input: task.data.x_train[:CALIBRATION_ROWS]})
    np.savez(PROGRAMS / f"{task.name}_test.npz", **{task.input: task.data.x_test, "labels": task.data.y_test.astype(np.int32)})


def tasks() -> list[Task]:
    iris, wine, digits = load_iris(), load_wine(), load_digits()
    iris_data = split(iris.data.astype(np.float32), iris.target, 1 / 3, seed=1)
    wine_data = standardised(split(wine.data.astype(np.float32), wine.target, 1 / 3, seed=1))
    digits_data = split((digits.data / 16).astype(np.float32), digits.target, 1 / 3, seed=1)
    return [
        Task("02_iris", "x", iris_data, (4, 256, 3), "sigmoid", 200, 1e-4),
        Task("03_wine", "x", wine_data, (13, 64, 32, 3), "relu", 60, 1e-3),
        Task("04_digits_mlp", "image", digits_data, (64, 256, 128, 10), "relu", 60, 1e-3),
    ]


def main() -> None:
    for task in tasks():
        weights = train(task)
        held_out = accuracy(task.data.x_test, task.data.y_test, weights, task.hidden)
        print(f"{task.name}: {held_out:.2%} of {len(task.data.y_test)} held-out rows")
        save(task, weights)


if __name__ == "__main__":
    main()
