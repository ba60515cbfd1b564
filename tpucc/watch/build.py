"""One compilation for the watch: its files, or what went wrong. Nothing escapes but an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, Error, InternalError, Source
from tpucc.driver import compile_source
from tpucc.explain.comparison.compare import compare
from tpucc.explain.timed import Timed
from tpucc.interop.sources import read_source, require_kept
from tpucc.options import Options
from tpucc.output_files import write_files
from tpucc.plain_errors import as_error
from tpucc.see.comparison.page import comparison_page, headline

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
    draw: Callable[[Compilation, Timed], Mapping[str, bytes]]
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A version beside the one before it: both cycles in a line, the sentences on the difference, and the page of `tpucc compare`."""

    summary: str
    cause: str
    page: str


@dataclass(frozen=True, slots=True)
class Built:
    """A good compilation: its source, its files by name, its numbers in a line, the program, warnings with their places, what passes
    remarked, and what is other than in the good compilation before it."""

    source: Source
    files: Mapping[str, bytes]
    summary: str
    runtime: Timed
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The errors, and the source that their messages refer to, if there is one."""

    error: Error
    source: Source | None


Outcome = Built | Failed


def attempt(recipe: Recipe, before: Built | None = None) -> Outcome:
    """Compiles once, and compares with the version before. Faults of tpucc, and of passes that the user brought, are failures like any
    other."""
    try:
        return _built(recipe, before)
    except Exception as error:
        failure = as_error(error)
        if isinstance(failure, InternalError):
            failure = InternalError([replace(each, help=(SAVED,)) for each in failure.diagnostics])
        return Failed(failure, failure.source or _source(recipe.path))


def _built(recipe: Recipe, before: Built | None) -> Built:
    options = recipe.options()
    source = read_source(recipe.path, options.params)
    compilation = compile_source(source, recipe.path.parent, options)
    assert compilation.program is not None
    assert compilation.model is not None
    runtime = Timed(compilation.program)
    files = recipe.draw(compilation, runtime)
    require_kept((recipe.folder / name for name in files), (recipe.path, *recipe.beside))
    write_files(recipe.folder, files)
    found = Built(source, files, runtime.summary, runtime, compilation.model.warnings, compilation.notes)
    return found if before is None else replace(found, change=_change(before, found))


def _change(before: Built, now: Built) -> Change:
    said = ("the version before", "this version")
    sides = (before.runtime, now.runtime)
    found = compare(*sides, (before.notes, now.notes), (f"{before.source.name}, {said[0]}", f"{now.source.name}, {said[1]}"), said)
    return Change(headline(found), found.cause, comparison_page(found, *sides))


def _source(path: Path) -> Source | None:
    try:
        return read_source(path)
    except Error:
        return None
