"""Measures the range of every value that the device will hold in 8 bits, by running the model in float32 on examples.

Ranges that are known already (from the source's `in [low, high]`, from `quantize`, or from a graph's text) are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from tpucc.diagnostics import CompileError, Diagnostic, UsageError
from tpucc.ir import Graph, Node, Output, Range, TensorType
from tpucc.ir.dataflow import constant_values
from tpucc.ir.dtypes import I8, IntegerFormat
from tpucc.numerics import AnyArray, dequantise, quantise
from tpucc.ops.clip import ClipAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.evaluate import evaluate, multiply_accumulates
from tpucc.ops.fused import Fused, activation_of, without_activation
from tpucc.ops.names import clip, dequantize, quantize
from tpucc.ops.opdef import Table
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.passes.base import Context, graph_pass, require_choice
from tpucc.passes.divide_batch import divided, joined_batches
from tpucc.passes.input_arrays import (
    VALUES,
    InputArrays,
    batch_count,
    batches,
    checked_inputs,
    distribution,
    largest_batch,
    synthetic_batches,
)
from tpucc.passes.not_finite import FirstNotFinite
from tpucc.passes.place import require_placed
from tpucc.passes.rewriter import Names, as_constant, held_array

NO_CALIBRATION = "no calibration inputs"
"""How the note begins of a model without any."""
SYNTHETIC_ROWS = 64
"""Rows of inputs that stand in for missing ones; fewer when they would take more than `SYNTHETIC_MACS` or `SYNTHETIC_VALUES`."""
SYNTHETIC_MACS = 10**9
"""Multiply-accumulates that the ranges of synthetic inputs are worth: less than a second's. One item of the batch may take more."""
SYNTHETIC_VALUES = 2**24
"""Values of synthetic inputs that are held at one time, or one batch if that has more: few rows of millions tell a range, too."""
RANDOM_INPUTS = 'these inputs are random: name examples with calibration "FILE.npz" or --calibrate, or declare ranges, as in [0.1, 4.0]'
SIGNIFICANT_BITS = 10
JOINED_MEAN = 2**15
"""Values that an input or a result has in the mean, at most, where several batches are measured in one: larger ones gain nothing."""
JOINED_VALUES = 2**26
"""Values that inputs and results have, at most, where several batches are measured in one: 256 MB if none of them were freed."""
METHODS = ("minmax", "percentile")
ROWS = 512
"""About so many rows of the calibration inputs are used."""


@graph_pass("calibrate", "measures the range of each value on the calibration inputs", level=0)
def calibrate(graph: Graph, context: Context, *, method: str = "minmax", percentile: float = 99.99, rows: int = ROWS) -> Graph:
    """Gives a range to every value that needs one.

    | `method` | the range |
    |---|---|
    | "minmax" | from the smallest to the largest value |
    | "percentile" | the smallest that leaves out at most the largest and the smallest `100 - percentile` % of the values |

    At most about `rows` rows of the calibration inputs are used, spread evenly; 0 is all. Without any, inputs are made up; quantising
    says so where a layer reads such a range.

    Raises `InputError` when the calibration arrays don't fit, `CompileError` E0805 when a value isn't finite.
    """
    require_choice("method of calibration", method, METHODS)
    if not 50 < percentile <= 100:
        raise UsageError(Diagnostic("E0518", f"the percentile must be above 50 and at most 100, found {percentile:g}"))
    if rows < 0:
        raise UsageError(Diagnostic("E0518", f"the number of rows can't be negative, found {rows}"))
    given = given_examples(graph, context)
    require_placed(graph, "calibrating")
    probed = ProbeGraph.of(graph, context.format)
    if not probed.measured:
        return graph
    share = 0 if method == "minmax" else (100 - percentile) / 100
    if given is None:
        probed = probed.of_few_items()
        parts = list(_synthetic_batches(probed.graph))
        found = _ranges(probed, parts, len(parts), share, RANDOM_INPUTS)
        return probed.ranged({name: replace(range_, synthetic=True) for name, range_ in found.items()})
    return probed.ranged(_ranges(probed, examples(graph, given, rows), batch_count(graph.inputs, given, rows), share))


def _ranges(probed: ProbeGraph, parts: Iterable[InputArrays], count: int, share: float, *help: str) -> dict[str, Range]:
    """The ranges of what is measured, over `count` batches of inputs: a share of the values is left out at each end. `help` is for the
    error, too."""
    cuts = {name: math.floor(share * (probed.graph[name].type.size * count) + 1e-6) for name in probed.measured}
    meters: dict[str, Extremes | Tails] = {name: Tails(cut) if cut else Extremes() for name, cut in cuts.items()}

    def measure(node: Node, value: AnyArray) -> None:
        if (meter := meters.get(node.name)) is not None:
            meter.add(value, _extremes(value))

    for measuring, inputs in probed.rounds(parts, count):
        try:
            evaluate(measuring, inputs, watch=measure)
        except FloatingPointError:
            raise _not_finite(measuring, inputs, help) from None
    return {name: _outwards(meter.range()) for name, meter in meters.items()}


