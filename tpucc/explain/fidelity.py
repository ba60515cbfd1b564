"""Where accuracy is lost: each layer's values in float32 against the integers of the reference, on the model's examples.

The operator graph as it was before `quantise` and the layer graph after it compute the same values, one in float32 and one in integers.
Both are evaluated together, as one graph in which each layer's integers stand beside the float32 value that they are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tpucc.compilation import Compilation
from tpucc.diagnostics import Error
from tpucc.explain.layer_error import ErrorMeter, LayerError
from tpucc.ir import Graph, Node
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.layers.kinds import VIEWS, is_layer, macs
from tpucc.layers.reference import LAYER_REFERENCES, compute
from tpucc.numerics import AnyArray, quantise
from tpucc.ops import facts_of, quantizes
from tpucc.ops.constant import OP as constant
from tpucc.ops.evaluate import evaluate
from tpucc.ops.facts import Values
from tpucc.passes.base import Context
from tpucc.passes.divide_batch import divide_batch
from tpucc.passes.input_arrays import InputArrays, batches, checked_inputs, largest_batch
from tpucc.passes.quantise import quantise as quantise_pass
from tpucc.runtime.runtime import Runtime
from tpucc.target import Target

ROWS = 64
"""At most so many rows of the calibration inputs are measured on, spread evenly; fewer when they would take more than `WORK`."""
WORK, CALL, VALUE = 3 * 10**8, 10**5, 50
"""Multiply-accumulates that the errors of a model are worth, some tenths of a second; what a layer costs beside, and each of its values."""
DEVICE, ALONE, COMPARED = "\0device ", "\0alone ", "\0compared "
"""Prefixes of names beside those of the operator graph. They begin with a character that no source can have, in weights' keys either."""


def fidelity(compilation: Compilation, runtime: Runtime) -> tuple[LayerError, ...]:
    """The error of each layer, and of each value that enters the device, in the order of the program.

    Measured on `ROWS` rows of the calibration inputs at most (see `_row_limit`), or on a batch where its items can't be divided. Layers
    whose values the operator graph doesn't have are left out: steps on the way to a join, values requantised for it. Empty when the model
    has no calibration inputs, or isn't compiled to the end. With several cores, the layers of the whole batch are measured: the bits are
    the same.
    """
    graphs, arrays = both_graphs(compilation), compilation.calibration
    if graphs is None or arrays is None:
        return ()
    measurement = Measurement(*narrowed(graphs, runtime.program.target))
    inputs, limit = measurement.floats.inputs, _row_limit(measurement.layers)
    examples = checked_inputs(inputs, arrays, "calibration")
    for part in batches(inputs, examples, limit):
        measurement.measure(part)
    return measurement.errors(runtime, rows_used(examples, measurement.floats, limit))


def both_graphs(compilation: Compilation) -> tuple[Graph, Graph] | None:
    """The operator graph as `quantise` got it, and the layer graph for the whole batch."""
    floats, layers = (graph_before(compilation, stage) for stage in (quantise_pass.name, divide_batch.name))
    return None if floats is None or layers is None else (floats, layers)


def graph_before(compilation: Compilation, stage: str) -> Graph | None:
    """The graph that a pass got; None where it hasn't run."""
    made = [(snapshot.stage, snapshot.value) for snapshot in compilation.snapshots if isinstance(snapshot.value, Graph)]
    return next((before for (_, before), (name, _) in pairwise(made) if name == stage), None)


