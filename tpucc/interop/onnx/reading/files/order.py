"""The nodes of a file, each behind those whose results it reads, as not every tool writes them; and names, each defined once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tpucc.diagnostics import ProgramError, listed
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import malformed, named

NAMED = 6
"""Nodes that a message names."""


def in_order(graph: OnnxGraph) -> OnnxGraph:
    """The graph with its nodes in order, and those of the graphs inside them; what is in order stays as it is. Raises `ProgramError` E1002
    for nodes in a circle."""
    nodes = [_with_ordered_graphs(node) for node in graph.nodes]
    given = {*graph.constants, *(value.name for value in graph.inputs)}
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.outputs:
            if name and name not in given:
                makers.setdefault(name, index)
    before = [[makers[name] for name in _read(node) if name in makers] for node in nodes]
    return replace(graph, nodes=tuple(nodes[index] for index in _sorted(before, nodes)))


def _with_ordered_graphs(node: OnnxNode) -> OnnxNode:
    inner = {name: in_order(value) for name, value in node.attributes.items() if isinstance(value, OnnxGraph)}
    return replace(node, attributes={**node.attributes, **inner}) if inner else node


def _read(node: OnnxNode) -> Iterator[str]:
    """The names that a node reads, or that a graph inside it reads from outside."""
    yield from node.inputs
    for inner in node.attributes.values():
        if isinstance(inner, OnnxGraph):
            own = {*inner.constants, *(value.name for value in inner.inputs), *(name for one in inner.nodes for name in one.outputs)}
            names = (name for one in inner.nodes for name in _read(one))
            yield from (name for name in (*names, *(value.name for value in inner.outputs)) if name not in own)


def _sorted(before: list[list[int]], nodes: list[OnnxNode]) -> Iterable[int]:
    """The numbers of all nodes, each behind those that must stand before it, and otherwise as they are."""
    done: dict[int, None] = {}
    for start in range(len(before)):
        path: dict[int, Iterator[int]] = {} if start in done else {start: iter(before[start])}
        while path:
            last = next(reversed(path))
            after = next((index for index in path[last] if index not in done), None)
            if after is None:
                done[last] = None
                del path[last]
            elif after in path:
                raise _circle([nodes[index] for index in list(path)[list(path).index(after) :]])
            else:
                path[after] = iter(before[after])
    return done


def _circle(nodes: list[OnnxNode]) -> ProgramError:
    """The error of nodes of which each reads a result of the next, and the last one of the first."""
    names = [node.title for node in nodes[:NAMED]] + [f"{len(nodes) - NAMED} more"] * (len(nodes) > NAMED)
    what = "reads its own result" if len(nodes) == 1 else "are in a circle: each reads what the next one computes"
    return malformed(f"{listed(names)} {what}", code="E1002")


def require_names(graph: OnnxGraph, outside: frozenset[str] = frozenset()) -> None:
    """Raises `ProgramError` E1002 for a name that is defined twice or never, in a graph that is in order or in those of its nodes."""
    inputs = [value.name for value in graph.inputs]
    defined = set(outside) | set(graph.constants)
    for name in inputs:
        _define(name, defined, "input")
    for node in graph.nodes:
        _require_defined(node.inputs, defined, f"{node.title} ({named(node.op)})")
        for name in filter(None, node.outputs):
            _define(name, defined, node.title)
        for inner in node.attributes.values():
            if isinstance(inner, OnnxGraph):
                require_names(inner, frozenset(defined))
    _require_defined([value.name for value in graph.outputs], defined, "the model's result")
    if not graph.outputs:
        raise malformed("the model has no outputs")
    results = set[str]()
    for value in graph.outputs:
        _define(value.name, results, "the list of results")


def _require_defined(names: Iterable[str], defined: set[str], who: str) -> None:
    for name in filter(None, names):
        if name not in defined:
            raise malformed(f"{who} reads {named(name)}, which nothing computes", code="E1002")


def _define(name: str, defined: set[str], who: str) -> None:
    if name in defined:
        raise malformed(f"{named(name)} is defined twice, the second time by {who}", code="E1002")
    defined.add(name)
