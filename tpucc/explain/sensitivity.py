"""What each layer costs: the error of the model's outputs, and its accuracy, when this layer alone computes in integers.

The float reference is evaluated once, with each layer's integers beside (see `tpucc.explain.fidelity`). Then, for each layer, its values
are put in the place of the float32 ones, and what depends on them is computed again, in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.compilation import Compilation
from tpucc.diagnostics import counted, printable
from tpucc.explain.fidelity import Measurement, both_graphs, graph_before, narrowed, rows_used, work_of
from tpucc.explain.layer_error import LayerError, alone, as_it_runs, decibels, unmeasured
from tpucc.explain.noise import Noise
from tpucc.explain.quality import score
from tpucc.explain.tables import MOST_ROWS, WIDTH, table, wrapped
from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import Computed
from tpucc.numerics import AnyArray, Float32, dequantise
from tpucc.ops import legalisation_of
from tpucc.ops.evaluate import compute, evaluate
from tpucc.ops.opdef import Boundary
from tpucc.passes.device_work import computes
from tpucc.passes.input_arrays import batches, checked_inputs, largest_batch
from tpucc.passes.kept_layers import layer_of, names_of, readers_of, sources_of
from tpucc.passes.place import place
from tpucc.passes.rewriter import is_product
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import float_reference
from tpucc.runtime.runtime import Runtime

MEASURED_ROWS = 256
"""Rows that are measured on at most, spread evenly; fewer when they would take more than `MEASURED_WORK`, but a batch at least."""
MEASURED_WORK = 3 * 10**10
"""Multiply-accumulates that the measurement is worth: less than a minute's."""


@dataclass(frozen=True, slots=True)
class LayerLoss:
    """What a layer costs: `error` is of its own values, alone and as it runs. `output_sqnr` is the signal-to-noise ratio of the model's
    outputs when only this layer is quantised, in decibels. `accuracy` is the model's then, as a share; None without labels that are
    classes. `keep` is what `--keep` takes for the layer, whose name may be the name of a part of it: names or lines; empty if nothing
    does."""

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
    given = checked_inputs(compilation.graph.inputs, inputs, "example set")
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
            whole.add(values, compiled[name])
    first = compilation.graph[compilation.graph.outputs[0].node].type
    scores = [None if wanted is None else score(first, wanted, next(iter(found.values()))).get("accuracy") for found in (exact, compiled)]
    counts = (len(chosen), len(next(iter(given.values())))) if chosen is not None else (1, 1)
    return Losses(*counts, ordered, whole.sqnr, whole.constant, scores[0], scores[1])


