"""Models of scikit-learn, written as ONNX files by skl2onnx, with inputs and scikit-learn's predictions.

    python tests/support/sklearn_zoo.py tests/support/sklearn

Those that are there are scikit-learn 1.9.1's, by skl2onnx 1.20.0. Each is of the iris data. The names of a file's classes are numbers from
0 on, others, or texts, and its probabilities are maps (as skl2onnx writes them unless told otherwise) or a tensor.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

KEPT = 8
"""Flowers that are written, with their predictions."""
MLP: Mapping[str, Any] = {"hidden_layer_sizes": (8, 6), "max_iter": 200, "random_state": 0}
MODELS: Mapping[str, Callable[[], Any]] = {
    "mlp_relu": partial(MLPClassifier, **MLP),
    "mlp_tanh_names": partial(MLPClassifier, **MLP, activation="tanh"),
    "mlp_logistic_two": partial(MLPClassifier, **MLP, activation="logistic"),
    "mlp_identity_regressor": lambda: make_pipeline(StandardScaler(), MLPRegressor(**MLP, activation="identity")),
    "logistic": lambda: make_pipeline(StandardScaler(), Normalizer("l1"), LogisticRegression()),
    "logistic_names": lambda: make_pipeline(MinMaxScaler(clip=True), PCA(3, whiten=True), LogisticRegression()),
    "logistic_two": lambda: make_pipeline(Normalizer("max"), LogisticRegression()),
    "one_vs_rest_others": lambda: OneVsRestClassifier(LogisticRegression()),
    "linear_svc": partial(LinearSVC, random_state=0),
    "linear_svc_two_others": partial(LinearSVC, random_state=0),
    "sgd": lambda: make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", alpha=0.1, random_state=0)),
    "perceptron_names": lambda: make_pipeline(MaxAbsScaler(), Normalizer("l2"), Perceptron(random_state=0)),
    "ridge_polynomial_regressor": lambda: make_pipeline(PolynomialFeatures(2, interaction_only=True), Ridge()),
}
TENSORS = ("mlp_relu", "logistic_two", "one_vs_rest_others", "perceptron_names")
"""Without maps."""


def classes(name: str, y: Any) -> Any:
    """What a model learns: of three kinds or two, by numbers or names, or two values for each flower."""
    if "regressor" in name:
        return np.stack([y, 2.0 - y], axis=1) if "ridge" in name else y
    y = np.minimum(y, 1) if "two" in name else y
    if "names" in name:
        return np.array(["setosa", "versicolor", "virginica"])[y]
    return np.array([2, 3, 7])[y] if "others" in name else y


def values(model: Any, x: Any) -> Any:
    """What the file returns besides the label."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(x)
    scores = model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)
    return scores.reshape(len(x), -1)


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    kept = np.random.default_rng(0).permutation(len(x))[:KEPT]
    for name, make in MODELS.items():
        model = make().fit(x, classes(name, y))
        options = {id(model): {"zipmap": False}} if name in TENSORS else None
        (folder / f"{name}.onnx").write_bytes(to_onnx(model, x[:1], options=options).SerializeToString())
        predicted = {} if "regressor" in name else {"label": np.searchsorted(model.classes_, model.predict(x[kept]))}
        np.savez(folder / f"{name}.npz", x=x[kept], y=values(model, x[kept]).astype(np.float32), **predicted)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
