"""A model of a fixed batch on inputs of any number of rows: batch after batch, the last one padded and its results trimmed; and a batch on
several cores, each of which computes a part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, ProgramError, counted
from tpucc.ir import TensorType
from tpucc.numerics import AnyArray

Arrays = Mapping[str, AnyArray]
"""Arrays by the names of inputs or outputs."""
BatchObserver = Callable[[int, int], None]


@dataclass(frozen=True)
class Batches:
    """The batches of a model: the types of its inputs by name, and as `size` the leading size that every input and output shares. `size` is
    None where they share none: then the model runs on inputs of exactly its shapes. A *row* is an entry of the first axis; rows are taken
    to be computed without each other."""

    inputs: Mapping[str, TensorType]
    size: int | None

    @classmethod
    def of(cls, inputs: Mapping[str, TensorType], outputs: Iterable[TensorType]) -> Batches:
        leading = {kind.shape[:1] for kind in (*inputs.values(), *outputs)}
        shared = leading.pop() if inputs and len(leading) == 1 else ()
        return cls(inputs, shared[0] if shared else None)

    def rows(self, arrays: Arrays) -> int | None:
        """The number of rows of `arrays` where they have to be divided into batches; None where they are one batch, or fit no batch.

        Raises `InputError`: E0430 where the arrays differ in their number of rows, E0431 where they have none.
        """
        given = {name: arrays[name] for name in self.inputs if name in arrays}
        fits = {n: a for n, a in given.items() if a.ndim == self.inputs[n].rank and a.shape[1:] == self.inputs[n].shape[1:] and a.ndim > 0}
        if self.size is None or len(fits) < len(self.inputs):
            return None
        sizes = {name: array.shape[0] for name, array in fits.items()}
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{name} has {size:,} rows" for name, size in sizes.items())
            raise InputError(Diagnostic("E0430", f"the inputs differ in their number of rows: {found}"))
        rows = next(iter(sizes.values()))
        if rows == 0:
            raise InputError(Diagnostic("E0431", "the inputs have no rows"))
        return None if rows == self.size else rows

    def divided(self, arrays: Arrays) -> Iterator[Arrays]:
        """The arrays in batches, the last one filled up with its own last row; the arrays themselves where `rows` is None."""
        rows = self.rows(arrays)
        if rows is None or self.size is None:
            yield arrays
            return
        for start in range(0, rows, self.size):
            yield {name: _filled(array[start : start + self.size], self.size) for name, array in arrays.items()}

    def run(
        self, once: Callable[[Arrays], dict[str, AnyArray]], arrays: Arrays, begins: BatchObserver = lambda done, total: None
    ) -> dict[str, AnyArray]:
        """The results of `once`, which runs one batch, for all rows. Calls `begins` with the number of finished batches and of all before
        each of several batches."""
        rows = self.rows(arrays)
        if rows is None or self.size is None:
            return once(arrays)
        results = []
        for number, part in enumerate(self.divided(arrays)):
            begins(number, -(-rows // self.size))
            results.append(once(part))
        return {name: np.concatenate([result[name] for result in results])[:rows] for name in results[0]}


def _filled(part: AnyArray, batch: int) -> AnyArray:
    missing = batch - len(part)
    return np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) if missing else part


def whole_type(name: str, part: TensorType, cores: int) -> TensorType:
    """The type of the input or output `name` for all cores, from its type `part` for one core. Raises `ProgramError` E0708 for a scalar."""
    if cores == 1:
        return part
    if not part.shape:
        raise ProgramError(Diagnostic("E0708", f"{name} is a scalar, and {counted(cores, 'core')} need a first axis to divide"))
    return replace(part, shape=(part.shape[0] * cores, *part.shape[1:]))


def parts(arrays: Arrays, types: Mapping[str, TensorType], cores: int) -> list[Arrays]:
    """The inputs of each core. `types` are the types of the whole batch. Raises `InputError` E0451 for another shape, where there are
    several cores."""
    if cores == 1:
        return [arrays]
    wrong = [name for name, type_ in types.items() if name in arrays and arrays[name].shape != type_.shape]
    if wrong:
        raise InputError([_shape_fault(name, types[name], arrays[name]) for name in wrong])
    divided = {name: np.split(arrays[name], cores) for name in types if name in arrays}
    return [{name: pieces[core] for name, pieces in divided.items()} for core in range(cores)]


def joined(results: Sequence[Arrays]) -> dict[str, AnyArray]:
    """The outputs for the whole batch, from the outputs of each core."""
    if len(results) == 1:
        return dict(results[0])
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


def _shape_fault(name: str, type_: TensorType, given: AnyArray) -> Diagnostic:
    return Diagnostic("E0451", f"the input {name} must be {type_.brief}, and has the shape {list(given.shape)}")
