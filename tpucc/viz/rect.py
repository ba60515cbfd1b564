"""Places on a page, in pixels from its upper left corner."""

from __future__ import annotations

from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Rect) -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def moved(self, dx: float, dy: float) -> Rect:
        return Rect(self.left + dx, self.top + dy, self.right + dx, self.bottom + dy)


def hull(rects: list[Rect]) -> Rect:
    """The smallest rectangle around all; a point when there is none."""
    if not rects:
        return Rect(0.0, 0.0, 0.0, 0.0)
    return Rect(min(r.left for r in rects), min(r.top for r in rects), max(r.right for r in rects), max(r.bottom for r in rects))
