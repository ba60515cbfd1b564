"""The layers that the host shall compute in float32: which nodes of a graph a name or a line means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed, nearest_few, some
from tpucc.ir.dataflow import Computed
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Boundary
from tpucc.passes.device_work import computes
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import is_product

Layers = Mapping[tuple[str, ...], str]
"""Of each layer, which is its nodes from front to back, the node that it was asked for by."""
SHOWN = 12
"""Layers or lines that a message names where none has the name that was asked for."""
FEW = 2
"""Of more layers than these, the lines are named where they are no more."""
NEAREST = 4
"""Of more of them than these, so many that are nearest."""


def kept_layers(graph: Graph, wanted: Sequence[str]) -> Layers:
    """The layers that `wanted` names, by a name of theirs, that of a node among theirs, or the number of a line that they come from.

    Each is the nodes that become one layer, from front to back: a product or another operator, the constant added to it, its activation.
    With each comes the node that was named first, or the last one where a line was.
    Raises `UsageError` E0534 for a name of none.
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
    """What `--keep` takes for the layers of a layer graph, whose names may be those of parts. The pass `place` reads `graph`."""

    def __init__(self, graph: Graph) -> None:
        self._computed = Computed(graph)
        self._computing = [node for node in self._computed.nodes if computes(node)]
        self._named: dict[str, set[str]] = {}
        for node in self._computing:
            for name in _names(node):
                self._named.setdefault(name, set()).add(node.name)

    def names(self, layer: Node, of: Sequence[str], readers: Sequence[Node]) -> tuple[str, ...]:
        """A node of the layer graph: its own name if that keeps it, else the operator's that it is a part of, or those of the layers that
        make values which it moves, or that read what it makes integers of; else its line. Nothing where none of these keeps it. `of` are
        the names that its operator may have, and `readers` what reads the node in the layer graph."""
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
        """The name of a node's layer as `_called`, where no other layer has it: else the node's own."""
        called = self._called(node)
        return called if len(self._named[called]) == 1 else node.name

    def _called(self, node: Node) -> str:
        """The name of the layer with a node: that of its product, if it has one."""
        layer = [self._computed.graph[name] for name in _layer(self._computed, node)]
        return next(_names(next(filter(is_product, layer), node)))

    def _short(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names; of many that are of few lines, the lines."""
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
    """What reads the node, if nothing else does, and it is a function of one value: of its other operands none depends on an input."""
    readers = computed.graph.users[node.name]
    if len(readers) != 1 or node.name in computed.graph.output_nodes:
        return None
    others = [name for name in readers[0].operands if name != node.name]
    alone = facts_of(readers[0].op).elementwise and computed.constants.issuperset(others)
    return readers[0] if alone else None


def _read_in_layer(computed: Computed, node: Node) -> Node | None:
    """What the node reads, if it is in a layer with it."""
    read = [operand for operand in computed.graph.operands(node) if computes(operand) and operand.name not in computed.constants]
    return next((operand for operand in read if _reader_in_layer(computed, operand) is node), None)


def _instead(name: str, computed: Computed, computing: Sequence[Node]) -> Iterator[str]:
    """What can be kept, for a name or a line of none."""
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
    """What stands before a number at the end of a name: `lstm` of `lstm.2`; nothing where there is none."""
    whole, _, number = name.rpartition(".")
    return whole if number.isdecimal() else ""


def _nearest_names(name: str, known: Sequence[str]) -> str:
    """All names, or of many those that are most like one; of those that only a number keeps apart, as in an unrolled loop, the first."""
    if len(known) <= SHOWN:
        return f"there {'is' if len(known) == 1 else 'are'} {listed(known)}"
    first = {_whole(other) or other: other for other in reversed(known)}
    return f"there are {len(known):,} names; the nearest are {listed(nearest_few(name, first.values(), NEAREST))}"


def _nearest_lines(line: int, computing: Sequence[Node]) -> str:
    """The lines of which there are layers, or of many those around one; with those in a `def`."""
    known = sorted({number for node in computing for number in node.origin.lines}, key=lambda number: (abs(number - line), number))
    shown = [*map(str, sorted(known[: SHOWN if len(known) <= SHOWN else NEAREST]))]
    if not shown:
        return "no layer has a line; layers have names"
    others = "the nearest lines with layers are" if len(known) > SHOWN else f"layers come from {'line' if len(shown) == 1 else 'lines'}"
    return f"{others} {listed(shown)}; a line in a def keeps what it makes in each call"


def _of_moved(name: str, computed: Computed) -> Iterator[str]:
    """What to keep in the place of values that are only moved: the layers that they come from."""
    yield f"{name} computes nothing: it has values in other places"
    if sources := _sources(name, computed):
        yield f"the layers that make them can be kept: {some(sources, SHOWN)}"


def _of_given(node: Node, computed: Computed) -> Iterator[str]:
    """What to keep in the place of an input or a weight: the layers that read it."""
    yield f"{node.name} is {'an input' if node.is_input else 'a weight or another constant'}, and no layer"
    if readers := [next(_names(reader)) for reader in _readers(node, computed)]:
        yield f"the layers that read it can be kept: {some(readers, SHOWN)}"


def _names(node: Node) -> Iterator[str]:
    """The names that a layer goes by, the one that is shown first."""
    yield layer_name(node) if is_product(node) else node.name
    if is_product(node):
        yield node.name
