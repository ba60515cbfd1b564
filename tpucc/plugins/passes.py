"""Passes that the user brings: from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

from tpucc.diagnostics import Diagnostic, Label, Source, Span, UsageError, listed
from tpucc.passes.base import GraphPass, Pass
from tpucc.plugins.files import executed
from tpucc.plugins.guard import SECONDS, Guest, guest, short
from tpucc.plugins.guarded_pass import GuardedPass

GROUP = "tpucc.passes"


def passes_of_file(path: Path, seconds: float = SECONDS) -> tuple[Pass, ...]:
    """The passes that a Python file defines, in their order there: every class of its own with `name`, `summary` and `run`, and every
    function that `graph_pass` or `rules_pass` makes a pass of.

    The file is executed: it is the user's own code. Raises `UsageError` when it can't be read or defines no pass, `PluginError` when it
    fails.
    """
    module = executed(path, seconds)
    code = Guest(f"the file {path}", str(path), 0, seconds)
    classes = code.call(lambda: [cls for cls in list(vars(module).values()) if _is_pass(cls, module)])
    found = tuple(_instance(cls, path, seconds) for cls in classes)
    if not found:
        raise code.call(lambda: _no_pass(path, module))
    return found


_PARTS = ("name", "summary", "run")


def _no_pass(path: Path, module: ModuleType) -> UsageError:
    """What a file defines instead of a pass, and what its classes lack, each with its line."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    classes = {value.__name__: listed([part for part in _PARTS if not hasattr(value, part)]) for value in own if inspect.isclass(value)}
    functions = [value.__name__ for value in own if inspect.isfunction(value)]
    source = Source(path.name, path.read_text("utf-8"))
    lacks = listed([f"the class {name} has no {parts}" for name, parts in classes.items()])
    found = lacks or (f"a function is none, {functions[0]}" if functions else "it has no class")
    first = next(iter(classes or functions), None)
    place = re.search(rf"(?m)^(?:class|def) {first}\b", source.text) if first else None
    line = source.text.count("\n", 0, place.start()) + 1 if place else 0
    labels = (Label(Span(line, 1, line, len(place[0]) + 1)),) if place else ()
    wanted = "a pass is a frozen dataclass with name, summary, and run(self, graph, context) that returns a Graph; docs/python.md shows one"
    return UsageError(Diagnostic("E0513", f"{path} defines no pass: {found}", labels, (wanted,)), source)


def installed_passes(seconds: float = SECONDS) -> Iterator[Pass]:
    """The passes of installed packages, by the entry-point group `tpucc.passes`."""
    if not any(map(_names_passes, map(Path, sys.path))):
        return
    from importlib.metadata import entry_points  # with what it imports, a thirtieth of the time of `tpucc check`

    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        cls = guest(f"the package of the pass {entry.name}", None, seconds).call(entry.load)
        yield _instance(cls, Path(entry.value), seconds)


def _names_passes(place: Path) -> bool:
    """Whether a package in a folder of `sys.path` may have passes; of an archive there it isn't known, nor of what can't be read."""
    if not place.is_dir():
        return place.is_file()
    try:
        return _some_names_passes(place.absolute(), place.stat().st_mtime_ns)
    except OSError:
        return True


@lru_cache(maxsize=64)
def _some_names_passes(place: Path, changed: int) -> bool:
    """Whether a package in this folder has passes. To install or remove one changes the folder, and so `changed`. Raises `OSError`."""
    files = (place / name / "entry_points.txt" for name in os.listdir(place) if name.lower().endswith("-info"))
    return any(GROUP.encode() in file.read_bytes() for file in files if file.is_file())


def _is_pass(value: object, module: ModuleType) -> bool:
    own = (inspect.isclass(value) or type(value) is GraphPass) and value.__module__ == module.__name__
    return own and all(hasattr(value, part) for part in _PARTS)


def _instance(cls: Any, path: Path, seconds: float) -> Pass:
    """A pass with its default options. A class without a level runs at every one."""
    if type(cls) is GraphPass:
        return brought(cls, seconds, str(path))
    code = guest(f"the pass {cls.__name__}, made without arguments,", inspect.getattr_static(cls, "run", None), seconds)
    return brought(code.call(cls), seconds, str(path))


def brought(step: Any, seconds: float = SECONDS, what: str = "") -> Pass:
    """A pass that is asked for, as the pipeline takes it: tpucc's own as it is, one of the user's as plain values.

    Raises `UsageError` E0514 when it is none, `PluginError` when it can't be read.
    """
    if type(step) is GuardedPass or (type(step).__module__.startswith("tpucc.passes.") and step.__module__.startswith("tpucc.passes.")):
        own: Pass = step
        return own
    run = inspect.unwrap(step.function) if type(step) is GraphPass else inspect.getattr_static(step, "run", None)
    found = guest(f"the pass {type(step).__name__}", run, seconds).call(lambda: _read(step))
    if isinstance(found, str):
        kinds = "name and summary are strings, level is 0, 1 or 2, after the name of a pass, run a method"
        raise UsageError(Diagnostic("E0514", f"{what + ': ' if what else ''}{found}, which isn't a pass: {kinds}"))
    name, summary, level, after = found
    return GuardedPass(name, summary, level, after, step, guest(f"the pass {name}", run, seconds))


def _read(step: Any) -> tuple[str, str, int, str | None] | str:
    """The attributes of a pass as plain values; for an object that isn't a pass, the reason in words."""
    if isinstance(step, type) or not callable(getattr(step, "run", None)):
        return short(step)
    name, summary, after, level = (getattr(step, field, None) for field in ("name", "summary", "after", "level"))
    level = 0 if level is None else level
    fits = {"name": isinstance(name, str), "summary": isinstance(summary, str), "level": level in (0, 1, 2)}
    fits["after"] = isinstance(after, str | None)
    if wrong := next((field for field, good in fits.items() if not good), None):
        value = getattr(step, wrong, None)
        plain = type(value) in (str, int, float, NoneType)
        return f"{type(step).__name__} with the {wrong} {short(value) if plain else type(value).__name__}"
    return str.__str__(name), str.__str__(summary), int(level), None if after is None else str.__str__(after)
