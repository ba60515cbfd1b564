"""Running one pass: its result is verified, and an error in it names the pass."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from itertools import repeat
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, Error, InternalError, Label, LimitError, Origin, PluginError, ProgramError, Source, printable
from tpucc.ir import Constant, Graph, Node
from tpucc.ir.verify import changed_nodes, verify_graph
from tpucc.layers.kinds import LAYERS
from tpucc.layers.verify import verify_layers
from tpucc.ops.verify import verify_operators
from tpucc.passes.base import Brought, Context, Pass
from tpucc.plugins.guard import Guest, short

if TYPE_CHECKING:
    from tpucc.ir.parser import GraphPlaces  # the reader of graphs: a model that is compiled from its source needs none

PLAIN = (str, int, float, bool, NoneType, Constant)
"""The types in a graph's fields, beside tuples and tpucc's own dataclasses."""


def run_pass(step: Pass, graph: Graph, context: Context) -> Graph:
    """Runs one pass on a graph that keeps the rules, and verifies what it changed.

    A fault in a pass of tpucc's is an `InternalError` that names it, one in a pass of the user's a `PluginError`; want of memory is a
    limit.
    """
    graph = graph.without_firings()
    if isinstance(step, Brought):
        return step.code.call(lambda: _run_brought(step, graph, context))
    try:
        result = step.run(graph, context)
    except Error:
        raise
    except MemoryError:
        raise LimitError(Diagnostic("E0613", f"out of memory in the pass {step.name}; smaller tensors need less")) from None
    except Exception as error:
        raise InternalError(Diagnostic("E0901", f"the pass {step.name} failed: {type(error).__name__}: {error}")) from error
    if not isinstance(result, Graph):
        raise InternalError(Diagnostic("E0902", f"the pass {step.name} returned {type(result).__name__}, expected a Graph"))
    try:
        verify_stage(result, graph)
    except Error as error:
        head = Diagnostic("E0903", f"the pass {step.name} made a graph that is not valid:")
        raise InternalError((head, *error.diagnostics), error.source) from error
    return result


def verify_stage(graph: Graph, before: Graph | None = None) -> None:
    """Checks an operator graph or a layer graph by the rules of both; nodes that are in `before`, a graph that keeps the rules, aren't
    checked again."""
    if graph is before:
        return
    changed = None if before is None else changed_nodes(graph, before)
    verify_graph(graph, changed)
    verify_operators(graph, LAYERS, changed)
    verify_layers(graph, changed)


def verify_text(graph: Graph, places: GraphPlaces, model: Source | None = None) -> None:
    """Checks a graph that was read from a text, as `verify_stage` does: a message shows the line of the text, then that of the model."""
    names = {span: name for name, span in places.nodes.items()}
    try:
        verify_stage(graph.with_nodes(replace(node, origin=Origin((places.nodes[node.name],))) for node in graph))
    except ProgramError as error:
        nodes = [graph[names[found.span]] if found.span is not None else None for found in error.diagnostics]
        raise ProgramError(map(_with_model, error.diagnostics, nodes, repeat(model)), places.source) from None


def _with_model(found: Diagnostic, node: Node | None, model: Source | None) -> Diagnostic:
    """A message about a node of a text, with the line of the model that the node comes from."""
    spans = node.origin.call if node is not None and model is not None else ()
    return replace(found, labels=(*found.labels, *(Label(span, "compiled from here", model) for span in spans)))


def _run_brought(step: Brought, graph: Graph, context: Context) -> Graph:
    """Runs a pass of the user's. Every error names its code. It can read its arguments, but not write them."""
    code, before = step.code, _parts(graph)
    contents = _contents(graph)
    result = step.run(graph, replace(context))
    if not _same(graph, before) or _contents(graph) != contents:
        help = "a graph is never changed; graph.with_nodes(…) and dataclasses.replace(node, …) make new ones"
        raise code.error("E0524", "changed the graph that it was given", help)
    if type(result) is not Graph:
        help = "run(self, graph, context) ends in return graph.with_nodes(…), or in return graph where there is nothing to do"
        raise code.error("E0523", f"returned {short(result)}, expected a Graph", help)
    _verify_brought(result, graph, code)
    return result


def _same(graph: Graph, before: list[object]) -> bool:
    try:
        return all(one is other for one, other in zip(before, _parts(graph), strict=True))
    except (TypeError, ValueError, AttributeError):
        return False


def _parts(graph: Graph) -> list[object]:
    """All that a graph consists of, down to the fields of its nodes' types and attributes, and the arrays of its constants."""
    values: list[object] = [getattr(graph, field.name) for field in fields(graph)]
    for node in graph.nodes:
        for part in (node, node.type, node.attributes):
            values += (getattr(part, field.name) for field in fields(part))
        if isinstance(constant := getattr(node.attributes, "value", None), Constant):
            values.append(constant.data)
    return values


def _contents(graph: Graph) -> list[tuple[object, ...]]:
    """Shape, strides, type and a checksum of each constant: an array that is read only can be made writable by its user."""
    constants = (getattr(node.attributes, "value", None) for node in graph.nodes)
    return [_content(constant.data) for constant in constants if isinstance(constant, Constant)]


def _content(array: npt.NDArray[Any]) -> tuple[object, ...]:
    return array.shape, array.strides, array.dtype.str, zlib.crc32(np.ascontiguousarray(array).data)


def _verify_brought(graph: Graph, before: Graph, code: Guest) -> None:
    """Verifies a graph of the user's, which may contain any Python object: an object that the rules can't read is an error too."""
    try:
        old = set(map(id, before.nodes))
        new = [node for node in graph.nodes if id(node) not in old]
        if (foreign := _foreign((graph.name, graph.source, graph.notes, graph.outputs, graph.firings, new))) is not None:
            raise code.error("E0525", f"made a graph that can't be read: it holds {foreign}")
        if wrong := [note for note in graph.notes if type(note) is not str]:
            raise code.error("E0525", f"made a graph with {short(wrong[0])} among its notes, which are sentences")
        verify_stage(graph, before)
        if _interface(graph) != _interface(before):
            changed = f"made a model of {_interface(before)} into one of {_interface(graph)}"
            raise code.error("E0525", changed, "inputs and outputs keep their names: who runs the model knows them by these")
    except PluginError:
        raise
    except Error as error:
        raise code.error("E0525", "made a graph that is not valid:", more=tuple(error.diagnostics)) from error
    except Exception as error:
        raise code.error("E0525", f"made a graph that can't be read: {type(error).__name__}: {error}") from error


def _interface(graph: Graph) -> str:
    """The inputs and outputs, by name."""
    names = sorted(node.name for node in graph.inputs), sorted(output.name for output in graph.outputs)
    return " -> ".join(f"({printable(', '.join(group))})" for group in names)


def _foreign(value: object) -> str | None:
    """The first part of a value that no graph holds, in words: an object of a class that isn't tpucc's may do anything when it is read."""
    if type(value) in PLAIN or (isinstance(value, StrEnum) and type(value).__module__.startswith("tpucc.")):
        return None
    if type(value) in (tuple, list):
        parts: Iterable[object] = cast("tuple[object, ...]", value)
    elif is_dataclass(value) and type(value).__module__.startswith("tpucc."):
        parts = (getattr(value, field.name) for field in fields(value))
    else:
        return f"{short(value)}, of type {type(value).__name__}"
    return next((found for part in parts if (found := _foreign(part)) is not None), None)
