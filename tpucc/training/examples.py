"""The examples of a training: arrays by the names of `train`'s inputs, drawn in batches in an order that the seed gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tpucc.data.archive import naming
from tpucc.data.sources import beside, named_at
from tpucc.diagnostics import Diagnostic, InputError, counted
from tpucc.explain.quality import notices
from tpucc.ir import Node, TensorType
from tpucc.language.elaborate import Model
from tpucc.language.training import Training
from tpucc.numerics import AnyArray
from tpucc.ops.one_hot import require_labels
from tpucc.passes.divide_batch import batch_of
from tpucc.passes.input_arrays import checked_inputs, synthetic_inputs
from tpucc.training.labelled import read_taken

TAKEN = "training takes them as they are, but 8-bit integers will cut them off there"
"""What becomes of values outside the range that the source declares."""
Arrays = Mapping[str, AnyArray]


@dataclass(frozen=True)
class Examples:
    """`arrays` have `count` rows each; `batch` of them make a step. `synthetic` says that they are random, for want of others.

    `notes` are sentences about what is allowed but probably a mistake.
    """

    arrays: Arrays
    count: int
    batch: int
    synthetic: bool = False
    notes: tuple[str, ...] = ()

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
        return [{name: array.take(rows, 0) for name, array in self.arrays.items()} for rows in places]


def read_examples(model: Model, folder: Path, given: Path | Arrays | None) -> Examples:
    """The examples: those `given`, as arrays or in a file; else those of the file that the source names; without any, random ones.

    Raises `InputError` for arrays that don't fit `train`'s inputs (E0441 to E0447), and E0942 for fewer examples than a batch.
    """
    training = model.training
    assert training is not None
    batch = batch_of(training.graph)
    if given is None and training.examples is None:
        note = 'the source names no examples: these are random numbers, to try a step with; examples "FILE.npz" names some'
        return Examples(synthetic_inputs(training.graph.inputs, batch), batch, batch, synthetic=True, notes=(note,))
    if isinstance(given, Mapping):
        return _fitting(model, training, given, batch)
    path = given if given is not None else beside(folder, str(training.examples), training.examples_span, "examples")
    with named_at(None if given is not None else training.examples_span):
        arrays = read_taken(path, {node.name for node in training.graph.inputs})
        with naming(path):
            return _fitting(model, training, arrays, batch)


def _fitting(model: Model, training: Training, arrays: Arrays, batch: int) -> Examples:
    inputs = training.graph.inputs
    fitting = checked_inputs(inputs, arrays, "training set", "train")
    _require_classes(training, fitting)
    count = _count(inputs, fitting, batch)
    return Examples(fitting, count, batch, notes=(*_left_out(count, batch), *notices(_ranged(model, inputs), fitting, TAKEN)))


def _require_classes(training: Training, arrays: Arrays) -> None:
    """Raises `InputError` E0454 for a label that isn't one of the classes that the loss compares it with."""
    for node in training.graph:
        if node.op in ("cross_entropy", "softmax_cross_entropy"):
            values, label = training.graph.operands(node)
            if label.name in arrays:
                try:
                    require_labels(arrays[label.name], values.type.shape[-1], node.op)
                except InputError as error:
                    raise error.at(node.origin.trail()) from None


def _ranged(model: Model, inputs: Sequence[Node]) -> dict[str, TensorType]:
    """The types of `train`'s inputs; one without a range has that of the model's input of its name."""
    declared = {node.name: node.type.range for node in model.graph.inputs}
    return {node.name: node.type.with_range(node.type.range or declared.get(node.name)) for node in inputs}


def _left_out(count: int, batch: int) -> Iterator[str]:
    """A note where an epoch leaves out more than a tenth of the examples."""
    if (left := count % batch) > count / 10:
        steps = counted(count // batch, "step")
        yield f"{left:,} of {count:,} examples are left out of each epoch, which has {steps} of {batch:,}; another batch takes more of them"


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
