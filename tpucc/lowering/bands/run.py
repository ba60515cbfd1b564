"""A run: operators that are computed together, band after band."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tpucc.ir import Node
from tpucc.layers.kinds import Sides
from tpucc.lowering.bands.maps import Lines, Maps, Reading
from tpucc.lowering.tensors import NO_SIDES, wider


@dataclass(frozen=True)
class Band:
    """One band of a run, for which each node of the run is copied.

    `pieces` has the lines of each exit that are the band's part of it. `lines` has the lines that each node's copy computes: its piece, if
    it is an exit, and what its readers in the band need. `readings` says how each copy computes them.
    """

    nodes: tuple[Node, ...]
    pieces: Mapping[str, Lines]
    lines: Mapping[str, Lines]
    readings: Mapping[str, Reading]

    @cached_property
    def borders(self) -> Mapping[str, Sides]:
        """The border of each copy whose lines are just those that a convolution of the band reads: it reads the copy where it is."""
        found: dict[str, Sides] = {}
        for node in self.nodes:
            name = node.operands[0]
            if name in self.lines and self.readings[node.name].lines[0] == self.lines[name]:
                found[name] = wider(found.get(name, NO_SIDES), self.readings[node.name].border)
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
    """The lines that both ranges have. If there are none, the stop of what is returned isn't after its start."""
    return max(first[0], second[0]), min(first[1], second[1])


def covering(pieces: Sequence[Piece], lines: Lines) -> int | None:
    """The number of a piece that has all of these lines: the first that owns some, or one beside it. None where these have not."""
    near = owners(pieces, lines).start
    found = (at for at in (near, near - 1, near + 1) if 0 <= at < len(pieces) and overlap(pieces[at].has, lines) == lines)
    return next(found, None)


def owners(pieces: Sequence[Piece], lines: Lines) -> range:
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
        """The largest number of bands: the lines of the exit that has the fewest."""
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
        """All bands of `count` bands; None where one of them is None."""
        found = tuple(band for number in range(count) if (band := self.band(number, count)) is not None)
        return found if len(found) == count else None

    def supply(self, bands: Sequence[Band]) -> Supply:
        """The pieces of the exits that these bands of the run compute."""
        names = [node.name for node in self.exits]
        return {name: tuple(_piece(band, name) for band in bands) for name in names}

    def _leaves(self, name: str) -> bool:
        graph = self.maps.graph
        return name in graph.output_nodes or any(user.name not in self.names for user in graph.users[name])


def run_of(maps: Maps, nodes: Sequence[Node], wanted: Collection[str]) -> Run | None:
    """The run of the nodes among `nodes`, neighbours in the graph's order, that compute by line and are connected with one of `wanted`.

    None if there are no such nodes, or if a value would leave the run and come back: if a node of the run depends on a node that isn't in
    it, and that node on the run.
    """
    members = _together([node for node in nodes if node.name in maps.by_line], wanted)
    left: set[str] = set()  # nodes that aren't members, and depend on a member
    for node in nodes:
        if node.name in members:
            if not left.isdisjoint(node.operands):
                return None
        elif any(name in members or name in left for name in node.operands):
            left.add(node.name)
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
            joined |= group.get(name, set())
        group.update(dict.fromkeys(joined, joined))
    return {name for name, members in group.items() if not members.isdisjoint(wanted)}


def _share(size: int, number: int, count: int) -> Lines:
    """The lines of part `number` of `size` lines in `count` parts that differ by one line at most."""
    return number * size // count, (number + 1) * size // count


def _hull(first: Lines, second: Lines) -> Lines:
    """The lines from the first of both ranges to the last."""
    return min(first[0], second[0]), max(first[1], second[1])
