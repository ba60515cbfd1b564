"""A run: operators that are computed together, band after band."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tpucc.ir import Node
from tpucc.layers.kinds import Sides
from tpucc.lowering.bands.maps import Lines, Maps, Reading
from tpucc.lowering.tensors import NO_SIDES, widest


@dataclass(frozen=True)
class Band:
    """Some lines of the exits of a run: `pieces` has the lines of each exit. `lines` has the lines that each node's copy computes, for the
    exit and for its readers in the band; `readings` has how they are computed."""

    nodes: tuple[Node, ...]
    pieces: Mapping[str, Lines]
    lines: Mapping[str, Lines]
    readings: Mapping[str, Reading]

    @cached_property
    def borders(self) -> Mapping[str, Sides]:
        """The border of each copy that convolutions of the band read without a further copy."""
        found: dict[str, Sides] = {}
        for node in self.nodes:
            name = node.operands[0]
            if name in self.lines and self.readings[node.name].lines[0] == self.lines[name]:
                found[name] = widest((found.get(name, NO_SIDES), self.readings[node.name].border))
        return found


@dataclass(frozen=True, slots=True)
class Piece:
    """One of the bands that a value consists of: the lines `own` are its part of the value. The lines `has` were computed, with a
    border."""

    own: Lines
    has: Lines
    border: Sides = NO_SIDES


Supply = Mapping[str, tuple[Piece, ...]]
"""The pieces of values that earlier runs compute, from the first line to the last."""


def overlap(first: Lines, second: Lines) -> Lines:
    """The lines that both ranges have; there must be some."""
    return max(first[0], second[0]), min(first[1], second[1])


def covering(pieces: Sequence[Piece], lines: Lines) -> int | None:
    """The number of the piece that has all of these lines; None where several pieces must be joined."""
    near = shares(pieces, lines).start
    found = (at for at in (near, near - 1, near + 1) if 0 <= at < len(pieces) and overlap(pieces[at].has, lines) == lines)
    return next(found, None)


def shares(pieces: Sequence[Piece], lines: Lines) -> range:
    """The numbers of the pieces that own some of these lines."""
    first = bisect_right(pieces, lines[0], key=lambda piece: piece.own[0]) - 1
    return range(first, bisect_left(pieces, lines[1], key=lambda piece: piece.own[0]))


@dataclass(frozen=True)
class Run:
    """Nodes that are computed in bands, in the graph's order. `exits` are the nodes whose values other nodes or outputs read."""

    maps: Maps
    nodes: tuple[Node, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(node.name for node in self.nodes)

    @cached_property
    def exits(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if self._leaves(node.name))

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The values from outside that are cut into bands."""
        outside = (name for node in self.nodes for name in node.operands)
        return tuple(dict.fromkeys(name for name in outside if name not in self.names and name not in self.maps.constants))

    @cached_property
    def device_entries(self) -> tuple[str, ...]:
        """The entries that the device computes."""
        return tuple(name for name in self.entries if self.maps.graph[name].on_device)

    def is_read_on_device(self, name: str) -> bool:
        """Whether the device reads the value outside of the run."""
        users = self.maps.graph.users[name]
        return any(user.on_device and user.name not in self.names for user in users)

    @property
    def most(self) -> int:
        """The largest number of bands: no exit has fewer lines."""
        return min(node.type.shape[1] for node in self.exits)

    def band(self, number: int, count: int) -> Band | None:
        """Band `number` of `count` bands; None where some of its lines would depend on padding only."""
        pieces = {node.name: _share(node.type.shape[1], number, count) for node in self.exits}
        lines: dict[str, Lines] = dict(pieces)
        readings: dict[str, Reading] = {}
        for node in reversed(self.nodes):
            found = self.maps.reading(node, lines[node.name])
            if found is None:
                return None
            readings[node.name] = found
            for name, read in zip(node.operands, found.lines, strict=True):
                if read is not None and name in self.names:
                    lines[name] = _hull(lines.get(name, read), read)
        return Band(self.nodes, pieces, lines, readings)

    def bands(self, count: int) -> tuple[Band, ...] | None:
        found = [self.band(number, count) for number in range(count)]
        return None if any(band is None for band in found) else tuple(band for band in found if band is not None)

    def supply(self, bands: Sequence[Band]) -> Supply:
        """The pieces of the exits that these bands of the run compute."""
        names = [node.name for node in self.exits]
        return {name: tuple(_piece(band, name) for band in bands) for name in names}

    def _leaves(self, name: str) -> bool:
        graph = self.maps.graph
        return name in graph.output_nodes or any(user.name not in self.names for user in graph.users[name])


def run_of(maps: Maps, nodes: Sequence[Node], wanted: Collection[str]) -> Run | None:
    """The run of the nodes among `nodes`, neighbours in the graph's order, that compute by line and are connected with one of `wanted`.

    None when a value would have to leave the run and come back.
    """
    members = _together([node for node in nodes if node.name in maps.by_line], wanted)
    outside: set[str] = set()
    for node in nodes:
        if any(name in outside for name in node.operands):
            if node.name in members:
                return None
            outside.add(node.name)
        elif node.name not in members and any(name in members for name in node.operands):
            outside.add(node.name)
    kept = tuple(node for node in nodes if node.name in members)
    return Run(maps, kept) if kept else None


def _piece(band: Band, name: str) -> Piece:
    return Piece(band.pieces[name], band.lines[name], band.borders.get(name, NO_SIDES))


def _together(nodes: Iterable[Node], wanted: Collection[str]) -> set[str]:
    """The names of the nodes that are connected to one of `wanted`, along edges in either direction."""
    group: dict[str, set[str]] = {}
    for node in nodes:
        joined = {node.name}
        for name in node.operands:
            if name in group and group[name] is not joined:
                joined |= group[name]
        group.update(dict.fromkeys(joined, joined))
    return {name for name, members in group.items() if not members.isdisjoint(wanted)}


def _share(size: int, number: int, count: int) -> Lines:
    return number * size // count, (number + 1) * size // count


def _hull(first: Lines, second: Lines) -> Lines:
    return min(first[0], second[0]), max(first[1], second[1])
