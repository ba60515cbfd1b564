"""The back end with stages of the user's: lowering, order, schedule.

Programs that a stage of the user's had a hand in are verified as soon as they are there, before anything else reads them; what is wrong
with one is the user's stages'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tpucc.back_end import BackEnd
from tpucc.diagnostics import Diagnostic, Error, InternalError, PluginError, ProgramError, Source, listed
from tpucc.isa.program import Program
from tpucc.isa.verify import model_of, raise_violations, verify
from tpucc.layers.partition import Partition
from tpucc.lowering.lower import Drafts, drafts_of
from tpucc.lowering.tileprogram import MULTIPLIES, TileProgram
from tpucc.lowering.verify import tile_violations, verify_tiles
from tpucc.machines.v1 import Flag, Opcode
from tpucc.numerics import Int64
from tpucc.plugins.code import user_code
from tpucc.schedule import schedule
from tpucc.schedule.allocate import allocate as built_in_allocate
from tpucc.schedule.synchronise import synchronise as built_in_synchronise
from tpucc.stages.numbering import Numbering, scheduled_places, tile_numbers
from tpucc.stages.replaced import safe_allocate, safe_lowerer, safe_order, safe_synchronise
from tpucc.target import Target

if TYPE_CHECKING:
    from tpucc.isa.listing.lines import ListingSpans  # the listings' reader: a model that is compiled from its source needs none

T = TypeVar("T")
OF_TILES = ("lower_fc", "lower_conv", "order")
"""Stages that make the tile program; the others place it on the machine."""


@dataclass(frozen=True)
class GuardedBackEnd(BackEnd):
    """Calls the functions `of_user` in the place of the stages of these names; see `BackEnd.of` for the others."""

    of_user: Mapping[str, Callable[..., Any]]
    whole: Callable[[Program], Program]
    places: ListingSpans | None

    @property
    def replaced(self) -> Mapping[str, Callable[..., Any]]:
        return self.of_user

    def drafts(self, parts: Partition, target: Target, most: int) -> Drafts:
        stages = {kind: stage for kind, stage in LOWERERS.items() if stage in self.of_user}
        lowerers = {kind: safe_lowerer(stage, self.of_user[stage]) for kind, stage in stages.items()}
        return drafts_of(parts.device, target, segments=parts.segments, lowerers=lowerers, most=most)

    def programs(self, drafts: Drafts) -> Iterator[TileProgram]:
        """The tile programs of drafts that have room, in the order of the stage `order`."""
        if not self.of_user.keys() & set(OF_TILES):
            return drafts.programs()
        order = safe_order(self.of_user["order"]) if "order" in self.of_user else None
        return (self._verified(tiles, order) for tiles in drafts.programs())

    def uncalled(self, tiles: TileProgram) -> Iterator[str]:
        """A note of each lowering of the user's for which a program has no layer: a verdict on it says nothing."""
        kinds = {layer.kind for layer in tiles.layers}
        for kind, stage in LOWERERS.items():
            if stage in self.of_user and kind not in kinds:
                yield f"{stage} is not called: the model has no layer of the kind {kind}"

    def schedule(self, tiles: TileProgram) -> Program:
        of_user, names = self.of_user, [buffer.name for buffer in tiles.buffers]
        allocate = safe_allocate(of_user["allocate"], names) if "allocate" in of_user else built_in_allocate
        synchronise = safe_synchronise(of_user["synchronise"]) if "synchronise" in of_user else built_in_synchronise

        def scheduled() -> Program:
            program = schedule(tiles, allocate, synchronise)
            places = scheduled_places(self.places, tiles, program) if self.places is not None else None
            whole, numbering = self.whole(program), _numbering(tiles, program, "synchronise" in of_user)
            model = model_of(whole)
            found = list(map(numbering.said, verify(whole, places)))
            raise_violations(whole, found, model, places.source if places else model, places)
            return program

        return self._blamed(scheduled, tuple(of_user))

    def _verified(self, tiles: TileProgram, order: Callable[[TileProgram], Int64] | None) -> TileProgram:
        def verified() -> TileProgram:
            verify_tiles(tiles, model=Source(tiles.source, ""))
            if order is None:
                return tiles
            named = _with_tiles_named(tiles)
            numbers = order(named)
            ordered = replace(named, instructions=named.instructions[numbers])
            numbering = Numbering("the tile program that order got", numbers)
            program, found = tile_violations(ordered)
            source = Source(tiles.source, "")
            raise_violations(program, list(map(numbering.said, found)), source, source)
            return ordered

        return self._blamed(verified, tuple(stage for stage in self.of_user if stage in OF_TILES))

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
        places = [f"{name} ({user_code(name, self.of_user[name]).place})" for name in names]
        what = f"the stage {names[0]}" if len(names) == 1 else f"one of the stages {listed(places)}"
        return user_code(what, self.of_user[names[-1]]).error("E0525", message, more=found)


def _with_tiles_named(tiles: TileProgram) -> TileProgram:
    """The program in which each multiply names the tile that it uses, so that another order may move it. Scheduling removes a switch to the
    tile that is in use already."""
    code = tiles.instructions.copy()
    multiplies = np.isin(code["opcode"], MULTIPLIES)
    switches = multiplies & ((code["flags"] & Flag.SWITCH) != 0)
    latest = np.maximum.accumulate(np.where(switches, np.arange(len(code)), 0))
    code["index"][multiplies] = code["index"][latest[multiplies]]
    code["flags"][multiplies] |= np.uint8(Flag.SWITCH)
    return replace(tiles, instructions=code)


def _numbering(tiles: TileProgram, program: Program, waits: bool) -> Numbering:
    """The numbers of instructions that the user's stages know: without the waits, if the user makes them, or else in the tile program."""
    if waits:
        synchronises = program.instructions["opcode"] == Opcode.SYNCHRONIZE
        return Numbering("the listing without waits that synchronise got", np.where(synchronises, -1, np.cumsum(~synchronises) - 1))
    return Numbering("the tile program", tile_numbers(tiles, program))


LOWERERS = {"fc": "lower_fc", "conv": "lower_conv"}
"""The stage that lowers layers of a kind."""
