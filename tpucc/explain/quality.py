"""How good a model is on rows whose answers are known, and what is odd about the inputs: in words, where nothing is wrong by itself.

The first output is the one that is compared with the labels. Integers, one a row, are classes: the accuracy is the share of rows that are
right. A table of ones and zeros with a one in each row is the same, one-hot. Other numbers, as many as the output has, are what it should
be: RMSE, the root of the mean squared error, in the output's unit; and R², 1 less the squared error's share of the labels' variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import counted, printable
from tpucc.ir import Graph, Range, TensorType
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops import facts_of
from tpucc.ops.facts import Values
from tpucc.ops.names import patches
from tpucc.prose import percent
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import float_reference
from tpucc.runtime.runtime import Runtime

Measure = Literal["accuracy", "rmse", "r2"]
"""How good outputs are."""
STEP = 1 / 255
"""A step of 8 bits, as a share of a range: an input that is outside by less is rounded, and has no other scale."""
WIDER = 0.5
"""A range that was measured has not met every input: one that is outside by less than half of its width has no other scale."""
MANY = 0.05
"""Nor has it met every outlier: so large a share of the values may be outside."""
NO_RANGES: Mapping[str, Range] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A labelled row: the inputs without their batch axis, the output as compiled, the class that this is, and the right one."""

    inputs: Arrays
    output: AnyArray
    answer: int
    label: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The share of labelled rows that are right, in float32 and as compiled; and the first of them."""

    rows: int
    float32: float
    quantised: float
    example: Example | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Fit:
    """How near an output is to the labels."""

    rmse: float
    r2: float


@dataclass(frozen=True, slots=True)
class Regression:
    """How near the output is to the labels, in float32 and as compiled."""

    rows: int
    float32: Fit
    quantised: Fit


def quality(runtime: Runtime, graph: Graph, inputs: Arrays, labels: AnyArray) -> Accuracy | Regression | str:
    """The quality of a model on labelled rows; or why they give none, as a sentence."""
    name, kind = next(iter(runtime.outputs.items()))
    rows = {array.shape[0] for array in inputs.values() if array.ndim}
    if runtime.batch is None or len(rows) != 1:
        return "the labels aren't used: inputs and outputs have no batch in common"
    count = rows.pop()
    if labels.shape[:1] != (count,):
        return f"the labels aren't used: there are {_entries(labels)} for {counted(count, 'row')} of inputs"
    wanted = _classes_of(labels, kind)
    if isinstance(wanted, str):
        return wanted
    exact, compiled = (outputs[name] for outputs in (float_reference(graph, inputs), runtime.run(inputs)))
    if wanted is None:
        return Regression(count, _fit(exact, labels), _fit(compiled, labels))
    answers, first = _classes(compiled), None
    if count:
        rows_of = {given: array[0] for given, array in inputs.items() if array.ndim}
        first = Example(rows_of, compiled[0], int(answers[0]), int(wanted[0]))
    return Accuracy(count, float((_classes(exact) == wanted).mean()), float((answers == wanted).mean()), first)


def score(kind: TensorType, labels: AnyArray, found: AnyArray) -> dict[Measure, float]:
    """How good values of an output of type `kind` are: the accuracy for labels that are classes, RMSE and R² for values; empty for labels
    that are neither."""
    wanted = _classes_of(labels, kind) if len(labels) == len(found) else ""
    if isinstance(wanted, str):
        return {}
    if wanted is None:
        fit = _fit(found, labels)
        return {"rmse": fit.rmse, "r2": fit.r2}
    return {"accuracy": float((_classes(found) == wanted).mean())}


def notices(
    inputs: Mapping[str, TensorType],
    given: Mapping[str, npt.ArrayLike],
    then: str = "are cut off there",
    held: Mapping[str, Range] = NO_RANGES,
) -> Iterator[str]:
    """Warnings about the arrays for a model's inputs: values outside the range that the source declares, or that the integers reach which
    hold them (`held`), and numbers that float32 or int32 can't hold. `then` is what becomes of values outside: quantisation cuts them
    off."""
    for name, kind in inputs.items():
        if name in given:
            array = np.asarray(given[name])
            if array.size and array.dtype.kind in "biuf":
                if kind.range is not None and kind.dtype == "f32":  # numbers of rows aren't cut off: those that a table hasn't are an error
                    yield from _outside(name, array, kind.range, STEP, 0.0, f"that the source declares, and {then}", "declare their range")
                elif name in held:
                    yield from _outside(
                        name, array, held[name], WIDER, MANY, f"of the integers that hold them, and {then}", "calibrate with such inputs"
                    )
                yield from _rounded(name, array, kind)


def held_ranges(prologue: Graph) -> dict[str, Range]:
    """Of each f32 input without a declared range, the real values that its integers can stand for: larger ones and smaller ones are cut
    off there. `prologue` is the host's part before the device: it makes integers of the input itself, of a view of it, or of its patches.
    Where it makes them with several scales, the range is what all of them reach."""
    found = dict[str, Range]()
    for node in prologue:
        held = node.type.quantisation
        if held is not None and node.operands and (format := INTEGER_FORMATS.get(node.type.dtype)):
            source = prologue[node.operands[0]]
            while source.operands and (facts_of(source.op).values is Values.VIEWED or patches.made(source)):
                source = prologue[source.operands[0]]
            low, high = (held.scale * (end - held.zero_point) for end in (format.low, format.high))
            if not source.operands and source.type.dtype == "f32" and source.type.range is None:
                other = found.get(source.name, Range(low, high))
                found[source.name] = Range(max(low, other.low), min(high, other.high))
    return found


def not_finite(outputs: Mapping[str, AnyArray]) -> Iterator[str]:
    """Of each output with NaN or infinity: how many values, and the first of them, with its index."""
    for name, array in outputs.items():
        bad = ~np.isfinite(array)
        if count := int(np.count_nonzero(bad)):
            index = place_of_largest(bad)
            of = f"{counted(count, 'value')} of {array.size:,} {'is' if count == 1 else 'are'} not finite"
            first = "NaN" if np.isnan(array[index]) else "infinite"
            yield f"{printable(name)}: {of}; {printable(name)}{list(index) if index else ''} is {first}"


def _outside(name: str, array: AnyArray, known: Range, margin: float, most: float, of: str, mend: str) -> Iterator[str]:
    """About more than the share `most` of values outside the `known` range by more than `margin`, a share of its width."""
    low, high = known.low, known.high
    beyond = margin * (high - low)
    count = int(np.count_nonzero((array < low - beyond) | (array > high + beyond)))
    if count > most * array.size:
        found = f"{float(np.nanmin(array)) + 0.0:g} to {float(np.nanmax(array)) + 0.0:g}"  # + 0.0 makes 0 of -0
        share = f"{counted(count, 'value')} of {array.size:,} ({percent(count, array.size)}) {'is' if count == 1 else 'are'}"
        yield f"{printable(name)}: {share} outside [{low:g}, {high:g}], the range {of}; found {found}: scale the inputs, or {mend}"


def _rounded(name: str, array: AnyArray, kind: TensorType) -> Iterator[str]:
    """Integers that change, and floats that change by more than float32 rounds."""
    if array.dtype == kind.numpy or kind.numpy.kind not in "if":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        back = array.astype(kind.numpy).astype(array.dtype)
    allowed = np.abs(array) * 2.0**-23 + np.finfo(np.float32).tiny if array.dtype.kind == "f" else 0
    changed = int(np.count_nonzero(np.abs(back.astype(np.float64) - array) > allowed))
    if changed:
        change = "changes" if changed == 1 else "change"
        yield f"{printable(name)}: {counted(changed, 'value')} of {array.size:,} {change} as {array.dtype} becomes {kind.numpy}"


def _entries(labels: AnyArray) -> str:
    return f"labels of shape {list(labels.shape)}" if labels.ndim != 1 else counted(len(labels), "label")


def _classes_of(labels: AnyArray, kind: TensorType) -> AnyArray | str | None:
    """The class of each row; None for labels that are values of the output; or why they are neither, as a sentence."""
    columns = int(np.prod(kind.shape[1:], dtype=np.int64))
    if labels.dtype.kind == "f" and labels.size == len(labels) and columns > 1 and _are_whole(labels):
        labels = labels.astype(np.int64)  # classes as many tools write them
    width = int(np.prod(labels.shape[1:], dtype=np.int64))
    if labels.dtype.kind not in "biuf":
        return f"the labels aren't used: they are {labels.dtype}, expected numbers"
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return "the labels aren't used: there is NaN or infinity among them"
    scores = columns == max(kind.shape[1:], default=1)  # one axis of classes: an image has none
    if columns > 1 and scores and width == columns and kind.dtype == "f32" and _is_one_hot(labels):
        hot: AnyArray = labels.reshape(len(labels), -1).argmax(axis=1)
        return hot
    if labels.dtype.kind in "iub" and width == 1 and scores and (columns > 1 or kind.dtype != "f32" or set(np.unique(labels)) <= {0, 1}):
        wanted = labels.reshape(-1).astype(np.int64)
        limit = max(columns, 2) if kind.dtype == "f32" else None
        if limit is not None and wanted.size and not 0 <= wanted.min() <= wanted.max() < limit:
            wrong = int(wanted[(wanted < 0) | (wanted >= limit)][0])
            return f"the labels aren't used: {wrong} isn't a class of an output of {columns:,} columns: classes are 0 to {limit - 1:,}"
        return wanted
    if width == columns and kind.dtype == "f32":
        return None
    return f"the labels aren't used: {_entries(labels)} fit no output of shape {list(kind.shape)}; expected a class or a value for each row"


def _are_whole(labels: AnyArray) -> bool:
    """Whether floats are integers that int64 has."""
    return bool((labels == np.rint(labels)).all() and np.abs(labels).max(initial=0) < 2.0**63)


def _is_one_hot(labels: AnyArray) -> bool:
    flat = labels.reshape(len(labels), -1)
    return bool(((flat == 0) | (flat == 1)).all() and (flat.sum(axis=1) == 1).all())


def _fit(found: AnyArray, labels: AnyArray) -> Fit:
    wanted = labels.reshape(len(labels), -1).astype(np.float64)
    error = np.square(found.reshape(wanted.shape).astype(np.float64) - wanted)
    spread = np.square(wanted - wanted.mean(axis=0)).sum()
    return Fit(float(np.sqrt(error.mean())), float(1 - error.sum() / spread) if spread else float("nan"))


def _classes(output: AnyArray) -> AnyArray:
    """Predicted classes: integers as they are; one column is a probability; more columns, the largest."""
    if output.dtype.kind in "iu":
        return output.reshape(-1)
    flat = output.reshape(output.shape[0], -1)
    return (flat[:, 0] >= 0.5).astype(np.int64) if flat.shape[1] == 1 else flat.argmax(axis=1)
