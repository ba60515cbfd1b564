"""Arrays for the inputs of a model: checked against the declared types, divided into rounds, or made up.

A *round* is one batch of the model. Calibration runs a model on such arrays, and so does whatever else gets arrays from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, counted, did_you_mean, listed
from tpucc.ir import Node, TensorType
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.evaluate import require_computable

Checked = dict[str, AnyArray]
REPORTED = 20
"""Problems that one error shows."""


def checked(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], what: str, taker: str = "the model") -> Checked:
    """The arrays in the data types of the inputs of the model, or of another `taker`; `what` names them in messages ("calibration").

    Each array has its input's shape, or another leading size: then it goes in rounds. Floating-point inputs take real numbers of any type,
    integer inputs only integers. Raises `InputError` with all that is wrong: E0441 missing, E0442 unknown, E0443 shape, E0444 data type,
    E0445 NaN or infinity, E0446 integers out of range, E0447 inputs of more than one round that have different
    numbers of batches.
    """
    found = list(_name_problems(inputs, arrays, what, taker))
    found += (d for node in inputs if node.name in arrays for d in _array_problems(node, arrays[node.name], what, taker))
    found = found or list(_count_problems(inputs, arrays, what))
    if found:
        raise InputError(found[:REPORTED])
    return {node.name: arrays[node.name].astype(node.type.numpy, copy=False) for node in inputs}


def rounds(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], limit: int = 0) -> Iterator[Checked]:
    """The arrays of `checked` in rounds of the model's batch; the last is filled by repeating its own rows.

    An array of one batch or less is in every round, repeated as often as it takes to fill it. With a `limit`, no more than that many rows
    of each are used (but a whole round at least), spread evenly, as files are often sorted by class.
    """
    chosen = {node.name: _limited(arrays[node.name], node.type, limit) for node in inputs}
    for number in range(round_count(inputs, arrays, limit)):
        yield {node.name: _round(chosen[node.name], node.type, number) for node in inputs}


def round_count(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], limit: int = 0) -> int:
    """How many rounds `rounds` gives."""
    return max((_rounds_of(node.type, arrays[node.name], limit) for node in inputs), default=1)


def largest_batch(inputs: Sequence[Node]) -> int:
    """The largest first size of an input; 1 where all are scalars."""
    return max((node.type.shape[0] for node in inputs if node.type.shape), default=1)


def made_up(inputs: Sequence[Node], rows: int) -> Checked:
    """Arrays that stand in for missing ones, of about `rows` rows (whole batches), from seed 0.

    Floating-point values are standard normal, or uniform in the input's range if it has one; integers are uniform in their range, and 0
    without one. Raises `LimitError` for an input that no memory should be filled with.
    """
    require_computable(*inputs)
    draw = np.random.default_rng(0)
    count = max(1, -(-rows // largest_batch(inputs)))
    return {node.name: drawn(draw, node.type, count) for node in inputs}


def made_up_rounds(inputs: Sequence[Node], rows: int, values: int, most: int) -> Iterator[Checked]:
    """The arrays of `made_up` in rounds, and more rounds, up to `most` in all, until each input has had `values` elements.

    One value of a scalar says nothing of its range. Such inputs are drawn afresh in each round after the first; the others' rounds come
    again.
    """
    arrays = made_up(inputs, rows)
    count = round_count(inputs, arrays)
    few = [node for node in inputs if arrays[node.name].size < values and (node.type.dtype == "f32" or node.type.range)]
    wanted = max((-(-values // node.type.size) for node in few), default=0)
    draw = np.random.default_rng(1)
    for number in range(max(count, min(wanted, most))):
        part = {node.name: _round(arrays[node.name], node.type, number % count) for node in inputs}
        yield part if number == 0 else part | {node.name: drawn(draw, node.type) for node in few}


def drawn(draw: np.random.Generator, type_: TensorType, count: int = 1) -> AnyArray:
    """`count` batches of made-up values of a type, as `made_up` says."""
    shape = (type_.shape[0] * count, *type_.shape[1:]) if type_.shape else ()
    if type_.dtype != "f32":
        low, high = (int(type_.range.low), int(type_.range.high)) if type_.range else (0, 0)
        return np.asarray(draw.integers(low, high, shape, endpoint=True)).astype(type_.numpy)
    if type_.range:
        return np.asarray(draw.uniform(type_.range.low, type_.range.high, shape)).astype(np.float32)
    return np.asarray(draw.standard_normal(shape, np.float32))


def distribution(type_: TensorType) -> str:
    """In words, what `drawn` draws from."""
    if type_.range:
        return "uniform in their range"
    return "standard normal" if type_.dtype == "f32" else "0"


def _name_problems(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], what: str, taker: str) -> Iterator[Diagnostic]:
    wanted = {node.name for node in inputs}
    takes = f"{taker} takes {listed([node.name for node in inputs])}" if inputs else ""
    for node in inputs:
        if node.name not in arrays:
            near = did_you_mean(node.name, arrays.keys() - wanted) or takes
            yield Diagnostic("E0441", f"the {what} has no array {node.name}, which {taker} takes as {node.type.brief}", help=(near,))
    for name in sorted(arrays.keys() - wanted):
        near = did_you_mean(name, wanted - arrays.keys()) or takes
        yield Diagnostic("E0442", f"the {what} has an array {name}, but {taker} has no such input", help=(near,))


def _array_problems(node: Node, array: AnyArray, what: str, taker: str) -> Iterator[Diagnostic]:
    about = f"the {what}'s {node.name}"
    fits = array.shape[1:] == node.type.shape[1:] and array.ndim == node.type.rank and array.size > 0
    if array.ndim and not len(array):
        yield Diagnostic("E0443", f"{about} has no rows", help=("one example at least is needed",))
    elif not fits:
        rest = f"{node.type.brief}; the first size may be another" if node.type.rank else node.type.brief
        yield Diagnostic("E0443", f"{about} has shape {list(array.shape)}", help=(f"{taker} takes {rest}", _reshaped(node, array)))
    elif array.dtype.kind not in ("iub" if node.type.dtype != "f32" else "fiub"):
        mend = f'{node.name}.astype("int32") makes integers of them' if array.dtype.kind == "f" else ""
        yield Diagnostic("E0444", f"{about} is of type {array.dtype}", help=(f"{taker} takes {node.type.brief}", mend))
    elif node.type.dtype == "f32":
        yield from _at_first(_not_finite(array), "E0445", lambda index: f"{about} is {array[index]} at {list(index)}")
    else:
        low, high = _integer_limits(node.type)
        outside = (array < low) | (array > high)
        yield from _at_first(outside, "E0446", lambda index: f"{about} is {array[index]} at {list(index)}, outside {low:,}…{high:,}")


def channels_last(name: str, found: tuple[int, ...], row: tuple[int, ...]) -> str:
    """What makes rows of the shape `row` of images [n, channels, height, width]; empty for other arrays."""
    if len(found) == 4 and (found[2], found[3], found[1]) == row:
        return f"images have their channels last here: {name}.transpose(0, 2, 3, 1)"
    return ""


def _reshaped(node: Node, array: AnyArray) -> str:
    """What makes an array fit that has a column too few or too many, channels before the pixels, or one-hot rows in place of numbers of
    classes; else empty."""
    if turned := channels_last(node.name, array.shape, node.type.shape[1:]):
        return turned
    if array.ndim == node.type.rank - 1 and array.shape[1:] == node.type.shape[1:-1] and node.type.shape[-1] == 1:
        return f"{node.name}.reshape({', '.join(map(str, (-1, *node.type.shape[1:])))}) has that shape"
    if array.ndim == node.type.rank + 1 and array.shape[1:-1] == node.type.shape[1:]:
        if array.shape[-1] == 1:
            return f"{node.name}.reshape({', '.join(map(str, (-1, *node.type.shape[1:])))}) has that shape"
        if node.type.dtype != "f32":
            return f"{node.name}.argmax(axis={array.ndim - 1}) makes numbers of classes of one-hot rows"
    return ""


def _not_finite(array: AnyArray) -> AnyArray:
    with np.errstate(over="ignore"):
        return ~np.isfinite(array.astype(np.float32, copy=False))


def _integer_limits(type_: TensorType) -> tuple[int, int]:
    if type_.range:
        return int(type_.range.low), int(type_.range.high)
    limits = np.iinfo(type_.numpy)
    return int(limits.min), int(limits.max)


def _at_first(wrong: AnyArray, code: str, message: Callable[[tuple[int, ...]], str]) -> Iterator[Diagnostic]:
    count = int(np.count_nonzero(wrong))
    if count:
        index = place_of_largest(wrong)
        yield Diagnostic(code, message(index), help=(f"{counted(count, 'value')} like this" if count > 1 else "",))


def _count_problems(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], what: str) -> Iterator[Diagnostic]:
    batches = {node.name: Fraction(arrays[node.name].shape[0], node.type.shape[0]) for node in inputs if node.type.shape}
    several = {name: count for name, count in batches.items() if count > 1}
    if len(set(several.values())) > 1:
        sizes = ", ".join(f"{name} has {counted(arrays[name].shape[0], 'row')}" for name in several)
        yield Diagnostic("E0447", f"the arrays of the {what} don't have the same number of examples: {sizes}")


def _rounds_of(type_: TensorType, array: AnyArray, limit: int = 0) -> int:
    return -(-_rows_used(type_, array, limit) // type_.shape[0]) if type_.shape else 1


def _rows_used(type_: TensorType, array: AnyArray, limit: int) -> int:
    rows = int(array.shape[0])
    return min(rows, max(limit, type_.shape[0])) if limit else rows


def _limited(array: AnyArray, type_: TensorType, limit: int) -> AnyArray:
    if not type_.shape or (count := _rows_used(type_, array, limit)) == array.shape[0]:
        return array
    chosen: AnyArray = array[np.arange(count, dtype=np.int64) * array.shape[0] // count]
    return chosen


def _round(array: AnyArray, type_: TensorType, number: int) -> AnyArray:
    if not type_.shape or array.shape == type_.shape:
        return array
    batch = type_.shape[0]
    part = array if len(array) <= batch else array[number * batch : (number + 1) * batch]
    return part if len(part) == batch else np.resize(part, type_.shape)
