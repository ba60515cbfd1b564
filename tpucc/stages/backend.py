"""The back end with the stages that a compilation uses: lowering, order, schedule.

Programs that a stage of the user's had a hand in are verified as soon as they are there, before anything else reads them; what is wrong
with one is the user's stages'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tpucc.diagnostics import Diagnostic, Error, InternalError, PluginError, ProgramError, Source, listed
from tpucc.isa.numbering import Numbering
from tpucc.isa.program import Program
from tpucc.layers.partition import Partition
from tpucc.lowering.lower import Drafts, drafts_of
from tpucc.lowering.plan import BUILT_IN
from tpucc.lowering.products import Lowerer
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machines.v1 import Opcode
from tpucc.numerics import Int64
from tpucc.plugins.code import user_code
from tpucc.schedule import schedule
from tpucc.schedule.pipeline import scheduled_places, tile_numbers
from tpucc.stages.stages import Stages
from tpucc.target import Target

if TYPE_CHECKING:
    from tpucc.isa.listing.lines import Places  # the listings' reader: a model that is compiled from its source needs none

T = TypeVar("T")
OF_TILES = ("lower_fc", "lower_conv", "order")
"""Stages that make the tile program; the others place it on the machine."""


@dataclass(frozen=True)
class BackEnd:
    """Runs `stages`. `whole` gives a scheduled program its host part, which the verifier asks for. `places` says where the tile
    instructions stand, when they were read from a text."""

    stages: Stages
    whole: Callable[[Program], Program]
    places: Places | None = None

    def drafts(self, parts: Partition, target: Target, most: int) -> Drafts:
        """The drafts of a partition's device graph, with the lowerings that are replaced: see `lowering.lower.drafts_of`."""
        lowerers: Mapping[str, Lowerer] = BUILT_IN
        if stages := {kind: stage for kind, stage in LOWERERS.items() if stage in self.stages.replaced}:
            from tpucc.stages.replaced import safe_lowerer

            lowerers = {kind: safe_lowerer(stage, self.stages.replaced[stage]) for kind, stage in stages.items()}
        return drafts_of(parts.device, target, segments=parts.segments, lowerers=lowerers, most=most)

    def programs(self, drafts: Drafts) -> Iterator[TileProgram]:
        """The tile programs of drafts that have room, in the order of the stage `order`."""
        replaced = self.stages.replaced
        if not replaced.keys() & set(OF_TILES):
            return drafts.programs()
        from tpucc.stages.replaced import safe_order

        order = safe_order(self.stages.order) if "order" in replaced else None
        return (self._verified(tiles, order) for tiles in drafts.programs())

    def uncalled(self, tiles: TileProgram) -> Iterator[str]:
        """A note of each lowering of the user's for which a program has no layer: a verdict on it says nothing."""
        kinds = {layer.kind for layer in tiles.layers}
        for kind, stage in LOWERERS.items():
            if stage in self.stages.replaced and kind not in kinds:
                yield f"{stage} is not called: the model has no layer of the kind {kind}"

    def schedule(self, tiles: TileProgram) -> Program:
        """The machine program of a tile program. Raises what `schedule.schedule` raises."""
        replaced = self.stages.replaced
        if not replaced:
            return schedule(tiles)
        from tpucc.isa.verify import check
        from tpucc.stages.replaced import safe_allocate, safe_synchronise

        names = [buffer.name for buffer in tiles.buffers]
        allocate = safe_allocate(self.stages.allocate, names) if "allocate" in replaced else self.stages.allocate
        synchronise = safe_synchronise(self.stages.synchronise) if "synchronise" in replaced else self.stages.synchronise

        def scheduled() -> Program:
            program = schedule(tiles, allocate, synchronise)
            places = scheduled_places(self.places, tiles, program) if self.places is not None else None
            check(self.whole(program), places, _numbering(tiles, program, "synchronise" in replaced))
            return program

        return self._blamed(scheduled, tuple(replaced))

    def _verified(self, tiles: TileProgram, order: Callable[[TileProgram], Int64] | None) -> TileProgram:
        from tpucc.lowering.verify import verify_tiles

        def verified() -> TileProgram:
            verify_tiles(tiles, model=Source(tiles.source, ""))
            if order is None:
                return tiles
            numbers = order(tiles)
            ordered = replace(tiles, instructions=tiles.instructions[numbers])
            verify_tiles(ordered, model=Source(tiles.source, ""), numbering=Numbering("the tile program that order got", numbers))
            return ordered

        return self._blamed(verified, tuple(stage for stage in self.stages.replaced if stage in OF_TILES))

    def _blamed(self, make: Callable[[], T], names: tuple[str, ...]) -> T:
        """The result of `make`; its errors are reported as those of the replaced stages `names`."""
        try:
            return make()
        except Error as error:
            if not isinstance(error, ProgramError | InternalError):
                raise
            raise self._refused(names, "made a program that is not valid:", tuple(error.diagnostics)) from error
        except MemoryError:
            raise
        except Exception as error:
            raise self._refused(names, f"made a program that can't be read: {type(error).__name__}: {error}") from error

    def _refused(self, names: tuple[str, ...], message: str, found: tuple[Diagnostic, ...] = ()) -> PluginError:
        replaced = self.stages.replaced
        places = [f"{name} ({user_code(name, replaced[name]).place})" for name in names]
        what = f"the stage {names[0]}" if len(names) == 1 else f"one of the stages {listed(places)}"
        return user_code(what, replaced[names[-1]]).error("E0525", message, more=found)


def _numbering(tiles: TileProgram, program: Program, waits: bool) -> Numbering:
    """The numbers that the user's stages know: those without the waits, if these are theirs, or else those of the tile program."""
    if waits:
        synchronises = program.instructions["opcode"] == Opcode.SYNCHRONIZE
        return Numbering("the listing without waits that synchronise got", np.where(synchronises, -1, np.cumsum(~synchronises) - 1))
    return Numbering("the tile program", tile_numbers(tiles, program))


LOWERERS = {"fc": "lower_fc", "conv": "lower_conv"}
"""The stage that lowers layers of a kind."""
