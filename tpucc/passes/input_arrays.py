"""The arrays for the inputs of a model: checked against the types that the source declares, divided into batches, or drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, counted, did_you_mean, listed
from tpucc.ir import Node, TensorType
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.evaluate import require_computable

InputArrays = dict[str, AnyArray]
"""An array for each input of a model, by the input's name, in the input's data type."""
REPORTED = 20
"""The most problems that one error shows."""


def checked_inputs(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], what: str, taker: str = "the model") -> InputArrays:
    """The arrays in the data types of the inputs of the model, or of another `taker`; `what` names the arrays in messages ("calibration").

    Each array has its input's shape, or another leading size, for `batches` to divide. Floating-point inputs take real numbers of any type,
    integer inputs only integers. Raises `InputError` with up to 20 problems: E0441 missing, E0442 unknown, E0443 shape, E0444 data type,
    E0445 NaN, infinity or a number that float32 can't hold, E0446 integers out of range; and if there are none of these, E0447 arrays of
    more than one batch that don't fill the same number of batches. An array of one batch or less goes with any other.
    """
    found = list(_name_problems(inputs, arrays, what, taker))
    found += (d for node in inputs if node.name in arrays for d in _array_problems(node, arrays[node.name], what, taker))
    found = found or list(_count_problems(inputs, arrays, what))
    if found:
        raise InputError(found[:REPORTED])
    return {node.name: arrays[node.name].astype(node.type.numpy, copy=False) for node in inputs}


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
        yield from _at_first(_not_finite(array), "E0445", lambda index: f"{about} is {array[index]} at {list(index)}{_why(array[index])}")
    else:
        low, high = _integer_limits(node.type)
        outside = (array < low) | (array > high)
        yield from _at_first(outside, "E0446", lambda index: f"{about} is {array[index]} at {list(index)}, outside {low:,}…{high:,}")


def channels_last(name: str, found: tuple[int, ...], row: tuple[int, ...]) -> str:
    """The call that moves the channels of images [n, channels, height, width] last; empty where the shape `found` isn't that of such images
    or the rows then don't have the shape `row`."""
    if len(found) == 4 and (found[2], found[3], found[1]) == row:
        return f"images have their channels last here: {name}.transpose(0, 2, 3, 1)"
    return ""


def _reshaped(node: Node, array: AnyArray) -> str:
    """The call that makes an array fit: one with an axis of one column too few or too many, with channels before pixels, or with one-hot
    rows in place of the numbers of classes. Empty for other arrays."""
    if not node.type.shape:
        return f"{node.name}.reshape(()) is a scalar" if array.size == 1 else ""
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


def _why(number: float) -> str:
    """Why `_not_finite` finds a number; empty for NaN and infinity, which show it."""
    return ", too large for float32" if np.isfinite(number) else ""


def _not_finite(array: AnyArray) -> AnyArray:
    """Where an array has NaN or infinity once it is float32."""
    with np.errstate(over="ignore"):
        return ~np.isfinite(array.astype(np.float32, copy=False))


def _integer_limits(type_: TensorType) -> tuple[int, int]:
    """The least and the largest integer of an input: those of its range, whose ends are integers, or of its data type."""
    if type_.range:
        return int(type_.range.low), int(type_.range.high)
    limits = np.iinfo(type_.numpy)
    return int(limits.min), int(limits.max)


def _at_first(wrong: AnyArray, code: str, message: Callable[[tuple[int, ...]], str]) -> Iterator[Diagnostic]:
    """One problem for all places where `wrong` is true: `message` gets the index of the first one."""
    count = int(np.count_nonzero(wrong))
    if count:
        index = place_of_largest(wrong)
        yield Diagnostic(code, message(index), help=(f"{counted(count, 'value')} like this" if count > 1 else "",))


def _count_problems(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], what: str) -> Iterator[Diagnostic]:
    batches = {node.name: Fraction(arrays[node.name].shape[0], node.type.shape[0]) for node in inputs if node.type.shape}
    several = {name: count for name, count in batches.items() if count > 1}
    if len(set(several.values())) > 1:
        batch = {node.name: node.type.shape[0] for node in inputs if node.name in several}
        of = {name: f" in batches of {size:,}" if len(set(batch.values())) > 1 else "" for name, size in batch.items()}
        sizes = ", ".join(f"{name} has {counted(arrays[name].shape[0], 'row')}{of[name]}" for name in several)
        yield Diagnostic("E0447", f"the arrays of the {what} don't have the same number of examples: {sizes}")


# Divides the arrays of a model's inputs into batches.


