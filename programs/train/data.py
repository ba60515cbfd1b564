"""The data of scikit-learn, split into a part to train on and a held-out part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_iris, load_wine

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """Inputs [rows, ...], labels [rows], split into a training and a held-out part."""

    x_train: Array
    y_train: Labels
    x_test: Array
    y_test: Labels

    def shaped(self, *shape: int) -> Data:
        """Every row in another shape."""
        return Data(self.x_train.reshape(-1, *shape), self.y_train, self.x_test.reshape(-1, *shape), self.y_test)

    def standardised(self) -> Data:
        """Each feature with mean 0 and deviation 1 over the training part, so that one scale fits all features."""
        mean, deviation = self.x_train.mean(axis=0), self.x_train.std(axis=0)
        return Data((self.x_train - mean) / deviation, self.y_train, (self.x_test - mean) / deviation, self.y_test)


def split(x: Array, y: Labels, held_out: float, seed: int) -> Data:
    """Holds out the fraction `held_out` of each class."""
    generator = np.random.default_rng(seed)
    test = np.zeros(len(y), bool)
    for label in np.unique(y):
        rows = generator.permutation(np.flatnonzero(y == label))
        test[rows[: round(len(rows) * held_out)]] = True
    order = generator.permutation(np.flatnonzero(~test))
    return Data(x[order], y[order], x[test], y[test])


def iris() -> Data:
    """Four measurements in cm; 150 rows."""
    found = load_iris()
    return split(found.data.astype(np.float32), found.target, 1 / 3, seed=1)


def wine() -> Data:
    """Thirteen standardised measurements; 178 rows."""
    found = load_wine()
    return split(found.data.astype(np.float32), found.target, 1 / 3, seed=1).standardised()


def digits() -> Data:
    """8×8 pixels in 0…1, as rows of 64; 1,797 rows."""
    found = load_digits()
    return split((found.data / 16).astype(np.float32), found.target, 1 / 3, seed=1)
