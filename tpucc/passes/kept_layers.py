"""The layers that the host shall compute in float32: which nodes of a graph a name or a line means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, some
from tpucc.ir.dataflow import Relations
from tpucc.ir.graph import Graph, Node
from tpucc.ops import OPS, facts_of
from tpucc.ops.opdef import Boundary, Given, Rearrangement, View
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import is_product

MOVING = (View, Rearrangement)
"""Operators that compute nothing: at the edges of the device's work they are the host's, to whom they cost nothing."""
Layers = Mapping[tuple[str, ...], str]
"""Of each layer, which is its nodes from front to back, the node that it was asked for by."""
SHOWN = 12
"""Layers that a message names where none has the name that was asked for."""


def computes(node: Node) -> bool:
    """Whether a node computes something, and isn't given, a boundary of integers, or values in other places."""
    return not isinstance(OPS[node.op].legalisation, (Given, Boundary, *MOVING))


def kept_layers(graph: Graph, wanted: Sequence[str]) -> Layers:
    """The layers that `wanted` names, by a name of theirs, that of a node among theirs, or the number of a line that they come from.

    Each is the nodes that become one layer, from front to back: a product or another operator, the constant added to it, its activation.
    With each comes the node that was named first, or the last one where a line was.
    Raises `UsageError` E0534 for a name of none.
    """
    relations = Relations(graph)
    computed = [node for node in relations.computed if computes(node)]
    found: dict[tuple[str, ...], str] = {}
    for name in wanted:
        named = [node for node in computed if name in _names(node) or (name.isdecimal() and int(name) in node.origin.lines)]
        if not named:
            what = f"line {name} has no layer" if name.isdecimal() else f"no layer is named {name}"
            raise UsageError(Diagnostic("E0534", what, help=tuple(_instead(name, relations, computed))))
        for node in named:
            layer = _layer(relations, node)
            found.setdefault(layer, layer[-1] if name.isdecimal() else node.name)
    return found


def _layer(relations: Relations, node: Node) -> tuple[str, ...]:
    """The nodes that become one layer with a node."""
    layer = [node]
    while (reader := _reader_in_layer(relations, layer[-1])) is not None:
        layer.append(reader)
    while (read := _read_in_layer(relations, layer[0])) is not None:
        layer.insert(0, read)
    return tuple(member.name for member in layer)


def _reader_in_layer(relations: Relations, node: Node) -> Node | None:
    """What reads the node, if nothing else does, and it is a function of one value: of its other operands none depends on an input."""
    readers = relations.graph.users[node.name]
    if len(readers) != 1 or node.name in relations.graph.output_nodes:
        return None
    others = [name for name in readers[0].operands if name != node.name]
    alone = facts_of(readers[0].op).elementwise and relations.constants.issuperset(others)
    return readers[0] if alone else None


def _read_in_layer(relations: Relations, node: Node) -> Node | None:
    """What the node reads, if it is in a layer with it."""
    read = [operand for operand in relations.graph.operands(node) if computes(operand) and operand.name not in relations.constants]
    return next((operand for operand in read if _reader_in_layer(relations, operand) is node), None)


def _instead(name: str, relations: Relations, computed: Sequence[Node]) -> Iterator[str]:
    """What can be kept, for a name or a line of none."""
    if name.rpartition(".")[2] in ("i8", "i16"):
        yield f"{name} is where {name.rpartition('.')[0]} becomes integers; keep the layers that read it"
        return
    lines = {next(_names(node)): node.origin.line for node in computed}
    if name in relations.graph.by_name:
        yield from _of_moved(name, relations)
        return
    whole = name.rpartition(".")[0] if name.rpartition(".")[2].isdecimal() else ""
    near = f"did you mean {whole}?" if whole in lines else did_you_mean(name, list(lines))
    yield near or f"there {'is' if len(lines) == 1 else 'are'} {some(list(lines), SHOWN)}"
    line = next((line for known, line in lines.items() if near.endswith(f" {known}?") and line), next(filter(None, lines.values()), 0))
    yield "the names are those of the graph that the pass place reads; later passes divide layers, and tpucc profile names these parts"
    if line:
        yield f"--keep {line}=host keeps all layers of line {line}"


def _of_moved(name: str, relations: Relations) -> Iterator[str]:
    """What to keep in the place of values that are only moved: the layers that they come from."""
    sources: list[str] = []
    ahead, seen = [name], {name}
    while ahead:
        node = relations.graph[ahead.pop(0)]
        if computes(node):
            sources.append(next(_names(node)))
            continue
        more = [operand for operand in node.operands if operand not in seen]
        ahead += more
        seen.update(more)
    yield f"{name} computes nothing: it has values in other places"
    if sources:
        yield f"the layers that make them can be kept: {some(sources, SHOWN)}"


def _names(node: Node) -> Iterator[str]:
    """The names that a layer goes by, the one that is shown first."""
    yield layer_name(node) if is_product(node) else node.name
    if is_product(node):
        yield node.name
