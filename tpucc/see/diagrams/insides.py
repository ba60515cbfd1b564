"""Parts of a diagram as diagrams of their own: some of its boxes with what is beside them, and dashed boxes for what lies outside.

The insides of the boxes that stand for several are such parts: pictures that open, with boxes that open in turn, as many as the budget
allows. Each is collapsed again where it is still too large. Repeated runs come first, then the rest level by level."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import Origin, counted
from tpucc.see.diagrams.collapse import Collapsed, sized
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge
from tpucc.see.palette import Kind

MOST_STUBS = 8
"""Boxes outside that a part shows on either side; where there are more, the last one stands for all others."""
SUBTITLE = "The dashed boxes are outside: where values come from, and where they go to."


@dataclass(frozen=True, slots=True)
class Part:
    """The part as a diagram; for each of its boxes which one of the whole diagram it is, -1 for those outside."""

    diagram: Diagram
    whole: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """One of the `repeats` equal stretches of the boxes of `whole` that follow each other in `members`.

    `origins` are those of members that already stand for others: of what is opened within a period.
    """

    whole: Diagram
    members: Sequence[int]
    repeats: int = 1
    origins: Mapping[int, tuple[Origin, ...]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Which one is shown: one that has others before and after it, if there are three."""
        return min(1, self.repeats - 1)

    @property
    def length(self) -> int:
        """Boxes of one stretch."""
        return len(self.members) // self.repeats

    def part(self, key: str, title: str) -> Part:
        """The part that is shown. Each box has the origins of the same box in all periods, and so lights up with each of them."""
        whole = self.whole
        shown = self.members[self.number * self.length : (self.number + 1) * self.length]
        inner = sorted([*shown, *(small for index in shown for small in whole.small_boxes.get(index, ()))])
        held = set(inner)
        edges = [whole.edges[number] for number in sorted({number for index in inner for number in whole.edges_at[index]})]
        before, entering = self._stubs({edge.tail for edge in edges} - held)
        after, leaving = self._stubs({edge.head for edge in edges} - held)
        place = {index: len(before) + number for number, index in enumerate(inner)}
        tails = entering | place
        heads = {index: len(before) + len(inner) + number for index, number in leaving.items()} | place
        moved = [replace(edge, tail=tails[edge.tail], head=heads[edge.head]) for edge in edges]
        inside, clusters = self._boxes(inner, place, {index: self.members[at :: self.length] for at, index in enumerate(shown)})
        boxes = (*before, *inside, *after)
        crowded = {len(before) - 1} if len(entering) > len(before) else set()
        crowded |= {len(boxes) - 1} if len(leaving) > len(after) else set()
        numbers = (*(-1 for _ in before), *inner, *(-1 for _ in after))
        return Part(
            Diagram(key, whole.noun, title, SUBTITLE, boxes, _thinned(moved, crowded), clusters, whole.source, whole.cycles), numbers
        )

    def _boxes(
        self, inner: Sequence[int], place: Mapping[int, int], likes: Mapping[int, Sequence[int]]
    ) -> tuple[list[Box], tuple[Cluster, ...]]:
        """The boxes inside, and the frames around them. One layer alone has none: its name is the picture's title."""
        boxes, layers = [self.whole.boxes[index] for index in inner], self.whole.clusters
        found = {box.cluster for box in boxes if not box.small}
        kept = [cluster for cluster in sorted(found) if cluster >= 0 and not (len(found) == 1 and layers[cluster].layer)]
        number = {cluster: new for new, cluster in enumerate(kept)}
        changed = [
            replace(
                box,
                cluster=number.get(box.cluster, -1),
                beside=place[box.beside] if box.small else -1,
                origins=self._origins(likes.get(index, (index,)), self.origins),
            )
            for index, box in zip(inner, boxes, strict=True)
        ]
        return changed, tuple(layers[cluster] for cluster in kept)

    def _origins(self, indices: Iterable[int], known: Mapping[int, tuple[Origin, ...]]) -> tuple[Origin, ...]:
        boxes = self.whole.boxes
        return tuple(dict.fromkeys(origin for index in indices for origin in known.get(index, boxes[index].origins)))

    def _stubs(self, outside: set[int]) -> tuple[list[Box], dict[int, int]]:
        """Boxes for what is outside on one side, and at which of them each box of the whole diagram stands."""
        indices = sorted(outside)
        named = indices if len(indices) <= MOST_STUBS else indices[: MOST_STUBS - 1]
        boxes = [self._stub(index) for index in named]
        if others := indices[len(named) :]:
            boxes.append(Box(counted(len(others), "other"), Kind.HOST, origins=self._origins(others, {}), outside=True))
        return boxes, {index: min(number, len(named)) for number, index in enumerate(indices)}

    def _stub(self, index: int) -> Box:
        """A box outside by its name, and the period or the layer that it is in."""
        box, layers = self.whole.boxes[index], self.whole.clusters
        where = layers[box.cluster].label if box.cluster >= 0 and layers[box.cluster].layer else ""
        if index in self.members:
            where = f"period {self.members.index(index) // self.length + 1:,}"
        return Box(box.called, box.kind, (where,) if where else (), origins=box.origins, outside=True)


