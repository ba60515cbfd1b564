"""A compiled model as an ONNX file: its operators in float32, or its layers in the device's integers."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.interop.onnx.writing.activations import activations, biases
from tpucc.interop.onnx.writing.file import onnx_bytes
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.interop.onnx.writing.keys import kept_weights
from tpucc.interop.onnx.writing.model import OnnxModel
from tpucc.ir.graph import Graph
from tpucc.ir.types import Range
from tpucc.layers.kinds import is_layer
from tpucc.passes.compose_tables import compose_tables
from tpucc.passes.dead_code import live
from tpucc.passes.depthwise import depthwise
from tpucc.passes.divide_batch import divide_batch
from tpucc.passes.quantise import folded_constants

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
    weights = made.model.graph if made.model is not None else ()
    operators = _operators(made) if quantised else None
    if operators is None:
        model = onnx_model(graph, weights)
    else:
        kept = kept_weights(operators, weights, made.graph)
        functions = activations(graph, operators, kept.unchanged)
        model = onnx_model(graph, weights, functions, biases(graph, operators), kept)
    model = replace(model, inputs={name: type_.with_range(_range(made, name)) for name, type_ in model.inputs.items()})
    return model, onnx_bytes(model, made.source)


def _range(made: Compilation, name: str) -> Range | None:
    """The range that the source says of an input, and none that calibration found."""
    inputs = made.model.graph.by_name if made.model is not None else {}
    return inputs[name].type.range if name in inputs else None


def _layers(made: Compilation) -> Graph | None:
    """The layers before the batch was divided among cores, with a look-up for each function.

    The table of several functions doesn't say which they are, so they are written one after the other: that changes no bit. What a pass of
    the user's has made of such tables is written as it is.
    """
    free = {step.name for step in (compose_tables, depthwise)}.difference(made.rewritten)
    found = None
    for snapshot in made.snapshots:
        if snapshot.stage == divide_batch.name:
            return found
        if isinstance(snapshot.value, Graph) and snapshot.changed and snapshot.stage not in free:
            found = snapshot.value
    return made.layers


def _operators(made: Compilation) -> Graph | None:
    """The last graph before its values became integers, its constants computed; None where layers were given as a text."""
    graphs = (snapshot.value for snapshot in made.snapshots if isinstance(snapshot.value, Graph))
    *_, last = None, *takewhile(lambda graph: not any(map(is_layer, graph)), graphs)
    return None if last is None else folded_constants(live(last))
