"""A node of a graph: one operation, its attributes and its one result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, get_args

from tpucc.diagnostics import Origin
from tpucc.ir.types import TensorType


class Attributes(Protocol):
    """Attributes of a node: any frozen dataclass of ints, floats, strings, booleans, None, `Constant`s, tuples of these, and such
    dataclasses themselves."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class NoAttributes:
    """For operators without attributes."""


Side = Literal["host", "device"]
"""The place where a node is computed: the host or the device."""
SIDES: tuple[Side, ...] = get_args(Side)


@dataclass(frozen=True, slots=True)
class Node:
    """One operation and its one result, which has the node's name.

    In an operator graph `place` is the host or the device: the pass `place` sets it, for all nodes at once; before, it is None. In a layer
    graph it stays None: there the layers are computed on the device, and the operators that are left on the host.
    """

    name: str
    op: str
    operands: tuple[str, ...]
    attributes: Attributes
    type: TensorType
    origin: Origin = field(compare=False)
    place: Side | None = None
    holds: tuple[str, ...] = ()
    """In a layer graph: the values of the operator graph that this one stands for; empty for the one of its own name alone."""
    of: str = field(default="", compare=False)
    """In a layer graph: the operator that a layer computes, or computes a part of."""

    @property
    def on_device(self) -> bool:
        """Whether the pass `place` has put the operator on the device; False for every node of a layer graph."""
        return self.place == "device"

    def holding(self, values: Iterable[str]) -> Node:
        """The node, standing for these values of an operator graph; for the one of its own name where there are none."""
        held = tuple(values)
        held = () if held == (self.name,) else held
        return self if held == self.holds else replace(self, holds=held)

    @property
    def is_input(self) -> bool:
        """Whether the value comes from outside the graph."""
        return self.op == "input"


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the model: its public name, and the name of the node that computes it."""

    name: str
    node: str


@dataclass(frozen=True, slots=True)
class Firing:
    """One time that a rule of a pass fired: the rule's name, the nodes that it matched, and the nodes that it made."""

    rule: str
    matched: tuple[Node, ...]
    made: tuple[Node, ...]
