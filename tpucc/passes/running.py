"""Running one pass: its result is verified, and an error in it names the pass."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

from tpucc.diagnostics import Diagnostic, Error, InternalError, Label, LimitError, Origin, ProgramError, Source, printable
from tpucc.ir import Graph, Node
from tpucc.ir.verify import changed_nodes, verify_graph
from tpucc.layers.kinds import LAYERS
from tpucc.layers.verify import verify_layers
from tpucc.ops.verify import verify_operators
from tpucc.passes.base import Brought, Context, Pass
from tpucc.plugins.failures import Unfit

if TYPE_CHECKING:
    from tpucc.ir.parser import GraphPlaces  # the reader of graphs: a model that is compiled from its source needs none


def run_pass(step: Pass, graph: Graph, context: Context) -> Graph:
    """Runs one pass on a graph that keeps the rules, and verifies what it changed.

    A fault in a pass of tpucc's is an `InternalError` that names it, one in a pass of the user's a `PluginError`; want of memory is a
    limit.
    """
    graph = graph.without_firings()
    if isinstance(step, Brought):
        result = step.run(graph, context)
        step.code.call(verify_rewritten, result, graph)
        return result
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


def verify_rewritten(graph: Graph, before: Graph) -> None:
    """Verifies a graph that a pass of the user's has made of another: what the rules can't read is an error too. Raises `Unfit`."""
    try:
        verify_stage(graph, before)
    except Error as error:
        raise Unfit("made a graph that is not valid:", code="E0525", found=error.diagnostics) from error
    except Exception as error:
        raise Unfit(f"made a graph that can't be read: {type(error).__name__}: {error}", code="E0525") from error
    if _interface(graph) != _interface(before):
        changed = f"made a model of {_interface(before)} into one of {_interface(graph)}"
        raise Unfit(changed, "inputs and outputs keep their names: who runs the model knows them by these", code="E0525")


def _interface(graph: Graph) -> str:
    """The inputs and outputs, by name."""
    names = sorted(node.name for node in graph.inputs), sorted(output.name for output in graph.outputs)
    return " -> ".join(f"({printable(', '.join(group))})" for group in names)