def _keeping(compilation: Compilation, layers: Graph, twins: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What `--keep` takes for each layer; nothing where the graph that it speaks of isn't known."""
    read = graph_before(compilation, place.name)
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
    """So many rows as `MEASURED_ROWS` and `MEASURED_WORK` allow for `count` replays of a graph for `batch` rows."""
    return max(batch, min(MEASURED_ROWS, batch * MEASURED_WORK // max(1, count * work_of(layers))))


class _Replays:
    """Evaluates the model in float32 with one layer after the other in integers, and sums up the errors of its outputs."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement, self._floats, self._twins = measurement, measurement.floats, measurement.twins
        self._first: dict[str, list[AnyArray]] = {name: [] for name in self._twins}
        self.noise = {name: Noise() for name in self._twins}

    def measure(self, part: Mapping[str, AnyArray]) -> None:
        """One round of inputs."""
        exact = evaluate(self._floats, part, keep=[node.name for node in self._floats])
        alone = self._measurement.measure(part, exact)
        for layer, real in self._twins.items():
            held = self._measurement.layers[layer].type.quantisation
            assert held is not None
            value = dequantise(alone[layer], held.scale, held.zero_point).reshape(exact[real].shape)
            found = self._replayed(exact, real, value)
            for number, output in enumerate(self._floats.outputs):
                values = found.get(output.node, exact[output.node])
                if values.dtype == np.float32:
                    self.noise[layer].add(exact[output.node], values)
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


FEW = 2
"""Of more layers than these, the lines are given, if the lines are no more than these."""


class Keepable:
    """The names that `--keep` takes for the nodes of a layer graph, which may be parts of a layer. The pass `place` reads `graph`."""

    def __init__(self, graph: Graph) -> None:
        self._computed = Computed(graph)
        self._computing = [node for node in self._computed.nodes if computes(node)]
        self._named: dict[str, set[str]] = {}
        for node in self._computing:
            for name in names_of(node):
                self._named.setdefault(name, set()).add(node.name)

    def names(self, layer: Node, of: Sequence[str], readers: Sequence[Node]) -> tuple[str, ...]:
        """The names that keep a node of the layer graph: its own name; else the name of the operator that it is a part of; else the names
        of the layers whose values it moves, or that read the integers that it makes; else its line. Empty if none of these keeps it. `of`
        are the names that its operator may have, and `readers` the nodes that read it in the layer graph."""
        graph = self._computed.graph
        known = [graph[name] for name in of if name in graph.by_name]
        if isinstance(legalisation_of(layer.op), Boundary):
            read = [reader for node in known[:1] for reader in readers_of(node, self._computed)]
            read = read or [graph[reader.of] for reader in readers if reader.of in self._named]
            return self._short([*dict.fromkeys(map(self._called, read))]) or self._line(layer)
        meant = [node for node in known if node.name in self._named]
        own = self._named.get(layer.name, set())
        if own and (not meant or not own.isdisjoint(layer_of(self._computed, meant[0]))):
            return (layer.name,)
        made = [name for node in known[:1] for name in sources_of(node.name, self._computed)]
        return (self._product(meant[0]),) if meant else self._short(made) or self._line(layer)

    def _product(self, node: Node) -> str:
        """The name of a node's layer as `_called`, if no other layer has that name; else the node's own."""
        called = self._called(node)
        return called if len(self._named[called]) == 1 else node.name

    def _called(self, node: Node) -> str:
        """The name of the layer with a node: its product's name, if it has a product."""
        layer = [self._computed.graph[name] for name in layer_of(self._computed, node)]
        return next(names_of(next(filter(is_product, layer), node)))

    def _short(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names, or the lines if there are many names from few lines."""
        if len(names) <= FEW:
            return tuple(names)
        lines = sorted({node.origin.line for node in self._computing if not {*names}.isdisjoint(names_of(node))})
        return tuple(map(str, lines)) if len(lines) <= FEW and 0 not in lines else tuple(names)

    def _line(self, layer: Node) -> tuple[str, ...]:
        line = layer.origin.line
        return (str(line),) if line and any(line in node.origin.lines for node in self._computing) else ()


EXPLAINED = (
    "only it: the signal-to-noise ratio of the outputs, in dB, when only this layer computes with integers, its operands' among them, and "
    "all others compute in float32; the costliest layer stands first. alone: that of the layer's own values, from operands that are exact "
    "but for the rounding to integers. as it runs: with the errors of all layers before."
)
KEEP = " keep: what --keep takes, as in --keep NAME=host, where it isn't the name of the row: the layer of a part, or what reads a value."
KEEP_BY = "keep, where the name of the row isn't what --keep takes: "
SHORTENED = "\n(Some names are shortened; a wider terminal and --json have them in full.)"
UNKNOWN = "–"
SHOWN = 2
"""Names of a row that `--keep` takes; more are in the JSON."""


def losses_table(name: str, found: Losses, inputs: str, integers: str, width: int = WIDTH) -> str:
    """What each layer costs; past `MOST_ROWS` the cheapest are counted. `inputs` says what was measured on."""
    rows = counted(found.rows, "row") if found.rows == found.given else f"{found.rows:,} of {found.given:,} rows"
    kept = f"the outputs keep {decibels(found.output_sqnr)}"
    if why := unmeasured(found.output_sqnr, found.constant):
        kept = f"the outputs have no signal to noise: they are {why}"
    head = f"{printable(name)}: {kept}, on {rows} of {inputs}"
    head += ", evenly spread" if found.rows < found.given else ""
    if found.accuracy is not None and found.float_accuracy is not None:
        head += f"; accuracy {found.float_accuracy:.2%} in float32, {found.accuracy:.2%} in {integers}"
    shown, others = found.layers[:MOST_ROWS], found.layers[MOST_ROWS:]
    judged = any(loss.accuracy is not None for loss in shown)
    heads = ("layer", "kind", "line", "only it", *(("accuracy",) if judged else ()), "alone", "as it runs")
    text, told = _with_keep(heads, [_row(loss, judged, found.constant) for loss in shown], [*map(_keep, shown)], width)
    more = f"\n({counted(len(others), 'more row')} that cost less)" if others else ""
    more += "" if all(printable(loss.error.name) in text for loss in shown) else SHORTENED
    return f"{wrapped(head, '  ')}\n\n{text}{more}\n\n{wrapped(EXPLAINED + told)}"


def losses_json(name: str, found: Losses, inputs: str) -> dict[str, Any]:
    """What `losses_table` says, for programs to read. A ratio that isn't finite (no error at all, or constant values) is null."""
    layers = [
        {
            "name": loss.error.name,
            "kind": loss.error.kind,
            "line": loss.error.line,
            "only_snr_db": _finite(loss.output_sqnr),
            "alone_snr_db": _finite(loss.error.own_sqnr),
            "snr_db": _finite(loss.error.sqnr),
            "accuracy": loss.accuracy,
            "keep": loss.keep,
        }
        for loss in found.layers
    ]
    accuracy = {"float32": found.float_accuracy, "quantised": found.accuracy}
    whole = {"rows": found.rows, "rows_given": found.given, "inputs": inputs, "snr_db": _finite(found.output_sqnr), "accuracy": accuracy}
    return {"model": name, **whole, "layers": layers}


def _row(loss: LayerLoss, judged: bool, constant: bool) -> tuple[str, ...]:
    error = loss.error
    accuracy = ("" if loss.accuracy is None else f"{loss.accuracy:.2%}",) if judged else ()
    ratios = (decibels(loss.output_sqnr, constant), alone(error), as_it_runs(error))
    only, own, running = (ratio.removesuffix(" dB") for ratio in ratios)
    return (error.name, error.kind, str(error.line), only, *accuracy, own, running)


def _with_keep(heads: Sequence[str], rows: Sequence[Sequence[str]], keep: Sequence[str], width: int) -> tuple[str, str]:
    """The table, with a column of what `--keep` takes where some row's name isn't it, and what explains the column. Where the column would
    cut names, which `--keep` takes as they are, a sentence below the table says the same."""
    whole = table(heads, rows, width=width)
    if not any(text and text != UNKNOWN for text in keep):
        return whole, ""
    text = table((*heads, "keep"), [(*row, each) for row, each in zip(rows, keep, strict=True)], width=width)
    if all(printable(row[0]) in text for row in rows):
        return text, KEEP
    named = "; ".join(f"{printable(row[0])}: {printable(each)}" for row, each in zip(rows, keep, strict=True) if each)
    return f"{whole}\n\n{wrapped(KEEP_BY + named)}", ""


def _keep(loss: LayerLoss) -> str:
    """What `--keep` takes for the layer, where its own name isn't it."""
    if loss.keep == (loss.error.name,):
        return ""
    more = [f"{len(loss.keep) - SHOWN} more"] if len(loss.keep) > SHOWN else []
    return ", ".join([*loss.keep[:SHOWN], *more]) or UNKNOWN


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None
