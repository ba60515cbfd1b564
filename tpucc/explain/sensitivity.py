"""What each layer costs: the error of the model's outputs, and its accuracy, when this layer alone computes in integers.

The float reference is evaluated once, with each layer's integers beside (see `tpucc.explain.fidelity`). Then, for each layer, its values
are put in the place of the float32 ones, and what depends on them is computed again, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tpucc.compilation import Compilation
from tpucc.explain.fidelity import Measurement, both_graphs, graph_before, narrowed, rows_used, work_of
from tpucc.explain.keepable import Keepable
from tpucc.explain.layer_error import LayerError
from tpucc.explain.noise import Noise
from tpucc.explain.quality import score
from tpucc.ir import Graph
from tpucc.numerics import AnyArray, Float32, dequantise
from tpucc.ops.evaluate import compute, evaluate
from tpucc.passes.input_arrays import batches, checked_inputs, largest_batch
from tpucc.passes.place import Placement
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import float_reference
from tpucc.runtime.runtime import Runtime

MOST_ROWS = 256
"""Rows that are measured on at most, spread evenly; fewer when they would take more than `MOST_WORK`, but a batch at least."""
MOST_WORK = 3 * 10**10
"""Multiply-accumulates that the measurement is worth: less than a minute's."""


@dataclass(frozen=True, slots=True)
class LayerLoss:
    """What a layer costs: `error` is of its own values, alone and as it runs. `output_sqnr` is that of the model's outputs when only this
    layer is quantised, in decibels. `accuracy` is the model's then, as a share; None without labels that are classes. `keep` is what
    `--keep` takes for the layer, whose name may be that of a part of one: names or lines; empty where nothing does."""

    error: LayerError
    output_sqnr: float
    accuracy: float | None
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of all layers, the costliest first, over `rows` of the `given` rows; and, of the whole model, its outputs' signal-to-noise
    ratio when all layers are quantised, whether they are `constant` in float32, and its accuracy in float32 and quantised."""

    rows: int
    given: int
    layers: tuple[LayerLoss, ...]
    output_sqnr: float
    constant: bool
    float_accuracy: float | None
    accuracy: float | None


def losses(compilation: Compilation, runtime: Runtime, inputs: Arrays, labels: AnyArray | None = None) -> Losses | None:
    """Measures each layer on rows of `inputs`, as `run` takes them; with `labels`, one a row, the accuracy too.

    None where nothing is quantised, or the model isn't compiled to the end. Raises `InputError` when the inputs don't fit.
    """
    graphs = both_graphs(compilation)
    if graphs is None or compilation.graph is None:
        return None
    measurement = Measurement(*narrowed(graphs, runtime.program.target))
    floats, layers, twins = measurement.floats, measurement.layers, measurement.twins
    if not twins:
        return None
    given = checked_inputs(compilation.graph.inputs, inputs, "inputs")
    chosen = _rows(given, _most_rows(layers, len(twins), largest_batch(floats.inputs)))
    rows = {name: array[chosen] for name, array in given.items()} if chosen is not None else given
    replays = _Replays(measurement)
    for part in batches(floats.inputs, rows):
        replays.measure(part)
    wanted = None if labels is None or chosen is None else labels[chosen]
    keep = _keeping(compilation, layers, twins)
    errors = measurement.errors(runtime, rows_used(rows, floats))
    found = [LayerLoss(e, replays.noise[e.name].sqnr, replays.accuracy(e.name, wanted), keep.get(e.name, ())) for e in errors]
    ordered = tuple(sorted(found, key=lambda loss: loss.output_sqnr))
    exact, compiled = float_reference(compilation.graph, rows), runtime.run(rows)
    whole = Noise()
    for name, values in exact.items():
        if values.dtype == np.float32:
            whole.add(values.astype(np.float64), compiled[name].astype(np.float64))
    first = compilation.graph[compilation.graph.outputs[0].node].type
    scores = [None if wanted is None else score(first, wanted, next(iter(found.values()))).get("accuracy") for found in (exact, compiled)]
    counts = (len(chosen), len(next(iter(given.values())))) if chosen is not None else (1, 1)
    return Losses(*counts, ordered, whole.sqnr, whole.constant, scores[0], scores[1])


def _keeping(compilation: Compilation, layers: Graph, twins: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What `--keep` takes for each layer; nothing where the graph that it speaks of isn't known."""
    read = graph_before(compilation, Placement.name)
    if read is None:
        return {}
    keepable = Keepable(read)
    return {name: keepable.names(layers[name], [layers[name].of, real], layers.users[name]) for name, real in twins.items()}


def _rows(given: Mapping[str, AnyArray], most: int) -> AnyArray | None:
    """The numbers of the rows to measure on, spread evenly; None where the inputs have no rows in common."""
    counts = {array.shape[0] if array.ndim else 0 for array in given.values()}
    if len(counts) != 1 or 0 in counts:
        return None
    (count,) = counts
    used = min(count, most)
    return np.arange(used, dtype=np.int64) * count // used


def _most_rows(layers: Graph, count: int, batch: int) -> int:
    """So many rows as `MOST_ROWS` and `MOST_WORK` allow for `count` replays of a graph for `batch` rows."""
    return max(batch, min(MOST_ROWS, batch * MOST_WORK // max(1, count * work_of(layers))))


class _Replays:
    """Evaluates the model in float32 with one layer after the other in integers, and sums up the errors of its outputs."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement, self._floats, self._twins = measurement, measurement.floats, measurement.twins
        self._first: dict[str, list[AnyArray]] = {name: [] for name in self._twins}
        self.noise = {name: Noise() for name in self._twins}

    def measure(self, part: Mapping[str, AnyArray]) -> None:
        """One round of inputs."""
        alone = self._measurement.measure(part)
        names = [node.name for node in self._floats]
        exact = evaluate(self._floats, part, keep=names)
        for layer, real in self._twins.items():
            held = self._measurement.layers[layer].type.quantisation
            assert held is not None
            value = dequantise(alone[layer], held.scale, held.zero_point).reshape(exact[real].shape)
            found = self._replayed(exact, real, value)
            for number, output in enumerate(self._floats.outputs):
                values = found.get(output.node, exact[output.node])
                if values.dtype == np.float32:
                    self.noise[layer].add(exact[output.node].astype(np.float64), values.astype(np.float64))
                if number == 0:
                    self._first[layer].append(values)

    def accuracy(self, layer: str, labels: AnyArray | None) -> float | None:
        """The share of rows that are right; the last round is filled with rows that don't count."""
        if labels is None:
            return None
        output = self._floats[self._floats.outputs[0].node].type
        return score(output, labels, np.concatenate(self._first[layer])[: len(labels)]).get("accuracy")

    def _replayed(self, exact: Mapping[str, AnyArray], name: str, value: Float32) -> Mapping[str, AnyArray]:
        """The values that differ when the node `name` has this one."""
        changed: dict[str, AnyArray] = {name: value}
        with np.errstate(all="ignore"):
            for node in self._floats:
                if node.name != name and any(operand in changed for operand in node.operands):
                    types = [self._floats[operand].type for operand in node.operands]
                    changed[node.name] = compute(node, types, [changed.get(o, exact[o]) for o in node.operands])
        return changed
