"""What is inside the boxes that stand for several: pictures to open, and to open boxes in again, as many as the budget allows.

Each is a part of the full diagram, collapsed again where it is still too large. Repeated runs come first, then the rest level by level.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted
from tpucc.viz.diagrams.collapse import Collapsed, collapse
from tpucc.viz.diagrams.diagram import Box, Diagram
from tpucc.viz.diagrams.part import Part, Period, Whole

BUDGET = 1500
"""Boxes in all insides of a page."""
READABLE = 60
"""Boxes that one of them may have, before they are collapsed."""
LISTED = 12
"""Members that are named."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What a box stands for. `name` is its diagram's, a dash and the box's number: `graph-3`, and `graph-3-7` for box 7 in there.

    `members` are the names of the first of `count` boxes of the full diagram, each a `noun`. `diagram` is what opens; None where the
    budget was spent.
    """

    name: str
    title: str
    noun: str
    count: int
    members: tuple[str, ...]
    diagram: Diagram | None


@dataclass(frozen=True, slots=True)
class _Closed:
    """A box that stands for several and may be opened; `period` has its members as boxes of the whole diagram."""

    name: str
    box: Box
    whole: Whole
    period: Period


def insides(diagrams: Sequence[Diagram], budget: int = BUDGET) -> list[Inside]:
    """The insides of full diagrams as they are collapsed for a page, in the order in which they were opened. Linear but for sorting."""
    order = itertools.count()
    waiting: list[tuple[bool, int, _Closed]] = []
    for diagram in diagrams:
        for closed in _closed(diagram.key, collapse(diagram), Part(diagram, tuple(range(len(diagram.boxes)))), Whole(diagram)):
            heapq.heappush(waiting, (closed.period.repeats == 1, next(order), closed))
    found: list[Inside] = []
    while waiting:
        closed = heapq.heappop(waiting)[2]
        inside, deeper = _opened(closed, budget)
        budget -= len(inside.diagram.boxes) if inside.diagram else 0
        found.append(inside)
        for other in deeper:
            heapq.heappush(waiting, (other.period.repeats == 1, next(order), other))
    return found


def _closed(name: str, picture: Collapsed, part: Part, whole: Whole) -> Iterator[_Closed]:
    """The boxes of a picture of `part` that stand for several."""
    origins = part.origins()
    for index, box in enumerate(picture.diagram.boxes):
        if box.stands_for > 1:
            members = [part.whole[member] for member in picture.members[index]]
            yield _Closed(f"{name}-{index}", box, whole, Period(members, picture.repeats[index], origins))


def _opened(closed: _Closed, budget: int) -> tuple[Inside, list[_Closed]]:
    """A box's inside, if the budget allows it, and the boxes in it that may be opened."""
    whole, period = closed.whole, closed.period
    count = len(period.members)
    members = tuple(whole.diagram.boxes[index].called for index in period.members[:LISTED])
    listed = Inside(closed.name, closed.box.title, whole.diagram.noun, count, members, None)
    if budget < 2:
        return listed, []
    part = whole.part(closed.name, _title(closed), period)
    picture = collapse(part.diagram, READABLE)
    if len(picture.diagram.boxes) > budget:
        return listed, []
    opened = Inside(closed.name, closed.box.title, whole.diagram.noun, count, members, picture.diagram)
    return opened, list(_closed(closed.name, picture, part, whole))


def _title(closed: _Closed) -> str:
    """`fc1 · line 9: 3 operators`, `250 × 18 operators: period 2 of 250 equal ones`."""
    period, title = closed.period, closed.box.title
    if period.repeats > 1:
        return f"{title}: period {period.number + 1} of {period.repeats:,} equal ones"
    size = counted(len(period.members), closed.whole.diagram.noun)
    return title if title == size else f"{title}: {size}"
