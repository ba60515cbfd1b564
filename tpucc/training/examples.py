"""The examples of a training: arrays by the names of `train`'s inputs, drawn in batches in an order that the seed gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, counted
from tpucc.frontend.training import Training
from tpucc.interop.archive import naming, read_arrays
from tpucc.interop.sources import beside, named_at
from tpucc.ir.graph import Node
from tpucc.numerics import AnyArray
from tpucc.passes.divide_batch import batch_of
from tpucc.passes.model_inputs import checked, made_up

Arrays = Mapping[str, AnyArray]


@dataclass(frozen=True)
class Examples:
    """`arrays` have `count` rows each; `batch` of them make a step. `made_up` says that they are random, for want of others."""

    arrays: Arrays
    count: int
    batch: int
    made_up: bool = False

    @property
    def steps(self) -> int:
        """Steps of an epoch. Examples that don't fill a batch are left out; another epoch's order leaves out others."""
        return self.count // self.batch

    def parts(self, seed: int, step: int, parts: int) -> list[dict[str, AnyArray]]:
        """The batch of a step, counted from 0, in equal parts. Each epoch has its order: a permutation drawn from seed and epoch."""
        epoch, place = divmod(step, self.steps)
        chosen = _order(self.count, seed, epoch)[place * self.batch : (place + 1) * self.batch]
        size = self.batch // parts
        places = [chosen[first : first + size] for first in range(0, self.batch, size)]
        return [{name: array[rows] for name, array in self.arrays.items()} for rows in places]


def read_examples(training: Training, folder: Path, given: Path | Arrays | None) -> Examples:
    """The examples: those `given`, as arrays or in a file; else those of the file that the source names; without any, random ones.

    Raises `InputError` for arrays that don't fit `train`'s inputs (E0441 to E0447), and E0942 for fewer examples than a batch.
    """
    inputs, batch = training.graph.inputs, batch_of(training.graph)
    if given is None and training.examples is None:
        return Examples(made_up(inputs, batch), batch, batch, made_up=True)
    if isinstance(given, Mapping):
        return _fitting(inputs, given, batch)
    path = given if given is not None else beside(folder, str(training.examples), training.examples_span, "examples")
    with named_at(None if given is not None else training.examples_span):
        arrays = read_arrays(path)
        with naming(path):
            return _fitting(inputs, arrays, batch)


def _fitting(inputs: Sequence[Node], arrays: Arrays, batch: int) -> Examples:
    fitting = checked(inputs, arrays, "training set")
    return Examples(fitting, _count(inputs, fitting, batch), batch)


def _count(inputs: Sequence[Node], arrays: Arrays, batch: int) -> int:
    counts = {node.name: len(arrays[node.name]) for node in inputs}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise InputError(Diagnostic("E0447", f"the arrays of the examples don't have the same number of rows: {found}"))
    count = next(iter(counts.values()))
    if count < batch:
        mend = "a smaller batch, as with -D batch=…, or more examples"
        raise InputError(Diagnostic("E0942", f"there {_are(count)} for a batch of {batch:,}", help=(mend,)))
    return count


def _are(count: int) -> str:
    return f"{'is' if count == 1 else 'are'} only {counted(count, 'example')}"


@lru_cache(maxsize=2)
def _order(count: int, seed: int, epoch: int) -> AnyArray:
    return np.random.default_rng([seed, epoch]).permutation(count)
