"""A way to do a program in parts of its batch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """The items of each part.

    Parts follow each other, unless there is a `lead`: then two halves take turns step by step, the first so many steps ahead. `ahead`: the
    inputs of a part are read before the part before it begins. Only the first `parted` steps are done part by part, all unless said; those
    after them for the whole batch.
    """

    sizes: tuple[int, ...]
    lead: int | None = None
    ahead: bool = False
    parted: int | None = None

    def first(self, part: int) -> int:
        """The first item of a part."""
        return sum(self.sizes[:part])

    def is_parted(self, step: int) -> bool:
        """Whether a step is done part by part."""
        return len(self.sizes) > 1 and (self.parted is None or step < self.parted)


def even(items: int, parts: int) -> tuple[int, ...]:
    """Items in parts whose sizes differ by at most one, the larger first."""
    size, larger = divmod(items, parts)
    return tuple(size + (part < larger) for part in range(parts))
