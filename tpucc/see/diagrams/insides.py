"""The insides of the boxes that stand for several: pictures that open, with boxes that open in turn, as many as the budget allows.

Each is a part of the full diagram, collapsed again where it is still too large. Repeated runs come first, then the rest level by level.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tpucc.diagnostics import counted
from tpucc.see.diagrams.collapse import Collapsed, sized
from tpucc.see.diagrams.diagram import Box, Diagram
from tpucc.see.diagrams.part import Part, Period

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
