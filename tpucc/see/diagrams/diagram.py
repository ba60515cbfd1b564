"""A diagram before it is laid out: boxes, edges, clusters. Every graph-like picture is one of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tpucc.diagnostics import Origin
from tpucc.explain.names import MAX_NAME, shown
from tpucc.prose import percent
from tpucc.see.palette import KINDS, Kind, in_order
from tpucc.see.text import LINE_HEIGHT, NORMAL, SMALL, text_width

PADDING_X, PADDING_Y = 12.0, 7.0
MIN_WIDTH = 56.0
LONG_CHAIN = 5
"""From so many edges in a row on, a diagram runs from left to right: panes are wider than high."""
MOST_LINES = 24

Shares = tuple[tuple[Kind, int], ...]
"""Several kinds, in the palette's order, and how much each of them has."""


def shares_of(parts: Iterable[tuple[Kind, int]]) -> Shares:
    """How much each kind has of parts of these sizes."""
    found = Counter[Kind]()
    for kind, amount in parts:
        found[kind] += amount
    return tuple((kind, found[kind]) for kind in in_order(found))


def largest(shares: Shares) -> Kind:
    """The kind that has most."""
    return max(shares, key=lambda share: share[1])[0]


@dataclass(frozen=True, slots=True)
class Box:
    """One box. Texts are as the user wrote them; they are escaped where they are drawn.

    `beside` is the box (an index) that a small one, for weights, stands beside, or -1. `signature` is equal for boxes that do the same
    to the same shapes. `origins` are where the box comes from. `stands_for` counts the boxes of the full picture. `name` is what lists
    call it, if not its title. One that is `outside` stands at the edge of a picture for where values come from or go to. `layers` are the
    names of the program's layers that it stands for, where it stands for whole ones; `instructions` are those that the host's part of it
    consists of, in the order of the program. Names in its texts have at most `letters`. `cycles` are its share of the program's, where it
    is known. One that stands for boxes of several kinds has `shares`, and `kind` is the largest of these. `noun` is what it is called, if
    not as the diagram's are.
    """

    title: str
    kind: Kind
    details: tuple[str, ...] = ()
    cluster: int = -1
    beside: int = -1
    origins: tuple[Origin, ...] = ()
    signature: str = ""
    stands_for: int = 1
    name: str = ""
    outside: bool = False
    layers: tuple[str, ...] = ()
    instructions: tuple[int, ...] = ()
    letters: int = MAX_NAME
    cycles: int = 0
    shares: Shares = ()
    noun: str = ""

    @property
    def called(self) -> str:
        """The full name, which tells the box from others."""
        return self.name or self.title

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What its colours mean."""
        return tuple(kind for kind, _ in self.shares) or (self.kind,)

    @property
    def share_text(self) -> str:
        """`matrix unit 60 %, activation unit 40 %`; empty for a box of one kind."""
        whole = sum(amount for _, amount in self.shares)
        return ", ".join(f"{KINDS[kind].meaning} {percent(amount, whole)}" for kind, amount in self.shares)

    @property
    def lines(self) -> tuple[int, ...]:
        """The source lines that the box comes from, in order; of many the first."""
        return tuple(sorted({line for origin in self.origins for line in origin.lines if line > 0})[:MOST_LINES])

    @property
    def origin_text(self) -> str:
        """`line 9`, `lines 9, 12`."""
        return f"line{'s' if len(self.lines) > 1 else ''} {', '.join(map(str, self.lines))}" if self.lines else ""

    @property
    def small(self) -> bool:
        """Whether it stands beside another box, for constants."""
        return self.beside >= 0

    @property
    def minor(self) -> bool:
        """Whether its text is small."""
        return self.small or self.outside

    @property
    def texts(self) -> tuple[str, ...]:
        """Its lines as they are drawn, with names shortened."""
        return tuple(shown(self._shortened(text)) for text in (self.title, *self.details))

    def _shortened(self, text: str) -> str:
        return text if self.letters >= MAX_NAME else " ".join(shown(word, self.letters) for word in text.split(" "))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels, from the text."""
        head, *rest = self.texts
        first = text_width(head, SMALL if self.minor else NORMAL, bold=not self.minor)
        width = max([first, *(text_width(text, SMALL) for text in rest)])
        height = ((SMALL if self.minor else NORMAL) + SMALL * len(rest)) * LINE_HEIGHT
        pad_x, pad_y = (8.0, 3.0) if self.minor else (PADDING_X, PADDING_Y)
        return round(max(MIN_WIDTH if not self.small else 0.0, width + 2 * pad_x)), round(height + 2 * pad_y)


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that goes from one box to another: its shape and, when quantised, its scale and zero point."""

    tail: int
    head: int
    label: tuple[str, ...] = ()
    quantised: bool = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the label in pixels, with room around it; zeros when there is none."""
        if not self.label:
            return 0.0, 0.0
        width = max(text_width(shown(text), SMALL) for text in self.label)
        return round(width + 10), round(len(self.label) * SMALL * LINE_HEIGHT + 4)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Boxes that belong together. A `layer` becomes one box when the diagram is too large; a place (the device) does not."""

    label: str
    layer: bool = True


@dataclass(frozen=True)
class Diagram:
    """Boxes in an order in which edges run forwards, small ones anywhere; edges; clusters.

    `key` begins the picture's ids, `noun` is what a box is called. `title` is the answer that the picture
    gives, `subtitle` says how to read it. `source` is the text that the boxes' origins are places of, if it is known. `cycles` are the
    whole program's, where those of its boxes are known.
    """

    key: str
    noun: str
    title: str
    subtitle: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    clusters: tuple[Cluster, ...] = field(default=())
    source: str = ""
    cycles: int = 0

    @cached_property
    def main_boxes(self) -> tuple[int, ...]:
        """The boxes that aren't small."""
        return tuple(index for index, box in enumerate(self.boxes) if not box.small)

    @cached_property
    def small_boxes(self) -> Mapping[int, list[int]]:
        """For each box that has small ones beside it, which those are."""
        found: dict[int, list[int]] = {}
        for index, box in enumerate(self.boxes):
            if box.small:
                found.setdefault(box.beside, []).append(index)
        return found

    @cached_property
    def edges_at(self) -> tuple[list[int], ...]:
        """For each box the edges that come or go there, in order."""
        found: tuple[list[int], ...] = tuple([] for _ in self.boxes)
        for number, edge in enumerate(self.edges):
            found[edge.tail].append(number)
            found[edge.head].append(number)
        return found

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """For each box its cluster or -1. A small box has the cluster of the box that it stands beside."""
        return tuple(self.boxes[box.beside].cluster if box.small else box.cluster for box in self.boxes)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """For each box its longest distance from a start; a small box has the rank of the one it stands beside. Edges that run backwards
        count for nothing."""
        ranks = [0] * len(self.boxes)
        for index in self.main_boxes:
            tails = (edge.tail for edge in map(self.edges.__getitem__, self.edges_at[index]) if edge.head == index)
            ranks[index] = max((ranks[tail] + 1 for tail in tails if tail < index and not self.boxes[tail].small), default=0)
        return tuple(ranks[box.beside] if box.small else ranks[index] for index, box in enumerate(self.boxes))

    def noun_of(self, indices: Iterable[int]) -> str:
        """What these boxes are called: `node` where they are called differently."""
        nouns = {self.boxes[index].noun or self.noun for index in indices}
        return nouns.pop() if len(nouns) == 1 else "node"

    @property
    def horizontal(self) -> bool:
        """Whether it runs from left to right, as long ones do."""
        return max(self.ranks, default=0) >= LONG_CHAIN

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of all boxes, each once, in the palette's order."""
        return in_order(kind for box in self.boxes for kind in box.kinds)
