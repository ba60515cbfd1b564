"""The files of a source: its text, its weights, its calibration inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import index
from pathlib import Path

from tpucc.diagnostics import CompileError, Diagnostic, Error, Label, LimitError, Source, Span, UsageError, printable
from tpucc.files import inside, opened, unreadable
from tpucc.frontend.ast import Directive, Text, TopLevel
from tpucc.frontend.elaborate import Limits, Model
from tpucc.frontend.parse import parse
from tpucc.interop.archive import naming, read_arrays
from tpucc.interop.foreign import MODELS, foreign
from tpucc.interop.programs import suggestion
from tpucc.interop.weights import bind_archive, bind_arrays, bind_drawn, require_source
from tpucc.ir.graph import Graph
from tpucc.numerics import AnyArray
from tpucc.passes.model_inputs import checked

NO_PARAMS: Mapping[str, str] = {}
ONNX = ".onnx"
LARGEST = 2**31 - 1
"""A size of a tensor."""
LONGEST = 40
"""Characters of a size in a message; a number of more of them is too large."""

IMPORTED = " as .tpu"
"""What ends the name of a source that another file was read as."""


def file_of(name: str) -> str:
    """The file that a source of this name is of: `gpt.onnx` of `gpt.onnx as .tpu`. `MODEL.tpu` for a module of PyTorch, which has none."""
    file = name.removesuffix(IMPORTED)
    return "MODEL.tpu" if IMPORTED in name and not file.endswith(ONNX) else file


def read_source(path: Path, params: Mapping[str, str] = NO_PARAMS, begin: Callable[[str], None] = lambda _: None) -> Source:
    """The source at `path`. An ONNX file is imported, with its weights; `params` are the texts of -D, some of which may be sizes of it.
    `begin` is told what an import does from now on.

    Raises what `imported_model` does for such a file, else `UsageError` when it can't be read, `LimitError` when it is too large,
    `CompileError` E0121 for another kind of file, and E0101 when it isn't UTF-8.
    """
    if path.suffix.lower() == ONNX:
        return _imported(path, params, begin)
    most = Limits().source_bytes
    try:
        with opened(path) as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        help = suggestion(path) if isinstance(error, FileNotFoundError) else ""
        raise unreadable(path, error, "E0504", help=help, suffixes=MODELS) from None
    require_own_kind(path, data)
    if len(data) > most:
        raise LimitError(Diagnostic("E0612", f"{path.name} is too large: a source has at most {most:,} bytes"))
    try:
        return Source(printable(path.name), data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        where = f"byte {error.start:,}, in line {line:,}, is not UTF-8"
        mend = "a source is text and ends in .tpu" if b"\0" in data else "save it as UTF-8"
        raise CompileError(Diagnostic("E0101", f"{path.name} is not a text file: {where}", help=(mend,))) from None


def require_own_kind(path: Path, data: bytes) -> None:
    """Raises `CompileError` E0121 for a file of another kind, by its name and how its `data` begin."""
    if (kind := foreign(path, data)) is not None:
        raise CompileError(Diagnostic("E0121", f"{path.name} is {kind.what}, not the source of a model", help=(kind.help,)))


def items_of(path: Path) -> Sequence[TopLevel]:
    """What stands at the top of a source; nothing for another file. Raises the errors of reading and parsing it."""
    return parse(read_source(path)).items if path.suffix == ".tpu" else ()


def files_of(path: Path, keywords: Collection[str] = ("weights", "calibration")) -> Iterator[Path]:
    """A source and those files that it names by these keywords and that are there. Raises the errors of reading and parsing it."""
    yield path
    for item in items_of(path):
        if isinstance(item, Directive) and item.keyword in keywords and isinstance(item.value, Text):
            named = path.parent / "".join(part for part in item.value.parts if isinstance(part, str))
            if named.is_file():  # a missing one is an error of compiling, which says where it is named
                yield named


def _imported(path: Path, params: Mapping[str, str], begin: Callable[[str], None]) -> Source:
    from tpucc.interop.onnx.reading.text import ImportedSource, imported_model  # a source needs none of it

    made = imported_model(path, path.stem, open_sizes(params), begin=begin)
    return ImportedSource(printable(f"{path.name}{IMPORTED}"), made.source, made.weights, made.sizes)


def params_of(source: Source, params: Mapping[str, str]) -> Mapping[str, str]:
    """The texts of -D that the source's params take: of an imported one by the names of its params, without the sizes that are numbers."""
    sizes: Mapping[str, str | None] = getattr(source, "sizes", {})
    named = {sizes.get(name, name): text for name, text in params.items()}
    return {name: text for name, text in named.items() if name is not None}


BOOLEANS = {"false": "0", "true": "1"}
"""What `-D` takes for an input of one boolean, beside its number."""


def open_sizes(params: Mapping[str, str]) -> dict[str, int]:
    """The texts of -D as sizes, and of inputs of one integer or boolean. Raises `UsageError` E1008 for one that is neither."""
    texts = {name: BOOLEANS.get(text.lower(), text) for name, text in params.items()}
    numbers = {name: text.lstrip("0")[:LONGEST] or "0" for name, text in texts.items() if text.isascii() and text.isdigit()}
    return {name: _size(name, int(numbers[name]) if name in numbers else None, text) for name, text in params.items()}


def whole_sizes(params: Mapping[str, object]) -> dict[str, int]:
    """Likewise of values from Python: whole numbers, also those of NumPy. Raises `UsageError` E1008, and E0529 for what is no dict."""
    if not isinstance(params, Mapping):
        raise UsageError(Diagnostic("E0529", f"params is a dict, found {type(params).__name__}"))
    found: dict[str, int] = {}
    for name, value in params.items():
        try:
            number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
        except TypeError:
            number = None
        found[str(name)] = _size(str(name), number, repr(value))
    return found


def _size(name: str, value: int | None, text: str) -> int:
    shown, wanted = printable(text[:LONGEST]), printable(name)
    if value is None or value < 0:
        help = "of an input of one integer or boolean, -D takes a number from 0 on, true or false"
        raise UsageError(Diagnostic("E1008", f"{wanted}: {shown} is no size: sizes are whole numbers from 1 on", help=(help,)))
    if value > LARGEST:
        raise UsageError(Diagnostic("E1008", f"{wanted}: {shown} is too large: sizes are at most {LARGEST:,}"))
    return value


def bind_weights(model: Model, folder: Path, archive: Path | None, source: Source | None = None) -> Graph:
    """The operator graph with its weights: from the command line's archive, the source's, or drawn. An imported source has its own."""
    if archive is not None:
        return bind_archive(model.graph, archive)
    if (arrays := getattr(source, "weights", None)) is not None:
        return bind_arrays(model.graph, arrays)
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
            return checked(model.graph.inputs, arrays, "calibration")
    if model.calibration is None:
        return None
    path = beside(folder, model.calibration, model.calibration_span, "calibration")
    with named_at(model.calibration_span):
        return checked(model.graph.inputs, read_arrays(path), "calibration")


@contextmanager
def named_at(span: Span | None, code: str = "") -> Iterator[None]:
    """Gives errors of a file (or those of one code) that have no place of their own the place in the source that names the file."""
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
        option = "--weights" if directive == "weights" else "--calibrate"
        mend = (f"move the file beside the source, or name it on the command line: {option} {name}",)
        raise CompileError(Diagnostic("E0428", f"the {directive} file must lie in the source's folder", labels, mend))
    return path
