"""The operators of `ai.onnx.ml` that scikit-learn's linear models, scalers and networks are written with: rows of features [n, f]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Class, Classes, Static, Tensor, Value, class_names, is_counted
from tpucc.interop.onnx.reading.files.names import identifier
from tpucc.interop.onnx.reading.files.problems import Unsupported, require
from tpucc.interop.onnx.reading.operators.normalisation import SMALLEST
from tpucc.interop.onnx.reading.operators.places import taken
from tpucc.interop.onnx.reading.operators.products import product
from tpucc.interop.onnx.reading.operators.reductions import argmax, reduced, softmax
from tpucc.interop.onnx.reading.operators.rows import Fact, Floats, Ints, Positive, Texts, operator
from tpucc.numerics import Float32

REAL, WHOLE = Fact.REAL, Fact.WHOLE
Transform = Literal["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
"""What is made of scores."""


def _require_rows(x: Tensor) -> None:
    if x.rank not in (1, 2):
        raise Unsupported(f"its operand has {counted(x.rank, 'axis', 'axes')}", "rows of features have two")


def _rows(net: Network, x: Tensor) -> Tensor:
    """The features, [n, f]; one axis is one row."""
    _require_rows(x)
    return x if x.rank == 2 else net.reshaped(x, (1, *x.shape))


def _numbers(values: Sequence[float]) -> Float32:
    return np.array(values, np.float32)


@operator("ai.onnx.ml.Scaler", REAL)
def scaler(c: Call, x: Value, *, offset: Floats = (), scale: Floats = ()) -> Result:
    """(x - offset) · scale, each of one number or of one for each feature."""
    require(len(offset) == len(scale) in (1, *x.shape[-1:]))
    less, factor = _numbers(offset), _numbers(scale)
    moved = c.net.elementwise("sub", x, Static(less, "")) if less.any() else c.net.tensor(x)
    return moved if (factor == 1).all() else c.net.elementwise("mul", moved, Static(factor, ""))


@operator("ai.onnx.ml.Normalizer", REAL)
def normalizer(c: Call, x: Tensor, *, norm: Literal["MAX", "L1", "L2"] = "MAX") -> Result:
    """Each row divided by its largest value, by the sum of magnitudes, or by the root of the sum of squares. A row that this is 0 of stays
    as it is. Softmax has the sum 1 already."""
    net, last = c.net, x.rank - 1
    _require_rows(x)
    if norm == "MAX":
        largest = reduced(net, "max", x, [last], True)
        is_zero = net.elementwise("equal", largest, _number(0.0))
        return net.elementwise("div", x, net.elementwise("where", is_zero, _number(1.0), largest))
    if norm == "L1" and x.node.op == "softmax" and x.axes[last] == (x.node.type.rank - 1,):
        return x
    part = net.map(x, "abs") if norm == "L1" else net.elementwise("mul", x, x)
    total = reduced(net, "sum", part, [last], True)
    length = total if norm == "L1" else net.map(total, "sqrt")
    return net.elementwise("div", x, net.elementwise("maximum", length, _number(SMALLEST)))


def _number(value: float) -> Static:
    return Static(np.array(value, np.float32), "")


def _product(net: Network, x: Tensor, coefficients: Float32, intercepts: Float32) -> Tensor:
    """x @ coefficients' + intercepts, [n, rows]; no intercepts are zeros."""
    made = product(net, x, Static(np.ascontiguousarray(coefficients.T), ""))
    return net.elementwise("add", made, Static(intercepts, "")) if intercepts.any() else made


def _matrix(x: Tensor, coefficients: Floats, intercepts: Floats, rows: int) -> tuple[Float32, Float32]:
    """The coefficients, [rows, f], and an intercept for each row. Raises `Misfit` for other numbers of them."""
    require(len(coefficients) == rows * x.shape[1] and len(intercepts) in (0, rows))
    return _numbers(coefficients).reshape(rows, x.shape[1]), _numbers(intercepts)


@operator("ai.onnx.ml.LinearRegressor", REAL)
def regressor(
    c: Call,
    x: Tensor,
    *,
    coefficients: Floats = (),
    intercepts: Floats = (),
    post_transform: Transform = "NONE",
    targets: Positive = 1,
) -> Result:
    if post_transform != "NONE":
        raise Unsupported(
            f"post_transform is {post_transform}", "LinearRegressor is read with NONE, as scikit-learn's linear models have it"
        )
    features = _rows(c.net, x)
    return _product(c.net, features, *_matrix(features, coefficients, intercepts, targets))


