"""One compilation for the watch: its files, or what went wrong. Nothing escapes but an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, Error, InternalError, LimitError, Source
from tpucc.driver import compile_source
from tpucc.files import write_files
from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.runtime.runtime import Runtime
from tpucc.sim.durations import duration
from tpucc.values import dataclass

SAVED = "tpucc compile does the same and saves what reproduces it"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to compile, again and again.

    `options` is asked every time, as targets and passes may lie in files too; `draw` makes the files, `report.html` among them, that are
    written into `folder`; `beside` are further files whose change counts.
    """

    path: Path
    folder: Path
    options: Callable[[], Options]
    draw: Callable[[Compilation, Runtime], Mapping[str, bytes]]
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Built:
    """A good compilation: its source, its files by name, its numbers in a line, warnings with their places, and what passes remarked."""

    source: Source
    files: Mapping[str, bytes]
    summary: str
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The errors, and the source that their messages refer to, if there is one."""

    error: Error
    source: Source | None


Outcome = Built | Failed


def attempt(recipe: Recipe) -> Outcome:
    """Compiles once. Faults of tpucc, and of passes that the user brought, are failures like any other."""
    try:
        return _built(recipe)
    except Error as error:
        return Failed(error, error.source or _source(recipe.path))
    except MemoryError:
        failure: Error = LimitError(Diagnostic("E0613", "out of memory; a smaller batch needs less"))
    except Exception as error:
        failure = InternalError(Diagnostic("E0900", f"a fault in tpucc: {type(error).__name__}: {error}", help=(SAVED,)))
    return Failed(failure, _source(recipe.path))


def _built(recipe: Recipe) -> Built:
    options = recipe.options()
    source = read_source(recipe.path, options.params)
    compilation = compile_source(source, recipe.path.parent, options)
    assert compilation.program is not None
    assert compilation.model is not None
    runtime = Runtime(compilation.program)
    files = recipe.draw(compilation, runtime)
    write_files(recipe.folder, files)
    warnings = compilation.model.warnings
    placed = {warning.render(source) for warning in warnings}
    notes = tuple(note for note in compilation.warnings if note not in placed)
    stats = runtime.stats
    summary = f"{stats['cycles']:,} cycles, {duration(stats['seconds'])}, {stats['bottleneck']} bound"
    return Built(source, files, summary, warnings, notes)


def _source(path: Path) -> Source | None:
    try:
        return read_source(path)
    except Error:
        return None
