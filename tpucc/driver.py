"""The pipeline: from source text to a verified program, stage by stage.

`compile_source` runs the stages in order. The driver loads the files that the source names. It runs, verifies and times every stage, and
gives each result to an observer. Stages don't call each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tpucc.collector import collector_paused
from tpucc.compilation import Compilation, Observer, Recorder, State, Stopped
from tpucc.data.sources import bind_weights, named_at, params_of, read_calibration
from tpucc.data.weights import require_computable_values
from tpucc.diagnostics import Diagnostic, Error, InternalError, LimitError, ProgramError, Source, UsageError
from tpucc.ir import Graph
from tpucc.ir.dtypes import BY_BITS, DEFAULT_FORMAT
from tpucc.isa.program import CORES, HOST_ROWS
from tpucc.isa.verify import check
from tpucc.language.elaborate import Model, elaborate
from tpucc.language.parse import parse
from tpucc.layers.partition import Partition, elements_in
from tpucc.lowering.lower import Drafts
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.verify import verify_tiles
from tpucc.ops.evaluate import require_computable
from tpucc.options import Options
from tpucc.passes.base import Context, UserPass
from tpucc.passes.divide_batch import divisions
from tpucc.passes.pack_patches import pack_patches
from tpucc.passes.pipeline import replacements, run_pass, verify_stage
from tpucc.schedule import require_fitting
from tpucc.schedule.fastest import fastest
from tpucc.sim.durations import duration, stream_seconds
from tpucc.sim.timing import time_program
from tpucc.stage_names import pass_places, passes_of, require_stage
from tpucc.target import require_compilable

T = TypeVar("T")

GIVES_THE_HOST_WORK = ("write-weights", "pack-patches")
"""Passes that let the host work so that the device has less to do."""
SPARING = "what takes fewest cycles doesn't fit the unified buffer, so passes chose what takes fewest rows of it"


def front_end(source: Source, options: Options) -> Model:
    """Parses and elaborates. Raises `CompileError` with every diagnostic."""
    return elaborate(parse(source), source, params_of(source, options.params), options.limits)


def compile_source(source: Source, folder: Path, options: Options, observer: Observer | None = None) -> Compilation:
    """Compiles `source`, whose files (weights, calibration) are relative to `folder`.

    Raises `CompileError`, `InputError`, `LimitError`, `UsageError` or `PluginError`, each with its diagnostics and the source that they
    speak of.
    """
    _require_possible(options)
    state, recorder = State(source, options), Recorder(observer, options.stop_after)
    with explaining(state):
        graph = read_model(state, folder, recorder)
        choose_for_stream(state, graph)
        back_end(state, recorder, drafts_with_room(state, graph, recorder))
    return state.compilation(recorder)


def front(source: Source, folder: Path, options: Options) -> State:
    """What there is before the first pass: the graph with its weights, and the calibration inputs. Raises as `compile_source`."""
    state = State(source, options)
    with explaining(state):
        read_model(state, folder, Recorder(None, None))
    return state


def check_source(source: Source, folder: Path, options: Options, observer: Observer | None = None) -> Model:
    """Raises the errors of `compile_source`, without the stages that find none: choosing the fastest program, fetches, waits, the verifier.

    With stages of the user's, any of these may find an error: then all stages run.
    """
    _require_possible(options)
    state, recorder = State(source, options), Recorder(observer, options.stop_after)
    with explaining(state):
        drafts = drafts_with_room(state, read_model(state, folder, recorder), recorder)
        if options.stages.replaced:
            back_end(state, recorder, drafts)
        else:
            tiles = next(drafts.programs())
            _require_host_rows(tiles, state.parts)
            require_fitting(tiles)
    assert state.model is not None
    return state.model


def _require_possible(options: Options) -> None:
    """Raises `UsageError` for a target that can't be compiled for, and for a stage to stop after that there isn't."""
    require_compilable(options.target)
    if options.stop_after is not None:
        require_stage(options.stop_after, options)


@contextmanager
def explaining(state: State) -> Iterator[None]:
    """Around stages that work on `state`: ends after the stage that was asked for, and adds the source to errors that refer to it."""
    try:
        with collector_paused():
            yield
    except Stopped:
        pass
    except Exception as error:
        explained = _explained(error, state)
        if explained is error:
            raise
        raise explained from error


def _explained(error: Exception, state: State) -> Exception:
    """The error with the source that it speaks of; a fault after a pass of the user's has changed the graph is that pass's."""
    ours = isinstance(error, InternalError) or not isinstance(error, Error | MemoryError)
    if ours and state.rewritten:
        named = (step for step in passes_of(state.options) if isinstance(step, UserPass) and step.name == state.rewritten[-1])
        more = error.diagnostics if isinstance(error, InternalError) else ()
        text = "made a graph that can't be compiled:" + ("" if more else f" {type(error).__name__}: {error}")
        return next(named).code.error("E0525", text, more=more)
    if isinstance(error, Error) and error.source is None and any(d.labels for d in error.diagnostics):
        return type(error)(error.diagnostics, state.source)
    return error


def read_model(state: State, folder: Path, recorder: Recorder) -> Graph:
    """Parses, elaborates and binds the weights, and reads the calibration inputs: the graph of the model. The machine has no part in it."""
    options = state.options
    module = parse(state.source)
    recorder.done("parse", state.source)
    model = state.model = elaborate(module, state.source, params_of(state.source, options.params), options.limits)
    state.warnings.extend(w.render(state.source) for w in model.warnings)
    _require_supported(options.cores)
    state.graph = model.graph
    verify_stage(state.graph)
    require_computable_values(state.graph)
    recorder.done("elaborate", state.graph)
    bound = bind_weights(model, folder, options.weights, state.source)
    state.warnings.extend(bound.notes)
    state.graph = bound.without_notes()
    recorder.done("weights", state.graph, changed=state.graph != model.graph)
    if options.cores > 1:
        divisions(state.graph, options.cores)  # refused before the passes, while the operators are still the source's
    state.calibration = read_calibration(model, folder, options.calibration)
    return state.graph


def choose_for_stream(state: State, graph: Graph, done: int = 0) -> None:
    """For `--for stream`: leaves out the passes that give the host work, where the program is faster without them.

    In a stream the host, its link and the device work side by side, and the busiest of them counts. Which one that is, no pass can see:
    it is a matter of all layers. So the program is made with each of these passes and without it, and timed. A pass with options of the
    user's is left as it is. `graph` has gone through the first `done` passes.
    """
    if state.options.goal != "stream":
        return
    for name in GIVES_THE_HOST_WORK:
        if name in state.options.settings or all(step.name != name for step in passes_of(state.options)[done:]):
            continue
        used = _tried(state, graph, done)
        without = _tried(state, graph, done, name) if used is not None and name in used.changed else None
        if used is None or without is None or used.seconds <= without.seconds:
            continue
        state.left_out |= {name}
        times = f"a batch of a stream takes {duration(without.seconds)} without it, and {duration(used.seconds)} with it"
        state.warnings.append(f"{name} is left out: {times}")


@dataclass(frozen=True)
class _Trial:
    """The time of each batch in a stream, and the passes that changed the graph."""

    seconds: float
    changed: frozenset[str]


def _tried(state: State, graph: Graph, done: int, *without: str) -> _Trial | None:
    """The program as it would be `without` some passes; None where it can't be made."""
    trial, recorder = replace(state, left_out=state.left_out | {*without}, warnings=[], rewritten=[]), Recorder(None, None)
    try:
        back_end(trial, recorder, drafts_with_room(trial, graph, recorder, done))
    except Exception:  # the compile itself will say so, and whose fault it is
        return None
    assert trial.program is not None
    edges = elements_in(trial.parts.prologue), elements_in(trial.parts.epilogue)
    changed = frozenset(snapshot.stage for snapshot in recorder.snapshots if snapshot.changed)
    return _Trial(stream_seconds(trial.program, time_program(trial.program), edges), changed)


