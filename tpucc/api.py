"""The Python API: compile a model, look at what was made, run it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Never, Unpack

import numpy.typing as npt

from tpucc.arguments import is_path, mistaken, path_of
from tpucc.artifacts import artifacts
from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, Source, UsageError, counted, printable
from tpucc.driver import compile_source as drive
from tpucc.explain.comparison.compare import Comparison
from tpucc.explain.comparison.compare import compare as compared
from tpucc.explain.device_outputs import QuantisedOutput, run_quantized
from tpucc.explain.quality import held_ranges, notices
from tpucc.explain.roofs import works_of
from tpucc.explain.tables import memory_table, roofline_table, timeline_table
from tpucc.explain.timed import Timed
from tpucc.interop.outside import Against, outside_judge
from tpucc.interop.sources import IMPORTED, files_asked, read_source, require_kept, whole_sizes
from tpucc.ir.printer import print_graph
from tpucc.isa.assembler import disassemble
from tpucc.isa.container import encode
from tpucc.lowering.tiletext import print_tiles
from tpucc.numerics import AnyArray
from tpucc.options import Keywords, Options, PathLike
from tpucc.output_files import write_file, write_files
from tpucc.plugins.judged import judge as verdict_on
from tpucc.runtime.inputs import by_name
from tpucc.runtime.judge import Verdict
from tpucc.see import pictures
from tpucc.see.charts.tiles import tiles_svg
from tpucc.see.notebook import Page, Shown, summary_html
from tpucc.sim.fast.backends import Backend, require
from tpucc.texts.resume import Base, base_at
from tpucc.texts.resume import resume as resume_text
from tpucc.training.asked import settings_of
from tpucc.training.session import Session
from tpucc.training.start import started
from tpucc.training.state import State
from tpucc.training_page import WRITTEN, measured, step_svg, write_training
from tpucc.user_options import changed, options_of

if TYPE_CHECKING:
    from tpucc.interop.onnx.reading.network_of import Layout

Inputs = Mapping[str, npt.ArrayLike] | npt.ArrayLike
"""An array for each input of a model, by name; or an array alone."""


WARNING = re.compile(r"^(\S+: )?warning ")
"""How a warning of the source begins. The others are notes."""


class InputWarning(UserWarning):
    """Inputs that are allowed but probably a mistake: outside the declared range, or changed by the conversion to the declared type."""


class Executable:
    """A compiled model: its stages, its numbers, and a way to run it.

    Made by `compile`, `compile_source` and `load`. A loaded one has only its program, without the stages before it.
    """

    def __init__(self, runtime: Timed, compilation: Compilation | None = None, reads: Iterable[Path] = ()) -> None:
        """`reads` are the files that it is made from: what is written of it doesn't take the place of one."""
        self.runtime = runtime
        self.compilation = compilation
        self.reads = tuple(reads)

    def __repr__(self) -> str:
        program = self.runtime.program
        return f"<Executable {program.name} for {program.machine_title}: {len(program.instructions):,} instructions>"

    def _repr_html_(self) -> str:
        return summary_html(self.runtime)

    def with_backend(self, backend: Backend) -> Executable:
        """The same model, with its large products computed by `backend`: "numpy", "onnxruntime" where that package is installed,
        or "auto", as at first: the faster of them.

        The results are the same to the bit. Raises `UsageError` E0541 where the backend can't be used.
        """
        require(backend)
        return Executable(replace(self.runtime, backend=backend), self.compilation, self.reads)

    def run(self, inputs: Inputs | None = None, /, **named: npt.ArrayLike) -> dict[str, AnyArray]:
        """Runs the model on an array for each input, or on the array for its only one; returns an array for each output: `Runtime.run`."""
        given = self._named(inputs, named)
        return self.runtime.run(given)

    def run_quantized(self, inputs: Inputs | None = None, /, **named: npt.ArrayLike) -> dict[str, QuantisedOutput]:
        """The integers that the device computed for each output, with their scale and zero point: see `tpucc.explain.device_outputs`."""
        given = self._named(inputs, named)
        return run_quantized(self.runtime, given)

    def _named(self, inputs: Inputs | None, named: Mapping[str, npt.ArrayLike]) -> Mapping[str, AnyArray]:
        """The arrays by name; what is odd about them is a warning where `run` was called."""
        given = by_name(self.runtime.inputs, inputs, named)
        for sentence in notices(self.runtime.inputs, given, held=held_ranges(self.runtime.host.prologue)):
            warnings.warn(sentence, InputWarning, stacklevel=3)
        return given

    def save(self, path: PathLike) -> None:
        """Writes the self-contained program (`.tpub`). Raises `UsageError` E0505 in the place of a file that it is made from."""
        require_kept([Path(path)], self.reads)
        write_file(Path(path), encode(self.runtime.program))

    @property
    def stats(self) -> dict[str, Any]:
        """The contents of `stats.json`, but for `what_if`."""
        return self.runtime.stats

    @property
    def counts(self) -> dict[str, Any]:
        """The cycles counted in four ways: what `profile --timing serial --json` adds to `stats`."""
        return self.runtime.counts

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self.compilation.warnings) if self.compilation else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The warnings that are about the compile and not about a line of the source; of a loaded program, those that it has kept."""
        return tuple(text for text in self.warnings if not WARNING.search(text)) if self.compilation else self.runtime.program.notes

    @property
    def graph(self) -> Shown:
        """The operator graph with its weights, as elaborated."""
        graph = self._stage("graph")
        return self._shown(
            graph,
            "operator graph",
            lambda data: print_graph(graph, with_data=data),
            lambda: pictures.graph_svg(graph, layers=self.compilation.layers if self.compilation else None),
        )

    @property
    def layers(self) -> Shown:
        """The layer graph: int8 layers between host operators."""
        layers = self._stage("layers")
        assert self.compilation is not None
        return self._shown(
            layers,
            "layer graph",
            self.compilation.layers_text,
            lambda: pictures.layers_svg(layers, self.runtime.program.title),
        )

    @property
    def tiles(self) -> Shown:
        """The tile program."""
        tiles = self._stage("tiles")
        return self._shown(tiles, "tile program", lambda data: print_tiles(tiles, data), lambda: tiles_svg(tiles))

    @property
    def program(self) -> Shown:
        """The machine program."""
        runtime, program = self.runtime, self.runtime.program
        return self._shown(program, "machine program", lambda data: disassemble(program, data), lambda: pictures.program_svg(runtime))

    @property
    def timeline(self) -> Shown:
        """When every instruction starts and ends."""
        runtime = self.runtime
        return self._shown(runtime.timeline, "timeline", lambda _: timeline_table(runtime), lambda: pictures.timeline_of(runtime))

    @property
    def memory(self) -> Shown:
        """Which values are in the unified buffer, in which rows, and when."""
        residents = self.runtime.program.residents
        return self._shown(residents, "unified buffer", lambda _: memory_table(self.runtime), lambda: pictures.memory_of(self.runtime))

    @property
    def roofline(self) -> Shown:
        """The speed of each layer, and that possible at its intensity. The value has the points of the model and of its layers."""
        runtime = self.runtime
        return self._shown(works_of(runtime), "roofline", lambda _: roofline_table(runtime), lambda: pictures.roofline_of(runtime))

    def report(self) -> Page:
        """The report as one page: a notebook shows it, `save` writes it."""
        if self.compilation is None:
            raise self._without("report")
        program = self.runtime.program
        files = artifacts(self.compilation, self.runtime, Path(program.source).stem, ("report",)).files
        return Page(f"{program.title} on {program.machine_title}", files["report.html"].decode(), self.reads)

    def _shown(self, value: Any, what: str, text: Callable[[bool], str], svg: Callable[[], str]) -> Shown:
        return Shown(value, f"the {what} of {printable(self.runtime.program.title)}", text, svg)

    def _stage(self, name: str) -> Any:
        value = getattr(self.compilation, name, None)
        if value is None:
            raise self._without(name)
        return value

    def _without(self, name: str) -> UsageError:
        return UsageError(Diagnostic("E0515", f"a program that was loaded has no {name}; compile the source to see them"))


def compile(path: PathLike, **asked: Unpack[Keywords]) -> Executable:  # shadows the built-in on purpose: tpucc.compile is what one types
    """Compiles the model at `path`.

    `target` is a machine or the name of one, and `overrides` change its numbers as --set does: `{"weight_bandwidth": 136e9}`.
    `params` are the command line's -D. `weights` and `calibration` are files that override those that the source names. `passes` are added
    to the built-in ones, or replace those of the same name; `omit` names optional passes to leave out, `include` those that only run when
    they are asked for; `settings` maps a pass's name to its options. `stages` replace built-in stages. Your stages
    and passes run in this process; `plugin_timeout` and `trust` are for sweeps, which read files. `level` is 0, 1 or 2. `cores` share the
    batch. `activation_bits` (8 or 16) overrides the source's. `keep` are layers for the host to compute in float32: `{"fc1": "host"}`.
    Raises a subclass of `tpucc.Error`.
    """
    file = path_of(path, "compile", "tpucc.compile_source(text)")
    options = options_of(**asked)
    return _executable(drive(read_source(file, options.params), file.parent, options), (file, *files_asked(asked)))


def compile_source(text: str, *, name: str = "model.tpu", folder: PathLike = ".", **asked: Unpack[Keywords]) -> Executable:
    """As `compile`, from source text. Messages use `name`; files that the source names are in `folder`."""
    if is_path(text) or not isinstance(text, str):
        raise mistaken("compile_source takes the text of a source", text, "tpucc.compile(path)")
    compilation = drive(Source(name, text), Path(folder), options_of(**asked))
    assert compilation.model is not None
    named = (compilation.model.weights, compilation.model.calibration)
    return _executable(compilation, (*(Path(folder, file) for file in named if file), *files_asked(asked)))


def resume(text: str | Shown, like: Executable | PathLike | None = None, *, name: str = "edited", **asked: Unpack[Keywords]) -> Executable:
    """Goes on from the text of a stage, as `exe.tiles` prints it or edited: a `.graph`, a `.layers.graph`, a `.tile` or an `.asm`.

    `like` is the model that the text was printed from, or its file (`.tpu`, `.tpub`); a graph of operators with its data needs none.
    Messages use `name`. The other arguments are as in `compile`; those left out are as in `like`. Raises `ProgramError` if the text is
    wrong, or if an edit changes something fixed (weights, inputs and outputs, the machine, the host's part), which the error names.
    """
    if is_path(text) or not isinstance(text, str | Shown):
        call = "tpucc.resume(Path(path).read_text(), like=…)" if is_path(text) else "tpucc.resume(exe.tiles, like=exe)"
        raise mistaken("resume takes the text of a stage", text, call)
    base: Base | None = None
    reads: tuple[Path, ...] = ()
    if isinstance(like, Executable):
        base, reads = Base(like.runtime.program, like.compilation), like.reads
    elif like is not None:
        reads = (path_of(like, "resume's like", "like=tpucc.compile_source(text)"),)
        base = base_at(reads[0], options_of(**asked))
    return _executable(resume_text(Source(name, str(text)), base, changed(_options_of(base), **asked)), (*reads, *files_asked(asked)))


def _options_of(base: Base | None) -> Options:
    if base is None:
        return Options()
    return base.compilation.options if base.compilation is not None else Options(target=base.program.target, cores=base.program.cores)


class Training:
    """A training that has ended: made by `train`."""

    def __init__(self, session: Session, reads: Iterable[Path] = ()) -> None:
        self._session = session
        self._reads = tuple(reads)

    def __repr__(self) -> str:
        state, parts = self.state, [counted(len(self.state.epochs), "epoch"), counted(self.state.step, "step")]
        if state.epochs:
            parts.append(f"loss {state.epochs[-1]['loss']:.5g}")
            if held_out := measured(state.epochs[-1]["held_out"]):
                parts.append(f"{held_out} on held-out examples")
        return f"<Training of {self._session.model.graph.name}: {', '.join(parts)}>"

    @property
    def weights(self) -> dict[str, AnyArray]:
        """The model's weights by key, float32."""
        return self._session.trained

    @property
    def state(self) -> State:
        """Where the training is: the states by key, the step, the seed."""
        return self._session.state

    @property
    def history(self) -> dict[str, Any]:
        """What `history.json` has: the settings, and for each epoch its loss, the held-out measure, gradient norms and ranges."""
        return self._session.history

    @property
    def step(self) -> Shown:
        """The step graph."""
        session = self._session
        graph = session.step.graph

        def text(with_data: bool) -> str:
            return print_graph(graph, with_data=with_data)

        return Shown(graph, f"step graph {graph.name}", text, lambda: step_svg(session.model, session.step, session.source))

    def save(self, folder: PathLike) -> None:
        """Writes `weights.npz`, `state.npz`, `history.json` and `report.html` into a folder, which is made if it is missing.

        Raises `UsageError` E0505 in the place of a file that it has read, but for the state that it went on from.
        """
        require_kept((Path(folder, name) for name in WRITTEN), self._reads, ("examples",))
        write_training(self._session, Path(folder))


def train(
    path: PathLike,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    target: str = "host",
    executor: str = "reference",
    cores: int = 1,
    microbatches: int = 1,
    activations: str = "f32",
    statistics: str = "two-pass",
    examples: PathLike | Mapping[str, npt.ArrayLike] | None = None,
    held_out: PathLike | Mapping[str, npt.ArrayLike] | None = None,
    weights: PathLike | None = None,
    seed: int | None = None,
    resume: PathLike | None = None,
    params: Mapping[str, object] | None = None,
    **others: Never,
) -> Training:
    """Trains the model at `path` by its `train`, for `epochs` (5 unless said) or `steps`, counted from the state `resume` if there is one.

    `target` is the machine whose arithmetic is used: "host" (float32), or "tpu_v2". The `executor` "machine" executes its instructions,
    with the same bits as the "reference". `cores` share each batch, and each makes `microbatches` of its share. `activations` "bf16"
    rounds values that memory holds, `statistics` "one-pass" reads them once for batch normalisation. `examples` are arrays by the names of
    `train`'s inputs, or a file of them. `held_out` are rows for the model's inputs and their `labels`, or a file of them; `weights` is a
    file of weights to begin with. `seed` draws weights, order and dropout. There are no `others`. Raises a subclass of `tpucc.Error`.
    """
    file = path_of(path, "train", "")
    settings = settings_of(
        epochs=epochs,
        steps=steps,
        target=target,
        executor=executor,
        cores=cores,
        microbatches=microbatches,
        activations=activations,
        statistics=statistics,
        examples=examples,
        held_out=held_out,
        weights=weights,
        seed=seed,
        resume=resume,
        **others,
    )
    session = started(read_source(file), file.parent, file.stem, options_of(params=params or {}).params, settings)
    for note in session.notes:
        warnings.warn(note, InputWarning, stacklevel=2)
    for _ in session.run():
        pass
    return Training(session, (file, *files_asked({"weights": weights, "examples": examples, "held_out": held_out})))


@dataclass(frozen=True, repr=False)
class ImportedModel:
    """A model of an ONNX file or a PyTorch module: `source` is its text in the language, and `weights` are its arrays by key."""

    name: str
    source: str
    weights: Mapping[str, AnyArray]
    reads: tuple[Path, ...] = ()
    """The file that it was read from, which is not written over."""
    params: Mapping[str, str] = field(default_factory=dict)
    """The params of the source by the names that the file has for them, and by their own: `compile` takes both."""

    def __repr__(self) -> str:
        return f"<ImportedModel {self.name}: {counted(self.source.count(chr(10)), 'line')}, {counted(len(self.weights), 'weight')}>"

    def __str__(self) -> str:
        return self.source

    def save(self, path: PathLike) -> None:
        """Writes the source to `path`, MODEL.tpu, and its weights beside it, to MODEL.npz. Raises `UsageError` when it can't be written."""
        from tpucc.interop.onnx.reading.text import model_files

        file = Path(path)
        files = model_files(self.source, self.weights, self.name, file.stem)
        require_kept((file.parent / name for name in files), self.reads)
        write_files(file.parent, files)

    def compile(self, **asked: Unpack[Keywords]) -> Executable:
        """Compiles the model: the keywords are those of `tpucc.compile`."""
        from tpucc.data.sources import ImportedSource

        source = ImportedSource(f"{self.name}{'.onnx' if self.reads else ''}{IMPORTED}", self.source, self.weights, self.params)
        return _executable(drive(source, Path(), options_of(**asked)), (*self.reads, *files_asked(asked)))


def import_onnx(path: PathLike, *, params: Mapping[str, int] | None = None, layout: Layout = "nhwc") -> ImportedModel:
    """Reads an ONNX file as a model of the language.

    `params` are sizes that the file leaves open: the batch is 8 unless they say so. With the layout "nhwc" the model takes and gives images
    with the channels last, with "nchw" as the file does. Raises `ProgramError` for a malformed file, `CompileError` for what tpucc can't
    take, `UsageError` for a file that can't be read or a size that isn't given.
    """
    from tpucc.interop.onnx.reading.text import imported_model  # compiling a source needs none of it

    file = path_of(path, "import_onnx", "tpucc.compile_source(text)")
    made = imported_model(file, file.stem, whole_sizes(params or {}), layout)
    return ImportedModel(file.stem, made.source, made.weights, (file,), made.params)


def from_torch(
    module: Any, example: Any, *, name: str = "", params: Mapping[str, int] | None = None, layout: Layout = "nhwc"
) -> ImportedModel:
    """Reads a PyTorch module as a model of the language, with its weights.

    `example` is a tensor, or a tuple or a mapping of them by the names of `forward`'s arguments: their shapes are the model's. If all
    have the same first size, or states have it second, it is the param `batch`, where the module works for other sizes too. `name` is the
    model's, as a name of the language; without it the name of the module's class. Outputs have the keys of a dict that `forward` returns.
    Images are [batch, height, width, channels] in the model, unless `layout` is "nchw". The module is read as in `eval()`, by
    `torch.onnx.export`: the extra `torch`. Raises `UsageError` E1015, and what `import_onnx` raises.
    """
    from tpucc.interop.onnx.reading import require_layout
    from tpucc.interop.onnx.reading.files.names import BATCH, identifier
    from tpucc.interop.onnx.reading.text import imported_model
    from tpucc.interop.pytorch import export, plain_module

    require_layout(layout)
    given = whole_sizes(params or {})
    if not isinstance(name, str):
        raise UsageError(Diagnostic("E0529", f"name is a text, found {type(name).__name__}"))
    plain = plain_module(module)
    kind = type(plain).__name__
    called = identifier(name or kind.lower(), "model")
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{called}.onnx"
        written = export(plain, example, file)
        sizes = ({} if written.batch is None else {BATCH: written.batch}) | given
        made = imported_model(file, called, sizes, layout, f"the PyTorch module {kind}", written.notes)
    return ImportedModel(called, made.source, made.weights, (), made.params)


def load(path: PathLike) -> Executable:
    """Reads a `.tpub` file. Raises `UsageError` when it can't be read, `ProgramError` when it is malformed or invalid."""
    file = path_of(path, "load", "tpucc.compile_source(text)")
    return Executable(Timed.load(file), reads=(file,))


def judge(exe: Executable, inputs: Mapping[str, npt.ArrayLike] | None = None, seed: int = 0, *, against: Against | None = None) -> Verdict:
    """Whether a model's values are right and its program is valid, and how good it is: see `tpucc.plugins.judged`.

    It runs the model on `inputs` (without them, on the calibration inputs), and on random inputs drawn from `seed`. With `against`
    "onnxruntime", that library must compute the same integers, too.
    """
    return verdict_on(exe.runtime, exe.compilation, inputs, seed, outside_judge(against))


def export_onnx(exe: Executable, path: PathLike, *, quantized: bool = False) -> None:
    """Writes a compiled model as an ONNX file: its operators in float32, or with `quantized` its layers in the device's integers.

    Inputs and outputs have the model's names and layout. Raises `UsageError` for a loaded program, which has no graph, and E0505 for a file
    whose name doesn't end in .onnx.
    """
    from tpucc.interop.export import exported, require_onnx_name  # when called: a model that is compiled needs none of it

    if exe.compilation is None:
        raise UsageError(Diagnostic("E0515", "a program that was loaded has no graph to export; compile the source"))
    file = path_of(path, "export_onnx", "")
    if not isinstance(quantized, bool):
        raise UsageError(Diagnostic("E0529", f"quantized is True or False, found {type(quantized).__name__}"))
    require_kept([file], exe.reads)
    require_onnx_name(file)
    write_file(file, exported(exe.compilation, quantized)[1])


def compare(a: Executable, b: Executable) -> Comparison:
    """b beside a: how much longer it takes from end to end, and what the device's cycles are spent on. See `tpucc.explain.comparison`."""
    return compared(a.runtime, b.runtime, (a.notes, b.notes))


def _executable(compilation: Compilation, reads: Iterable[Path]) -> Executable:
    assert compilation.program is not None
    return Executable(Timed(compilation.program), compilation, reads)
