"""Passes that the user brings: from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.passes.base import Pass

GROUP = "tpucc.passes"


def passes_of_file(path: Path) -> tuple[Pass, ...]:
    """The passes that a Python file defines, in their order there: every class of its own with `name`, `summary` and `run`.

    The file is executed: it is the user's own code. Raises `UsageError` when it can't be read or run, or defines no pass.
    """
    module = _executed(path)
    found = tuple(_instance(cls, path) for cls in vars(module).values() if _is_pass(cls, module))
    if not found:
        wanted = ("a pass is a frozen dataclass with name, summary, and run(self, graph, context) -> Graph; see tpucc.passes.base",)
        raise UsageError(Diagnostic("E0513", f"{path} defines no pass", help=wanted))
    return found


def installed_passes() -> Iterator[Pass]:
    """The passes of installed packages, by the entry-point group `tpucc.passes`."""
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        yield _instance(entry.load(), Path(entry.value))


def _executed(path: Path) -> ModuleType:
    if not path.is_file():
        why = "is a directory" if path.is_dir() else "no such file"
        raise UsageError(Diagnostic("E0504", f"can't read {path}: {why}"))
    spec = importlib.util.spec_from_file_location(f"tpucc_pass_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(Diagnostic("E0513", f"{path} is not a Python file; a pass file ends in .py"))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        where = _line(error, path)
        raise UsageError(Diagnostic("E0514", f"{path}{where} can't be run: {type(error).__name__}: {error}")) from error
    return module


def _line(error: Exception, path: Path) -> str:
    """`:LINE` of the file that the error comes from, when it is known."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    lines = (
        [frame.lineno for frame in inspect.getinnerframes(error.__traceback__) if frame.filename == str(path)]
        if error.__traceback__
        else []
    )
    return f":{lines[-1]}" if lines else ""


def _is_pass(value: object, module: ModuleType) -> bool:
    own = inspect.isclass(value) and value.__module__ == module.__name__
    return own and all(hasattr(value, field) for field in ("name", "summary", "run"))


def _instance(cls: type, path: Path) -> Pass:
    """A pass with its default options. A class without a level runs at every one."""
    try:
        if not hasattr(cls, "level"):
            cls.level = 0  # type: ignore[attr-defined]
        step = cls()
    except TypeError as error:
        raise UsageError(Diagnostic("E0514", f"{path}: {cls.__name__} can't be made without arguments: {error}")) from error
    if not isinstance(step, Pass) or not isinstance(step.name, str):
        raise UsageError(Diagnostic("E0514", f"{path}: {cls.__name__} is no pass: name is a string, level an integer, run a method"))
    return step
