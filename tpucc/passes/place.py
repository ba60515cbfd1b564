"""Which operators run on the device and which on the host.

Products with weights always go on the device, those among them whose weights the host writes while the model runs. Operators that the
device lacks, and other products of two computed values, go on the host:
before the device starts, after it has finished, or in the middle, where the device stops and waits. At the edges, an operator of the host
pulls all before it, or all after it, to the host. In the middle, what the device can compute goes there, unless nothing but operators of
the host stands around it.

What the host divides, or divides by, or takes a root or a logarithm of, is its own as far back as it can be, and so are a product with a
reciprocal and a function of a quotient (`singular.py`). Where the device reads a divisor as well, both compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from tpucc.diagnostics import Diagnostic, ProgramError, listed, some
from tpucc.ir.dataflow import Relations, constant_values
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node, Side
from tpucc.ops import OPS, facts_of
from tpucc.ops.matmul import OP as matmul
from tpucc.ops.opdef import Boundary, Given, Matrix, OnHost, Rearrangement, View
from tpucc.passes.base import Context, Pass
from tpucc.passes.host_copies import with_clamps, with_copies
from tpucc.passes.kept_layers import MOVING, SHOWN, Layers, computes, kept_layers
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import has_weights, is_product, obstacle
from tpucc.passes.scaled_inputs import scaled_inputs
from tpucc.passes.singular import STAYS, adds_bias, copied_for_host, guards_of_layers, kept_in_float32

WEIGHTS = "TPU v1 reads weights only from weight memory"
KEPT = "kept in float32"
IDLE = "also without --keep"
NAMED = 3
"""Products that a note names; the others are counted. Of layers that were asked for there are as many as messages name (`SHOWN`)."""


@dataclass(frozen=True)
class Place(Pass):
    """Gives every node its place.

    With `float_divisors`, what the host divides by, or takes a root or a logarithm of, stays in float32 from the last layer with weights
    on: in integers a small number could be 0. So does what is divided, and products with reciprocals. Without it the device computes more,
    which is right where such values are known to be large.

    With `float_sums`, a sum of two values that only the host reads, or another such sum, is the host's: the sums past the blocks of a
    transformer, between which layer norms are, stay in float32.

    With `float_inputs`, what scales an input's columns apart before the first product is the host's (`scaled_inputs.py`).
    """

    name = "place"
    summary = "decides what runs on the device and what on the host"
    level = 0

    float_sums: bool = False
    float_divisors: bool = True
    float_inputs: bool = True

    def run(self, graph: Graph, context: Context) -> Graph:
        _require_operators(graph)
        sums = tuple(_sums_for_host(graph)) if self.float_sums else ()
        layers = kept_layers(graph, context.on_host)
        kept = frozenset((*chain.from_iterable(layers), *sums))
        decided = self._decided(graph, kept)
        if all(node.place == decided.places[node.name] for node in decided.graph):
            return graph
        placed = decided.graph.with_nodes(replace(node, place=decided.places[node.name]) for node in decided.graph)
        before = self._decided(graph, sums).places if layers else {}
        return placed.noting(*_notes(decided, kept, layers, before), *_followers(decided, layers, before))

    def _decided(self, graph: Graph, kept: Collection[str]) -> _Decision:
        return _decided(graph, kept, self.float_divisors, self.float_inputs)


def require_placed(graph: Graph, what: str) -> None:
    """Raises `ProgramError` E0806 for an operator graph of which nothing says where its nodes run; `what` will be done to it."""
    for node in graph:
        if node.place is None:
            help = "the pass place decides it: it comes before"
            message = f"nothing says whether the host or the device computes {node.name}: graphs are placed before {what}"
            raise ProgramError(Diagnostic("E0806", message, node.origin.labels(), (help,)))


def placement(graph: Graph, kept: Collection[str] = ()) -> Mapping[str, Side]:
    """Where each node of an operator graph runs; those of `kept` on the host, though the device has them.

    Constants, and what is computed from constants alone, are the host's; so is what no output needs, which decides nothing.

    Raises `ProgramError` E0806 for a layer graph.
    """
    _require_operators(graph)
    places = _decided(graph, kept).places
    return {node.name: places[node.name] for node in graph}


@dataclass(frozen=True, slots=True)
class _Decision:
    """The places of a graph's nodes; why some are the host's for the sake of quotients and the like (`exact`); and of the host's own copies
    of nodes of the device, which the graph has got, what each is a copy of."""

    graph: Graph
    places: Mapping[str, Side]
    exact: Mapping[str, str]
    copies: Mapping[str, str]


def _decided(graph: Graph, kept: Collection[str], float_divisors: bool = True, float_inputs: bool = True) -> _Decision:
    relations = _Placing(graph, kept)
    exact: dict[str, str] = scaled_inputs(relations, relations.products) if float_inputs else {}
    copies: dict[str, str] = {}
    while True:
        relations = _Placing(graph, {*exact, *kept})
        places = _places(relations)
        if not float_divisors:
            return _Decision(graph, places, exact, copies)
        if more := kept_in_float32(relations, places):
            exact |= more
            continue
        shared = copied_for_host(relations, places)
        clamped = with_clamps(graph, guards_of_layers(relations, places, {*exact, *shared}), Place.name)
        if clamped is not graph:
            graph = clamped
        elif shared:
            graph, made = with_copies(graph, shared, {name for name, place in places.items() if place == "host"}, Place.name)
            copies |= made
            exact |= dict.fromkeys(made, STAYS)
        else:
            return _Decision(graph, places, exact, copies)


def _places(relations: _Placing) -> dict[str, Side]:
    on_host = _forced_to_host(relations)
    device = {node.name for node in relations.computed if node.name not in on_host and computes(node)}
    device |= _boundaries(relations, device, on_host)
    device |= _between(relations, device, on_host)
    return {node.name: "device" if node.name in device else "host" for node in relations.graph}


def _require_operators(graph: Graph) -> None:
    for node in graph:
        if node.op not in OPS:
            raise ProgramError(Diagnostic("E0806", f"{node.name} isn't an operator but {node.op}: only operator graphs are placed"))


def needs_host(node: Node, operands: Sequence[Node]) -> str:
    """Why the device can't run the operator; empty when it can. That a product needs weights is another matter."""
    legalisation = OPS[node.op].legalisation
    if isinstance(legalisation, Matrix) and (why := obstacle(node, operands)):
        return why
    if isinstance(legalisation, OnHost):
        return legalisation.why
    if isinstance(legalisation, Boundary | Given):
        return ""
    if isinstance(legalisation, View):
        kept = keeps_rows(operands[0].type.shape, node.type.shape)
        return "" if kept else "the device can only regroup rows: the last size must stay"
    if isinstance(legalisation, Rearrangement) and (why := legalisation.obstacle(node.attributes, [o.type.shape for o in operands])):
        return why
    if any(type_.dtype != "f32" for type_ in (node.type, *(operand.type for operand in operands))):
        return "the device computes with quantised f32 values"
    return ""


