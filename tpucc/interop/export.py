"""A compiled model as an ONNX file: its operators in float32, or its layers in the device's integers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np

from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.interop.onnx.carried import Carried
from tpucc.interop.onnx.writing.file import OnnxModel, onnx_bytes
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.interop.onnx.writing.stated_scales import with_stated_scales
from tpucc.ir import Graph, Node
from tpucc.layers.kinds import is_layer
from tpucc.numerics import AnyArray
from tpucc.ops import INTERNAL
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.weight import OP as weight
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.dead_code import live
from tpucc.passes.depthwise import depthwise
from tpucc.passes.divide_batch import divide_batch
from tpucc.passes.explicit_quantisation import explicit_quantisation

ONNX = ".onnx"
"""How the names of such files end."""


def require_onnx_name(path: Path) -> None:
    """Raises `UsageError` E0505 for the name of a file that isn't that of an ONNX file."""
    if path.suffix.lower() != ONNX:
        raise UsageError(Diagnostic("E0505", f"can't write {printable(str(path))}: an ONNX file ends in {ONNX}"))


def exported(made: Compilation, quantised: bool) -> tuple[OnnxModel, bytes]:
    """The model as ONNX nodes, and the file. Quantised, it is the layers for the whole batch, whatever the number of cores.

    Raises `UsageError` E0515 where the compilation has no such graph, and the errors of `onnx_model` and `onnx_bytes`.
    """
    graph = _layers(made) if quantised else made.graph
    if graph is None:
        kind = "layer graph" if quantised else "operator graph"
        raise UsageError(Diagnostic("E0515", f"there is no {kind} to export; compile the source"))
    source = made.model.graph if made.model is not None else ()
    carried = _quantised(made, graph) if quantised else live(graph)
    model = onnx_model(graph, source)
    return model, onnx_bytes(model, made.source, None if carried is None else _with_weights_apart(carried, source))


def _with_weights_apart(graph: Graph, model: Iterable[Node]) -> Carried:
    """A graph with a weight for each constant that is none of the source's own, and their values by key."""
    source = {node.name: node for node in model if not node.operands}
    keys = {name: node.attributes.key for name, node in source.items() if isinstance(node.attributes, WeightAttributes)}
    weights: dict[str, AnyArray] = {}
    nodes: list[Node] = []
    for node in graph:
        array = array_of(node)
        if array is None or array.dtype != np.float32 or (node.name not in keys and (not array.ndim or node.name in source)):
            nodes.append(node)
            continue
        key = wanted = keys.get(node.name, node.name)
        number = 0
        while key in weights and not np.array_equal(weights[key], array):
            number += 1
            key = f"{wanted}.{number}"
        weights[key] = array
        nodes.append(weight.node(node.name, (), WeightAttributes(key), node.type.plain(), node.origin))
    inputs = {node.name: source.get(node.name, node).type for node in graph.inputs}  # with the ranges that the source says
    return Carried(graph.with_nodes(replace(node, type=inputs[node.name]) if node.is_input else node for node in nodes), weights)


def _quantised(made: Compilation, layers: Graph) -> Graph | None:
    """The operators of the layers, with the scales of the device's values. None where no operators are known of which the layers are made:
    these were given as a text, or a pass of the user's has changed them."""
    graphs = [(snapshot.stage, snapshot.value) for snapshot in made.snapshots if isinstance(snapshot.value, Graph)]
    operators = list(takewhile(lambda step: step[0] != explicit_quantisation.name, graphs))
    fused = [graph for _, graph in takewhile(lambda step: not any(map(is_layer, step[1])), graphs)]
    known = [graph for _, graph in operators if all(map(_has_text, graph))]
    if not known or not fused or any(stage in made.rewritten for stage, _ in graphs[len(operators) :]):
        return None
    stated = live(with_stated_scales(known[-1], fused[-1], layers))
    return stated.with_nodes(replace(node, place=None) for node in stated)


def _has_text(node: Node) -> bool:
    """Whether a source can have a node."""
    return node.op not in INTERNAL or node.is_input or isinstance(node.attributes, SliceAttributes | WeightAttributes)


def _layers(made: Compilation) -> Graph | None:
    """The layers before the batch was divided among cores, and before units were chosen for depthwise convolutions."""
    free = {depthwise.name}.difference(made.rewritten)
    found = None
    for snapshot in made.snapshots:
        if snapshot.stage == divide_batch.name:
            return found
        if isinstance(snapshot.value, Graph) and snapshot.changed and snapshot.stage not in free:
            found = snapshot.value
    return made.layers
