"""The layers that the user keeps in float32 on the host: the nodes of a graph that a name or a line stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed, nearest_few, some
from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import Computed
from tpucc.ops import facts_of
from tpucc.passes.device_work import computes
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import is_product

Layers = Mapping[tuple[str, ...], str]
"""For each layer, as its nodes from front to back, the node by which the user named it."""
SHOWN = 12
"""The most layers or lines that a message names where none has the name that the user gave."""
NEAREST = 4
"""The nearest names or lines that a message gives where there are more than `SHOWN`."""


def kept_layers(graph: Graph, wanted: Sequence[str]) -> Layers:
    """The layers that `wanted` names: by the layer's name, the name of one of its nodes, or the number of a line of the source.

    A layer is the nodes that become one layer, from front to back: a product or another operator, the constant added to it, its activation.
    With each layer comes the node that was named first, or the layer's last node if a line was given.
    Raises `UsageError` E0534 for a name that no layer has.
    """
    computed = Computed(graph)
    computing = [node for node in computed.nodes if computes(node)]
    found: dict[tuple[str, ...], str] = {}
    for name in wanted:
        named = [node for node in computing if name in names_of(node) or (name.isdecimal() and int(name) in node.origin.lines)]
        if not named:
            what = f"line {name} has no layer" if name.isdecimal() else f"no layer is named {name}"
            raise UsageError(Diagnostic("E0534", what, help=tuple(_instead(name, computed, computing))))
        for node in named:
            layer = layer_of(computed, node)
            found.setdefault(layer, layer[-1] if name.isdecimal() else node.name)
    return found


def readers_of(node: Node, computed: Computed) -> list[Node]:
    """The layers that read a value, maybe in other places."""
    users = computed.graph.users
    return _nearest(users[node.name], lambda moved: users[moved.name])


def sources_of(name: str, computed: Computed) -> list[str]:
    """The layers that make what a node has in other places."""
    return [next(names_of(node)) for node in _nearest([computed.graph[name]], computed.graph.operands)]


def _nearest(nodes: Iterable[Node], beside: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """The nodes that compute, among `nodes` or beyond others that only move values, the nearest first."""
    found: list[Node] = []
    ahead, seen = [*nodes], set[str]()
    while ahead:
        node = ahead.pop(0)
        if node.name in seen:
            continue
        seen.add(node.name)
        if computes(node):
            found.append(node)
        else:
            ahead += beside(node)
    return found


def layer_of(computed: Computed, node: Node) -> tuple[str, ...]:
    """The nodes that become one layer with a node."""
    layer = [node]
    while (reader := _reader_in_layer(computed, layer[-1])) is not None:
        layer.append(reader)
    while (read := _read_in_layer(computed, layer[0])) is not None:
        layer.insert(0, read)
    return tuple(member.name for member in layer)


def _reader_in_layer(computed: Computed, node: Node) -> Node | None:
    """The only reader of the node, if it is a function of one value, whose other operands depend on no input; else None."""
    readers = computed.graph.users[node.name]
    if len(readers) != 1 or node.name in computed.graph.output_nodes:
        return None
    others = [name for name in readers[0].operands if name != node.name]
    alone = facts_of(readers[0].op).elementwise and computed.constants.issuperset(others)
    return readers[0] if alone else None


def _read_in_layer(computed: Computed, node: Node) -> Node | None:
    """The operand that is in a layer with the node; None if none is."""
    read = [operand for operand in computed.graph.operands(node) if computes(operand) and operand.name not in computed.constants]
    return next((operand for operand in read if _reader_in_layer(computed, operand) is node), None)


def _instead(name: str, computed: Computed, computing: Sequence[Node]) -> Iterator[str]:
    """Sentences on what can be kept, for a name or a line that no layer has."""
    if name.rpartition(".")[2] in ("i8", "i16"):
        yield f"{name} is where {name.rpartition('.')[0]} becomes integers; keep the layers that read it"
        return
    lines = {next(names_of(node)): node.origin.line for node in computing}
    if name in computed.graph.by_name:
        node = computed.graph[name]
        yield from _of_moved(name, computed) if node.operands else _of_given(node, computed)
        return
    if name.isdecimal():
        yield _nearest_lines(int(name), computing)
        return
    near = f"did you mean {whole}?" if (whole := _whole(name)) in lines else did_you_mean(name, list(lines))
    yield near or _nearest_names(name, list(lines))
    line = next((line for known, line in lines.items() if near.endswith(f" {known}?") and line), next(filter(None, lines.values()), 0))
    yield "later passes divide layers, and tpucc profile names these parts: with --error it says what --keep takes for each"
    yield "tpucc compile MODEL --stop-after place --print-after place prints all names, those of layers and of their operators"
    if line:
        yield f"--keep {line}=host keeps all layers of line {line}"


def _whole(name: str) -> str:
    """The name without a number at its end: `lstm` of `lstm.2`; empty if there is no number."""
    whole, _, number = name.rpartition(".")
    return whole if number.isdecimal() else ""


def _nearest_names(name: str, known: Sequence[str]) -> str:
    """All names, or of many the names most like `name`; of names that differ only in a number, as in an unrolled loop, the first."""
    if len(known) <= SHOWN:
        return f"there {'is' if len(known) == 1 else 'are'} {listed(known)}"
    first = {_whole(other) or other: other for other in reversed(known)}
    return f"there are {len(known):,} names; the nearest are {listed(nearest_few(name, first.values(), NEAREST))}"


def _nearest_lines(line: int, computing: Sequence[Node]) -> str:
    """The lines with layers, or of many the lines around `line`; lines in a `def` count."""
    known = sorted({number for node in computing for number in node.origin.lines}, key=lambda number: (abs(number - line), number))
    shown = [*map(str, sorted(known[: SHOWN if len(known) <= SHOWN else NEAREST]))]
    if not shown:
        return "no layer has a line; layers have names"
    others = "the nearest lines with layers are" if len(known) > SHOWN else f"layers come from {'line' if len(shown) == 1 else 'lines'}"
    return f"{others} {listed(shown)}; a line in a def keeps what it makes in each call"


def _of_moved(name: str, computed: Computed) -> Iterator[str]:
    """Sentences on what to keep instead of values that are only moved: the layers that make them."""
    yield f"{name} computes nothing: it has values in other places"
    if sources := sources_of(name, computed):
        yield f"the layers that make them can be kept: {some(sources, SHOWN)}"


def _of_given(node: Node, computed: Computed) -> Iterator[str]:
    """Sentences on what to keep instead of an input or a weight: the layers that read it."""
    yield f"{node.name} is {'an input' if node.is_input else 'a weight or another constant'}, and no layer"
    if readers := [next(names_of(reader)) for reader in readers_of(node, computed)]:
        yield f"the layers that read it can be kept: {some(readers, SHOWN)}"


def names_of(node: Node) -> Iterator[str]:
    """The names of a node's layer, the name to show first."""
    yield layer_name(node)
    if is_product(node):
        yield node.name