def drafts_with_room(state: State, graph: Graph, recorder: Recorder, done: int = 0, *, sparing: bool = False) -> Drafts:
    """Runs the passes on `graph`, which the first `done` of them have made, and lowers what they make.

    Passes choose what takes fewest cycles. Where operands of that don't fit the unified buffer, they run once more, `sparing`: they choose
    what takes fewest rows. So what fits a machine depends on its sizes, not on how fast it is. Patches that the host packs may take more
    rows in bands of lines than the image itself, so at last the passes run without packing. Where that has no room, either, the drafts
    say so.
    """
    warnings, rewritten, snapshots = list(state.warnings), list(state.rewritten), len(recorder.snapshots)
    run_passes(state, graph, recorder, done, sparing=sparing)
    drafts = drafts_of(state)
    packed = any(made.stage == pack_patches.name and made.changed for made in recorder.snapshots[snapshots:])
    if drafts.shortage is None or (sparing and not packed):
        if sparing:
            state.warnings.append(SPARING)
        return drafts
    state.warnings, state.rewritten = warnings, rewritten
    del recorder.snapshots[snapshots:]
    if sparing:
        state.left_out |= {pack_patches.name}
    return drafts_with_room(state, graph, recorder, done, sparing=True)


def drafts_of(state: State) -> Drafts:
    """The layer graph, lowered: ways to compute it, of which the first may lack room."""
    _require_host_values(state.parts)
    span = state.model.weights_span if state.model and state.options.weights is None else None
    with named_at(span, "E0622"):  # weights that don't fit are those of the source's directive, unless the command line named others
        return state.stages.drafts(state.parts, state.options.target, state.options.limits.instructions)


