"""Passes that the user brings: from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.passes.base import Brought, Pass
from tpucc.plugins.files import executed
from tpucc.plugins.guard import SECONDS, Guest, guest, short

GROUP = "tpucc.passes"


def passes_of_file(path: Path, seconds: float = SECONDS) -> tuple[Pass, ...]:
    """The passes that a Python file defines, in their order there: every class of its own with `name`, `summary` and `run`.

    The file is executed: it is the user's own code. Raises `UsageError` when it can't be read or defines no pass, `PluginError` when it
    fails.
    """
    module = executed(path, seconds)
    code = Guest(f"the file {path}", str(path), 0, seconds)
    classes = code.call(lambda: [cls for cls in list(vars(module).values()) if _is_pass(cls, module)])
    found = tuple(_instance(cls, path, seconds) for cls in classes)
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
    code = guest(f"the pass {cls.__name__}, made without arguments,", inspect.getattr_static(cls, "run", None), seconds)
    return brought(code.call(cls), seconds, f"{path}: {cls.__name__}")


def brought(step: Any, seconds: float = SECONDS, what: str = "") -> Pass:
    """A pass that is asked for, as the pipeline takes it: tpucc's own as it is, one of the user's as plain values.

    Raises `UsageError` E0514 when it is none, `PluginError` when it can't be read.
    """
    if type(step) is Brought or type(step).__module__.startswith("tpucc.passes."):
        own: Pass = step
        return own
    run = inspect.getattr_static(step, "run", None)
    found = guest(f"the pass {type(step).__name__}", run, seconds).call(lambda: _read(step) or short(step))
    if isinstance(found, str):
        kinds = "name and summary are strings, level is 0, 1 or 2, run a method"
        raise UsageError(Diagnostic("E0514", f"{what or found} isn't a pass: {kinds}"))
    name, summary, level, after = found
    return Brought(name, summary, level, after, step, guest(f"the pass {name}", run, seconds))


def _read(step: Any) -> tuple[str, str, int, str | None] | None:
    """The attributes of a pass as plain values; None for an object that isn't a pass."""
    if isinstance(step, type) or not callable(getattr(step, "run", None)):
        return None
    name, summary, after, level = (getattr(step, field, None) for field in ("name", "summary", "after", "level"))
    level = 0 if level is None else level
    if not (isinstance(name, str) and isinstance(summary, str) and level in (0, 1, 2) and isinstance(after, str | None)):
        return None
    return str.__str__(name), str.__str__(summary), int(level), None if after is None else str.__str__(after)
