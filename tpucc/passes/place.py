"""The pass `place`: which operators run on the device, and which on the host.

Products with weights always go on the device, also products whose weights the host writes while the model runs. Operators that the device
lacks, and other products of two computed values, go on the host: before the device starts, after it has finished, or in the middle, where
the device stops and waits. At the edges, an operator of the host pulls all before it, or all after it, to the host. In the middle, what the
device can compute goes there, unless nothing but operators of the host stands around it.

The host keeps some values in float32 that the device could compute, because their integers would be wrong: divisors, numerators, functions
of quotients, and input columns that differ in size.

Each question about the graph is a flow of facts (`tpucc.ir.dataflow`), with its reason. `_decided` puts the answers together. What it moves
to the host changes other answers, so it asks again until nothing changes.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from tpucc.diagnostics import Diagnostic, ProgramError
from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import Computed, backward, forward, leading_to, reached_from, stages, true_of
from tpucc.ir.node import Side
from tpucc.ops import OPS, facts_of
from tpucc.ops.div import OP as div
from tpucc.ops.facts import UNCHANGED, Values, selects
from tpucc.ops.opdef import Boundary, Clamp, Rearrangement, View
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.device_work import MOVING, computes, multiplies, needs_host
from tpucc.passes.host_copies import with_clamps, with_copies
from tpucc.passes.kept_layers import kept_layers
from tpucc.passes.placement_notes import KEPT, Placed
from tpucc.passes.rewriter import as_columns, constant_of, has_weights, is_product


@graph_pass("place", "decides what runs on the device and what on the host", level=0)
def place(graph: Graph, context: Context, *, float_sums: bool = False, float_divisors: bool = True, float_inputs: bool = True) -> Graph:
    """Gives every node its place.

    With `float_divisors`, what the host divides by, or takes a root or a logarithm of, stays in float32 from the last layer with weights
    on: in integers a small number could be 0. So does what is divided, and products with reciprocals. Without it the device computes more,
    which is right where such values are known to be large.

    With `float_sums`, a sum of two values that only the host reads, or another such sum, is the host's: the sums past the blocks of a
    transformer, between which layer norms are, stay in float32.

    With `float_inputs`, what scales an input's columns apart before the first product is the host's.
    """
    _require_operators(graph)
    sums = _sums_for_host(graph) if float_sums else frozenset()
    layers = kept_layers(graph, context.on_host)
    kept = sums.union(*layers)
    decided = _decided(graph, kept, float_divisors, float_inputs)
    if all(node.place == decided.places[node.name] for node in decided.graph):
        return graph
    placed = decided.graph.with_nodes(replace(node, place=decided.places[node.name]) for node in decided.graph)
    without_layers = _decided(graph, sums, float_divisors, float_inputs).places if layers else {}
    explained = Placed(placed, _Work(placed, kept).lacking, decided.exact, decided.copies, layers, without_layers)
    return placed.noting(*explained.notes())


def require_placed(graph: Graph, what: str) -> None:
    """Raises `ProgramError` E0806 for an operator graph of which nothing says where its nodes run; `what` will be done to it."""
    for node in graph:
        if node.place is None:
            help = "the pass place decides it: it comes before"
            message = f"nothing says whether the host or the device computes {node.name}: graphs are placed before {what}"
            raise ProgramError(Diagnostic("E0806", message, node.origin.labels(), (help,)))


def _require_operators(graph: Graph) -> None:
    for node in graph:
        if node.op not in OPS:
            raise ProgramError(Diagnostic("E0806", f"{node.name} isn't an operator but {node.op}: only operator graphs are placed"))


@dataclass(frozen=True, slots=True)
class _Decision:
    """The decision for all nodes of `graph`, which may have further nodes: clamps, and copies that the host makes of nodes of the device.

    `places` are those of the nodes. `exact` has the nodes that the host computes in float32 because integers would be wrong, each with the
    reason. `copies` has the copied node of each copy.
    """

    graph: Graph
    places: Mapping[str, Side]
    exact: Mapping[str, str]
    copies: Mapping[str, str]


def _decided(graph: Graph, kept: Collection[str], float_divisors: bool, float_inputs: bool) -> _Decision:
    """The places, asked for again after each change: first of what moves to the host as it is, then of clamps and copies.

    Each change moves a node to the host or adds one, so that there is an end.
    """
    exact = dict.fromkeys(_scaled_inputs(_Work(graph, kept)), SCALED) if float_inputs else {}
    copies: dict[str, str] = {}
    while True:
        work = _Work(graph, {*exact, *kept})
        places = _places(work)
        if not float_divisors:
            return _Decision(graph, places, exact, copies)
        quotients = _Quotients(work, places)
        if more := quotients.to_move():
            exact |= more
            continue
        shared = quotients.to_copy()
        clamped = with_clamps(graph, quotients.layer_clamps({*exact, *shared}), place.name)
        if clamped is not graph:
            graph = clamped
        elif shared:
            graph, made = with_copies(graph, shared, {name for name, side in places.items() if side == "host"}, place.name)
            copies |= made
            exact |= dict.fromkeys(made, STAYS)
        else:
            return _Decision(graph, places, exact, copies)


# What the device lacks, and what it computes

WEIGHTS = "TPU v1 reads weights only from weight memory"


class _Work(Computed):
    """The nodes to place: products for the device, nodes that it lacks, and others. `kept` is for the host, though the device has it."""

    def __init__(self, graph: Graph, kept: Collection[str] = ()) -> None:
        super().__init__(graph)
        self._kept = kept

    @cached_property
    def lacking(self) -> Mapping[str, str]:
        """The nodes that the device lacks, each with the reason."""
        reasons = {node.name: self._why_host(node) for node in self.nodes}
        return {name: why for name, why in reasons.items() if why}

    @cached_property
    def products(self) -> frozenset[str]:
        """The products that the device computes."""
        return frozenset(node.name for node in self.nodes if is_product(node) and node.name not in self.lacking)

    def of_kind(self, *kinds: type) -> frozenset[str]:
        """The nodes that the device treats in one of these ways."""
        return frozenset(node.name for node in self.nodes if isinstance(OPS[node.op].legalisation, kinds))

    def _why_host(self, node: Node) -> str:
        if node.name in self._kept:
            return KEPT
        operands = self.graph.operands(node)
        if is_product(node) and not has_weights(node, operands, self.constants):
            return WEIGHTS
        return needs_host(node, operands)


def _places(work: _Work) -> dict[str, Side]:
    """The place of each node, precision left aside.

    Boundaries of integers are the device's beside its work. Nodes that only move values are the device's between its work: at the edges
    they cost the host nothing.
    """
    host = _forced_to_host(work)
    device = {node.name for node in work.nodes if computes(node) and node.name not in host}
    device |= (work.of_kind(Boundary) & (reached_from(work.nodes, device) | leading_to(work.nodes, device))) - host
    device |= work.of_kind(*MOVING) & reached_from(work.nodes, device, host) & leading_to(work.nodes, device, host)
    return {node.name: "device" if node.name in device else "host" for node in work.graph}


def _forced_to_host(work: _Work) -> frozenset[str]:
    """The nodes that the device lacks, with all that comes before them at the beginning or after them at the end.

    In the middle are nodes with products before and after. A node without any near is at the end if the device could do something before.
    """
    lacking = frozenset(work.lacking)
    below, above = reached_from(work.nodes, work.products), leading_to(work.nodes, work.products)
    middle = lacking & below & above
    last = lacking & ((below - above) | (_after_device_work(work) - below - above))
    end = reached_from(work.nodes, last)
    edges = end | leading_to(work.nodes, lacking - end - middle)
    return edges | middle | _enclosed(work, middle, edges)


def _after_device_work(work: _Work) -> frozenset[str]:
    """The nodes that the device can compute, and all after them."""

    def starts(node: Node, operands: Mapping[str, bool]) -> bool:
        return any(operands.values()) or (computes(node) and node.name not in work.lacking)

    return true_of(forward(work.nodes, starts))


def _enclosed(work: _Work, middle: frozenset[str], edges: frozenset[str]) -> frozenset[str]:
    """The nodes between nodes of the host without a product near: every path between one of them and a product passes a node of the host.
    On the device they would take a stop of their own."""
    host = middle | edges
    near = reached_from(work.nodes, work.products, host) | leading_to(work.nodes, work.products, host)
    return reached_from(work.nodes, middle) & leading_to(work.nodes, host) - near


def _sums_for_host(graph: Graph) -> frozenset[str]:
    """The sums that nothing reads but nodes that the device lacks, and other such sums, maybe through views.

    A product's bias is no such sum: it is part of the layer.
    """
    work = _Work(graph)

    def is_sum(node: Node) -> bool:
        return bool(facts_of(node.op).signs) and not _adds_bias(graph, node)

    def is_for_host(node: Node, readers: Mapping[str, bool]) -> bool:
        if node.name in work.lacking:
            return True
        only_host = bool(readers) and all(readers.values()) and node.name not in graph.output_nodes
        return only_host and (is_sum(node) or isinstance(OPS[node.op].legalisation, MOVING))

    for_host = backward(work.nodes, is_for_host)
    return frozenset(node.name for node in work.nodes if for_host[node.name] and is_sum(node))


# Input columns

SCALED = "input columns differ in size; one 8-bit scale would destroy the small ones, so the host scales them in float32"


class _Scaling(IntEnum):
    """How a value is computed from inputs: otherwise, step by step, or in steps one of which has a factor for each column."""

    OTHERWISE = 0
    IN_STEPS = 1
    BY_COLUMN = 2


def _scaled_inputs(work: _Work) -> list[str]:
    """Where inputs that are scaled with more than one factor are ready for the products that read them.

    The columns of data differ in size: the 13 of wine are from 0.1 to 1,680. One 8-bit scale for all would make the small columns 0. A
    scaler, `(x - mean) * factor`, makes all columns equally large, but only if it reads the numbers themselves. So the host computes the
    scaler in float32, and quantises its result. A division by such a column is the host's in any case.
    """
    read = leading_to(work.nodes, work.products)

    def scaling(node: Node, operands: Mapping[str, _Scaling]) -> _Scaling:
        if node.is_input:
            return _Scaling.IN_STEPS
        if not _is_step(node, len(work.operands(node))) or not all(operands.values()):
            return _Scaling.OTHERWISE
        by_column = node.name in read and (_Scaling.BY_COLUMN in operands.values() or _has_factors(work, node))
        return _Scaling.BY_COLUMN if by_column else _Scaling.IN_STEPS

    scaled = {name: how for name, how in forward(work.nodes, scaling).items() if how is _Scaling.BY_COLUMN}
    return [name for name in scaled if scaled.keys().isdisjoint(reader.name for reader in work.graph.users[name])]


def _is_step(node: Node, computed: int) -> bool:
    """Whether a node with so many operands that depend on inputs multiplies by, divides by, or adds a constant, or moves values."""
    if node.type.dtype != "f32" or not computed:
        return False
    is_arithmetic = bool(facts_of(node.op).signs) or multiplies(node) or div.made(node)
    return isinstance(OPS[node.op].legalisation, View | Rearrangement) or (is_arithmetic and computed == 1)


def _has_factors(work: _Work, node: Node) -> bool:
    """Whether the node multiplies, or divides, by a constant of several values."""
    values = [value.data for operand in work.graph.operands(node) if (value := constant_of(operand)) is not None]
    return not facts_of(node.op).signs and any((value != value.flat[0]).any() for value in values if value.size)


# Quotients, roots and logarithms

STAYS = "divisors, numerators, and arguments of sqrt and log stay in float32 on the host, back to the last layer with weights"
QUOTIENT = "products with reciprocals are quotients, and stay in float32 on the host"
FUNCTION = "functions of quotients stay in float32 on the host, as the range of the quotients can be far wider"


class _Need(IntEnum):
    """Why a node's operands should be in float32 on the host. `COPIED`: as singular operands, of a copy of the node."""

    NOTHING = 0
    NUMERATOR = 1
    SINGULAR = 2
    COPIED = 3


