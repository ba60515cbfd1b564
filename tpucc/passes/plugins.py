"""Passes that the user brings: from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.passes.base import Pass
from tpucc.plugins.files import executed
from tpucc.plugins.guard import SECONDS, guest

GROUP = "tpucc.passes"


def passes_of_file(path: Path, seconds: float = SECONDS) -> tuple[Pass, ...]:
    """The passes that a Python file defines, in their order there: every class of its own with `name`, `summary` and `run`.

    The file is executed: it is the user's own code. Raises `UsageError` when it can't be read or defines no pass, `PluginError` when it
    fails.
    """
    module = executed(path, seconds)
    found = tuple(_instance(cls, path, seconds) for cls in vars(module).values() if _is_pass(cls, module))
    if not found:
        wanted = ("a pass is a frozen dataclass with name, summary, and run(self, graph, context) -> Graph; see tpucc.passes.base",)
        raise UsageError(Diagnostic("E0513", f"{path} defines no pass", help=wanted))
    return found


def installed_passes(seconds: float = SECONDS) -> Iterator[Pass]:
    """The passes of installed packages, by the entry-point group `tpucc.passes`."""
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        cls = guest(f"the package of the pass {entry.name}", None, seconds).call(entry.load)
        yield _instance(cls, Path(entry.value), seconds)


def _is_pass(value: object, module: ModuleType) -> bool:
    own = inspect.isclass(value) and value.__module__ == module.__name__
    return own and all(hasattr(value, field) for field in ("name", "summary", "run"))


def _instance(cls: Any, path: Path, seconds: float) -> Pass:
    """A pass with its default options. A class without a level runs at every one."""
    if not hasattr(cls, "level"):
        cls.level = 0
    step = guest(f"the pass {cls.__name__}, made without arguments,", cls.run, seconds).call(cls)
    return require_pass(step, f"{path}: {cls.__name__}")


def require_pass(step: object, what: str) -> Pass:
    """The pass. Raises `UsageError` E0514 when it is none."""
    if isinstance(step, Pass) and not isinstance(step, type):
        kinds = ((step.name, str), (step.summary, str), (step.level, int), (getattr(step, "after", ""), str | None))
        if all(isinstance(value, kind) for value, kind in kinds):
            return step
    raise UsageError(Diagnostic("E0514", f"{what} is no pass: name and summary are strings, level an integer, run a method"))