# A meter sees the values of one tensor batch by batch, with the smallest and the largest of each batch; then it says the range.


class Extremes:
    """The smallest and the largest value. Models of thousands of small values spend their calibration here."""

    def __init__(self) -> None:
        self._low, self._high = math.inf, -math.inf

    def add(self, _: AnyArray, extremes: Range) -> None:
        self._low, self._high = min(self._low, extremes.low), max(self._high, extremes.high)

    def range(self) -> Range:
        return Range(self._low, self._high)


class Tails:
    """The smallest and the largest value when the `cut` smallest and the `cut` largest are left out; keeps no others."""

    def __init__(self, cut: int) -> None:
        self._cut = cut
        self._lowest = self._highest = np.empty(0, np.float32)

    def add(self, values: AnyArray, _: Range) -> None:
        values = values.reshape(-1)
        self._lowest = self._least(np.concatenate([self._lowest, values]))
        self._highest = -self._least(-np.concatenate([self._highest, values]))

    def range(self) -> Range:
        return Range(float(self._lowest.max()), float(self._highest.min()))

    def _least(self, values: AnyArray) -> AnyArray:
        return values if values.size <= self._cut + 1 else np.partition(values, self._cut)[: self._cut + 1]


def given_examples(graph: Graph, context: Context) -> InputArrays | None:
    """The calibration inputs, if there are any. Raises `InputError` when they don't fit."""
    return None if context.calibration is None else checked_inputs(graph.inputs, context.calibration, "calibration")


def examples(graph: Graph, given: InputArrays | None, rows: int = ROWS) -> Iterator[InputArrays]:
    """The calibration inputs in batches of the model, about `rows` rows of them (0: all); synthetic inputs where `given` is None."""
    return _synthetic_batches(graph) if given is None else batches(graph.inputs, given, rows)


def synthetic_note(graph: Graph, what: str) -> str:
    """The note of a model whose integers depend on something (`what`: "ranges are measured") that was done on synthetic inputs."""
    given = (node.type.with_range(None) if node.type.range and node.type.range.synthetic else node.type for node in graph.inputs)
    drawn = " or ".join(dict.fromkeys(map(distribution, given)))
    return (
        f"{NO_CALIBRATION}: {what} on random inputs ({drawn}, seed 0), so the accuracy means little. "
        'Name examples in the source (calibration "FILE.npz") or with --calibrate.'
    )


