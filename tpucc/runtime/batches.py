"""Running a model of a fixed batch on inputs of any batch: in rounds, the last one padded and its results trimmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError
from tpucc.ir.types import TensorType
from tpucc.numerics import AnyArray

Arrays = Mapping[str, AnyArray]
RoundObserver = Callable[[int, int], None]


def model_batch(inputs: Mapping[str, TensorType], outputs: Sequence[TensorType]) -> int | None:
    """The leading size that every input and output shares, or None when they don't share one."""
    types = [*inputs.values(), *outputs]
    if not inputs or any(t.rank == 0 for t in types):
        return None
    sizes = {t.shape[0] for t in types}
    return sizes.pop() if len(sizes) == 1 else None


def rows_given(inputs: Mapping[str, TensorType], arrays: Arrays, batch: int | None) -> int | None:
    """The batch that `arrays` have, when it isn't the model's and rounds can make up for it; None when no rounds are needed.

    Raises `InputError` when the arrays' batches differ among themselves.
    """
    given = {name: arrays[name] for name in inputs if name in arrays}
    fits = {n: a for n, a in given.items() if a.ndim == inputs[n].rank and a.shape[1:] == inputs[n].shape[1:] and a.ndim > 0}
    if batch is None or len(fits) < len(inputs):
        return None
    sizes = {name: array.shape[0] for name, array in fits.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size:,} rows" for name, size in sizes.items())
        raise InputError(Diagnostic("E0430", f"the inputs' batches differ: {found}"))
    rows = next(iter(sizes.values()))
    if rows == 0:
        raise InputError(Diagnostic("E0431", "the inputs have no rows"))
    return None if rows == batch else rows


def rounds(arrays: Arrays, rows: int, batch: int) -> Iterator[Arrays]:
    """The arrays, `batch` of their `rows` rows at a time, the last round filled up with its own last row."""
    for start in range(0, rows, batch):
        yield {name: _filled(array[start : start + batch], batch) for name, array in arrays.items()}


def run_in_rounds(
    run: Callable[[Arrays], dict[str, AnyArray]],
    arrays: Arrays,
    rows: int,
    batch: int,
    begins: RoundObserver = lambda done, total: None,
) -> dict[str, AnyArray]:
    """Calls `run` on each of the `rounds`; returns `rows` rows of each result.

    Calls `begins` before each round, with how many rounds are finished and how many there are.
    """
    results = []
    for number, part in enumerate(rounds(arrays, rows, batch)):
        begins(number, -(-rows // batch))
        results.append(run(part))
    return {name: np.concatenate([result[name] for result in results])[:rows] for name in results[0]}


def _filled(part: AnyArray, batch: int) -> AnyArray:
    missing = batch - len(part)
    return np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) if missing else part
