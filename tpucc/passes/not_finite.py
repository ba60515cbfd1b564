"""Values that aren't finite: the first one of a graph, and notes of integers that are 0 where the host divides by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tpucc.diagnostics import Label, counted
from tpucc.ir import Graph, Node, Quantisation
from tpucc.numerics import AnyArray
from tpucc.ops import facts_of
from tpucc.ops.evaluate import compute


def zeros_of_integers(graph: Graph, parameters: Callable[[Node], Quantisation]) -> Iterator[str]:
    """A note of each operator of the host that reads integers of the device, and isn't finite where these are 0.

    `graph` is calibrated; `parameters` are those of a value of the device. An unrolled loop has its note once.
    """
    noted: set[object] = set()
    for node in graph:
        for index in facts_of(node.op).singular if node.place == "host" else ():
            value = graph[node.operands[index]]
            key = value.origin.spans[:1] or value.name, node.origin.spans[:1] or node.name
            is_safe = not value.on_device or not _rounds_to_zero(value, parameters) or _is_finite_at_zero(graph, node, index)
            if key not in noted and not is_safe:
                noted.add(key)
                where = f"{value.origin.after(value.name)} is in integers, and 0 where it is less than half a step"
                yield f"{where}: there {node.origin.after(node.op)} isn't finite"


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
