"""Compiling goes on from the text of a stage: a `.graph`, a `.layers.graph`, a `.tile` or an `.asm`, as printed or edited.

The kind is read off the text's head. A graph says after which pass it was printed (`graph iris "iris.tpu" after fuse-bias`); one that
doesn't goes through all passes, or through none when it is of layers already. Everything before the text's stage is taken from the model
that it was printed from: the source, the host's part, and the constants that stand in the text by their digests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Literal, assert_never

from tpucc.back_end import STAGES, BackEnd
from tpucc.compilation import Compilation, Observer, Recorder, Snapshot, State
from tpucc.data.archive import read_arrays
from tpucc.data.weights import require_source, weights_of
from tpucc.diagnostics import Diagnostic, Label, Origin, ProgramError, Source, Span, did_you_mean, listed, printable
from tpucc.driver import back_end, choose_for_stream, compile_source, drafts_with_room, explaining
from tpucc.interop.sources import read_source
from tpucc.ir import Graph, Node
from tpucc.ir.codec import require_version, unquote
from tpucc.ir.parser import GraphSpans, Head, head_of, read_graph
from tpucc.isa.assembler import read_listing
from tpucc.isa.program import Program
from tpucc.isa.verify import check
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.layers.kinds import LAYERS, Requantise
from tpucc.lowering.tiletext import read_tiles
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Opcode
from tpucc.options import Options
from tpucc.passes.pipeline import verify_stage
from tpucc.runtime.runtime import Runtime
from tpucc.stage_names import FRONT_STAGES, pass_places, require_stage
from tpucc.stages.numbering import scheduled_places
from tpucc.target import require_compilable
from tpucc.texts.constants import ModelConstants
from tpucc.texts.unchanged import Said, require_same_graph, require_same_model, require_same_surroundings

NO_STAGE, NO_MODEL, NO_PASS = "E0766", "E0767", "E0768"
_TILES = re.compile(r"(?m)^[ \t]*\.(?:program\b[^;\n]*\bstage=tile\b|buffer\b|groups\b)")
_DIGEST = re.compile(r"(?m)^data .* sha256=")
_NAME, _TARGET = (re.compile(rf'(?m)^[ \t]*\.{word}[ \t]+("(?:[^"\\\n]|\\.)*"|[^\s";]+)') for word in ("program", "target"))

Kind = Literal["graph", "tile", "asm"]


@dataclass(frozen=True)
class Base:
    """The model that a text goes on from: its program, and how it was compiled when that is known."""

    program: Program
    compilation: Compilation | None = None

    @cached_property
    def constants(self) -> ModelConstants:
        return ModelConstants(self.program.source or self.program.name, self.program, self.compilation)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        return self.compilation.snapshots if self.compilation is not None else ()

    @property
    def model(self) -> Source | None:
        """The source, for messages; None where only its name is known."""
        return Source(self.program.source, self.program.source_text) if self.program.source_text else None

    def state(self, options: Options) -> State:
        """The state before any stage."""
        made = self.compilation
        if made is None:
            return State(Source(self.program.source, self.program.source_text), options)
        kept = {name: getattr(made, name) for name in ("source", "model", "graph", "calibration", "layers", "tiles")}
        return State(**kept, options=options)

    def before(self, *stages: str) -> tuple[Snapshot, ...]:
        """The stages before the first of `stages`."""
        names = [snapshot.stage for snapshot in self.snapshots]
        return self.snapshots[: min((names.index(stage) for stage in stages if stage in names), default=0)]


def base_at(path: Path, options: Options) -> Base:
    """The model at `path` that a text goes on from: a program (.tpub), or a source, which is compiled with these options.

    A source is compiled with the built-in stages: what a text takes from its model, no stage can change. Raises what reading and compiling
    raise.
    """
    if path.suffix == ".tpub":
        return Base(Runtime.load(path).program)
    source = read_source(path, options.params)
    made = compile_source(source, path.parent, replace(options, stages=BackEnd(), stop_after=None))
    assert made.program is not None
    return Base(made.program, made)


def resume(text: Source, base: Base | None, options: Options, observer: Observer | None = None) -> Compilation:
    """The compilation that goes on from a text.

    `options` are those of compiling; the name of `text` stands in messages. Raises `ProgramError`: what is wrong with the text, E0760 and
    E0761 constants that can't be had, E0762 to E0765 what an edit may not change, E0766 no text form, E0767 no model to go on from, E0768
    no such pass; and what the stages raise.
    """
    require_compilable(options.target)
    if options.stop_after is not None:
        require_stage(options.stop_after, options)
    kind = kind_of(text)
    if base is not None:
        require_same_model(*_model(text, kind), base.program, text)
    match kind:
        case "graph":
            return _from_graph(text, base, options, observer)
        case "asm":
            return _from_program(text, base, options, observer)
        case "tile":
            return _from_tiles(text, _required(base, text), options, observer)
        case _:
            assert_never(kind)


def kind_of(text: Source) -> Kind:
    """`graph`, `tile` or `asm`, from the text's first line that isn't empty or a comment. Raises `ProgramError` E0766, E0702."""
    require_version(text)
    lines = (line.strip() for line in text.text.removeprefix("\ufeff").split("\n"))
    first = next((line for line in lines if line and line[0] not in ";#"), "")
    word = re.split(r"[\s;#]", first, maxsplit=1)[0]
    if word == "graph":
        return "graph"
    if word[:1] == "." or word in {opcode.mnemonic for opcode in Opcode}:
        return "tile" if _TILES.search(text.text) else "asm"
    message = f"{printable(text.name)} is the text of no stage: it begins with neither graph nor a directive such as .program"
    raise ProgramError(Diagnostic(NO_STAGE, message, help=("compile goes on from .graph, .layers.graph, .tile and .asm files",)), text)


def _model(text: Source, kind: Kind) -> tuple[Said, Said]:
    """The names of the model and of the machine, as far as the text says them."""
    if kind == "graph":
        head = head_of(text.text)
        return Said(head.name, (Label(head.span),)), Said()
    return _said(_NAME, text), _said(_TARGET, text)


def _said(pattern: re.Pattern[str], text: Source) -> Said:
    match = pattern.search(text.text)
    if match is None:
        return Said()
    word, line = match[1], text.text.count("\n", 0, match.start(1)) + 1
    column = match.start(1) - text.text.rfind("\n", 0, match.start(1))
    return Said(unquote(word) if word.startswith('"') else word, (Label(Span(line, column, line, column + len(word))),))


def _required(base: Base | None, text: Source) -> Base:
    if base is None:
        message = f"{printable(text.name)} doesn't have all of its model: the host's part comes before this stage"
        raise ProgramError(Diagnostic(NO_MODEL, message, help=("name the model that it was printed from: --like MODEL.tpu",)), text)
    return base


def _from_graph(text: Source, base: Base | None, options: Options, observer: Observer | None) -> Compilation:
    if base is not None and base.compilation is None and _DIGEST.search(text.text):
        message = f"constants of {printable(text.name)} stand by their digests, and a program (.tpub) doesn't have the constants of graphs"
        raise ProgramError(Diagnostic(NO_MODEL, message, help=("name the source: --like MODEL.tpu; or print with --with-data",)), text)
    graph, where = read_graph(text.text, text.name, ATTRIBUTES, base.constants if base is not None else None)
    verify_text(graph, where, base.model if base is not None else None)
    _require_zeros(graph, where)
    layered = any(node.op in LAYERS for node in graph)
    if layered:
        base = _required(base, text)
    places = pass_places(options)
    done = _done(head_of(text.text), places, layered, text)
    if done == 0 and base is not None and base.compilation is not None:
        graph = _bound_like(graph, base.compilation.graph or ())
    stage = FRONT_STAGES[-1] if done == 0 else places[done - 1].split(" ")[0]
    before = base.snapshots[: len(FRONT_STAGES) + done] if base is not None else ()
    if before:
        assert isinstance(before[-1].value, Graph)
        require_same_graph(graph, before[-1].value, where)
    state = base.state(options) if base is not None else _alone(graph, text, options)
    state.like = base.compilation.graph if base is not None and base.compilation is not None else None
    recorder = Recorder(observer, options.stop_after, before[:-1])
    declared = state.graph or (Runtime(base.program).host.prologue if base is not None else None)

    with explaining(state):
        state.graph = graph if done == 0 else declared
        state.layers = graph
        recorder.done(stage, graph, place=places[done - 1] if done else "")
        if done == 0:
            require_source(graph)
        choose_for_stream(state, graph, done)
        back_end(state, recorder, drafts_with_room(state, graph, recorder, done))
    return state.compilation(recorder)


def verify_text(graph: Graph, places: GraphSpans, model: Source | None = None) -> None:
    """Checks a graph that was read from a text, as `verify_stage` does: a message shows the text's line, then the model's."""
    names = {span: name for name, span in places.nodes.items()}
    try:
        verify_stage(graph.with_nodes(replace(node, origin=Origin((places.nodes[node.name],))) for node in graph))
    except ProgramError as error:
        nodes = [graph[names[found.span]] if found.span is not None else None for found in error.diagnostics]
        raise ProgramError(map(_with_model, error.diagnostics, nodes, repeat(model)), places.source) from None


def _with_model(found: Diagnostic, node: Node | None, model: Source | None) -> Diagnostic:
    """A message about a node of a text, with the line of the model that the node comes from."""
    spans = node.origin.call if node is not None and model is not None else ()
    return replace(found, labels=(*found.labels, *(Label(span, "compiled from here", model) for span in spans)))


def _require_zeros(graph: Graph, where: GraphSpans) -> None:
    """Raises `ProgramError` E0824 where an edit gave a layer's epilogue another zero point than its type; a table comes after it."""
    wrong = [
        Diagnostic(
            "E0824",
            f"{node.name}: its epilogue adds {epilogue.zero}, and the zero point of its type is {held.zero_point}",
            where.of("node", node.name),
        )
        for node in graph
        if isinstance(epilogue := getattr(node.attributes, "epilogue", None), Requantise)
        and not epilogue.table
        and (held := node.type.quantisation) is not None
        and epilogue.zero != held.zero_point
    ]
    if wrong:
        raise ProgramError(wrong, where.source)


