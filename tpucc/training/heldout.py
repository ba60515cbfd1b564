"""How good a model is on examples that it isn't trained on, in the arithmetic of the training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from tpucc.data.archive import naming
from tpucc.data.weights import weights_of
from tpucc.diagnostics import Diagnostic, InputError, counted
from tpucc.explain.quality import Measure, score
from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import Graph
from tpucc.numerics import AnyArray
from tpucc.passes.input_arrays import batches, checked_inputs
from tpucc.training.labelled import LABELS, read_taken, without_labels
from tpucc.training.plan import Plan

Arrays = Mapping[str, AnyArray]
LACKING = f"the held-out set has no array {LABELS}, which accuracy is measured by"


@dataclass(frozen=True)
class HeldOut:
    """Rows for the model's inputs, and their labels: classes, or values of the first output."""

    graph: Graph
    inputs: Mapping[str, AnyArray]
    labels: AnyArray
    arithmetic: Arithmetic

    @classmethod
    def find(cls, graph: Graph, beside: Path, given: Path | Arrays | None, arithmetic: Arithmetic) -> tuple[Self | None, tuple[str, ...]]:
        """The held-out set: arrays or those of a file, or of the one beside the source where that exists; a note where that has no labels.

        Raises `InputError` for arrays that don't fit, and E0441 for ones that were `given` and have no labels.
        """
        if isinstance(given, Mapping):
            return cls._fitting(graph, given, arithmetic), ()
        path = given if given is not None else beside
        if given is None and not path.is_file():
            return None, ()
        arrays = read_taken(path, {LABELS, *(node.name for node in graph.inputs)})
        if given is None and LABELS not in arrays:
            return None, (without_labels(path, arrays),)
        with naming(path):
            return cls._fitting(graph, arrays, arithmetic), ()

    @classmethod
    def _fitting(cls, graph: Graph, arrays: Arrays, arithmetic: Arithmetic) -> Self:
        if LABELS in arrays:
            inputs = checked_inputs(graph.inputs, {name: array for name, array in arrays.items() if name != LABELS}, "held-out set")
            _require_one_each(arrays[LABELS], inputs)
            return cls(graph, inputs, arrays[LABELS], arithmetic)
        mend = (
            f"np.savez('held_out.npz', {', '.join(f'{node.name}=…' for node in graph.inputs)}, {LABELS}=…) has the model's inputs and them"
        )
        raise InputError(Diagnostic("E0441", LACKING, help=(mend,)))

    def measure(self, weights: Mapping[str, AnyArray]) -> dict[Measure, float]:
        """`{"accuracy": …}` for classes, `{"rmse": …, "r2": …}` for values; empty for labels that fit no output.

        What isn't finite is left out: the R² of labels that are all the same, and all of outputs that are too large.
        """
        output = self.graph.outputs[0].node
        if not self.graph[output].type.rank:
            return {}
        plan = Plan(self.graph, self.arithmetic, (output,))
        given = {node.name: weights[key] for key, node in weights_of(self.graph).items()}
        found = [plan.run(given, [part])[output] for part in batches(self.graph.inputs, self.inputs)]
        with np.errstate(all="ignore"):
            scores = score(self.graph[output].type, self.labels, np.concatenate(found)[: len(self.labels)])
        return {name: value for name, value in scores.items() if math.isfinite(value)}


def _require_one_each(labels: AnyArray, inputs: Mapping[str, AnyArray]) -> None:
    """Raises `InputError` E0447 for labels that aren't as many as the rows of the inputs."""
    rows = max((len(array) for array in inputs.values() if array.ndim), default=1)
    if labels.shape[:1] != (rows,):
        found = counted(len(labels), "row") if labels.ndim else "no rows"
        raise InputError(Diagnostic("E0447", f"the held-out set's {LABELS} have {found} for {counted(rows, 'row')} of inputs"))
