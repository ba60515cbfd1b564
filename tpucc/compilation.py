"""A compilation while it runs and when it is done: the result and the time of each stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tpucc.back_end import BackEnd
from tpucc.diagnostics import Source
from tpucc.ir import Graph
from tpucc.ir.printer import print_firings, print_graph
from tpucc.isa.program import Program
from tpucc.language.elaborate import Model
from tpucc.layers.partition import Partition, partition
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import AnyArray
from tpucc.options import Options as Options
from tpucc.schedule.pipeline import with_host_part

if TYPE_CHECKING:
    from tpucc.isa.listing.lines import ListingSpans  # the listings' reader: a model that is compiled from its source needs none

Stage = Graph | TileProgram | Program
Observer = Callable[["Snapshot"], None]


@dataclass(frozen=True)
class Snapshot:
    """A stage's result, as the observer sees it: its number and name, the value, and the seconds it took."""

    number: int
    stage: str
    value: Stage | Source
    seconds: float
    changed: bool
    summary: str = ""
    """One line about what the pass does."""
    place: str = ""
    """Of a pass's result: the pass, and which one it is where another of this name comes later."""

    @property
    def suffix(self) -> str:
        """The kind of its text form: `.graph`, `.tile`, `.asm`."""
        return ".graph" if isinstance(self.value, Graph) else ".tile" if isinstance(self.value, TileProgram) else ".asm"

    @property
    def rules(self) -> str:
        """How the rules of a pass made the graph, as lines of comments; empty for other stages."""
        return print_firings(self.value.firings) if isinstance(self.value, Graph) else ""

    def text(self, with_data: bool = False) -> str:
        """The value in its text form, from which `tpucc.resume` goes on. Without data, large constants stand by their digests."""
        if isinstance(self.value, Source):
            return self.value.text
        if isinstance(self.value, TileProgram):
            from tpucc.lowering.tiletext import print_tiles

            return print_tiles(self.value, with_data)
        if isinstance(self.value, Program):
            from tpucc.isa.assembler import disassemble

            return disassemble(self.value, with_data)
        return print_graph(self.value, with_data=with_data, after=self.place)


@dataclass(frozen=True, eq=False)
class Compilation:
    """The results of a compilation, and its options. Results of stages after `stop_after` are None.

    `rewritten` are the user's passes that changed the graph. `like` is the graph of the model that an edited text stands for, and
    `places` says where the program's instructions stand in a text of instructions.
    """

    source: Source
    options: Options
    model: Model | None
    graph: Graph | None
    calibration: Mapping[str, AnyArray] | None
    layers: Graph | None
    tiles: TileProgram | None
    program: Program | None
    warnings: list[str]
    rewritten: Sequence[str]
    like: Graph | None
    places: ListingSpans | None
    snapshots: tuple[Snapshot, ...]

    @property
    def meant(self) -> Graph | None:
        """The graph that the program should compute: the model's, also if compiling continued from an edited graph."""
        return self.like or self.graph

    def layers_text(self, with_data: bool) -> str:
        """The text of `layers`, with the last pass in its head: a graph that has no layers would else go through all passes again."""
        assert self.layers is not None
        place = next((snapshot.place for snapshot in reversed(self.snapshots) if snapshot.value is self.layers), "")
        return print_graph(self.layers, with_data=with_data, after=place)

    @property
    def notes(self) -> tuple[str, ...]:
        """The warnings that are about the compile and not about a line of the source."""
        placed = {warning.render(self.source) for warning in self.model.warnings} if self.model else set()
        return tuple(note for note in self.warnings if note not in placed)

    @property
    def params(self) -> Mapping[str, str]:
        """The values that were given for the source's params, as they were written."""
        return self.options.params


class Stopped(Exception):
    """The stage of `stop_after` is done."""


class Recorder:
    """Times each stage, hands it to the observer, and stops after the one that was asked for."""

    def __init__(self, observer: Observer | None, stop_after: str | None, before: tuple[Snapshot, ...] = ()) -> None:
        self.snapshots = list(before)
        self._observer = observer
        self._stop_after = stop_after
        self._started = time.perf_counter()

    def done(
        self, stage: str, value: Stage | Source, *, changed: bool = True, last: bool = True, summary: str = "", place: str = ""
    ) -> None:
        seconds = time.perf_counter() - self._started
        snapshot = Snapshot(len(self.snapshots), stage, value, seconds, changed, summary, place)
        self.snapshots.append(snapshot)
        if self._observer is not None:
            self._observer(snapshot)
        if last and stage == self._stop_after:
            raise Stopped
        self._started = time.perf_counter()


@dataclass
class State:
    """The results of the stages so far."""

    source: Source
    options: Options
    model: Model | None = None
    graph: Graph | None = None
    calibration: Mapping[str, AnyArray] | None = None
    layers: Graph | None = None
    tiles: TileProgram | None = None
    program: Program | None = None
    warnings: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    """The user's passes that have changed the graph."""
    left_out: frozenset[str] = frozenset()
    """Passes that don't run, as the program is faster without them."""
    like: Graph | None = None
    """The graph of the model that an edited text stands for."""
    places: ListingSpans | None = None
    """Where the program's instructions stand in the text that it is made of."""

    @property
    def parts(self) -> Partition:
        assert self.layers is not None
        return partition(self.layers)

    @property
    def stages(self) -> BackEnd:
        """The back end with the stages that were asked for."""
        return self.options.stages.of(self.whole)

    def whole(self, program: Program) -> Program:
        """The scheduled program with the host's part."""
        assert self.layers is not None
        assert self.graph is not None
        return with_host_part(program, self.layers, self.source, self.graph, self.options.cores)

    def compilation(self, recorder: Recorder) -> Compilation:
        """The results so far, as one value."""
        made = {name: value for name, value in vars(self).items() if name != "left_out"}
        return Compilation(**made, snapshots=tuple(recorder.snapshots))
