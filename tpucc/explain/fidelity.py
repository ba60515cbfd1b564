"""Where accuracy is lost: each layer's values in float32 against the integers of the reference, on the model's examples.

The operator graph as it was before `quantise` and the layer graph after it compute the same values, one in float32 and one in integers.
Beside each layer as it runs, the layer is computed of exact operands: of the float32 values, each quantised once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from tpucc.ops.evaluate import compute as compute_operator
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
        measurement.measure(part, evaluate(measurement.floats, part, keep=measurement.twins.values()))
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
        self._meters = {name: _meter(layers[name]) for name in self.twins}

    def measure(self, part: Mapping[str, AnyArray], real: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """One round of inputs, and the float32 values of `twins` for them. Returns the integers that each layer makes of exact operands."""
        exact: dict[str, AnyArray] = {}
        found: dict[str, AnyArray] = {}

        def follow(node: Node, operands: Sequence[AnyArray]) -> AnyArray:
            """The value as the model computes it. Beside it, `exact` gets the exact integers: the float32 value, quantised once, or what is
            made of exact operands where there is no such value."""
            value = self._computed(node, operands)
            if not _follows(node):
                return value
            alone = [exact.get(name, operand) for name, operand in zip(node.operands, operands, strict=True)]
            if node.name not in self.twins:
                if not quantizes(node.op):
                    exact[node.name] = self._computed(node, alone)
                return value
            held, wanted = node.type.quantisation, real[self.twins[node.name]]
            assert held is not None
            own = quantise(wanted, held.scale, held.zero_point, INTEGER_FORMATS[node.type.dtype]).reshape(node.type.shape)
            exact[node.name] = own
            found[node.name] = self._computed(node, alone) if is_layer(node) else own
            self._meters[node.name].add(wanted, value)
            self._meters[node.name].add_alone(wanted, found[node.name])
            return value

        evaluate(self.layers, part, {**LAYER_REFERENCES, **{node.op: follow for node in self.layers if _follows(node)}})
        return found

    def _computed(self, node: Node, operands: Sequence[AnyArray]) -> AnyArray:
        if is_layer(node):
            return compute(node, operands)
        return compute_operator(node, [self.layers[name].type for name in node.operands], operands)

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


def _follows(node: Node) -> bool:
    """Whether a node of a layer graph makes integers, of operands that exact ones can stand for."""
    return node.type.quantisation is not None and not (constant.made(node) or node.is_input)


def _meter(node: Node) -> ErrorMeter:
    assert node.type.quantisation is not None
    return ErrorMeter(node.type.quantisation, INTEGER_FORMATS[node.type.dtype])
