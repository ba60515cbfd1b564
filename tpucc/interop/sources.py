"""Sources as the annex reads them: those of tpucc, and files of other kinds; with the files that they name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

from tpucc.data.sources import ImportedSource, source_bytes, source_of_bytes
from tpucc.diagnostics import CompileError, Diagnostic, Error, Source, UsageError, printable
from tpucc.interop.foreign import foreign
from tpucc.interop.programs import suggestion
from tpucc.language.ast import Directive, Text, TopLevel
from tpucc.language.parse import parse
from tpucc.output_files import require_apart

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
    data = source_bytes(path, suggestion)
    require_own_kind(path, data)
    return source_of_bytes(path, data)


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
    from tpucc.interop.onnx.reading.text import imported_model  # a source needs none of it

    made = imported_model(path, path.stem, open_sizes(params), begin=begin)
    return ImportedSource(printable(f"{path.name}{IMPORTED}"), made.source, made.weights, made.sizes)


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


TEXTS = (".tpu", ".py", ".toml", ".asm", ".npz")
"""Files of a folder that is read, such as a lab's; and texts that name a file."""
NAMED = ("weights", "calibration", "examples")
"""The keywords by which a source names files."""


def held_out_file(path: Path) -> Path:
    """Where the labelled rows of a source are looked for: `STEM_test.npz` beside it."""
    return path.with_name(f"{path.stem}_test.npz")


def require_kept(outputs: Iterable[Path], read: Iterable[Path], named: Collection[str] = NAMED) -> None:
    """Raises `UsageError` E0505 where a file that is to be written is another of `outputs`, is one of `read`, or is read with one of them:
    a file in a folder, the labelled rows beside a source, what the source names by the keywords `named`."""
    require_apart(list(outputs), _all(read, named))


def _all(read: Iterable[Path], named: Collection[str]) -> Iterator[Path]:
    for path in read:
        yield path
        if path.is_dir():
            yield from (each for each in path.iterdir() if each.suffix in TEXTS)
        if path.suffix == ".tpu":
            yield held_out_file(path)
            with suppress(Error):  # whoever reads the source says what is wrong with it
                yield from files_of(path, named)


def paths_in(value: Any) -> Iterator[Path]:
    """The paths in an argument; a text may name a file, too: a target, a stage's file."""
    match value:
        case Path():
            yield value
        case str() if value.endswith(TEXTS):
            yield Path(value)
        case tuple() | list():
            for each in value:
                yield from paths_in(each)
        case dict():
            yield from paths_in(tuple(value.values()))


def files_asked(asked: Mapping[str, Any]) -> Iterator[Path]:
    """The files among the keywords of `tpucc.compile`, `tpucc.sweep` or `tpucc.train`."""
    for name, value in asked.items():
        if name in ("weights", "calibration", "examples", "held_out") and not isinstance(value, Mapping | None):
            yield Path(value)
        elif name == "stages" and isinstance(value, Mapping):
            yield from (Path(each) for each in value.values() if isinstance(each, str | PathLike))
        elif name in ("target", "passes"):
            yield from paths_in(value)
