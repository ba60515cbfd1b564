"""The stages as values: each is the built-in function unless another is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tpucc.back_end import STAGES, BackEnd
from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.plugins.code import short
from tpucc.schedule.allocate import Allocate, allocate
from tpucc.schedule.synchronise import Synchronise, synchronise
from tpucc.stages.products import LowerProduct, lower_product

if TYPE_CHECKING:
    from tpucc.isa.listing.lines import ListingSpans  # the listings' reader: a model that is compiled from its source needs none

Order = Callable[[TileProgram], Sequence[int]]
"""`order(tiles)`: the numbers of the tile instructions in their new order."""


def as_lowered(tiles: TileProgram) -> Sequence[int]:
    """The built-in order: lowering's."""
    return range(len(tiles))


@dataclass(frozen=True)
class Stages(BackEnd):
    """The functions of a compilation for the stages that can be replaced.

    `lower_fc(layer)` and `lower_conv(layer)` write the `.tile` lines of one layer (see `ProductLayer`). `allocate(lives, rows)` gives each
    buffer its first row, or raises `TooLarge`. `order(tiles)` gives the numbers of the tile instructions in a new order.
    `synchronise(listing)` gives the waits as (before instruction, engine that waits, engines waited for).
    """

    lower_fc: LowerProduct = lower_product
    lower_conv: LowerProduct = lower_product
    allocate: Allocate = allocate
    order: Order = as_lowered
    synchronise: Synchronise = synchronise

    def __post_init__(self) -> None:
        for stage in STAGES:
            if not callable(getattr(self, stage)):
                raise UsageError(Diagnostic("E0526", f"the stage {stage} is a function, found {short(getattr(self, stage))}"))

    @property
    def replaced(self) -> Mapping[str, Callable[..., Any]]:
        """The stages that are not the built-in ones."""
        given = {stage: getattr(self, stage) for stage in STAGES}
        return {stage: function for stage, function in given.items() if function is not getattr(BUILT_IN, stage)}

    def of(self, whole: Callable[[Program], Program], places: ListingSpans | None = None) -> BackEnd:
        """Calls of the user's functions; the built-in back end where none is the user's."""
        if not self.replaced:
            return BackEnd()
        from tpucc.stages.backend import GuardedBackEnd  # only a replaced stage needs it

        return GuardedBackEnd(self.replaced, whole, places)


BUILT_IN = Stages()
if tuple(field.name for field in fields(Stages)) != STAGES:
    raise TypeError("the stages that can be replaced are those that the back end lists, in one order")
