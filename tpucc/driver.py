"""The pipeline: from source text to a verified program, stage by stage.

`PASSES` is the order. The driver loads what the source names, runs every stage, verifies and times around it, and hands each result to
an observer; stages know nothing of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tpucc.diagnostics import Diagnostic, Error, Source, UsageError
from tpucc.frontend.elaborate import Limits, Model, elaborate
from tpucc.frontend.parse import parse
from tpucc.interop.sources import bind_weights, named_at, read_calibration
from tpucc.ir.collector import collector_paused
from tpucc.ir.dtypes import BY_BITS, DEFAULT_FORMAT
from tpucc.ir.graph import Graph
from tpucc.ir.printer import print_graph
from tpucc.isa.disassembler import disassemble
from tpucc.isa.program import Program
from tpucc.isa.verify import check
from tpucc.layers.partition import partition
from tpucc.lowering.lower import lowerings
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.tiletext import print_tiles
from tpucc.lowering.verify import verify_tiles
from tpucc.numerics import AnyArray
from tpucc.passes.base import Context, Pass
from tpucc.passes.cores.division import divisions
from tpucc.passes.pipeline import pipeline, unknown_name
from tpucc.passes.running import run_pass, verify_stage
from tpucc.schedule import schedule
from tpucc.schedule.fastest import fastest
from tpucc.schedule.host_part import with_host_part
from tpucc.target import Target, load_target, require_compilable

FRONT_STAGES = ("parse", "elaborate", "weights")
BACK_STAGES = ("lower", "schedule", "verify")

Stage = Graph | TileProgram | Program
Observer = Callable[["Snapshot"], None]


@dataclass(frozen=True)
class Options:
    """What a compilation is asked for, beside the source.

    `weights` and `calibration` are files that win over those the source names. `extra` are passes that the user brought; `settings`
    maps a pass's name to options for it; `omit` names optional passes to leave out; `cores` share the batch.
    """

    target: Target = field(default_factory=lambda: load_target("tpu_v1"))
    params: Mapping[str, str] = field(default_factory=dict)
    weights: Path | None = None
    calibration: Path | None = None
    level: int = 2
    extra: tuple[Pass, ...] = ()
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    omit: frozenset[str] = frozenset()
    activation_bits: int | None = None
    cores: int = 1
    stop_after: str | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Snapshot:
    """A stage's result, as the observer sees it: its number and name, the value, and the seconds it took."""

    number: int
    stage: str
    value: Stage | Source
    seconds: float
    changed: bool
    summary: str = ""
    """What a pass does, in a line."""
    place: str = ""
    """Of a pass's result: the pass, and which one it is where another of this name comes later."""

    @property
    def suffix(self) -> str:
        """The kind of its text form: `.graph`, `.tile`, `.asm`."""
        return ".graph" if isinstance(self.value, Graph) else ".tile" if isinstance(self.value, TileProgram) else ".asm"

    def text(self, with_data: bool = False) -> str:
        """The value in its text form, from which `tpucc.resume` goes on. Without data, large constants stand by their digests."""
        if isinstance(self.value, Source):
            return self.value.text
        if isinstance(self.value, TileProgram):
            return print_tiles(self.value, with_data)
        if isinstance(self.value, Program):
            return disassemble(self.value, with_data)
        return print_graph(self.value, with_data=with_data, after=self.place)


@dataclass(frozen=True, eq=False)
class Compilation:
    """All that a compilation made. What lies past `stop_after` is None."""

    source: Source
    options: Options
    model: Model | None
    graph: Graph | None
    calibration: Mapping[str, AnyArray] | None
    layers: Graph | None
    tiles: TileProgram | None
    program: Program | None
    warnings: list[str]
    snapshots: tuple[Snapshot, ...]

    @property
    def params(self) -> Mapping[str, str]:
        """The values that were given for the source's params, as they were written."""
        return self.options.params


class _Stopped(Exception):
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
            raise _Stopped
        self._started = time.perf_counter()


@dataclass
class State:
    """What the stages have made so far."""

    source: Source
    options: Options
    model: Model | None = None
    graph: Graph | None = None
    calibration: Mapping[str, AnyArray] | None = None
    layers: Graph | None = None
    tiles: TileProgram | None = None
    program: Program | None = None
    warnings: list[str] = field(default_factory=list)


def front_end(source: Source, options: Options) -> Model:
    """Parses and elaborates: all that `tpucc check` does. Raises `CompileError` with every diagnostic."""
    return elaborate(parse(source), source, options.params, options.limits)


