"""The pipeline: from source text to a verified program, stage by stage.

`PASSES` is the order. The driver loads what the source names, runs every stage, verifies and times around it, and hands each result to
an observer; stages know nothing of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tpucc.diagnostics import Diagnostic, Error, InternalError, Source, UsageError
from tpucc.frontend.elaborate import Model, elaborate
from tpucc.frontend.parse import parse
from tpucc.interop.sources import bind_weights, named_at, read_calibration
from tpucc.ir.graph import Graph
from tpucc.isa.disassembler import disassemble
from tpucc.isa.program import Program
from tpucc.isa.verify import check
from tpucc.layers.partition import Partition, partition
from tpucc.lowering.lower import lowerings
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.tiletext import print_tiles
from tpucc.lowering.verify import verify_tiles
from tpucc.numerics import INT8, INT16, AnyArray
from tpucc.options import Options as Options
from tpucc.passes.base import Context, Pass
from tpucc.passes.cores.division import divisions
from tpucc.passes.pipeline import pipeline, unknown_name
from tpucc.passes.running import is_brought, run_pass, verify_stage
from tpucc.plugins.guard import guest
from tpucc.schedule import require_fitting
from tpucc.schedule.fastest import fastest
from tpucc.schedule.host_part import with_host_part
from tpucc.stages.backend import BackEnd
from tpucc.stages.stages import Stages
from tpucc.target import require_compilable

FRONT_STAGES = ("parse", "elaborate", "weights")
BACK_STAGES = ("lower", "schedule", "verify")

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
    """All that a compilation made, and what it was asked for. What lies past `stop_after` is None.

    `params` are the values that were given for the source's params, as they were written. `holders` says for each value of the operator
    graph that the device has which node of the layer graph holds its integers. `rewritten` are the user's passes that changed the graph.
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
    holders: Mapping[str, str]
    rewritten: Sequence[str]
    options: Options
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
    options: Options
    model: Model | None = None
    graph: Graph | None = None
    calibration: Mapping[str, AnyArray] | None = None
    layers: Graph | None = None
    tiles: TileProgram | None = None
    program: Program | None = None
    warnings: list[str] = field(default_factory=list)
    holders: dict[str, str] = field(default_factory=dict)
    rewritten: list[str] = field(default_factory=list)
    """The user's passes that have changed the graph."""

    @property
    def parts(self) -> Partition:
        assert self.layers is not None
        return partition(self.layers)

    def whole(self, program: Program) -> Program:
        """The scheduled program with the host's part."""
        assert self.layers is not None
        assert self.graph is not None
        return with_host_part(program, self.layers, self.source, self.graph, self.options.cores)


def front_end(source: Source, options: Options) -> Model:
    """Parses and elaborates. Raises `CompileError` with every diagnostic."""
    return elaborate(parse(source), source, options.params, options.limits)


def compile_source(source: Source, folder: Path, options: Options, observer: Observer | None = None) -> Compilation:
    """Compiles `source`, whose files (weights, calibration) are relative to `folder`.

    Raises `CompileError`, `InputError`, `LimitError`, `UsageError` or `PluginError`, each with its diagnostics and the source that they
    speak of.
    """
    return _driven(source, folder, options, _Recorder(observer, options.stop_after), _back_end)


def check_source(source: Source, folder: Path, options: Options) -> Model:
    """Raises what `compile_source` raises, and leaves out what refuses nothing: choosing the fastest program, fetches, waits, the verifier.

    Stages that the user brought may be refused by any of these: then all is done.
    """
    checked = _driven(source, folder, options, _Recorder(None, options.stop_after), _back_end if options.stages.replaced else _fits)
    assert checked.model is not None
    return checked.model


def without_passes(made: Compilation) -> Program:
    """The program of the same model, compiled without the user's passes and stages: what theirs are measured by.

    Raises what `compile_source` raises: a model may need them.
    """
    names = {step.name for step in pipeline(made.options.level, (), {}, ())}
    settings = {name: values for name, values in made.options.settings.items() if name in names}
    options = replace(made.options, extra=(), stages=Stages(), settings=settings, omit=made.options.omit & names, stop_after=None)
    state = _State(made.source, made.params, options, made.model, made.graph, made.calibration)
    assert made.graph is not None
    recorder = _Recorder(None, None)
    _run_passes(state, made.graph, _context(state), recorder)
    _back_end(state, recorder)
    assert state.program is not None
    return state.program


