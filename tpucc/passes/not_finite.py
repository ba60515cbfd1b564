"""The first value of a graph that isn't finite: which operator gave it, and of which values."""

from __future__ import annotations

import numpy as np

from tpucc.diagnostics import Label, counted
from tpucc.ir import Node
from tpucc.numerics import AnyArray
from tpucc.ops import facts_of


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