def run_passes(state: State, graph: Graph, recorder: Recorder, done: int = 0, *, sparing: bool = False) -> None:
    """Runs the passes on `graph`, which the first `done` of them have made."""
    options, context = state.options, context_of(state, sparing=sparing)
    state.layers = graph
    steps, places = passes_of(options), pass_places(options)
    state.warnings.extend(replacements(steps))
    for index in range(done, len(steps)):
        step, place = steps[index], places[index]
        try:
            made = graph if step.name in state.left_out else run_pass(step, graph, context)
        except ProgramError as error:  # the warnings of what can't be compiled aren't printed
            raise error.with_help(replacements(steps[:index])) from error
        state.warnings.extend(made.notes)
        state.layers = made.without_notes()
        changed = state.layers != graph
        if changed and isinstance(step, UserPass):
            state.rewritten.append(step.name)
        recorder.done(step.name, state.layers, changed=changed, last=place == step.name, summary=step.summary, place=place)
        graph = state.layers


def context_of(state: State, *, sparing: bool = False) -> Context:
    options = state.options
    declared = state.model.activations if state.model is not None else DEFAULT_FORMAT
    format = BY_BITS[options.activation_bits] if options.activation_bits else declared
    is_random = state.model is not None and state.model.random_seed is not None and options.weights is None
    return Context(options.target, state.calibration, options.cores, format, tuple(options.keep), sparing, options.goal, is_random)


def back_end(state: State, recorder: Recorder, drafts: Drafts) -> None:
    """Schedules the fastest of the drafts, and verifies it."""
    options, stages = state.options, state.stages
    candidates = stages.programs(drafts)
    many = options.level > 0
    state.tiles, scheduled = fastest(candidates, options.cores, stages.schedule, options.goal) if many else (next(candidates), None)
    _require_host_rows(state.tiles, state.parts)
    _accepted(verify_tiles, state.tiles)
    recorder.done("lower", state.tiles)
    state.program = state.whole(scheduled or stages.schedule(state.tiles))
    state.warnings.extend((*stages.uncalled(state.tiles), *state.program.notes))
    recorder.done("schedule", state.program)
    _accepted(check, state.program)
    recorder.done("verify", state.program, changed=False)


def _accepted(verify: Callable[[T], None], made: T) -> None:
    """Raises `InternalError` E0905 where a verifier refuses what the built-in back end has made: no model is to blame for that."""
    try:
        verify(made)
    except ProgramError as error:
        head = Diagnostic("E0905", "the verifier refuses the program that tpucc made of the model:")
        raise InternalError((head, *error.diagnostics), error.source) from error


def _require_host_values(parts: Partition) -> None:
    """What `Runtime.load` refuses, too: passes may have made a value that the source doesn't have, such as the patches of an image."""
    require_computable(*parts.prologue, *(node for step in parts.middle for node in step.graph), *parts.epilogue)


def _require_host_rows(tiles: TileProgram, parts: Partition) -> None:
    """Raises `LimitError` E0640 where the host's rows are more than can be simulated, at the largest value that it holds."""
    rows = max((held.end for held in tiles.host), default=0)
    if rows > HOST_ROWS:
        device = parts.device
        largest = max((*device.inputs, *(device[output.node] for output in device.outputs)), key=lambda node: node.type.size)
        message = (
            f"host memory of {rows:,} rows can't be simulated, and at most {HOST_ROWS:,} rows can: {largest.name} is {largest.type.brief}"
        )
        raise LimitError(Diagnostic("E0640", message, largest.origin.labels(), ("a smaller batch or smaller sizes need fewer rows",)))


def _require_supported(cores: int) -> None:
    if not 1 <= cores <= CORES:
        raise UsageError(Diagnostic("E0508", f"a program runs on 1 to {CORES:,} cores, found {cores:,}"))
