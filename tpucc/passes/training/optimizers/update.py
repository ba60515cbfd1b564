"""What an optimizer's rule gets: one state with its gradient, and slots, which are states of the optimizer's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tpucc.ops.gradient import Value


class Slots(Protocol):
    """Makes the optimizer's own states."""

    def slot(self, name: str) -> Value:
        """An array of the weight's shape, zeros before the first step."""
        ...

    def move(self, slot: Value, to: Value) -> Value:
        """Gives a slot its value after the step, which is returned."""
        ...

    def power(self, name: str, base: float) -> Value:
        """`base` to the power of the number of this step, counted from 1; one value for all weights."""
        ...


@dataclass(frozen=True, slots=True)
class Update:
    """`weight` and `gradient` have one shape."""

    weight: Value
    gradient: Value
    slots: Slots