@operator("ai.onnx.ml.LinearClassifier", REAL, ignored="multi_class")
def classifier(
    c: Call,
    x: Tensor,
    *,
    coefficients: Floats,
    classlabels_ints: Ints = (),
    classlabels_strings: Texts = (),
    intercepts: Floats = (),
    post_transform: Transform = "NONE",
) -> Result:
    """The number of the class with the largest score, and the scores or what `post_transform` makes of them.

    One row of coefficients of two classes has the score s of the second class, and -s is that of the first.
    """
    net, features = c.net, _rows(c.net, x)
    classes: Sequence[Class] = classlabels_ints or classlabels_strings
    require(bool(classes))
    rows = 1 if len(classes) == 2 and len(coefficients) == features.shape[1] else len(classes)
    if post_transform not in (("LOGISTIC",) if rows == 1 else ("NONE", "LOGISTIC", "SOFTMAX")):  # of one score, runtimes differ in others
        of = "one score for two classes" if rows == 1 else "a score for each class"
        raise Unsupported(f"post_transform is {post_transform}, of {of}", "of one score LOGISTIC is read, of several NONE and SOFTMAX, too")
    matrix, terms = _matrix(features, coefficients, intercepts, rows)
    if rows == 1:
        matrix, terms = (np.concatenate([-part, part]) for part in (matrix, terms))
    scores = _product(net, features, matrix, terms)
    label = _labelled(argmax(net, scores, 1, keep=False), classes)
    if post_transform == "LOGISTIC":
        return label, net.map(scores, "sigmoid")
    return label, softmax(net, scores, 1) if post_transform == "SOFTMAX" else scores


def _labelled(numbers: Tensor, classes: Sequence[Class]) -> Tensor:
    """Numbers of classes, in the place of the names that the file has."""
    return numbers if is_counted(classes) else Tensor(numbers.node, numbers.axes, Classes(tuple(classes)))


@operator("ai.onnx.ml.ArrayFeatureExtractor", WHOLE)
def extractor(c: Call, x: Value, places: Value) -> Result:
    """Columns: [..., k] of k places in any shape; of a vector [1, k]."""
    net = c.net
    if isinstance(places, Tensor):
        if not isinstance(x, Static) or x.array.ndim != 1 or x.array.dtype.kind not in "iO" or places.kind != "int":
            raise Unsupported("columns that the network computes", "columns at fixed places are read, and the names of classes")
        return _labelled(net.reshaped(places, (1, places.size)), x.array.tolist())
    require(bool(x.shape))
    chosen, size = places.array.reshape(-1), x.shape[-1]
    require(bool(((chosen >= 0) & (chosen < size)).all()))
    net.require_room(chosen.size)
    if isinstance(x, Static):
        return c.static(np.atleast_2d(x.array[..., chosen]))
    made = taken(net, x, x.rank - 1, chosen.tolist())
    return made if made.rank > 1 else net.reshaped(made, (1, *made.shape))


@operator("ai.onnx.ml.Binarizer", WHOLE)
def binarizer(c: Call, x: Tensor, *, threshold: float = 0.0) -> Result:
    """1 where x is larger than the threshold, and 0 elsewhere."""
    return c.net.elementwise("greater", x, _number(threshold), kind="bool")


@operator("ai.onnx.ml.Imputer", WHOLE, ignored="imputed_value_floats imputed_value_int64s")
def imputer(c: Call, x: Value, *, replaced_value_float: float = 0.0, replaced_value_int64: int | None = None) -> Result:
    """What is missing, as NaN, is no input of a program: the values are what they are."""
    if not math.isnan(replaced_value_float) or replaced_value_int64 is not None:
        raise Unsupported(
            "it replaces another value than NaN", "replace it in your own program, and leave SimpleImputer out of the pipeline"
        )
    c.net.note("The file replaces values that are missing (NaN), which are no inputs here: replace them before")
    return x


@operator("ai.onnx.ml.ZipMap")
def zip_map(c: Call, x: Value, *, classlabels_int64s: Ints = (), classlabels_strings: Texts = ()) -> Result:
    """The tensor itself, [n, classes]: a source has no maps."""
    classes: Sequence[Class] = classlabels_int64s or classlabels_strings
    name = identifier(c.node.outputs[0], "out")
    which = "" if is_counted(classes) else f": {class_names(classes)}"
    c.net.note(f"{{}} has a column for each class, in the file a map for each row{which}", name)
    return x