def _driven(source: Source, folder: Path, options: Options, recorder: _Recorder, back_end: _BackEnd) -> Compilation:
    require_compilable(options.target)
    if options.stop_after is not None:
        require_stage(options.stop_after, options)
    state = _State(source, options.params, options)
    try:
        _stages(state, folder, recorder, back_end)
    except _Stopped:
        pass
    except Exception as error:
        explained = _explained(error, state)
        if explained is error:
            raise
        raise explained from error
    return Compilation(**vars(state), snapshots=tuple(recorder.snapshots))


def _explained(error: Exception, state: _State) -> Exception:
    """The error with the source that it speaks of; a fault after a pass of the user's has changed the graph is that pass's."""
    ours = isinstance(error, InternalError) or not isinstance(error, Error | MemoryError)
    if ours and state.rewritten:
        step = next(step for step in passes_of(state.options) if step.name == state.rewritten[-1])
        more = error.diagnostics if isinstance(error, InternalError) else ()
        text = "made a graph that can't be compiled:" + ("" if more else f" {type(error).__name__}: {error}")
        return guest(f"the pass {step.name}", step.run).error("E0525", text, more=more)
    if isinstance(error, Error) and error.source is None and any(d.labels for d in error.diagnostics):
        return type(error)(error.diagnostics, state.source)
    return error


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


_BackEnd = Callable[["_State", "_Recorder"], None]


def _stages(state: _State, folder: Path, recorder: _Recorder, back_end: _BackEnd) -> None:
    """Runs every stage; each leaves its result in `state` before the recorder may stop."""
    options = state.options
    module = parse(state.source)
    recorder.done("parse", state.source)
    model = state.model = elaborate(module, state.source, options.params, options.limits)
    state.warnings.extend(w.render(state.source) for w in model.warnings)
    _require_supported(options.cores)
    state.graph = model.graph
    verify_stage(state.graph)
    recorder.done("elaborate", state.graph)
    state.graph = bind_weights(model, folder, options.weights)
    recorder.done("weights", state.graph, changed=state.graph != model.graph)
    if options.cores > 1:
        divisions(state.graph, options.cores)  # refused before the passes, while the operators are still the source's
    state.calibration = read_calibration(model, folder, options.calibration)
    _run_passes(state, state.graph, _context(state), recorder)
    back_end(state, recorder)


def _context(state: _State) -> Context:
    options = state.options
    bits = options.activation_bits or (state.model.activation_bits if state.model else 8)
    return Context(options.target, state.calibration, state.warnings, options.cores, INT16 if bits == 16 else INT8, state.holders)


def _run_passes(state: _State, graph: Graph, context: Context, recorder: _Recorder) -> None:
    steps = passes_of(state.options)
    for index, step in enumerate(steps):
        state.layers = run_pass(step, graph, context, state.options.plugin_timeout)
        last = all(later.name != step.name for later in steps[index + 1 :])
        changed = state.layers != graph
        if changed and is_brought(step):
            state.rewritten.append(step.name)
        recorder.done(step.name, state.layers, changed=changed, last=last, summary=step.summary)
        graph = state.layers


def _back_end(state: _State, recorder: _Recorder) -> None:
    options, stages = state.options, BackEnd(state.options.stages, state.options.plugin_timeout, state.whole)
    with _placed_weights(state):
        candidates = stages.lowerings(state.parts, options.target)
        many = options.level > 0
        state.tiles, scheduled = fastest(candidates, options.cores, stages.schedule) if many else (next(candidates), None)
    verify_tiles(state.tiles)
    recorder.done("lower", state.tiles)
    state.program = state.whole(scheduled or stages.schedule(state.tiles))
    state.warnings.extend(state.program.notes)
    recorder.done("schedule", state.program)
    check(state.program)
    recorder.done("verify", state.program, changed=False)


def _fits(state: _State, recorder: _Recorder) -> None:
    """What the built-in back end may refuse: weights, buffers or sums that don't fit the machine."""
    parts = state.parts
    with _placed_weights(state):
        require_fitting(next(lowerings(parts.device, state.options.target, segments=parts.segments)))


def _placed_weights(state: _State) -> AbstractContextManager[None]:
    """Weights that don't fit are those of the source's directive, unless the command line named others."""
    return named_at(state.model.weights_span if state.model and state.options.weights is None else None, "E0622")


def _require_supported(cores: int) -> None:
    if cores < 1:
        raise UsageError(Diagnostic("E0508", f"a program needs at least one core, found {cores}"))
