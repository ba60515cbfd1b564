"""The names of the points of a chart, beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.explain.names import shortened, whole
from tpucc.see.charts.beside import Room, are_near
from tpucc.see.rect import Point
from tpucc.see.svg import Markup, joined

FEW = 12
"""Points whose names may stand farther away, at the end of a line."""
LIMITS = (24, 16, 10, 6)
"""So many characters of each name are tried."""


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point with its name. If there isn't room for all names, the points with the most weight have one."""

    name: str
    place: Point
    weight: int


def names_of_points(points: Sequence[NamedPoint], room: Room) -> tuple[Markup, int]:
    """Names beside the points, one for points that lie on each other; and how many points have none, as there is no room."""
    groups: list[list[NamedPoint]] = []
    for point in points:
        near = next((group for group in groups if are_near(group[0].place, point.place)), None)
        if near is None:
            groups.append([point])
        else:
            near.append(point)
    names = [*dict.fromkeys(point.name for point in points)]
    short = [dict(zip(names, shortened([*map(whole, names)], limit), strict=True)) for limit in LIMITS]
    placed, unnamed = list[Markup](), 0
    for group in sorted(groups, key=lambda group: -sum(point.weight for point in group)):
        words = dict.fromkeys(_words([known[point.name] for point in group]) for known in short)
        found = next(filter(None, (room.place(text, group[0].place, 9, is_led=len(groups) <= FEW) for text in words)), None)
        placed += [found] if found else []
        unnamed += 0 if found else len(group)
    return joined(placed), unnamed


def _words(names: Sequence[str]) -> str:
    """The names of points that lie on each other: both, or the first and the last with how many there are."""
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} … {names[-1]} ({len(names)})"
