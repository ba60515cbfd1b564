"""A source, and the files that it names: its weights, its calibration inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tpucc.data.archive import naming, read_arrays
from tpucc.data.weights import bind_archive, bind_arrays, bind_drawn, require_source
from tpucc.diagnostics import CompileError, Diagnostic, Error, Label, LimitError, Source, Span, printable
from tpucc.files import MODELS, inside, opened, unreadable
from tpucc.ir import Graph
from tpucc.language.elaborate import Model
from tpucc.language.problem import Limits
from tpucc.numerics import AnyArray
from tpucc.passes.input_arrays import checked_inputs

OPTIONS = {"weights": "--weights", "calibration": "--calibrate", "examples": "--examples"}
"""The options that name the file of a directive of the source."""


@dataclass(frozen=True, slots=True)
class ImportedSource(Source):
    """The source of a network that was read from an ONNX file or a PyTorch module, in memory, with its weights by key.

    `sizes` has for each size that the file leaves open, by its name in the file, the param of the text that has it; None where the text has
    a number.
    """

    weights: Mapping[str, AnyArray]
    sizes: Mapping[str, str | None]


def read_source(path: Path) -> Source:
    """The source at `path`, a text file. Raises as `source_bytes` and `source_of_bytes`."""
    return source_of_bytes(path, source_bytes(path))


def source_bytes(path: Path, missing: Callable[[Path], str] = lambda _: "") -> bytes:
    """The bytes of a file, up to the largest source and one more. Raises `UsageError` E0504 when it can't be read; `missing` gives the help
    where there is no file."""
    try:
        with opened(path) as stream:
            return stream.read(Limits().source_bytes + 1)
    except (OSError, ValueError) as error:
        help = missing(path) if isinstance(error, FileNotFoundError) else ""
        raise unreadable(path, error, "E0504", help=help, suffixes=MODELS) from None


def source_of_bytes(path: Path, data: bytes) -> Source:
    """The source that a file has. Raises `LimitError` E0612 when it is too large, and `CompileError` E0101 when it isn't UTF-8."""
    most = Limits().source_bytes
    if len(data) > most:
        raise LimitError(Diagnostic("E0612", f"{path.name} is too large: a source has at most {most:,} bytes"))
    try:
        return Source(printable(path.name), data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        where = f"byte {error.start:,}, in line {line:,}, is not UTF-8"
        mend = "a source is text and ends in .tpu" if b"\0" in data else "save it as UTF-8"
        raise CompileError(Diagnostic("E0101", f"{path.name} is not a text file: {where}", help=(mend,))) from None


def params_of(source: Source, params: Mapping[str, str]) -> Mapping[str, str]:
    """The texts of -D that the source's params take: of an imported one by the names of its params, without the sizes that are numbers."""
    sizes = source.sizes if isinstance(source, ImportedSource) else {}
    named = {sizes.get(name, name): text for name, text in params.items()}
    return {name: text for name, text in named.items() if name is not None}


def bind_weights(model: Model, folder: Path, archive: Path | None, source: Source | None = None) -> Graph:
    """The operator graph with its weights: those of the command line's `archive`, else an imported source's own, else drawn ones or those
    of the file that the source names, as it says. Raises `CompileError` E0422 where a graph with weights gets none."""
    if archive is not None:
        return bind_archive(model.graph, archive)
    if isinstance(source, ImportedSource):
        return bind_arrays(model.graph, source.weights)
    if model.random_seed is not None:
        return bind_drawn(model.graph, model.random_seed)
    if model.weights is None:
        require_source(model.graph)
        return model.graph
    path = beside(folder, model.weights, model.weights_span, "weights")
    with named_at(model.weights_span):
        return bind_archive(model.graph, path)


def read_calibration(model: Model, folder: Path, archive: Path | None) -> Mapping[str, AnyArray] | None:
    """The calibration arrays in the inputs' types, or None. They are checked here, where it is known where they are from."""
    if archive is not None:
        arrays = read_arrays(archive)
        with naming(archive):
            return checked_inputs(model.graph.inputs, arrays, "calibration")
    if model.calibration is None:
        return None
    path = beside(folder, model.calibration, model.calibration_span, "calibration")
    with named_at(model.calibration_span):
        return checked_inputs(model.graph.inputs, read_arrays(path), "calibration")


@contextmanager
def named_at(span: Span | None, code: str = "") -> Iterator[None]:
    """Gives the errors of a file (all, or the errors of one code) the place in the source that names the file, where they have no place."""
    try:
        yield
    except Error as error:
        labels = (Label(span),) if span else ()
        placed = [replace(found, labels=found.labels or (labels if code in ("", found.code) else ())) for found in error.diagnostics]
        raise type(error)(placed, error.source) from None


def beside(folder: Path, name: str, span: Span | None, directive: str) -> Path:
    """A path that the source names: relative to its folder, which it may not leave."""
    path = folder / name
    if "\0" in name or Path(name).is_absolute() or not inside(path, folder):
        labels = (Label(span, "leaves the source's folder"),) if span else ()
        mend = (f"move the file beside the source, or name it on the command line: {OPTIONS[directive]} {name}",)
        raise CompileError(Diagnostic("E0428", f"the {directive} file must lie in the source's folder", labels, mend))
    return path
