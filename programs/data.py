"""Makes the data of the numbered programs from the data sets of scikit-learn; the same bytes each time.

    python programs/data.py

Beside each program it writes three archives: `NAME_train.npz` (what `train` takes), `NAME_calibration.npz` (some of these inputs) and
`NAME_test.npz` (held-out inputs and their labels, never seen in training).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_iris, load_wine

PROGRAMS = Path(__file__).resolve().parent
CALIBRATION_ROWS = 100
HELD_OUT = 1 / 3
"""Of the rows of each class."""

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

    def save(self, name: str, input: str) -> None:
        """The archives of the program `name`, whose model's input is `input`."""
        train = {input: self.x_train, "label": self.y_train.astype(np.int32)}
        np.savez_compressed(PROGRAMS / f"{name}_train.npz", **train)  # type: ignore[arg-type]
        np.savez(PROGRAMS / f"{name}_calibration.npz", **{input: self.x_train[:CALIBRATION_ROWS]})  # type: ignore[arg-type]
        test = {input: self.x_test, "labels": self.y_test.astype(np.int32)}
        np.savez(PROGRAMS / f"{name}_test.npz", **test)  # type: ignore[arg-type]

    def save_shared(self, stem: str, names: tuple[str, ...], input: str) -> None:
        """The same for programs that share what is named by `stem`; each finds its held-out rows by its own name."""
        train = {input: self.x_train, "label": self.y_train.astype(np.int32)}
        np.savez_compressed(PROGRAMS / f"{stem}_train.npz", **train)  # type: ignore[arg-type]
        np.savez_compressed(PROGRAMS / f"{stem}_calibration.npz", **{input: self.x_train[:CALIBRATION_ROWS]})  # type: ignore[arg-type]
        for name in names:
            test = {input: self.x_test, "labels": self.y_test.astype(np.int32)}
            np.savez_compressed(PROGRAMS / f"{name}_test.npz", **test)  # type: ignore[arg-type]


def split(x: Array, y: Labels) -> Data:
    """Holds out a part of each class."""
    generator = np.random.default_rng(1)
    test = np.zeros(len(y), bool)
    for label in np.unique(y):
        rows = generator.permutation(np.flatnonzero(y == label))
        test[rows[: round(len(rows) * HELD_OUT)]] = True
    order = generator.permutation(np.flatnonzero(~test))
    return Data(x[order], y[order], x[test], y[test])


def main() -> None:
    iris, wine, digits = load_iris(), load_wine(), load_digits()
    split(iris.data.astype(np.float32), iris.target).save("02_iris", "x")
    split(wine.data.astype(np.float32), wine.target).standardised().save("03_wine", "x")
    pixels = split((digits.data / 16).astype(np.float32), digits.target)
    pixels.save("04_digits_mlp", "image")
    pixels.shaped(8, 8, 1).save("05_digits_cnn", "image")
    pixels.shaped(8, 8).save("06_digits_lstm", "image")
    pixels.shaped(8, 8, 1).save("14_digits_resnet", "image")
    pixels.shaped(8, 8, 1).save_shared("gallery/digits", ("gallery/digits_vit", "gallery/digits_mobilenet"), "image")


if __name__ == "__main__":
    main()
