"""Running one pass: its result is verified, and an error in it names the pass."""

from __future__ import annotations

from tpucc.diagnostics import Diagnostic, Error, InternalError, LimitError
from tpucc.ir import Graph
from tpucc.ir.verify import changed_nodes, verify_graph
from tpucc.layers.kinds import LAYERS
from tpucc.layers.verify import verify_layers
from tpucc.ops.verify import verify_operators
from tpucc.passes.base import Context, Pass, UserPass


def run_pass(step: Pass, graph: Graph, context: Context) -> Graph:
    """Runs one pass on a graph that keeps the rules, and verifies what it changed.

    A fault in a pass of tpucc's is an `InternalError` that names it, want of memory a limit. A pass of the user's verifies its result
    itself, and raises `PluginError`.
    """
    graph = graph.without_firings()
    try:
        result = step.run(graph, context)
    except Error:
        raise
    except MemoryError:
        raise LimitError(Diagnostic("E0613", f"out of memory in the pass {step.name}; smaller tensors need less")) from None
    except Exception as error:
        raise InternalError(Diagnostic("E0901", f"the pass {step.name} failed: {type(error).__name__}: {error}")) from error
    if isinstance(step, UserPass):
        return result
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