@dataclass(frozen=True)
class ProbeGraph:
    """A graph to measure in: the operator graph, and for each fused activation a node that stops before it.

    `measured` are the nodes without a range that need one; `before` maps a fused node to the one that stops before its activation.
    """

    original: Graph
    graph: Graph
    measured: tuple[str, ...]
    before: Mapping[str, str]

    @classmethod
    def of(cls, graph: Graph, format: IntegerFormat) -> ProbeGraph:
        names = Names(graph)
        before = {node.name: names.fresh(node.name) for node in graph if _lacks_pre(node)}
        stopped = (_stopped(graph[name], probe) for name, probe in before.items())
        return cls(graph, saturating(graph.with_nodes((*graph, *stopped)), format), (*_without_range(graph), *before.values()), before)

    def of_few_items(self) -> ProbeGraph:
        """The same with a graph of fewer items of the batch, where all of them take more than `SYNTHETIC_MACS`: of as many as don't, or of
        one item. Operators that mix items need all of them."""
        batch, least = largest_batch(self.graph.inputs), -(-multiply_accumulates(self.graph) // SYNTHETIC_MACS)
        parts = next((number for number in range(max(1, least), batch + 1) if batch % number == 0), batch)
        if parts == 1:
            return self
        try:
            return replace(self, graph=divided(self._measuring, parts, "calibrate"))
        except (CompileError, UsageError):
            return self

    def rounds(self, parts: Iterable[InputArrays], count: int) -> Iterator[tuple[Graph, InputArrays]]:
        """Graphs and the inputs to evaluate each with: `count` batches, several in one where their values are small and no operator mixes
        items of the batch."""
        sizes = [node.type.size for node in self.graph if node.name not in constant_values(self.graph)]
        together = min(count, min(JOINED_VALUES, JOINED_MEAN * len(sizes)) // sum(sizes))
        waiting, left = iter(parts), list[InputArrays]()
        if together > 1:
            with suppress(CompileError):
                joined = joined_batches(self._measuring, together, "calibrate")
                while len(left := list(islice(waiting, together))) == together:
                    yield joined, {node.name: np.concatenate([part[node.name] for part in left]) for node in joined.inputs}
        yield from ((self.graph, part) for part in chain(left, waiting))

    @property
    def _measuring(self) -> Graph:
        """The graph with what is measured as its outputs."""
        return replace(self.graph, outputs=tuple(Output(name, name) for name in self.measured))

    def ranged(self, found: Mapping[str, Range]) -> Graph:
        """The operator graph with what was found."""
        return self.original.with_nodes(self._ranged(node, found) for node in self.original)

    def _ranged(self, node: Node, found: Mapping[str, Range]) -> Node:
        if node.name in found:
            node = replace(node, type=node.type.with_range(found[node.name]))
        if node.name in self.before and isinstance(node.attributes, Fused):
            pre = found[self.before[node.name]]
            node = replace(node, attributes=replace(node.attributes, pre=(pre.low, pre.high)), type=node.type.with_synthetic(pre))
        return node


def _synthetic_batches(graph: Graph) -> Iterator[InputArrays]:
    """Batches of synthetic inputs: at most so many that all products of the model stay within `SYNTHETIC_MACS`, and the inputs within
    `SYNTHETIC_VALUES`, but one batch at least.

    Batches that are added for inputs of few values keep all values of the model within it, too: a model need not have products.
    """
    batch = largest_batch(graph.inputs)
    macs = multiply_accumulates(graph)
    given = sum(node.type.size for node in graph.inputs)
    affordable = max(1, min(SYNTHETIC_MACS // max(1, macs), SYNTHETIC_VALUES // max(1, given)))
    most = SYNTHETIC_MACS // max(1, macs, sum(node.type.size for node in graph))
    return synthetic_batches(graph.inputs, min(SYNTHETIC_ROWS, batch * affordable), min(VALUES, most))


def _without_range(graph: Graph) -> Iterator[str]:
    """The float32 values on the device, or on their way to it, whose range nothing says yet."""
    constants = constant_values(graph)
    for node in graph:
        known = node.type.range is not None or node.type.quantisation is not None or node.type.dtype != "f32" or node.name in constants
        if not known and (node.on_device or any(user.on_device for user in graph.users[node.name])):
            yield node.name


def _lacks_pre(node: Node) -> bool:
    if not isinstance(node.attributes, Fused) or node.attributes.pre is not None:
        return False
    activation = activation_of(node.attributes)
    return activation is not None and isinstance(activation[0].legalisation, Table)


def _stopped(node: Node, name: str) -> Node:
    assert isinstance(node.attributes, Fused)
    return replace(node, name=name, attributes=without_activation(node.attributes), type=node.type.plain())


def _extremes(values: AnyArray) -> Range:
    """The smallest and the largest value; a NaN among them would be both. Raises `FloatingPointError` when one isn't finite."""
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise FloatingPointError
    return Range(low, high)


def _not_finite(graph: Graph, inputs: InputArrays, more: Sequence[str]) -> CompileError:
    """The error of a value that isn't finite: it names the operator that gave the first such value, measured or not."""
    first = FirstNotFinite()
    evaluate(graph, inputs, watch=first)
    help = first.help or "look for values that grow from layer to layer, and for weights or calibration inputs that are too large"
    return CompileError(Diagnostic("E0805", f"{first.said}: no range covers it", first.labels, (help, *more)))


def _outwards(measured: Range) -> Range:
    """A range a little wider, of numbers of few bits.

    The last bits of a float32 sum differ from machine to machine, as libraries add in different orders. The compiled program must not.
    """
    return Range(_rounded(measured.low, math.floor), _rounded(measured.high, math.ceil))


def _rounded(value: float, direction: Callable[[float], int]) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(direction(math.ldexp(mantissa, SIGNIFICANT_BITS)), exponent - SIGNIFICANT_BITS)


# Floats for measuring: values whose scale and zero point the source fixes, as integers hold them.


def saturating(graph: Graph, of: IntegerFormat) -> Graph:
    """The graph with a `clip` behind each such value of float32, which has its name; `of` is how the device holds values.

    Quantisers rely on it: they leave out a `relu` before a `quantize` whose zero point is the lowest integer. Constants and values of the
    host are rounded, too, as they are before the device gets them.
    """
    names = Names(graph)
    return graph.with_nodes(made for node in graph for made in _saturated(node, names, of))


def _saturated(node: Node, names: Names, of: IntegerFormat) -> Iterator[Node]:
    held = node.type.quantisation if node.type.dtype == "f32" else None
    if held is not None and (array := held_array(node)) is not None:
        rounded = dequantise(quantise(array, held.scale, held.zero_point, I8), held.scale, held.zero_point)
        yield as_constant(replace(node, type=node.type.plain()), rounded)
        return
    if held is None or node.type.range is None or node.is_input:
        yield node
        return
    whole = replace(node, name=names.fresh(node.name), type=node.type.plain())
    yield whole
    if not node.on_device:
        integers = TensorType(of.name, node.type.shape, quantisation=held)
        parameters = QuantizeAttributes(held.scale, held.zero_point, of.bits)
        quantised = quantize.node(names.fresh(node.name), (whole.name,), parameters, integers, node.origin, node.place)
        yield quantised
        yield dequantize.node(node.name, (quantised.name,), DequantizeAttributes(), node.type, node.origin, node.place)
        return
    bounds = ClipAttributes(node.type.range.low, node.type.range.high)
    yield clip.node(node.name, (whole.name,), bounds, node.type, node.origin, node.place)
