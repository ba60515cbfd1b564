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
from tpucc.ir.dtypes import BY_BITS
from tpucc.ir.graph import Graph
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

    @property
    def suffix(self) -> str:
        """The kind of its text form: `.graph`, `.tile`, `.asm`."""
        return ".graph" if isinstance(self.value, Graph) else ".tile" if isinstance(self.value, TileProgram) else ".asm"

    def text(self) -> str:
        """The value in its text form."""
        if isinstance(self.value, Source):
            return self.value.text
        if isinstance(self.value, TileProgram):
            return print_tiles(self.value)
        return disassemble(self.value) if isinstance(self.value, Program) else str(self.value)


@dataclass(frozen=True, eq=False)
class Compilation:
    """All that a compilation made. What lies past `stop_after` is None.

    `params` are the values that were given for the source's params, as they were written.
    """

    source: Source
    params: Mapping[str, str]
    model: Model | None
    graph: Graph | None
    calibration: Mapping[str, AnyArray] | None
    layers: Graph | None
    tiles: TileProgram | None
    program: Program | None
    warnings: list[str]
    snapshots: tuple[Snapshot, ...]


class _Stopped(Exception):
    """The stage of `stop_after` is done."""


class _Recorder:
    """Times each stage, hands it to the observer, and stops after the one that was asked for."""

    def __init__(self, observer: Observer | None, stop_after: str | None) -> None:
        self.snapshots: list[Snapshot] = []
        self._observer = observer
        self._stop_after = stop_after
        self._started = time.perf_counter()

    def done(self, stage: str, value: Stage | Source, *, changed: bool = True, last: bool = True, summary: str = "") -> None:
        seconds = time.perf_counter() - self._started
        snapshot = Snapshot(len(self.snapshots), stage, value, seconds, changed, summary)
        self.snapshots.append(snapshot)
        if self._observer is not None:
            self._observer(snapshot)
        if last and stage == self._stop_after:
            raise _Stopped
        self._started = time.perf_counter()


@dataclass
class _State:
    """What the stages have made so far."""

    source: Source
    params: Mapping[str, str]
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
    recorder, state = _Recorder(observer, options.stop_after), _State(source, options.params)
    try:
        _stages(state, folder, options, recorder)
    except _Stopped:
        pass
    except Error as error:
        if error.source is None and any(d.labels for d in error.diagnostics):
            raise type(error)(error.diagnostics, source) from None
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
def _stages(state: _State, folder: Path, options: Options, recorder: _Recorder) -> None:
    """Runs every stage; each leaves its result in `state` before the recorder may stop."""
    module = parse(state.source)
    recorder.done("parse", state.source)
    model = state.model = elaborate(module, state.source, options.params, options.limits)
    state.warnings.extend(w.render(state.source) for w in model.warnings)
    _require_supported(options.cores)
    format = BY_BITS[options.activation_bits or model.activation_bits]
    state.graph = model.graph
    verify_stage(state.graph)
    recorder.done("elaborate", state.graph)
    state.graph = bind_weights(model, folder, options.weights)
    verify_stage(state.graph, model.graph)
    recorder.done("weights", state.graph, changed=state.graph != model.graph)
    if options.cores > 1:
        divisions(state.graph, options.cores)  # refused before the passes, while the operators are still the source's
    state.calibration = read_calibration(model, folder, options.calibration)
    context = Context(options.target, state.calibration, options.cores, format)
    _run_passes(state, state.graph, context, options, recorder)
    _back_end(state, options, recorder)


def _run_passes(state: _State, graph: Graph, context: Context, options: Options, recorder: _Recorder) -> None:
    steps = passes_of(options)
    for index, step in enumerate(steps):
        made = run_pass(step, graph, context)
        state.warnings.extend(made.notes)
        state.layers = made.without_notes()
        last = all(later.name != step.name for later in steps[index + 1 :])
        recorder.done(step.name, state.layers, changed=state.layers != graph, last=last, summary=step.summary)
        graph = state.layers


def _back_end(state: _State, options: Options, recorder: _Recorder) -> None:
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