def _thinned(edges: Sequence[Edge], crowded: set[int]) -> tuple[Edge, ...]:
    """The edges, of which a box that stands for several has one for each box at the other end, without a label."""
    found: list[Edge] = []
    seen: set[tuple[int, int]] = set()
    for edge in edges:
        ends = edge.tail, edge.head
        if not crowded.intersection(ends):
            found.append(edge)
        elif ends not in seen:
            seen.add(ends)
            found.append(replace(edge, label=()))
    return tuple(found)


BUDGET = 1500
"""Boxes in all insides of a page."""
READABLE = 40
"""Boxes that one of them may have, before they are collapsed."""
LISTED = 12
"""Members that are named."""


@dataclass(frozen=True, slots=True)
class Inside:
    """The inside of a box. `name` is its diagram's, a dash and the box's number: `graph-3`, and `graph-3-7` for box 7 in there.

    `members` are the names of the first of `count` boxes of the full diagram, each a `noun`. `diagram` is what opens; None where the
    budget was spent.
    """

    name: str
    title: str
    noun: str
    count: int
    members: tuple[str, ...]
    diagram: Diagram | None


_Closed = tuple[str, Box, Period]
"""A box that stands for several and may be opened: the name of its inside, the box, and its members as boxes of the whole diagram."""


def insides(diagrams: Sequence[tuple[Diagram, Collapsed]], budget: int = BUDGET) -> list[Inside]:
    """The insides of full diagrams as they are collapsed for a page, in the order in which they were opened. Linear but for sorting."""
    order = itertools.count()
    waiting: list[tuple[bool, int, _Closed]] = []

    def wait(found: Iterator[_Closed]) -> None:
        for closed in found:
            heapq.heappush(waiting, (closed[2].repeats == 1, next(order), closed))

    for diagram, picture in diagrams:
        wait(_closed(diagram.key, picture, Part(diagram, tuple(range(len(diagram.boxes)))), diagram))
    found: list[Inside] = []
    while waiting:
        name, box, period = heapq.heappop(waiting)[2]
        members = [period.whole.boxes[index].called for index in period.members[:LISTED]]
        inside = Inside(name, box.title, period.whole.noun_of(period.members), len(period.members), tuple(members), None)
        if budget >= 2:
            part = period.part(name, _title(box, period))
            picture = next(sized(part.diagram, READABLE))
            if len(picture.diagram.boxes) <= budget:
                budget -= len(picture.diagram.boxes)
                inside = replace(inside, diagram=picture.diagram)
                wait(_closed(name, picture, part, period.whole))
        found.append(inside)
    return found


def _closed(name: str, picture: Collapsed, part: Part, whole: Diagram) -> Iterator[_Closed]:
    """The boxes of a picture of `part` that stand for several."""
    origins = {index: box.origins for index, box in zip(part.whole, part.diagram.boxes, strict=True) if index >= 0}
    for index, box in enumerate(picture.diagram.boxes):
        if box.stands_for > 1 and picture.members[index]:
            members = [part.whole[member] for member in picture.members[index]]
            yield f"{name}-{index}", box, Period(whole, members, picture.repeats[index], origins)


def _title(box: Box, period: Period) -> str:
    """`fc1 · line 9: 3 operators`, `250 × 18 operators: period 2 of 250 equal ones`."""
    if period.repeats > 1:
        return f"{box.title}: period {period.number + 1} of {period.repeats:,} equal ones"
    size = counted(len(period.members), period.whole.noun_of(period.members))
    return box.title if box.title == size else f"{box.title}: {size}"