def _done(head: Head, places: list[str], layered: bool, text: Source) -> int:
    """How many of the passes have made the graph."""
    if not head.after:
        return len(places) if layered else 0
    wanted = f"{head.after} {head.which}" if head.which else head.after
    if wanted in places:
        return places.index(wanted) + 1
    help = (did_you_mean(wanted, places) or f"the passes are {', '.join(places)}",)
    raise ProgramError(
        Diagnostic(NO_PASS, f"these options run no pass {printable(wanted)}, after which the text was printed", help=help), text
    )


def _alone(graph: Graph, text: Source, options: Options) -> State:
    """The base of a graph that stands alone: its source is the text itself, unless it names another."""
    source = text if graph.source == text.name else Source(graph.source, "")
    calibration = None if options.calibration is None else read_arrays(options.calibration)
    return State(source, options, graph=graph, calibration=calibration)


def _from_tiles(text: Source, base: Base, options: Options, observer: Observer | None) -> Compilation:
    tiles, places = read_tiles(text.text, text.name, base.constants)
    require_same_surroundings(tiles, base.program, places)
    verify_tiles(tiles, places, base.model)
    recorder = Recorder(observer, options.stop_after, base.before("lower"))

    def whole(program: Program) -> Program:
        return _with_host_part(program, base.program)

    state = base.state(options)
    with explaining(state):
        state.warnings.extend(_not_called(options.stages, "lower_fc", "lower_conv"))
        state.tiles = tiles
        recorder.done("lower", tiles)
        state.program = whole(options.stages.of(whole, places).schedule(tiles))
        state.places = scheduled_places(places, tiles, state.program)
        state.warnings.extend(state.program.notes)
        recorder.done("schedule", state.program)
        check(state.program)
        recorder.done("verify", state.program, changed=False)
    return state.compilation(recorder)


