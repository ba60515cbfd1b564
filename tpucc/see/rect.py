"""Places on a page, in pixels from its upper left corner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> Point:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def meets(self, other: Rect) -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def moved(self, dx: float, dy: float) -> Rect:
        return Rect(self.left + dx, self.top + dy, self.right + dx, self.bottom + dy)


def centred(x: float, y: float, size: tuple[float, float]) -> Rect:
    """The rectangle of this size whose middle is (x, y)."""
    return Rect(x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def hull(rects: Iterable[Rect]) -> Rect:
    """The smallest rectangle around all; a point when there is none."""
    sides = [(r.left, r.top, r.right, r.bottom) for r in rects] or [(0.0, 0.0, 0.0, 0.0)]
    left, top, right, bottom = zip(*sides, strict=True)
    return Rect(min(left), min(top), max(right), max(bottom))
