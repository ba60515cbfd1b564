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

    `place` is the host or the device. In an operator graph the pass `place` sets it, for all nodes at once; before, it is None. In a layer
    graph it stays None: layers are computed on the device, operators on the host. `holds` and `of` are for nodes of a layer graph: the
    names of the values of the operator graph that the node has, if they aren't just the one of its own name; and the name of the operator
    that a layer computes, or computes a part of.
    """

    name: str
    op: str
    operands: tuple[str, ...]
    attributes: Attributes
    type: TensorType
    origin: Origin = field(compare=False)
    place: Side | None = None
    holds: tuple[str, ...] = ()
    of: str = field(default="", compare=False)

    @property
    def on_device(self) -> bool:
        """Whether it has been decided that the device computes the node."""
        return self.place == "device"

    def holding(self, values: Iterable[str]) -> Node:
        """The node, having these values of an operator graph."""
        held = tuple(values)
        held = () if held == (self.name,) else held
        return self if held == self.holds else replace(self, holds=held)

    @property
    def is_input(self) -> bool:
        """Whether the value comes from outside the graph."""
        return self.op == "input"


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the model: its public name and the node that computes it."""

    name: str
    node: str


@dataclass(frozen=True, slots=True)
class Firing:
    """One time that a rule of a pass fired: the rule's name, the nodes that it matched, and the nodes that it made."""

    rule: str
    matched: tuple[Node, ...]
    made: tuple[Node, ...]