def compile_source(source: Source, folder: Path, options: Options, observer: Observer | None = None) -> Compilation:
    """Compiles `source`, whose files (weights, calibration) are relative to `folder`.

    Raises `CompileError`, `InputError`, `LimitError` or `UsageError`, each with its diagnostics and the source they speak of.
    """
    require_compilable(options.target)
    if options.stop_after is not None:
        require_stage(options.stop_after, options)
    recorder = Recorder(observer, options.stop_after)
    return recorded(State(source, options), recorder, lambda state: _stages(state, folder, options, recorder))


def recorded(state: State, recorder: Recorder, stages: Callable[[State], None]) -> Compilation:
    """What `stages` make of `state`, to the stage that was asked for; errors that speak of the source get it."""
    try:
        stages(state)
    except _Stopped:
        pass
    except Error as error:
        if error.source is None and any(d.labels for d in error.diagnostics):
            raise type(error)(error.diagnostics, state.source) from None
        raise
    return Compilation(**vars(state), snapshots=tuple(recorder.snapshots))


def passes_of(options: Options) -> tuple[Pass, ...]:
    """The passes that these options ask for, in order. Raises `UsageError`."""
    return pipeline(options.level, options.extra, options.settings, options.omit)


def stage_names(options: Options) -> tuple[str, ...]:
    """The names that `--stop-after` and `--print-after` take, in order."""
    return tuple(dict.fromkeys(stage_order(options)))


def stage_order(options: Options) -> tuple[str, ...]:
    """The stages as they will run; a pass that runs twice stands twice."""
    return (*FRONT_STAGES, *(p.name for p in passes_of(options)), *BACK_STAGES)


def require_stage(name: str, options: Options) -> None:
    """Raises `UsageError` when no stage is named so."""
    if name not in stage_names(options):
        raise unknown_name("stage", name, stage_names(options))


@collector_paused()
def _stages(state: State, folder: Path, options: Options, recorder: Recorder) -> None:
    """Runs every stage; each leaves its result in `state` before the recorder may stop."""
    module = parse(state.source)
    recorder.done("parse", state.source)
    model = state.model = elaborate(module, state.source, options.params, options.limits)
    state.warnings.extend(w.render(state.source) for w in model.warnings)
    _require_supported(options.cores)
    state.graph = model.graph
    verify_stage(state.graph)
    recorder.done("elaborate", state.graph)
    state.graph = bind_weights(model, folder, options.weights)
    verify_stage(state.graph, model.graph)
    recorder.done("weights", state.graph, changed=state.graph != model.graph)
    if options.cores > 1:
        divisions(state.graph, options.cores)  # refused before the passes, while the operators are still the source's
    state.calibration = read_calibration(model, folder, options.calibration)
    run_passes(state, state.graph, options, recorder)
    back_end(state, options, recorder)


def run_passes(state: State, graph: Graph, options: Options, recorder: Recorder, done: int = 0) -> None:
    """Runs the passes on `graph`, which the first `done` of them have made."""
    declared = state.model.activations if state.model is not None else DEFAULT_FORMAT
    format = BY_BITS[options.activation_bits] if options.activation_bits else declared
    context = Context(options.target, state.calibration, options.cores, format)
    state.layers = graph
    steps, places = passes_of(options), pass_places(options)
    for index in range(done, len(steps)):
        step, place = steps[index], places[index]
        made = run_pass(step, graph, context)
        state.warnings.extend(made.notes)
        state.layers = made.without_notes()
        changed = state.layers != graph
        recorder.done(step.name, state.layers, changed=changed, last=place == step.name, summary=step.summary, place=place)
        graph = state.layers


def pass_places(options: Options) -> list[str]:
    """The passes as the head of a graph names them: `fuse-bias`; `constant-folding 1` where another of this name comes later."""
    names = [step.name for step in passes_of(options)]
    return [name if name not in names[index + 1 :] else f"{name} {names[: index + 1].count(name)}" for index, name in enumerate(names)]


def back_end(state: State, options: Options, recorder: Recorder) -> None:
    """Lowers, schedules and verifies the layer graph."""
    assert state.layers is not None
    assert state.graph is not None
    parts = partition(state.layers)
    with named_at(state.model.weights_span if state.model and options.weights is None else None, "E0622"):
        candidates = lowerings(parts.device, options.target, segments=parts.segments)
        state.tiles, scheduled = fastest(candidates, options.cores) if options.level > 0 else (next(candidates), None)
    verify_tiles(state.tiles)
    recorder.done("lower", state.tiles)
    state.program = with_host_part(scheduled or schedule(state.tiles), state.layers, state.source, state.graph, options.cores)
    state.warnings.extend(state.program.notes)
    recorder.done("schedule", state.program)
    check(state.program)
    recorder.done("verify", state.program, changed=False)


def _require_supported(cores: int) -> None:
    if cores < 1:
        raise UsageError(Diagnostic("E0508", f"a program needs at least one core, found {cores}"))
