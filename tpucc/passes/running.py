"""Running one pass: what it returns is verified, and a fault in it is named."""

from __future__ import annotations

from dataclasses import fields

from tpucc.diagnostics import Diagnostic, Error, InternalError, LimitError
from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph
from tpucc.ir.verify import changed_nodes, verify_graph
from tpucc.layers.kinds import LAYERS
from tpucc.layers.verify import verify_layers
from tpucc.ops.verify import verify_operators
from tpucc.passes.base import Context, Pass
from tpucc.passes.pipeline import PASSES
from tpucc.plugins.guard import SECONDS, Guest, guest, short

BUILT_IN = frozenset(map(type, PASSES))


def is_brought(step: Pass) -> bool:
    """Whether a pass is the user's, and not one of tpucc's."""
    return type(step) not in BUILT_IN


def run_pass(step: Pass, graph: Graph, context: Context, seconds: float = SECONDS) -> Graph:
    """Runs one pass on a graph that keeps the rules, and verifies what it changed.

    A fault in a pass of tpucc's is an `InternalError` that names it, one in a pass of the user's a `PluginError`; want of memory is a
    limit. A pass of the user's has so many seconds.
    """
    if is_brought(step):
        return _run_brought(step, graph, context, seconds)
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
    """Checks an operator graph or a layer graph by the rules of both; what `before`, which keeps them, has too isn't checked again."""
    if graph is before:
        return
    changed = None if before is None else changed_nodes(graph, before)
    verify_graph(graph, changed)
    verify_operators(graph, LAYERS, changed)
    verify_layers(graph, changed)


def _run_brought(step: Pass, graph: Graph, context: Context, seconds: float) -> Graph:
    """A pass of the user's, whose code is named for all that goes wrong. What it gets can be read, not written."""
    code = guest(f"the pass {step.name}", step.run, seconds)
    before = _parts(graph)
    result = code.call(step.run, graph, context)
    if not all(one is other for one, other in zip(before, _parts(graph), strict=False)):
        help = "a graph is never changed; graph.with_nodes(…) and dataclasses.replace(node, …) make new ones"
        raise code.error("E0524", "changed the graph that it was given", help)
    if not isinstance(result, Graph):
        raise code.error("E0523", f"returned {short(result)}, expected a Graph")
    _verify_brought(result, graph, code)
    return result


def _parts(graph: Graph) -> list[object]:
    """All that a graph consists of, down to the fields of its nodes' types and attributes, and the arrays of its constants."""
    values: list[object] = [getattr(graph, field.name) for field in fields(graph)]
    for node in graph.nodes:
        for part in (node, node.type, node.attributes):
            values += (getattr(part, field.name) for field in fields(part))
        if isinstance(constant := getattr(node.attributes, "value", None), Constant):
            values.append(constant.data)
    return values


def _verify_brought(graph: Graph, before: Graph, code: Guest) -> None:
    """A graph may hold anything, as Python has it: what the rules can't even read breaks them too."""
    try:
        verify_stage(graph, before)
    except Error as error:
        raise code.error("E0525", "made a graph that is not valid:", more=tuple(error.diagnostics)) from error
    except Exception as error:
        raise code.error("E0525", f"made a graph that can't be read: {type(error).__name__}: {error}") from error
