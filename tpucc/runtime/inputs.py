"""Checks the inputs of a run: an array for each input of the model, of its type and shape, with finite values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, InputError, UsageError, did_you_mean, listed, printable
from tpucc.ir import TensorType
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.passes.input_arrays import channels_last
from tpucc.runtime.batches import Batches

Given = Mapping[str, npt.ArrayLike]


def by_name(types: Mapping[str, TensorType], inputs: Given | npt.ArrayLike | None, named: Given) -> dict[str, AnyArray]:
    """The arrays of `inputs` and of `named` by name. `inputs` may be one array where the model has one input. `types` has the type of each
    input of the model.

    Raises `InputError`: E0436 for one array where the model has several inputs, E0433 for a value that is no array; `UsageError` E0529 for
    an input that is given twice.
    """
    given: Given = inputs if isinstance(inputs, Mapping) else {} if inputs is None else {_only_name(list(types)): inputs}
    if twice := [printable(str(name)) for name in given if name in named]:
        raise UsageError(Diagnostic("E0529", f"given twice: {listed(twice)}, before the keywords and as one", help=("give it once",)))
    return {name: _array(name, value) for name, value in {**given, **named}.items()}


def _only_name(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    takes = f"the model takes {listed(names)}" if names else "the model takes no inputs"
    help = (f"give each by its name: {', '.join(f'{name}=…' for name in names)}",) if names else ()
    raise InputError(Diagnostic("E0436", f"one array is not enough to know which input it is: {takes}", help=help))


def accepted(batches: Batches, given: Given) -> dict[str, AnyArray]:
    """The inputs as arrays of the model's types; values of another type are converted where nothing but precision is lost.

    Raises `InputError` with everything that doesn't fit: names, types, shapes, values, and numbers of rows that differ among the inputs.
    """
    problems, arrays = [], {}
    for name, value in given.items():
        if name not in batches.inputs:
            problems.append(_unknown(name, list(batches.inputs)))
            continue
        array = _array(name, value)
        if fault := _unfit(batches, name, array):
            problems.append(fault)
            continue
        with np.errstate(over="ignore"):
            arrays[name] = array.astype(batches.inputs[name].numpy, copy=False)
        problems.extend(_not_finite(name, arrays[name]))
    problems = problems or [_missing(name, kind) for name, kind in batches.inputs.items() if name not in given]
    if problems:
        raise InputError(problems)
    batches.rows(arrays)
    return arrays


def _unknown(name: str, names: list[str]) -> Diagnostic:
    mend = did_you_mean(name, names) or (f"its inputs are {listed(names)}" if names else "it takes none")
    return Diagnostic("E0432", f"the model has no input {printable(name)}", help=(mend,))


def _unfit(batches: Batches, name: str, array: AnyArray) -> Diagnostic | None:
    """The problem of an array whose type or shape doesn't fit the input; None for an array that fits."""
    kind, found = batches.inputs[name], array.shape
    if not np.can_cast(array.dtype, kind.numpy, "same_kind") and not (array.dtype.kind in "biu" and kind.numpy.kind in "if"):
        mend = f"give numbers: array.astype('{kind.numpy}')"
        return Diagnostic("E0433", f"input {name} is {array.dtype}, expected {kind.numpy}", help=(mend,))
    if found == kind.shape or (batches.size is not None and len(found) == kind.rank and found[1:] == kind.shape[1:]):
        return None
    if batches.size is not None:
        expected, mend = f"[{', '.join(map(str, ('n', *kind.shape[1:])))}]", "n is any number of rows"
        mend = _fitting(name, found, kind.shape[1:]) or mend
    else:
        expected, mend = f"{list(kind.shape)}", "its inputs and outputs have no first size in common, so that every size is fixed"
    return Diagnostic("E0451", f"input {name} has the shape {list(found)}, and the model takes {expected}", help=(mend,))


def _array(name: str, value: npt.ArrayLike) -> AnyArray:
    """The value as an array. Raises `InputError` E0433 where NumPy can't make one: for rows of different lengths."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        message = f"input {printable(str(name))} is no array: its rows differ in length"
        raise InputError(Diagnostic("E0433", message, help=("give an array, or lists of one length",))) from None


def _fitting(name: str, found: tuple[int, ...], row: tuple[int, ...]) -> str:
    """The call by which an array of the shape `found` likely becomes rows of the shape `row`; empty where none is likely."""
    if turned := channels_last(name, found, row):
        return turned
    if len(row) == 1 and found[:-1] == row:
        return f"{name}.T has a row for each of its {found[-1]:,} columns"
    if found == row:
        return f"one row is a batch of 1: {name}.reshape({', '.join(map(str, (1, *row)))})"
    if len(found) > 1 and math.prod(found[1:]) == math.prod(row):
        return f"each row has as many values: {name}.reshape({', '.join(map(str, (found[0], *row)))})"
    return ""


def _missing(name: str, kind: TensorType) -> Diagnostic:
    return Diagnostic("E0450", f"the input {printable(name)} is missing: {kind.brief}")


def _not_finite(name: str, array: AnyArray) -> Iterator[Diagnostic]:
    """E0434 for an input with NaN or infinity, which no integer can stand for. It shows the first such value, with its index."""
    bad = ~np.isfinite(array)
    if bad.any():
        index = place_of_largest(bad)
        number = "NaN" if np.isnan(array[index]) else "infinite"
        yield Diagnostic("E0434", f"input {name}{list(index)} is {number}; quantised values are finite")
