"""The back end of a compilation: lowering, then scheduling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tpucc.isa.program import Program
from tpucc.layers.partition import Partition
from tpucc.lowering.lower import Drafts, drafts_of
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule import schedule
from tpucc.target import Target

if TYPE_CHECKING:
    from tpucc.isa.listing.lines import ListingSpans  # the listings' reader: a model that is compiled from its source needs none

STAGES = ("lower_fc", "lower_conv", "allocate", "order", "synchronise")
"""The stages that a user may bring a function for: `tpucc.stages` has the back end that calls it."""


@dataclass(frozen=True)
class BackEnd:
    """The built-in back end. One with stages of the user's is a subclass of it."""

    @property
    def replaced(self) -> Mapping[str, Callable[..., Any]]:
        """The stages that are the user's."""
        return MappingProxyType({})

    def of(self, whole: Callable[[Program], Program], places: ListingSpans | None = None) -> BackEnd:
        """The back end for one compilation. `whole` gives a scheduled program its host part, which the verifier asks for. `places` says
        where the tile instructions stand, when they were read from a text."""
        return self

    def drafts(self, parts: Partition, target: Target, most: int) -> Drafts:
        """The drafts of a partition's device graph, of at most so many instructions: see `lowering.lower.drafts_of`."""
        return drafts_of(parts.device, target, segments=parts.segments, most=most)

    def programs(self, drafts: Drafts) -> Iterator[TileProgram]:
        """The tile programs of drafts that have room."""
        return drafts.programs()

    def schedule(self, tiles: TileProgram) -> Program:
        """The machine program of a tile program. Raises what `schedule.schedule` raises."""
        return schedule(tiles)

    def uncalled(self, tiles: TileProgram) -> Iterator[str]:
        """Notes for the user: of each stage of theirs that a program has no use for."""
        return iter(())
