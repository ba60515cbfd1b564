"""Passes that the user brings: what one says of itself is read once, into plain values."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from types import ModuleType, NoneType
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.passes.base import GraphPass, Pass, UserPass
from tpucc.plugins.code import short, user_code
from tpucc.plugins.guarded_pass import GuardedPass

AttributesOfPass = tuple[str, str, int, str | None]
"""The name, the summary, the level and the name of the pass that comes before."""
PARTS = ("name", "summary", "run")
"""What a pass has at least."""


def brought(step: Any, what: str = "") -> Pass:
    """A pass that is asked for, as the pipeline takes it: tpucc's own as it is, one of the user's as plain values. `what` names the place
    where it comes from.

    Raises `UsageError` E0514 when it is none, `PluginError` when it can't be read.
    """
    if isinstance(step, UserPass) or (type(step).__module__.startswith("tpucc.passes.") and step.__module__.startswith("tpucc.passes.")):
        own: Pass = step
        return own
    run = run_of(step)
    found = require_attributes(user_code(f"the pass {type(step).__name__}", run).call(attributes_of, step), what)
    return GuardedPass(*found, defaults_of(step), user_code(f"the pass {found[0]}", run), step)


def run_of(step: Any) -> object:
    """The function that a pass runs, read without running any code of the user's."""
    return inspect.unwrap(step.function) if type(step) is GraphPass else inspect.getattr_static(step, "run", None)


def defaults_of(step: Any) -> dict[str, object]:
    """The options of a pass with their values; of a dataclass the defaults, `MISSING` where there is none."""
    if type(step) is GraphPass:
        return dict(step.options)
    return {each.name: each.default for each in fields(step)} if is_dataclass(step) else {}


def require_attributes(found: AttributesOfPass | str, what: str) -> AttributesOfPass:
    """What `attributes_of` gives. Raises `UsageError` E0514 where it is a reason in words."""
    if isinstance(found, str):
        kinds = "name and summary are strings, level is 0, 1 or 2, after the name of a pass, run a method"
        raise UsageError(Diagnostic("E0514", f"{what + ': ' if what else ''}{found}, which isn't a pass: {kinds}"))
    return found


def made_by(cls: Any) -> Any:
    """A pass with its default options, of its class; a pass that is a function is one already. Raises `PluginError`."""
    if type(cls) is GraphPass:
        return cls
    return user_code(f"the pass {cls.__name__}, made without arguments,", run_of(cls)).call(cls)


def passes_in(module: ModuleType) -> list[Any]:
    """The passes of a module, in their order there: every class of its own with `name`, `summary` and `run`, and every function that
    `graph_pass` or `rules_pass` makes a pass of."""
    return [value for value in list(vars(module).values()) if _is_pass(value, module)]


def _is_pass(value: object, module: ModuleType) -> bool:
    own = (inspect.isclass(value) or type(value) is GraphPass) and value.__module__ == module.__name__
    return own and all(hasattr(value, part) for part in PARTS)


def attributes_of(step: Any) -> AttributesOfPass | str:
    """The attributes of a pass as plain values, a class without a level running at every one; for an object that isn't a pass, the reason
    in words."""
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
