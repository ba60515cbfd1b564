"""Trains the weights of the numbered programs: plain NumPy, on the data that comes with scikit-learn.

    make train

For each model three archives are written beside its program: `NAME.npz` (the weights), `NAME_calibration.npz` (inputs from the training
part) and `NAME_test.npz` (held-out inputs and their labels, never seen in training). The same seed gives the same files. With names as
arguments, only those programs are trained.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from convolutional import Convolutional
from data import Array, Data, Labels, digits, iris, wine
from dense import Dense
from descent import Network, Parameters, train
from recurrent import Lstm

PROGRAMS = Path(__file__).resolve().parent.parent
CALIBRATION_ROWS = 100


@dataclass(frozen=True)
class Task:
    """A program to train: its name, the input's name, its data and its network."""

    name: str
    input: str
    data: Data
    network: Network
    epochs: int
    decay: float


def tasks() -> list[Task]:
    return [
        Task("02_iris", "x", iris(), Dense((4, 256, 3), "sigmoid"), 200, 1e-4),
        Task("03_wine", "x", wine(), Dense((13, 64, 32, 3)), 60, 1e-3),
        Task("04_digits_mlp", "image", digits(), Dense((64, 256, 128, 10)), 60, 1e-3),
        Task("05_digits_cnn", "image", digits().shaped(8, 8, 1), Convolutional((1, 16, 32), 3, Dense((128, 64, 10))), 60, 1e-3),
        Task("06_digits_lstm", "image", digits().shaped(8, 8), Lstm(8, 64, 10), 100, 1e-3),
    ]


def accuracy(task: Task, parameters: Parameters, x: Array, y: Labels) -> float:
    return float((task.network.logits(parameters, x).argmax(axis=1) == y).mean())


def save(task: Task, parameters: Parameters) -> None:
    np.savez(PROGRAMS / f"{task.name}.npz", **parameters)
    np.savez(PROGRAMS / f"{task.name}_calibration.npz", **{task.input: task.data.x_train[:CALIBRATION_ROWS]})
    np.savez(PROGRAMS / f"{task.name}_test.npz", **{task.input: task.data.x_test, "labels": task.data.y_test.astype(np.int32)})


def main(names: list[str]) -> int:
    chosen = [task for task in tasks() if not names or task.name in names]
    if unknown := set(names) - {task.name for task in chosen}:
        print(f"no program is named {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for task in chosen:
        parameters = train(task.network, task.data, task.epochs, task.decay)
        held_out = accuracy(task, parameters, task.data.x_test, task.data.y_test)
        print(f"{task.name}: {held_out:.2%} of {len(task.data.y_test)} held-out rows")
        save(task, parameters)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
