"""Parts of a source that no output needs: inputs, weights, operations, and `def`s that nothing calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from tpucc.diagnostics import Diagnostic, Label, Span
from tpucc.frontend import ast
from tpucc.ir.dataflow import needed_values
from tpucc.ir.graph import Graph

MOST = 20
"""Warnings that one source gets."""
WORDS = {
    "input": ("W0201", "the input {name} isn't used", "no output depends on it, so any array will do; remove it, or use it"),
    "weight": ("W0202", "the weight {name} isn't used", "no output depends on it; remove it, or use it"),
    "": ("W0203", "what this line computes isn't used", "no output depends on it, and it's left out; remove it, or return it"),
}


def unused(module: ast.Module, graph: Graph) -> tuple[Diagnostic, ...]:
    """A warning for each place of the source that could be left out, in the order of the source."""
    found = {diagnostic.labels[0].span: diagnostic for diagnostic in (*_nodes(graph), *_definitions(module))}
    return tuple(islice((found[span] for span in sorted(found)), MOST))


def _nodes(graph: Graph) -> Iterator[Diagnostic]:
    """Inputs and weights that no output depends on, and operations that nothing reads. A place in a `def` or a loop counts as used when it
    is at one of the times that it runs."""
    live = needed_values(graph)
    used = {span for node in graph if node.name in live for span in node.origin.spans}
    for node in graph:
        ends = not graph.users[node.name] or node.op in WORDS
        if node.name not in live and ends and node.origin.spans and used.isdisjoint(node.origin.spans):
            code, message, help = WORDS.get(node.op, WORDS[""])
            yield _warning(code, message.format(name=node.name), node.origin.spans[0], help)


def _definitions(module: ast.Module) -> Iterator[Diagnostic]:
    """The `def`s that no call names, outside of themselves."""
    for item in module.items:
        if isinstance(item, ast.Def):
            others = (other for other in module.items if other is not item)
            if not any(name == item.name.text for other in others for name in _called(other)):
                yield _warning("W0204", f"{item.name.text} is never called", item.name.span, "remove it, or call it")


def _called(value: object) -> Iterator[str]:
    """The names of the functions that a part of the syntax tree calls."""
    if isinstance(value, ast.Call) and isinstance(value.function, ast.Name):
        yield value.function.text
    if isinstance(value, tuple):
        for part in value:
            yield from _called(part)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _called(getattr(value, field))


def _warning(code: str, message: str, span: Span, help: str) -> Diagnostic:
    return Diagnostic(code, message, (Label(span),), (help,), "warning")
