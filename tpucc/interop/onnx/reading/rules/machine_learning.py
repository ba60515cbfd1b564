"""The operators of `ai.onnx.ml` that scikit-learn's linear models, scalers and networks are written with: rows of features [n, f]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor
from tpucc.interop.onnx.reading.files.labels import Class, in_words, is_counted
from tpucc.interop.onnx.reading.files.names import identifier
from tpucc.interop.onnx.reading.files.problems import Damaged, Misfit, Unsupported
from tpucc.interop.onnx.reading.rules.normalisation import SMALLEST
from tpucc.interop.onnx.reading.rules.places import RULES as PLACES
from tpucc.interop.onnx.reading.rules.places import taken
from tpucc.interop.onnx.reading.rules.products import product
from tpucc.interop.onnx.reading.rules.reductions import argmax, reduced, softmax
from tpucc.numerics import Float32


def _rows(c: Call) -> Tensor:
    """The features, [n, f]; one axis is one row."""
    x = c.tensor(0)
    if x.rank not in (1, 2):
        raise Unsupported(f"its operand has {counted(x.rank, 'axis', 'axes')}", "rows of features have two")
    return x if x.rank == 2 else c.network.reshaped(x, (1, *x.shape))


def _numbers(values: Sequence[float]) -> Float32:
    return np.array(values, np.float32)


def _scaler(c: Call) -> Result:
    """(x - offset) · scale, each of one number or of one for each feature."""
    net, x = c.network, c.value(0)
    offset, scale = _numbers(c.attribute("offset", ())), _numbers(c.attribute("scale", ()))
    if not len(offset) == len(scale) in (1, *x.shape[-1:]):
        features = counted(x.shape[-1] if x.shape else 1, "feature")
        raise Misfit(f"it has {counted(len(offset), 'offset')} and {counted(len(scale), 'scale')} of {features}")
    moved = net.elementwise("sub", x, Static(offset, "")) if offset.any() else net.tensor(x)
    return moved if (scale == 1).all() else net.elementwise("mul", moved, Static(scale, ""))


def _normalizer(c: Call) -> Result:
    """Each row divided by its largest value, by the sum of magnitudes, or by the root of the sum of squares. A row that this is 0 of stays
    as it is. Softmax has the sum 1 already."""
    net, x, norm = c.network, c.tensor(0), c.attribute("norm", "MAX")
    if x.rank not in (1, 2):
        raise Unsupported(f"its operand has {counted(x.rank, 'axis', 'axes')}", "rows of features have two")
    last = x.rank - 1
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


def _coefficients(c: Call, x: Tensor, rows: int) -> tuple[Float32, Float32]:
    """The coefficients, [rows, f], and an intercept for each row. Raises `Misfit` for other numbers of them."""
    coefficients, intercepts = _numbers(c.attribute("coefficients", ())), _numbers(c.attribute("intercepts", ()))
    if len(coefficients) != rows * x.shape[1] or len(intercepts) not in (0, rows):
        has = f"{counted(len(coefficients), 'coefficient')} and {counted(len(intercepts), 'intercept')}"
        raise Misfit(f"it has {has} for {counted(rows, 'row')} of {counted(x.shape[1], 'feature')}")
    return coefficients.reshape(rows, x.shape[1]), intercepts


def _regressor(c: Call) -> Result:
    if (transform := c.attribute("post_transform", "NONE")) != "NONE":
        raise Unsupported(f"post_transform is {transform}", "LinearRegressor is read with NONE, as scikit-learn's linear models have it")
    x, targets = _rows(c), int(c.attribute("targets", 1))
    if targets < 1:
        raise Damaged(f"it has {targets:,} targets")
    return _product(c.network, x, *_coefficients(c, x, targets))


def _classifier(c: Call) -> Result:
    """The number of the class with the largest score, and the scores or what `post_transform` makes of them.

    One row of coefficients of two classes has the score s of the second class, and -s is that of the first.
    """
    net, x = c.network, _rows(c)
    classes: Sequence[Class] = c.attribute("classlabels_ints") or c.attribute("classlabels_strings", ())
    transform = c.attribute("post_transform", "NONE")
    if not classes:
        raise Damaged("it doesn't say its classes")
    rows = 1 if len(classes) == 2 and len(c.attribute("coefficients")) == x.shape[1] else len(classes)
    if transform not in (("LOGISTIC",) if rows == 1 else ("NONE", "LOGISTIC", "SOFTMAX")):  # of one score, runtimes differ in others
        of = "one score for two classes" if rows == 1 else "a score for each class"
        raise Unsupported(f"post_transform is {transform}, of {of}", "of one score LOGISTIC is read, of several NONE and SOFTMAX, too")
    if c.reads(0) and not is_counted(classes):
        raise Unsupported("the network computes with the names of its classes", "names of classes may only be a result")
    coefficients, intercepts = _coefficients(c, x, rows)
    if rows == 1:
        coefficients, intercepts = (np.concatenate([-part, part]) for part in (coefficients, intercepts))
    scores = _product(net, x, coefficients, intercepts)
    label = argmax(net, scores, 1, keep=False)
    if transform == "LOGISTIC":
        return label, net.map(scores, "sigmoid")
    if transform == "SOFTMAX":
        return label, softmax(net, scores, 1)
    return label, scores


def _extract(c: Call) -> Result:
    """Columns: [..., k] of k places in any shape; of a vector [1, k]."""
    net, x, places = c.network, c.value(0), c.value(1)
    if isinstance(places, Tensor):
        numbers = net.reshaped(places, (1, places.size))
        if not isinstance(x, Static) or x.array.ndim != 1:
            raise Unsupported("columns that the network computes", "columns at fixed places are read, and entries of a constant list")
        if is_counted(tuple(x.array.tolist())):
            return numbers
        return PLACES["Gather"](Call(net, c.node, (x, numbers), c.opset, c.used))
    if not x.shape:
        raise Damaged("its operand is a single number")
    chosen, size = places.array.reshape(-1), x.shape[-1]
    if (wrong := chosen[(chosen < 0) | (chosen >= size)]).size:
        raise Damaged(f"the column {wrong[0]:,} of {size:,}")
    net.require_room(chosen.size)
    if isinstance(x, Static):
        return c.static(np.atleast_2d(x.array[..., chosen]))
    made = taken(net, x, x.rank - 1, chosen.tolist())
    return made if made.rank > 1 else net.reshaped(made, (1, *made.shape))


def _binarizer(c: Call) -> Result:
    """1 where x is larger than the threshold, and 0 elsewhere."""
    return c.network.elementwise("greater", c.tensor(0), _number(c.attribute("threshold", 0.0)), kind="bool")


def _imputer(c: Call) -> Result:
    """What is missing, as NaN, is no input of a program: the values are what they are."""
    if not math.isnan(c.attribute("replaced_value_float", 0.0)) or "replaced_value_int64" in c.node.attributes:
        raise Unsupported(
            "it replaces another value than NaN", "replace it in your own program, and leave SimpleImputer out of the pipeline"
        )
    c.network.notes["The file replaces values that are missing (NaN), which are no inputs here: replace them before"] = None
    return c.value(0)


def _zip_map(c: Call) -> Result:
    """The tensor itself, [n, classes]: a source has no maps."""
    classes: Sequence[Class] = c.attribute("classlabels_int64s") or c.attribute("classlabels_strings", ())
    name = identifier(c.node.outputs[0], "out")
    which = "" if is_counted(classes) else f": {in_words(classes)}"
    c.network.notes[f"{name} has a column for each class, in the file a map for each row{which}"] = None
    return c.value(0)


RULES: Mapping[str, Rule] = {
    "ai.onnx.ml.ArrayFeatureExtractor": _extract,
    "ai.onnx.ml.Binarizer": _binarizer,
    "ai.onnx.ml.Imputer": _imputer,
    "ai.onnx.ml.LinearClassifier": _classifier,
    "ai.onnx.ml.LinearRegressor": _regressor,
    "ai.onnx.ml.Normalizer": _normalizer,
    "ai.onnx.ml.Scaler": _scaler,
    "ai.onnx.ml.ZipMap": _zip_map,
}