def _not_called(stages: BackEnd, *before: str) -> Iterator[str]:
    """A note of the user's stages that come before the text."""
    given = [stage for stage in stages.replaced if stage in before]
    if given:
        yield f"{listed(given)} {'is' if len(given) == 1 else 'are'} not called: the text is of a later stage"


def _with_host_part(program: Program, like: Program) -> Program:
    kept = ("name", "source", "source_text", "prologue", "epilogue", "host_steps", "cores")
    places = {layer.name: layer.origin for layer in like.layers if layer.is_host_step}
    layers = tuple(replace(layer, origin=places.get(layer.name, layer.origin)) if layer.is_host_step else layer for layer in program.layers)
    return replace(program, layers=layers, **{name: getattr(like, name) for name in kept})


def _from_program(text: Source, base: Base | None, options: Options, observer: Observer | None) -> Compilation:
    program, places = read_listing(text.text, text.name, base.constants if base is not None else None)
    if base is not None:
        require_same_surroundings(program, base.program, places)
    recorder = Recorder(observer, options.stop_after, base.before("schedule") if base is not None else ())

    state = base.state(options) if base is not None else State(Source(program.source, program.source_text), options)
    with explaining(state):
        state.warnings.extend(_not_called(options.stages, *STAGES))
        state.program, state.places = program, places
        state.warnings.extend(program.notes)
        recorder.done("schedule", program)
        check(program, places)
        recorder.done("verify", program, changed=False)
    return state.compilation(recorder)


def _bound_like(graph: Graph, model: Iterable[Node]) -> Graph:
    """A graph from before its weights were read, with the weights of its model: of the nodes with the same names."""
    bound = {node.name: node for node in model}
    unbound = {node.name for node in weights_of(graph).values()} & bound.keys()
    return graph.with_nodes(replace(bound[node.name], origin=node.origin) if node.name in unbound else node for node in graph)