def batches(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], limit: int = 0) -> Iterator[InputArrays]:
    """The arrays of `checked_inputs` in batches of the model; the last batch is filled by repeating its own rows.

    An array of one batch or less is in every batch, repeated as often as it takes to fill the batch. With a `limit`, no more than that many
    rows of each array are used (but a whole batch at least), spread evenly, as files are often sorted by class. Where arrays of several
    batches have different leading sizes, whole batches are chosen instead of rows, so that what belongs together stays together.
    """
    used = batch_count(inputs, arrays, limit)
    if len(_batch_sizes(inputs, arrays)) > 1:
        count = batch_count(inputs, arrays)
        for number in range(used):
            yield {node.name: nth_batch(arrays[node.name], node.type, number * count // used) for node in inputs}
        return
    chosen = {node.name: _limited(arrays[node.name], node.type, limit) for node in inputs}
    for number in range(used):
        yield {node.name: nth_batch(chosen[node.name], node.type, number) for node in inputs}


def _batch_sizes(inputs: Sequence[Node], arrays: Mapping[str, AnyArray]) -> set[int]:
    """The leading sizes of the inputs whose arrays are more than one batch."""
    return {node.type.shape[0] for node in inputs if node.type.shape and len(arrays[node.name]) > node.type.shape[0]}


def batch_count(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], limit: int = 0) -> int:
    """The number of batches that `batches` gives."""
    sizes = _batch_sizes(inputs, arrays)
    if limit and len(sizes) > 1:
        return min(batch_count(inputs, arrays), max(1, limit // max(sizes)))
    return max((-(-_rows_used(node.type, arrays[node.name], limit) // node.type.shape[0]) for node in inputs if node.type.shape), default=1)


def largest_batch(inputs: Sequence[Node]) -> int:
    """The largest leading size of an input; 1 where all inputs are scalars."""
    return max((node.type.shape[0] for node in inputs if node.type.shape), default=1)


def nth_batch(array: AnyArray, type_: TensorType, number: int) -> AnyArray:
    """Batch `number` of an array, counted from 0, in the shape of its input's type; an array of one batch or less is every batch."""
    if not type_.shape or array.shape == type_.shape:
        return array
    size = type_.shape[0]
    part = array if len(array) <= size else array[number * size : (number + 1) * size]
    return part if len(part) == size else np.resize(part, type_.shape)


def _rows_used(type_: TensorType, array: AnyArray, limit: int) -> int:
    """The number of rows of an array that are used: all, or, with a `limit`, that many at most but a whole batch at least."""
    rows = int(array.shape[0])
    return min(rows, max(limit, type_.shape[0])) if limit else rows


def _limited(array: AnyArray, type_: TensorType, limit: int) -> AnyArray:
    """The rows of an array that are used, spread evenly."""
    if not type_.shape or (count := _rows_used(type_, array, limit)) == array.shape[0]:
        return array
    chosen: AnyArray = array[np.arange(count, dtype=np.int64) * array.shape[0] // count]
    return chosen


# Synthetic inputs: random arrays that stand in for the inputs of a model where there are no examples.


VALUES = 64
"""The number of values that `synthetic_batches` tries to draw for each input: one value of a scalar says nothing of its range."""


def synthetic_inputs(inputs: Sequence[Node], rows: int) -> InputArrays:
    """Arrays of about `rows` rows (whole batches), from seed 0.

    Floating-point values are standard normal, or uniform in the input's range if it has one; integers are uniform in their range, and 0
    without one. Raises `LimitError` for an input that no memory should be filled with.
    """
    require_computable(*inputs)
    generator = np.random.default_rng(0)
    count = max(1, -(-rows // largest_batch(inputs)))
    return {node.name: random_array(generator, node.type, count) for node in inputs}


def synthetic_batches(inputs: Sequence[Node], rows: int, most: int) -> Iterator[InputArrays]:
    """All arrays of `synthetic_inputs` in batches. If some input has fewer than `VALUES` values in them, more batches follow until it has
    had so many, or until there are `most` batches: `most` limits only what follows.

    An input of fewer values is drawn afresh in each batch after the first; the batches of the other inputs are repeated. Integers without
    a range, which are always 0, want no more batches.
    """
    arrays = synthetic_inputs(inputs, rows)
    count = batch_count(inputs, arrays)
    few = [node for node in inputs if arrays[node.name].size < VALUES and (node.type.dtype == "f32" or node.type.range)]
    wanted = max((-(-VALUES // node.type.size) for node in few), default=0)
    generator = np.random.default_rng(1)
    for number in range(max(count, min(wanted, most))):
        batch = {node.name: nth_batch(arrays[node.name], node.type, number % count) for node in inputs}
        yield batch if number == 0 else batch | {node.name: random_array(generator, node.type) for node in few}


def random_array(generator: np.random.Generator, type_: TensorType, count: int = 1) -> AnyArray:
    """`count` batches of random values of a type, as `synthetic_inputs` says."""
    shape = (type_.shape[0] * count, *type_.shape[1:]) if type_.shape else ()
    if type_.dtype != "f32":
        low, high = (int(type_.range.low), int(type_.range.high)) if type_.range else (0, 0)
        return np.asarray(generator.integers(low, high, shape, endpoint=True)).astype(type_.numpy)
    if type_.range:
        return np.asarray(generator.uniform(type_.range.low, type_.range.high, shape)).astype(np.float32)
    return np.asarray(generator.standard_normal(shape, np.float32))


def distribution(type_: TensorType) -> str:
    """In words, the distribution that `random_array` draws from."""
    if type_.range:
        return "uniform in their range"
    return "standard normal" if type_.dtype == "f32" else "0"
