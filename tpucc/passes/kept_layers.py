"""The layers that the user keeps in float32 on the host: the nodes of a graph that a name or a line stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed, nearest_few, some
from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import Computed
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Boundary
from tpucc.passes.device_work import computes
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import is_product

Layers = Mapping[tuple[str, ...], str]
"""For each layer, as its nodes from front to back, the node by which the user named it."""
SHOWN = 12
"""The most layers or lines that a message names where none has the name that the user gave."""
FEW = 2
"""Of more layers than these, a message gives the lines, if the lines are no more than these."""
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
        named = [node for node in computing if name in _names(node) or (name.isdecimal() and int(name) in node.origin.lines)]
        if not named:
            what = f"line {name} has no layer" if name.isdecimal() else f"no layer is named {name}"
            raise UsageError(Diagnostic("E0534", what, help=tuple(_instead(name, computed, computing))))
        for node in named:
            layer = _layer(computed, node)
            found.setdefault(layer, layer[-1] if name.isdecimal() else node.name)
    return found


class Keepable:
    """The names that `--keep` takes for the nodes of a layer graph, which may be parts of a layer. The pass `place` reads `graph`."""

    def __init__(self, graph: Graph) -> None:
        self._computed = Computed(graph)
        self._computing = [node for node in self._computed.nodes if computes(node)]
        self._named: dict[str, set[str]] = {}
        for node in self._computing:
            for name in _names(node):
                self._named.setdefault(name, set()).add(node.name)

    def names(self, layer: Node, of: Sequence[str], readers: Sequence[Node]) -> tuple[str, ...]:
        """The names that keep a node of the layer graph: its own name; else the name of the operator that it is a part of; else the names
        of the layers whose values it moves, or that read the integers that it makes; else its line. Empty if none of these keeps it. `of`
        are the names that its operator may have, and `readers` the nodes that read it in the layer graph."""
        graph = self._computed.graph
        known = [graph[name] for name in of if name in graph.by_name]
        if isinstance(legalisation_of(layer.op), Boundary):
            read = [reader for node in known[:1] for reader in _readers(node, self._computed)]
            read = read or [graph[reader.of] for reader in readers if reader.of in self._named]
            return self._short([*dict.fromkeys(map(self._called, read))]) or self._line(layer)
        meant = [node for node in known if node.name in self._named]
        own = self._named.get(layer.name, set())
        if own and (not meant or not own.isdisjoint(_layer(self._computed, meant[0]))):
            return (layer.name,)
        made = [name for node in known[:1] for name in _sources(node.name, self._computed)]
        return (self._product(meant[0]),) if meant else self._short(made) or self._line(layer)

    def _product(self, node: Node) -> str:
        """The name of a node's layer as `_called`, if no other layer has that name; else the node's own."""
        called = self._called(node)
        return called if len(self._named[called]) == 1 else node.name

    def _called(self, node: Node) -> str:
        """The name of the layer with a node: its product's name, if it has a product."""
        layer = [self._computed.graph[name] for name in _layer(self._computed, node)]
        return next(_names(next(filter(is_product, layer), node)))

    def _short(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names, or the lines if there are many names from few lines."""
        if len(names) <= FEW:
            return tuple(names)
        lines = sorted({node.origin.line for node in self._computing if not {*names}.isdisjoint(_names(node))})
        return tuple(map(str, lines)) if len(lines) <= FEW and 0 not in lines else tuple(names)

    def _line(self, layer: Node) -> tuple[str, ...]:
        line = layer.origin.line
        return (str(line),) if line and any(line in node.origin.lines for node in self._computing) else ()


def _readers(node: Node, computed: Computed) -> list[Node]:
    """The layers that read a value, maybe in other places."""
    users = computed.graph.users
    return _nearest(users[node.name], lambda moved: users[moved.name])


def _sources(name: str, computed: Computed) -> list[str]:
    """The layers that make what a node has in other places."""
    return [next(_names(node)) for node in _nearest([computed.graph[name]], computed.graph.operands)]


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


def _layer(computed: Computed, node: Node) -> tuple[str, ...]:
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
    lines = {next(_names(node)): node.origin.line for node in computing}
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
    if sources := _sources(name, computed):
        yield f"the layers that make them can be kept: {some(sources, SHOWN)}"


def _of_given(node: Node, computed: Computed) -> Iterator[str]:
    """Sentences on what to keep instead of an input or a weight: the layers that read it."""
    yield f"{node.name} is {'an input' if node.is_input else 'a weight or another constant'}, and no layer"
    if readers := [next(_names(reader)) for reader in _readers(node, computed)]:
        yield f"the layers that read it can be kept: {some(readers, SHOWN)}"


def _names(node: Node) -> Iterator[str]:
    """The names of a node's layer, the name to show first."""
    yield layer_name(node)
    if is_product(node):
        yield node.name