class Measurement:
    """An operator graph in float32 and its layer graph in integers, evaluated on the same inputs; and the errors of the layers over all of
    them. `twins` has the float32 value of each layer that is measured."""

    def __init__(self, floats: Graph, layers: Graph) -> None:
        self.floats, self.layers, self.twins = floats, layers, twins_of(floats, layers)
        self._together = Together(floats, layers, self.twins).graph()
        self._meters = {name: _meter(layers[name]) for name in self.twins}

    def measure(self, part: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """One round of inputs. Returns the integers that each layer makes of exact operands."""
        found: dict[str, AnyArray] = {}

        def compare(node: Node, operands: Sequence[AnyArray]) -> AnyArray:
            real, integers = operands
            self._meters[node.name.removeprefix(COMPARED)].add(real, integers)
            return integers

        def alone(node: Node, operands: Sequence[AnyArray]) -> AnyArray:
            real, *rest = operands
            held, name = node.type.quantisation, node.name.removeprefix(ALONE)
            assert held is not None
            exact = quantise(real, held.scale, held.zero_point, INTEGER_FORMATS[node.type.dtype]).reshape(node.type.shape)
            found[name] = compute(node, rest) if rest else exact
            self._meters[name].add_alone(real, found[name])
            return exact

        evaluate(self._together, part, {**LAYER_REFERENCES, "compare": compare, "alone": alone})
        return found

    def errors(self, runtime: Runtime, rows: int) -> tuple[LayerError, ...]:
        """The error of each layer over so many rows, in the order of the program."""
        numbers = {layer.name: index for index, layer in enumerate(runtime.program.layers)}
        by_lanes = {layer.name for layer in runtime.program.layers if layer.is_by_lanes}
        measured = (node for node in self.layers if node.name in self._meters)
        return tuple(
            self._meters[n.name].result(n.name, numbers.get(n.name, -1), n.op, n.origin, rows, n.name in by_lanes) for n in measured
        )


def twins_of(floats: Graph, layers: Graph) -> dict[str, str]:
    """For each layer, and each `quantize` before one, the float32 value that it holds: the first of the operator graph's."""
    found: dict[str, str] = {}
    measured = _measured(layers)
    for node in floats:
        if node.name not in layers.holders:
            continue
        holder = _through_reshapes(layers, layers[layers.holders[node.name]])
        real = floats[node.operands[0]] if quantizes(node.op) else node
        if holder.name in measured and holder.type.size == real.type.size and real.type.dtype == "f32":
            found.setdefault(holder.name, real.name)
    return found


def _through_reshapes(layers: Graph, node: Node) -> Node:
    """The node of which this one is another shape: its integers are the same, in the same order."""
    while facts_of(node.op).values is Values.VIEWED:
        node = layers[node.operands[0]]
    return node


def _measured(layers: Graph) -> frozenset[str]:
    """The layers, and each `quantize` whose integers one of them reads, maybe in another view."""
    read: set[str] = set()
    for node in reversed(layers.nodes):
        if is_layer(node) or (node.name in read and node.op in VIEWS):
            read.update(node.operands)
    held = (node for node in layers if node.type.quantisation is not None and node.type.size > 0)
    return frozenset(node.name for node in held if is_layer(node) or (quantizes(node.op) and node.name in read))


def _row_limit(layers: Graph) -> int:
    """Whole batches of the graph, as many as `ROWS` and `WORK` allow, but one at least."""
    batch, calls = largest_batch(layers.inputs), CALL * sum(map(is_layer, layers))
    return batch * max(1, min(ROWS // batch, WORK // max(1, calls + work_of(layers))))


def work_of(layers: Graph) -> int:
    """Multiply-accumulates that a batch is worth."""
    return sum(macs(node, layers) + VALUE * node.type.size for node in layers if is_layer(node))


def narrowed(graphs: tuple[Graph, Graph], target: Target) -> tuple[Graph, Graph]:
    """The graphs for fewer items of a large batch, if its items can be divided as they are among cores; else as they are."""
    batch = largest_batch(graphs[1].inputs)
    rows = max(1, min(ROWS, batch * WORK // max(1, work_of(graphs[1]))))
    parts = next(count for count in range(1, batch + 1) if batch % count == 0 and batch // count <= rows)
    floats, layers = graphs
    try:
        return (divide_batch.run(floats, Context(target, cores=parts)), divide_batch.run(layers, Context(target, cores=parts)))
    except Error:
        return graphs


def rows_used(examples: InputArrays, floats: Graph, limit: int = 0) -> int:
    """How many rows of the examples are used: all, or `limit` at most."""
    used = ((len(examples[n.name]), max(limit, n.type.shape[0])) for n in floats.inputs if n.type.shape)
    return max((min(rows, most) if limit else rows for rows, most in used), default=1)


def _meter(node: Node) -> ErrorMeter:
    assert node.type.quantisation is not None
    return ErrorMeter(node.type.quantisation, INTEGER_FORMATS[node.type.dtype])


class Together:
    """Writes an operator graph and its layer graph as one, each layer as soon as its float32 value is there, and with it two more nodes.

    One compares the value with the layer's integers. The other computes the layer from operands that are exact, compares, and hands on
    the exact integers: the float32 value, quantised once.
    """

    def __init__(self, floats: Graph, layers: Graph, twins: Mapping[str, str]) -> None:
        self._floats = floats
        self._layers = layers
        self._twins = twins
        self._done: list[Node] = list(floats.inputs)
        self._written = 0
        self._device: dict[str, str] = {node.name: node.name for node in layers.inputs}
        self._alone: dict[str, str] = {}

    def graph(self) -> Graph:
        positions = {node.name: index for index, node in enumerate(self._floats)}
        for node in self._layers:
            if node.is_input:
                continue
            real = self._twins.get(node.name)
            if real is not None:
                self._write_floats(positions[real] + 1)
            self._copy(node)
            if real is not None:
                self._compare(node, real)
            elif node.type.quantisation is not None and not (constant.made(node) or quantizes(node.op)):
                self._add(replace(node, name=f"{ALONE}{node.name}", operands=self._exact(node)), self._alone, node.name)
        return Graph(self._floats.name, tuple(self._done), ())

    def _write_floats(self, stop: int) -> None:
        self._done += (node for node in self._floats.nodes[self._written : stop] if not node.is_input)
        self._written = max(self._written, stop)

    def _copy(self, node: Node) -> None:
        operands = tuple(self._device[name] for name in node.operands)
        self._add(replace(node, name=f"{DEVICE}{node.name}", operands=operands), self._device, node.name)

    def _compare(self, node: Node, real: str) -> None:
        self._done.append(replace(node, name=f"{COMPARED}{node.name}", op="compare", operands=(real, self._device[node.name])))
        operands = (real, *(self._exact(node) if is_layer(node) else ()))
        self._add(replace(node, name=f"{ALONE}{node.name}", op="alone", operands=operands), self._alone, node.name)

    def _exact(self, node: Node) -> tuple[str, ...]:
        """The operands as exactly as integers have them."""
        return tuple(self._alone.get(name, self._device[name]) for name in node.operands)

    def _add(self, node: Node, names: dict[str, str], name: str) -> None:
        self._done.append(node)
        names[name] = node.name
