"""Passes that the user brings: from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Diagnostic, Label, Source, Span, UsageError, listed
from tpucc.guest.files import IN_A_PAGE, INSIDE, File, executed, file_at
from tpucc.guest.graphs import graph_of
from tpucc.guest.inside import no_pass
from tpucc.ir import Graph
from tpucc.options import SECONDS
from tpucc.passes.base import Context, Pass, UserPass
from tpucc.plugins.brought import brought, made_by, passes_in, require_attributes
from tpucc.plugins.failures import failing
from tpucc.plugins.guarded_pass import GuardedPass


def passes_of_file(path: Path, seconds: float = SECONDS, *, trust: bool = False) -> tuple[Pass, ...]:
    """The passes that a Python file defines, in their order there, with their default options.

    The file is executed, in a child or, for those who `trust` it, here. Raises `UsageError` when it can't be read or defines no pass,
    `PluginError` when it fails.
    """
    if trust or IN_A_PAGE:
        module = executed(path)
        if found := passes_in(module):
            return tuple(brought(made_by(each), str(path)) for each in found)
        raise _no_pass(path, no_pass(module))
    file = file_at(path, seconds)
    names = file.code.call(file.call, f"{INSIDE}:passes")
    if not names:
        raise _no_pass(path, file.code.call(file.call, f"{INSIDE}:no_pass"))
    return tuple(_in_child(file, number, *each) for number, each in enumerate(names))


def _in_child(file: File, number: int, name: str, place: str, line: int) -> Pass:
    """A pass of a file that a child has."""
    found, options = file.code_at(f"the pass {name}, made without arguments,", place, line).call(file.call, f"{INSIDE}:make", number)
    title, summary, level, after = require_attributes(found if isinstance(found, str) else tuple(found), str(file.path))
    step = _Asked(title, summary, level, file, number, {})
    return _PassInChild(title, summary, level, after, options, file.code_at(f"the pass {title}", place, line), step)


@dataclass(frozen=True)
class _Asked:
    """Asks the child of a file for what a pass with these options makes."""

    name: str
    summary: str
    level: int
    file: File
    number: int
    values: Mapping[str, object] = field(hash=False)

    def run(self, graph: Graph, context: Context) -> Graph:
        """The graph. Raises `Failed`."""
        given = {each.name: getattr(context, each.name) for each in fields(context)}
        given["calibration"] = None if context.calibration is None else dict(context.calibration)
        found = self.file.call(f"{INSIDE}:run", self.number, self.values, graph, given)
        if found is None:
            return graph
        with failing("result", "gave a graph that"):
            return graph_of(found, graph)


class _PassInChild(GuardedPass):
    """A pass that a child runs, which checks what the pass makes."""

    def rewritten(self, graph: Graph, context: Context) -> Graph:
        return self.step.run(graph, context)

    def configured(self, values: Mapping[str, object]) -> UserPass:
        return replace(self, step=replace(self.step, values=values))  # type: ignore[type-var]


def _no_pass(path: Path, found: Mapping[str, Any]) -> UsageError:
    """What a file defines instead of a pass, and what its classes lack, each with its line."""
    classes, functions = found["classes"], found["functions"]
    source = Source(path.name, path.read_text("utf-8"))
    lacks = listed([f"the class {name} has no {listed(parts)}" for name, parts in classes.items()])
    said = lacks or (f"a function is none, {functions[0]}" if functions else "it has no class")
    first = next(iter(classes or functions), None)
    place = re.search(rf"(?m)^(?:class|def) {first}\b", source.text) if first else None
    line = source.text.count("\n", 0, place.start()) + 1 if place else 0
    labels = (Label(Span(line, 1, line, len(place[0]) + 1)),) if place else ()
    wanted = "a pass is a frozen dataclass with name, summary, and run(self, graph, context) that returns a Graph; docs/python.md shows one"
    return UsageError(Diagnostic("E0513", f"{path} defines no pass: {said}", labels, (wanted,)), source)
