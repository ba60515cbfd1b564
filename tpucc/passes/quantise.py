"""From operators to layers: the pass that makes integers of real numbers.

Each value on the device becomes int8, or int16, with a scale and a zero point, each operator there a layer (or, for a view, a `reshape` of
the integers, which moves nothing). `quantize` nodes stand where values enter the device and `dequantize` nodes where they leave it; the
host's operators stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpucc.diagnostics import CompileError, Diagnostic, ProgramError
from tpucc.ir import Graph, Node, Output
from tpucc.ir.dataflow import constant_values
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.layers.kinds import is_layer
from tpucc.layers.parameters import UnfitError
from tpucc.ops import dequantizes
from tpucc.ops.evaluate import compute
from tpucc.ops.names import constant, weight
from tpucc.passes.base import Context, graph_pass, require_choice
from tpucc.passes.bias_correction import with_corrected_biases
from tpucc.passes.calibrate import synthetic_note
from tpucc.passes.dead_code import live
from tpucc.passes.explicit_quantisation import holding
from tpucc.passes.layering.graph import LayerGraph
from tpucc.passes.layering.operators import layer
from tpucc.passes.not_finite import zeros_of_integers
from tpucc.passes.place import require_placed
from tpucc.passes.rewriter import as_constant, held_array, is_written

GRANULARITIES = ("per_channel", "per_tensor")


@graph_pass("quantise", "turns the operators on the device into integer layers", level=0)
def quantise(graph: Graph, context: Context, *, granularity: str = "per_channel", bias_correction: bool = False) -> Graph:
    """Makes the layer graph. Notes say where it depends on synthetic inputs, as there are no calibration inputs (but not where weights are
    random, too), and what `zeros_of_integers` finds.

    `granularity` says whether the weights of a layer have one scale a column ("per_channel") or one in all ("per_tensor"). With
    `bias_correction`, biases make up for what rounding the weights does to the means of their columns on the calibration inputs.

    A graph that has layers already is left as it is.

    Raises `CompileError` where no parameters fit (E0803, E0804), `ProgramError` E0806 for a graph whose weights have no values, or that
    isn't placed.
    """
    require_choice("granularity", granularity, GRANULARITIES)
    if any(is_layer(node) for node in graph):
        return graph
    require_placed(graph, "quantising")
    folded, per_channel = folded_constants(live(graph)), granularity == "per_channel"
    if bias_correction:
        folded = with_corrected_biases(folded, context, per_channel=per_channel)
    unplaced = folded.with_nodes(replace(node, place=None) for node in folded)
    layers = LayerGraph(unplaced, context.format, per_channel=per_channel)
    made = _quantised(folded, layers)
    measured = {
        "ranges are measured": layers.reads_synthetic,
        "biases are corrected": bias_correction and context.calibration is None,
    }
    if any(measured.values()) and not context.random_weights:
        made = made.noting(synthetic_note(graph, " and ".join(what for what, is_synthetic in measured.items() if is_synthetic)))
    return made.noting(*zeros_of_integers(folded, layers.quantisation_of))


def _quantised(graph: Graph, layers: LayerGraph) -> Graph:
    constants = constant_values(graph)
    for node in layers.graph:
        if node.is_input or node.name in constants:
            continue
        if is_written(node):
            continue  # weights that the host writes: the product that reads them quantises them
        if graph[node.name].on_device:  # nodes of a layer graph have no place
            layers.hold(node.name, _layer(layers, node))
        else:
            layers.keep(node)
    outputs = tuple(Output(output.name, layers.for_host(output.node)) for output in graph.outputs)
    return replace(graph, nodes=tuple(layers.nodes()), outputs=outputs)


def _layer(layers: LayerGraph, node: Node) -> Node:
    try:
        return layer(layers, node)
    except UnfitError as error:
        labels = node.origin.labels()
        raise CompileError(Diagnostic(error.code, f"{node.name}: {error.message}", labels, (error.help,))) from None


def folded_constants(graph: Graph) -> Graph:
    """The graph with a constant for everything that is computed from constants: without optimisation, no pass has done that before."""
    constants = constant_values(graph)
    values: dict[str, Node] = {}
    for node in graph:
        if weight.made(node):
            raise ProgramError(Diagnostic("E0806", f"the weight {node.name} has no value: weights are bound before quantising"))
        values[node.name] = _constant(node, values) if node.name in constants and not constant.made(node) else node
    return live(graph.with_nodes(values.values()))


def _constant(node: Node, values: Mapping[str, Node]) -> Node:
    """The value of a node of constants; one that was dequantised keeps the parameters that `dequantize` was given."""
    operands = [values[name] for name in node.operands]
    arrays = [array for operand in operands if (array := held_array(operand)) is not None]
    given = operands[0].type.quantisation if dequantizes(node.op) else None
    type_ = holding(node.type, given, INTEGER_FORMATS[operands[0].type.dtype]) if given else node.type
    return as_constant(replace(node, type=type_), compute(node, [operand.type for operand in operands], arrays))