class _InLayer(IntEnum):
    """Whether a node is part of a layer, and a clamp of it comes before."""

    NO = 0
    SUMS = 1
    CLAMPED = 2


class _Quotients:
    """What the host divides, divides by, or takes a root or a logarithm of, given the places so far.

    Integers have equal steps. A divisor of less than half a step would become 0, and the quotient infinite. Squares and exponentials become
    that small although their arguments don't. A numerator is small where its divisor is small, and there half a step of the numerator's
    range is a large part of the quotient. These operands are *singular*; with the numerators they stay in float32, back to the last layer
    with weights. Where the device reads a divisor as well, both compute it.
    """

    def __init__(self, work: Computed, places: Mapping[str, Side]) -> None:
        self._work = work
        self._graph = work.graph
        self._places = places
        self._device = frozenset(name for name, side in places.items() if side == "device")
        self._stages = stages(work.graph, self._device)

    def to_move(self) -> dict[str, str]:
        """The nodes on the device that belong on the host, each with the reason. Other reasons are asked for when one gives nothing."""
        return (
            dict.fromkeys(self._of_quotients(), STAYS)
            or dict.fromkeys(self._products(), QUOTIENT)
            or dict.fromkeys(self._functions(), FUNCTION)
        )

    def to_copy(self) -> frozenset[str]:
        """The nodes on the device that a singular operand of the host's is computed from and that the device reads as well.

        The host can compute each once more, from layers that come to it instead: never later than the node itself would have come. There
        is nothing left that `to_move` would still move.
        """
        return frozenset(name for name, need in self._needs(copies=True).items() if need is _Need.COPIED)

    def layer_clamps(self, moved: Collection[str]) -> list[str]:
        """The nodes of `moved` that clamp a layer to bounds without 0, and alone read it: the layer can have a clamp of its own."""
        layers = true_of(self._layers(guards=False)) & self._device
        nodes = (node for node in self._work.nodes if node.name in moved and layers.issuperset(node.operands))
        return [node.name for node in nodes if self._selects_alone(node) and not _lets_zero_through(node)]

    @cached_property
    def _reciprocals(self) -> dict[str, str]:
        """For each `c / v`, also where it has been moved or multiplied by constants, the division. Its product with x is c * x / v."""

        def division(node: Node, operands: Mapping[str, str]) -> str:
            computed = self._work.operands(node)
            if div.made(node) and computed == [node.operands[1]]:
                return node.name
            keeps = len(computed) == 1 and (multiplies(node) or facts_of(node.op).values in UNCHANGED)
            return operands[computed[0]] if keeps else ""

        return {name: division for name, division in forward(self._work.nodes, division).items() if division}

    def _layers(self, *, guards: bool = True) -> dict[str, _InLayer]:
        """The layers, which become integers once: products; their sums with a bias; and clamps and the largest of windows of either, which
        alone read it: they round nothing.

        A clamp of what is read elsewhere isn't part of the layer: the device would make, and send, both. Nor is, without `guards`, a clamp
        to bounds without 0: integers have a 0, and what is near it would become that. A sum with a constant after a clamp is no bias.
        """

        def in_layer(node: Node, operands: Mapping[str, _InLayer]) -> _InLayer:
            if is_product(node):
                return _InLayer.SUMS
            operand = max(operands.values(), default=_InLayer.NO)
            if operand is _InLayer.SUMS and _adds_bias(self._graph, node):
                return _InLayer.SUMS
            if operand and self._selects_alone(node) and (guards or _lets_zero_through(node)):
                return _InLayer.CLAMPED if facts_of(node.op).elementwise else operand
            return _InLayer.NO

        return forward(self._work.nodes, in_layer)

    def _needs(self, staying: Container[str] = (), *, copies: bool = False) -> dict[str, _Need]:
        """What each node needs of its operands, back from the divisions, roots and logarithms of the host.

        A node of the device has a need if it moves to the host. None does in a layer, at a boundary, by which the source says what is
        integers, among the numerators `staying`, or where the device reads it as well, which would have to get it back. With `copies`, the
        host gets copies of such nodes.
        """
        layers = {_Need.NUMERATOR: self._layers(), _Need.SINGULAR: self._layers(guards=False)}

        def need(node: Node, readers: Mapping[str, _Need]) -> _Need:
            wanted = max((max(passed, self._need_of(name, node.name)) for name, passed in readers.items()), default=_Need.NOTHING)
            wanted = min(wanted, _Need.SINGULAR)
            if not wanted or node.name not in self._device:
                return wanted
            stays = wanted is _Need.NUMERATOR and node.name in staying
            if stays or layers[wanted][node.name] or isinstance(OPS[node.op].legalisation, Boundary):
                return _Need.NOTHING
            if all(passed in (_Need.NUMERATOR, _Need.SINGULAR) for name, passed in readers.items() if name in self._device):
                return wanted
            return _Need.COPIED if copies and wanted is _Need.SINGULAR else _Need.NOTHING

        return backward(self._work.nodes, need)

    def _need_of(self, reader: str, operand: str) -> _Need:
        """Why a node of the host needs an operand in float32, its own readers left aside."""
        node = self._graph[reader]
        if reader in self._device:
            return _Need.NOTHING
        singular = self._singular_operands(node)
        if operand in singular:
            return _Need.SINGULAR
        return _Need.NUMERATOR if singular or self._is_product_with_reciprocal(node) else _Need.NOTHING

    def _of_quotients(self) -> list[str]:
        """The nodes on the device that a singular operand of the host's is computed from, or another operand of such a node.

        Averages of windows in a numerator stay where the host would get all that they are made of for their sake alone.
        """
        needs = self._needs()

        def is_sent(node: Node, operands: Mapping[str, bool]) -> bool:
            """Whether the host gets the node's value for the sake of a numerator alone, or moves the node on such values."""
            if node.name not in self._device:
                return False
            if needs[node.name]:
                return any(operands.values())
            return node.name not in self._graph.output_nodes and not any(map(gets_anyway, self._graph.users[node.name]))

        def gets_anyway(reader: Node) -> bool:
            return self._places[reader.name] == "host" or needs[reader.name] is _Need.SINGULAR

        sent = forward(self._work.nodes, is_sent)
        numerators = [node for node in self._work.nodes if needs[node.name] is _Need.NUMERATOR and facts_of(node.op).windows is not None]
        if staying := {node.name for node in numerators if sent[node.name]}:
            needs = self._needs(staying)
        return [name for name, need in needs.items() if need and name in self._device]

    def _products(self) -> Iterator[str]:
        """The products on the device of a value and a reciprocal of the host's, `x * (c / v)`: such a product is the quotient `c * x / v`.

        As integers, the reciprocals of large numbers are lost beside those of small ones. A product stays where the host could compute it
        only after another stop of the device.
        """
        for node in self._work.nodes:
            if node.name in self._device and self._is_product_with_reciprocal(node):
                known = [self._stages[self._reciprocals[name]] for name in node.operands if name in self._reciprocals]
                others = (name for name in self._work.operands(node) if name not in self._reciprocals)
                if max((self._stages[name] + (name in self._device) for name in others), default=0) <= max(known):
                    yield node.name

    def _functions(self) -> list[str]:
        """The functions on the device of one quotient of the host's: element-wise, maybe with constants, or the largest of windows.

        A divisor near 0 makes quotients of any size. Of a range that holds them a clamp, or a function that saturates, leaves a step or
        two. The host computes the function where it has the quotient: the device doesn't stop for it.
        """

        def is_quotient(node: Node, operands: Mapping[str, bool]) -> bool:
            if len(operands) == 1 and any(operands.values()) and _is_function(node):
                return True
            divides = len(node.operands) > 1 and bool(self._singular_operands(node))  # by a computed value
            return node.name not in self._device and (divides or self._is_product_with_reciprocal(node))

        return [name for name, is_one in forward(self._work.nodes, is_quotient).items() if is_one and name in self._device]

    def _singular_operands(self, node: Node) -> list[str]:
        """The computed operands with finite values at which the node's result isn't finite."""
        operands = (node.operands[index] for index in facts_of(node.op).singular)
        return [name for name in operands if name not in self._work.constants]

    def _is_product_with_reciprocal(self, node: Node) -> bool:
        return multiplies(node) and any(name in self._reciprocals for name in node.operands)

    def _selects_alone(self, node: Node) -> bool:
        """Whether the node's values are some of its operand's, or the bounds of a clamp, and it alone reads these."""
        facts = facts_of(node.op)
        return facts.keeps_parameters and facts.values is Values.COMPUTED and len(self._graph.users[node.operands[0]]) == 1


def _lets_zero_through(node: Node) -> bool:
    legalisation = OPS[node.op].legalisation
    if not isinstance(legalisation, Clamp):
        return True
    low, high = legalisation.bounds(node.attributes)
    return low <= 0 <= high


def _adds_bias(graph: Graph, node: Node) -> bool:
    """Whether the node is a sum with a constant that has one value a column."""
    if not facts_of(node.op).signs:
        return False
    constants = [value for operand in graph.operands(node) if (value := constant_of(operand)) is not None]
    return any(as_columns(value, node.type) is not None for value in constants)


def _is_function(node: Node) -> bool:
    """Whether each value of the result depends on one value of the one operand that isn't constant, or is one of its values."""
    facts = facts_of(node.op)
    single = facts.elementwise or facts.values in UNCHANGED or selects(facts)
    return single and not isinstance(OPS[node.op].legalisation, Boundary)
