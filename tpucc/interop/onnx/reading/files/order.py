"""The nodes of a file, each behind those whose results it reads, as not every tool writes them; and names, each defined once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from tpucc.diagnostics import listed
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import malformed, named

NAMED = 6
"""Nodes that a message names."""


def in_order(graph: OnnxGraph) -> OnnxGraph:
    """The graph with its nodes in order, and those of the graphs inside them; what is in order stays as it is. Raises `ProgramError` E1002
    for nodes in a circle."""
    nodes = [node.with_graphs(in_order) for node in graph.nodes]
    given = {*graph.constants, *(value.name for value in graph.inputs)}
    makers = {name: index for index, node in reversed([*enumerate(nodes)]) for name in node.outputs if name and name not in given}
    before = {index: [makers[name] for name in _read(node) if name in makers] for index, node in enumerate(nodes)}
    if all(maker < index for index, found in before.items() for maker in found):
        return replace(graph, nodes=tuple(nodes))
    try:
        return replace(graph, nodes=tuple(nodes[index] for index in TopologicalSorter(before).static_order()))
    except CycleError as error:
        circle = [nodes[index] for index in error.args[1][:0:-1]]
        names = [node.title for node in circle[:NAMED]] + [f"{len(circle) - NAMED} more"] * (len(circle) > NAMED)
        what = "reads its own result" if len(circle) == 1 else "are in a circle: each reads what the next one computes"
        raise malformed(f"{listed(names)} {what}", code="E1002") from None


def _read(node: OnnxNode) -> Iterator[str]:
    """The names that a node reads, or that a graph inside it reads from outside."""
    yield from node.inputs
    for inner in node.graphs:
        own = {*inner.constants, *(value.name for value in inner.inputs), *(name for one in inner.nodes for name in one.outputs)}
        names = (name for one in inner.nodes for name in _read(one))
        yield from (name for name in (*names, *(value.name for value in inner.outputs)) if name not in own)


def require_names(graph: OnnxGraph, outside: frozenset[str] = frozenset()) -> None:
    """Raises `ProgramError` E1002 for a name that is defined twice or never, in a graph that is in order or in those of its nodes."""
    defined = set(outside) | set(graph.constants)
    _define([value.name for value in graph.inputs], defined, "input")
    for node in graph.nodes:
        _require_defined(node.inputs, defined, f"{node.title} ({named(node.op)})")
        _define(filter(None, node.outputs), defined, node.title)
        for inner in node.graphs:
            require_names(inner, frozenset(defined))
    _require_defined([value.name for value in graph.outputs], defined, "the model's result")
    if not graph.outputs:
        raise malformed("the model has no outputs")
    _define([value.name for value in graph.outputs], set(), "the list of results")


def _require_defined(names: Iterable[str], defined: set[str], who: str) -> None:
    if (unknown := next((name for name in names if name and name not in defined), None)) is not None:
        raise malformed(f"{who} reads {named(unknown)}, which nothing computes", code="E1002")


def _define(names: Iterable[str], defined: set[str], who: str) -> None:
    for name in names:
        if name in defined:
            raise malformed(f"{named(name)} is defined twice, the second time by {who}", code="E1002")
        defined.add(name)
