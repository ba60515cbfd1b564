"""The names of the points of a chart: beside them, or numbers at the points and the names in a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted
from tpucc.explain.names import shortened, whole
from tpucc.viz.charts.beside import NEAR, Room, are_near
from tpucc.viz.legend import Legend
from tpucc.viz.rect import Point
from tpucc.viz.svg import Markup, joined, label
from tpucc.viz.text import SMALL, fitted, text_width

MOST = 40
"""Points that have a number; the legend says how many others there are."""
FEW = 6
"""Points whose names may stand farther away, at the end of a line."""
WIDER = (12.0, 16.0)
"""Points that are nearer to each other than this share a number, where some would have none otherwise; tried one after the other."""
COLUMN, LINE = 200.0, 17.0
"""The least width of a column, and the height of a line, of the legend."""

APART = 20.0
"""What is left free between columns."""
LIMITS = (16, 13, 10, 8, 6)
"""So many characters of each name are tried where names have no room."""
LONG = 7
"""So many lines may have one column, where names don't fit into two."""


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point with its name. If there isn't room for all names, the points with the most weight have one."""

    name: str
    place: Point
    weight: int


class _Names:
    """The names of all points, shortened so that different ones stay different."""

    def __init__(self, points: Sequence[NamedPoint]) -> None:
        self._names = [*dict.fromkeys(point.name for point in points)]
        self._known: dict[int, dict[str, str]] = {}

    def of(self, point: NamedPoint, limit: int) -> str:
        """In at most `limit` characters, or in the fewest more that tell the names apart."""
        if limit not in self._known:
            self._known[limit] = dict(zip(self._names, shortened([*map(whole, self._names)], limit), strict=True))
        return self._known[limit][point.name]


@dataclass(frozen=True, slots=True)
class _Group:
    """Points that lie on each other; `names` are those of all points."""

    place: Point
    points: tuple[NamedPoint, ...]
    names: _Names

    @property
    def weight(self) -> int:
        return sum(point.weight for point in self.points)

    @property
    def words(self) -> str:
        return self.words_of(24 if len(self.points) <= 2 else 20)

    def words_of(self, limit: int) -> str:
        """The names, of at most `limit` characters each: both, or the first and the last with how many there are."""
        names = [self.names.of(point, limit) for point in self.points]
        return ", ".join(names) if len(names) <= 2 else f"{names[0]} … {names[-1]} ({len(names)})"

    def words_in(self, width: float) -> str:
        """The words, shortened name by name until they are at most so wide: what is behind the names stays."""
        trials = [self.words, *map(self.words_of, LIMITS)]
        return next((words for words in trials if text_width(words, SMALL) <= width), fitted(trials[-1], SMALL, width))


def names_of_points(points: Sequence[NamedPoint], room: Room, below: float) -> Legend:
    """Names beside the points, one for points that lie on each other. If some have no room, numbers, and the names in a legend `below`."""
    groups = _groups(points)
    trial = room.copied()
    beside = [trial.place(group.words, group.place, 9, is_led=len(groups) <= FEW) for group in groups]
    if all(beside):
        return Legend(joined(beside), 0)
    chosen, numbers = _numbered(groups, room)
    for distance in WIDER:
        if _count(chosen) < len(points):
            wider = _numbered(_groups(points, distance), room)
            chosen, numbers = max((chosen, numbers), wider, key=lambda tried: _count(tried[0]))
    return _legend(chosen, len(points) - _count(chosen), numbers, room, below)


def _count(groups: Sequence[_Group]) -> int:
    return sum(len(group.points) for group in groups)


def _groups(points: Sequence[NamedPoint], distance: float = NEAR) -> list[_Group]:
    groups: list[list[NamedPoint]] = []
    for point in points:
        near = next((group for group in groups if are_near(group[0].place, point.place, distance)), None)
        if near is None:
            groups.append([point])
        else:
            near.append(point)
    names = _Names(points)
    return [_Group(group[0].place, tuple(group), names) for group in groups]


def _numbered(groups: Sequence[_Group], room: Room) -> tuple[list[_Group], list[Markup]]:
    """The groups that have room for a number, from the left, and their numbers 1, 2, … The heaviest choose their places first."""
    chosen = sorted(groups, key=lambda group: -group.weight)[:MOST]
    while True:
        order = sorted(chosen, key=lambda group: group.place)
        trial = room.copied()
        numbers = {group: trial.place(str(order.index(group) + 1), group.place, 8) for group in chosen}
        if all(numbers.values()):
            return order, [numbers[group] for group in order]
        chosen = [group for group in chosen if numbers[group]]


def _legend(groups: Sequence[_Group], others: int, numbers: Sequence[Markup], room: Room, below: float) -> Legend:
    """The numbers at the points, and what they stand for in columns."""
    heads = [f"{count}: " for count in range(1, len(groups) + 1)]
    last = [f"no room for the numbers of {counted(others, 'layer')}"] if others else []
    whole, lines = room.area.right - room.area.left, len(groups) + len(last)
    widest = max(text_width(text, SMALL) for text in [*(head + group.words for head, group in zip(heads, groups, strict=True)), *last])
    columns = 1 if whole < 2 * COLUMN or (widest > whole / 2 - APART and lines <= LONG) else 2
    height, width = math.ceil(lines / columns), whole / columns
    words = [head + group.words_in(width - APART - text_width(head, SMALL)) for head, group in zip(heads, groups, strict=True)]
    parts = [*numbers]
    for place, text in enumerate([*words, *(fitted(text, SMALL, width - APART) for text in last)]):
        x, y = room.area.left + place // height * width, below + LINE * (place % height + 0.6)
        parts.append(label(text, x, y))
    return Legend(joined(parts), height * LINE + 14)
