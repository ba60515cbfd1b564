"""Values that aren't finite: the first one of a graph, and notes of integers that are 0 where the host divides by them, or takes a root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Label, counted
from tpucc.ir import Graph, Node, Quantisation
from tpucc.numerics import AnyArray
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.evaluate import compute
from tpucc.ops.facts import UNCHANGED
from tpucc.ops.opdef import Arithmetic
from tpucc.passes.rewriter import constant_of, is_product


@dataclass(frozen=True, slots=True)
class _Source:
    """What decides whether a value of the host's is 0, or little more: `value`, and the nodes between (`path`).

    Among these may be sums along an axis, or the like (`added_up`), and sums with constants (`offset`).
    """

    value: Node
    path: tuple[Node, ...]
    added_up: bool
    offset: bool


def zeros_of_integers(graph: Graph, parameters: Callable[[Node], Quantisation]) -> Iterator[str]:
    """A note of each operator of the host that isn't finite where integers are 0; `parameters` are those of a value of the device.

    `graph` is calibrated. Between the integers and the operand there are operators of the host that make zeros of zeros, as a root does,
    and sums with constants that are less than half a step of what they are added to. An unrolled loop has its note once.
    """
    noted: set[object] = set()
    for node in graph:
        for index in facts_of(node.op).singular if node.place == "host" else ():
            found = _source(graph, graph[node.operands[index]])
            source = found.value
            key = source.origin.spans[:1] or source.name, node.origin.spans[:1] or node.name
            if key in noted or not source.on_device or not _rounds_to_zero(source, parameters) or _is_finite_at_zero(graph, node, index):
                continue
            if found.offset and (_is_zero_too(graph, node, index, source) or not _is_lost(graph, found, parameters)):
                continue
            noted.add(key)
            shared = not is_product(source) and any(reader.on_device for reader in graph.users[source.name])
            why = ", as the device reads it as well," if shared else ","
            where = "where all that is added up is 0," if found.added_up else "there"
            named = source.origin.after(source.name)
            what = "has only the added constant to go by" if found.offset else "isn't finite"
            yield f"{named} is in integers{why} and 0 where it is less than half a step: {where} {node.origin.after(node.op)} {what}"


def _source(graph: Graph, value: Node) -> _Source:
    """As far back as what decides is one value."""
    path: list[Node] = []
    added_up = offset = False
    while not value.on_device and (source := _only_computed(graph, value)) is not None:
        adds = not _keeps_zeros(graph, value, source)
        if adds and not _adds(value):
            break
        facts = facts_of(value.op)
        offset = offset or adds
        added_up = added_up or not (facts.elementwise or facts.values in UNCHANGED)
        path.append(value)
        value = source
    return _Source(value, tuple(reversed(path)), added_up, offset)


def _adds(node: Node) -> bool:
    """Whether the node is a sum or a difference, maybe with an activation."""
    legalisation = legalisation_of(node.op)
    return isinstance(legalisation, Arithmetic) and legalisation.function(node.attributes) != "multiply"


def _only_computed(graph: Graph, node: Node) -> Node | None:
    """The one operand that isn't constant, if it and the result are float32; None where there are several."""
    names = {name for name in node.operands if constant_of(graph[name]) is None}
    source = graph[names.pop()] if len(names) == 1 else None
    return source if source is not None and node.type.dtype == source.type.dtype == "f32" else None


def _is_zero_too(graph: Graph, node: Node, index: int, source: Node) -> bool:
    """Whether the other operands are 0 where the source is, so that the quotient is 0 and not what a constant makes of it."""
    others = [graph[name] for number, name in enumerate(node.operands) if number != index]
    return bool(others) and all((found := _source(graph, other)).value is source and not found.offset for other in others)


def _is_lost(graph: Graph, found: _Source, parameters: Callable[[Node], Quantisation]) -> bool:
    """Whether the constants are less than what half a step of the source would be beside them."""
    half = parameters(found.value).scale / 2
    alone, with_half = (_at(graph, found, number) for number in (0.0, half))
    return bool(np.any(np.abs(alone) < np.abs(with_half) / 2))


def _at(graph: Graph, found: _Source, number: float) -> AnyArray:
    """The value that the path makes of a source that is everywhere `number`."""
    source, array = found.value, np.full(found.value.type.shape, number, np.float32)
    for node in found.path:
        array = _computed(graph, node, source, array)
        source = node
    return array


def _computed(graph: Graph, node: Node, source: Node, array: AnyArray) -> AnyArray:
    """The result of a node that reads constants and `source`, which is `array`."""
    operands = graph.operands(node)
    arrays = [array if constant is None else constant.data for constant in map(constant_of, operands)]
    with np.errstate(all="ignore"):
        return compute(node, [operand.type for operand in operands], arrays)


def _keeps_zeros(graph: Graph, node: Node, source: Node) -> bool:
    """Whether the node, which reads constants and `source`, is 0 somewhere if that is 0."""
    return not np.all(_computed(graph, node, source, np.zeros(source.type.shape, np.float32)))


def _is_finite_at_zero(graph: Graph, node: Node, index: int) -> bool:
    """Whether the result is finite where that operand is 0, as a root is, and the others are 1."""
    types = [operand.type for operand in graph.operands(node)]
    arrays = [np.full(type_.shape, int(number != index), type_.numpy) for number, type_ in enumerate(types)]
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(compute(node, types, arrays))))


def _rounds_to_zero(value: Node, parameters: Callable[[Node], Quantisation]) -> bool:
    """Whether numbers of the value's range are less than half a step. Some are where the source fixes the parameters and no range."""
    held, half = value.type.range, parameters(value).scale / 2
    return held is None or (held.low < half and held.high > -half)


# The first value of a graph that isn't finite: which operator gave it, and of which values.


class FirstNotFinite:
    """Is called with each node of a graph in order, and its value (or that of each part of the batch): `node` is then the first whose value
    has NaN or infinity, and `said` says how many of it; None and empty while all is finite."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.said = ""
        self._extents: dict[str, tuple[float, float]] = {}

    def __call__(self, node: Node, *values: AnyArray) -> None:
        if self.node is not None or values[0].dtype.kind != "f":
            return
        found = np.concatenate([value.ravel() for value in values])
        bad = int(np.count_nonzero(~np.isfinite(found)))
        if bad:
            self.node = node
            what = "not a number" if np.isnan(found).any() else "infinite"
            name = node.name if node.name == node.op else f"{node.name} ({node.op})"
            self.said = f"{name} is {what} in {bad:,} of {counted(found.size, 'value')}"
        else:
            self._extents[node.name] = (float(found.min()), float(found.max()))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The node's place, with the smallest and the largest value of each operand, and the calls that led there."""
        assert self.node is not None
        known = [name for name in dict.fromkeys(self.node.operands) if name in self._extents]
        return self.node.origin.trail("; ".join(f"{name} is {_between(*self._extents[name])}" for name in known))

    @property
    def help(self) -> str:
        """What mends a divisor, or what a root or a logarithm is taken of, that is 0 or less; empty where it isn't that."""
        assert self.node is not None
        for index in facts_of(self.node.op).singular:
            name = self.node.operands[index]
            if self._extents.get(name, (1.0,))[0] <= 0:
                return f"keep {name} above 0, as maximum(…, 0.001) around it does"
        return ""


def _between(low: float, high: float) -> str:
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