def device_values(graph: Graph) -> frozenset[str]:
    """The products with weights, and what the device can compute from them."""
    found: set[str] = set()
    constants = constant_values(graph)
    for node in graph:
        if is_devices(node, graph.operands(node), found, constants):
            found.add(node.name)
    return frozenset(found)


def is_devices(node: Node, operands: Sequence[Node], on_device: Container[str], constants: Container[str]) -> bool:
    """Whether the node is a product with weights, which are `constants`, or what the device can compute from values that it has."""
    from_device = any(name in on_device for name in node.operands) and not is_product(node)
    return (from_device or has_weights(node, operands, constants)) and not needs_host(node, operands)


def keeps_rows(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether two shapes of one size have the same rows and columns on the device."""
    return (before[-1:] or (1,)) == (after[-1:] or (1,))


def _sums_for_host(graph: Graph) -> Iterator[str]:
    """The sums that nobody reads but operators that the device lacks, and other such sums, maybe through views.

    A product's bias is no such sum: it is part of the layer.
    """
    relations = _Placing(graph)
    of_host: set[str] = set()
    for node in reversed(relations.computed):
        readers = [reader.name for reader in graph.users[node.name]]
        only_host = bool(readers) and of_host.issuperset(readers) and node.name not in graph.output_nodes
        if facts_of(node.op).signs and only_host and not adds_bias(graph, node):
            yield node.name
            of_host.add(node.name)
        elif node.name in relations.host_only or (only_host and isinstance(OPS[node.op].legalisation, MOVING)):
            of_host.add(node.name)


class _Placing(Relations):
    """A graph in which each computed node is a product, something that the device lacks, or neither; it lacks what is `kept`, too."""

    def __init__(self, graph: Graph, kept: Collection[str] = ()) -> None:
        super().__init__(graph)
        self.kept = kept

    @cached_property
    def products(self) -> frozenset[str]:
        """The products with weights, which the device computes."""
        return frozenset(node.name for node in self.computed if is_product(node) and node.name not in self.host_only)

    @cached_property
    def host_only(self) -> Mapping[str, str]:
        """The operators that the device lacks, and why."""
        reasons = {node.name: self._why_host(node) for node in self.computed}
        return {name: why for name, why in reasons.items() if why}

    def _why_host(self, node: Node) -> str:
        if node.name in self.kept:
            return KEPT
        operands = self.graph.operands(node)
        if is_product(node) and not has_weights(node, operands, self.constants):
            return WEIGHTS
        return needs_host(node, operands)


def _forced_to_host(relations: _Placing) -> set[str]:
    """The operators that the device lacks, with all that comes before them in the prologue or after them in the epilogue."""
    above, below = relations.before(relations.products), relations.after(relations.products)
    middle = {name for name in relations.host_only if name in above and name in below}
    last = {name for name in relations.host_only if name in above} - middle
    last |= _free_after(relations, last, {name for name in relations.host_only if name not in above and name not in below})
    epilogue = last | relations.before(last).keys()
    first = relations.host_only.keys() - epilogue - middle
    edges = epilogue | first | relations.after(first).keys()
    return edges | middle | _enclosed(relations, middle, edges)


def _enclosed(relations: _Placing, middle: set[str], edges: set[str]) -> set[str]:
    """The operators that stand between operators of the host, with no product near: every path between one of them and a product passes
    an operator of the host."""
    if not middle:
        return set()
    inside = relations.before(middle).keys() & relations.after(middle | edges).keys()
    stops = middle | edges
    near = relations.near(relations.products, stops) | relations.near(relations.products, stops, backwards=True)
    return inside - near - relations.products


def _free_after(relations: _Placing, last: set[str], free: set[str]) -> set[str]:
    """Of host-only operators related to no product: those that follow something the device can compute, and so end its work."""
    started: set[str] = set()
    ends: set[str] = set()
    for node in relations.computed:
        if any(operand in started for operand in node.operands):
            started.add(node.name)
            if node.name in free:
                ends.add(node.name)
        elif node.name not in relations.host_only and computes(node):
            started.add(node.name)
    return ends


def _boundaries(relations: _Placing, device: set[str], on_host: set[str]) -> set[str]:
    """The `quantize` and `dequantize` before or after device work."""
    near = relations.before(device).keys() | relations.after(device).keys()
    return {name for name in near - on_host if isinstance(OPS[relations.graph[name].op].legalisation, Boundary)}


def _between(relations: _Placing, device: set[str], on_host: set[str]) -> set[str]:
    """The operators that only move values, from device work to device work without the host between. Elsewhere the host computes them."""
    near = relations.near(device, on_host) & relations.near(device, on_host, backwards=True)
    return {name for name in near - on_host if isinstance(OPS[relations.graph[name].op].legalisation, MOVING)}


def _written(node: Node) -> str:
    """The product as in a source: `a @ b`, `conv2d(x, k)`."""
    return " @ ".join(node.operands) if matmul.made(node) else f"{node.op}({', '.join(node.operands)})"


def _kept_name(node: Node, layer: Sequence[str], shown: str, relations: _Placing) -> str:
    """How a note names the layer with this node: as its product's weights, `fc1`; else by the node that is shown, with the others, also
    where layers that the device computes go by the name of the weights, too."""
    name = layer_name(node) if is_product(node) else node.name
    alike = [other for other in relations.computed if is_product(other) and layer_name(other) == name]
    if name != node.name and all(other.name in relations.kept for other in alike):
        return name
    others = [member for member in layer if member != shown]
    return " with ".join((relations.graph[shown].origin.after(shown), *([listed(others)] if others else [])))


def _notes(decided: _Decision, kept: Collection[str], layers: Layers, before: Mapping[str, Side]) -> Iterator[str]:
    """For each reason one note that names the products of the host, or what is exact: those of an unrolled loop once. Layers that were
    asked for have each their name, in the order of the graph; those that were the host's before have a note of their own."""
    relations = _Placing(decided.graph, kept)
    named: dict[str, dict[object, str]] = {}
    asked: dict[str, list[str]] = {}
    functions = {layer[-1] for layer in layers if not any(is_product(decided.graph[name]) for name in layer)}
    idle = {layer for layer in layers if all(before[name] == "host" for name in layer)}
    whole = {name: layer for layer in layers for name in layer}
    exact = {*decided.exact.values()}
    for node in relations.computed:
        why = decided.exact.get(node.name, "") if computes(node) else ""
        why = why or (relations.host_only.get(node.name, "") if is_product(node) or node.name in functions else "")
        if why == KEPT:
            layer = whole.get(node.name, (node.name,))
            name = _kept_name(node, layer, layers.get(layer, node.name), relations)
            named.setdefault(IDLE if layer in idle else why, {})[name] = name
            asked.setdefault(name, []).extend([] if layer in idle else [node.name])
        elif why:
            written = _written(node) if is_product(node) else node.name
            written = f"a copy of {decided.copies[node.name]}" if node.name in decided.copies else written
            named.setdefault(why, {}).setdefault(node.origin.spans[:1] or node.name, node.origin.after(written))
    for why, nodes in named.items():
        shown = some([*nodes.values()], SHOWN if why in (KEPT, IDLE) else NAMED)
        where = "" if why in exact else f" {'is' if len(nodes) == 1 else 'are'} computed on the host"
        yield f"{why}: {shown}{where}"
    if untimed := [*_untimed(decided, relations, asked)]:
        yield f"not timed: {'; '.join(untimed)}"
    alone = [layers[layer] for layer in layers if layer[-1] in functions and layer not in idle and _is_between_integers(decided, layer)]
    if alone:
        yield (
            f"{listed(alone)} {'reads' if len(alone) == 1 else 'read'} integers of the device, which makes integers of what comes out:"
            " that gains little, unless the layers around are kept as well"
        )


def _untimed(decided: _Decision, relations: Relations, layers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Of the layers that are kept, by their names, those that the host computes before the device starts or after it has finished."""
    device = {name for name, place in decided.places.items() if place == "device"}
    edges = {"before the device starts": relations.before(device), "after the device has finished": relations.after(device)}
    done: set[str] = set()
    for when, others in edges.items() if device else ():
        inside = {name: [node for node in nodes if node not in others and node not in done] for name, nodes in layers.items()}
        found = [name if len(there) == len(layers[name]) else f"a part of {name}" for name, there in inside.items() if there]
        done.update(chain.from_iterable(inside.values()))
        if found:
            yield f"{some(found, SHOWN)} {'is' if len(found) == 1 else 'are'} computed {when}"


def _followers(decided: _Decision, layers: Layers, before: Mapping[str, Side]) -> Iterator[str]:
    """A note of what the device would compute, `before` being the places without layers that are kept: it reads only these."""
    kept = {*chain.from_iterable(layers)}
    moved = [
        node.origin.after(node.name)
        for node in decided.graph
        if computes(node) and node.name not in kept and decided.places[node.name] == "host" and before.get(node.name) == "device"
    ]
    if moved:
        yield f"computed on the host as well, as what they read is the host's then: {some(moved, NAMED)}"


def _is_between_integers(decided: _Decision, layer: Sequence[str]) -> bool:
    """Whether a layer of the host's has nothing from the host and nothing for it, what is only moved between them aside."""
    graph, device = decided.graph, {name for name, place in decided.places.items() if place == "device"}
    constants = Relations(graph).constants

    def computed(ahead: list[Node], beside: Callable[[Node], Iterable[Node]]) -> Iterator[str]:
        while ahead:
            node = ahead.pop()
            if computes(node) or node.is_input or node.name in graph.output_nodes:
                yield node.name
            else:
                ahead += beside(node)

    operands = [graph[name] for member in layer for name in graph[member].operands if name not in constants and name not in layer]
    read = set(computed(operands, lambda node: [operand for operand in graph.operands(node) if operand.name not in constants]))
    readers = set(computed([*graph.users[layer[-1]]], lambda node: graph.users[node.name]))
    return layer[-1] not in graph.output_nodes and read | readers <= device
