"""Files of the user's own, and the passes and stages that they define. A Python file is executed in this process's child, which all
files share, or here for whoever trusts it; a program is started there (`programs.py`).

One child serves a whole command, so that a file keeps its module's state, and a start is paid once: half a second. Where a call has
no result, the child is ended: the next call starts another one, which executes the file anew.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from inspect import signature
from itertools import count
from pathlib import Path
from shlex import quote
from threading import RLock
from types import ModuleType
from typing import Any

from tpucc.back_end import STAGES
from tpucc.diagnostics import Diagnostic, Label, Source, Span, UsageError, did_you_mean, listed, printable
from tpucc.files import read_file
from tpucc.guest.child import Child
from tpucc.guest.inside import graph_of, no_pass
from tpucc.guest.jails import NOWHERE, OWN, Cell, Jail
from tpucc.guest.limits import Duration
from tpucc.guest.serving import Request, is_python, module_of
from tpucc.guest.values import Plain
from tpucc.ir import Graph
from tpucc.options import SECONDS
from tpucc.passes.base import Context, GraphPass, Pass, UserPass
from tpucc.plugins.brought import brought, made_by, passes_in, require_attributes
from tpucc.plugins.code import FileFunction, UserCode
from tpucc.plugins.failures import Failed, failing
from tpucc.plugins.guarded_pass import GuardedPass
from tpucc.schedule.allocate import TooLarge
from tpucc.stages.products import ProductLayer
from tpucc.stages.stages import BUILT_IN, Stages

START = 60.0
"""Seconds in which a child must be there: it imports NumPy and tpucc on a machine that may be busy."""
BY_THE_CLOCK = 5
"""A limit of processor time, as often by the clock: a busy machine lets everybody wait."""
LONGEST = 1e6
"""Seconds of a call: the timers of the system don't count to every number."""
ANSWERS = ("TooLarge",)
"""Exceptions that are answers."""
INSIDE = "tpucc.guest.inside"
IN_A_PAGE = sys.platform == "emscripten"
"""Whether no process can be started, as in WebAssembly. A page ends its worker instead."""
_numbers = count(1)


def duration_of(seconds: float) -> Duration:
    """How long a call may take that has so many seconds of processor time: a call that only waits, as for another program, has as many by
    the clock."""
    most = min(seconds, LONGEST)
    return Duration(most, BY_THE_CLOCK * most, most)


@dataclass(eq=False)
class OneChild:
    """A child that is there from the first question on, for one thread after the other."""

    jail: Jail
    cell: Cell
    _child: Child | None = None
    _loaded: set[str] = field(default_factory=set)
    _lock: RLock = field(default_factory=RLock)

    def ask(self, file: File, request: Request) -> Plain:
        """The value of an answer of a file, which is loaded first where it isn't. Raises `Failed`."""
        with self._lock:
            child = self._started()
            if file.key not in self._loaded:
                self._answered(child, file.loading(self.jail, self.cell))
                self._loaded.add(file.key)
            return self._answered(child, request) if request.function else None

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            if self._child is not None:
                self._child.close()
            self._child, self._loaded = None, set()

    def forget(self) -> None:
        """In a copy of this process: its parent's child isn't its own."""
        if self._child is not None:
            _forgotten.append(self._child)
        self._child, self._loaded, self._lock = None, set(), RLock()

    def _started(self) -> Child:
        if self._child is None or not self._child.is_there:
            self.close()
            self._child = Child(self.jail, self.cell, (INSIDE,), told=_tell)
            self._answered(self._child, Request("", f"{INSIDE}:ready", (), Duration(START, START, START)))
        return self._child

    def _answered(self, child: Child, request: Request) -> Plain:
        try:
            answer = child.ask(request)
        except BaseException:  # an interrupt: what the child answers to this would be the next answer
            self.close()
            raise
        if answer.failure is None:
            return answer.value
        if answer.failure.kind not in ANSWERS:
            self.close()
        raise answer.failure


def _tell(text: str) -> None:
    """What code of the user's prints is no result: it goes to standard error."""
    with suppress(OSError, ValueError):  # nobody reads it
        sys.stderr.write(text)
        sys.stderr.flush()


CHILD = OneChild(OWN, NOWHERE)
"""The child of this process."""
_forgotten: list[Child] = []
atexit.register(CHILD.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CHILD.forget)


@dataclass(frozen=True, eq=False)
class File:
    """A file that is loaded in a child. `surroundings` are the current folder, Python's path and the command's arguments when it was
    named; one call may take `most`."""

    path: Path
    most: Duration
    surroundings: tuple[Any, ...]
    key: str

    @property
    def place(self) -> str:
        return str(self.path.absolute())

    @property
    def code(self) -> UserCode:
        """The file, for messages."""
        return UserCode(f"the file {self.path}", self.place, 0)

    def code_at(self, what: str, place: str, line: int) -> UserCode:
        """A piece of code at a place that the child says. Of this file, it sees another path where it is in a jail."""
        return UserCode(what, self.place if os.path.basename(place) == self.path.name else place, line)

    def call(self, function: str, *arguments: Any) -> Plain:
        """What a function gives. Raises `Failed`."""
        return CHILD.ask(self, Request(self.key, function, arguments, self.most))

    def functions(self) -> Mapping[str, UserCode]:
        """What can be called, by its name. Raises `PluginError` when the file fails."""
        found: Mapping[str, tuple[str, int]] = self.code.call(self.call, f"{INSIDE}:functions")
        return {name: self.code_at(name, *place) for name, place in found.items()}

    def loading(self, jail: Jail, cell: Cell) -> Request:
        """The request that loads the file."""
        place = self.place if jail is OWN else jail.place(cell)
        return Request(self.key, "", self.surroundings if jail is OWN else (), self.most, place)


def file_at(path: Path, seconds: float) -> File:
    """A file, which isn't loaded yet."""
    given = os.getcwd(), [os.path.abspath(folder) for folder in sys.path], list(sys.argv)
    return File(path, duration_of(seconds), given, f"tpucc_plugin_{path.stem}_{next(_numbers)}")


def executed(path: Path) -> ModuleType:
    """The module that a file makes, in this process. It may import what lies beside it. Raises `PluginError` when it fails."""
    place = str(path.absolute())
    return UserCode(f"the file {path}", place, 0).call(module_of, place, f"tpucc_plugin_{path.stem}")


def _require_python(path: Path) -> None:
    """Raises `UsageError` for a file that can't be read or is no Python file."""
    read_file(path)
    if not is_python(str(path)):
        raise UsageError(Diagnostic("E0513", f"{path} is not a Python file; a file with passes ends in .py"))


def _require_stage(path: Path) -> None:
    """Raises `UsageError` for a file that can't be read, and for one that is neither a Python file nor a program that can be started."""
    read_file(path)
    if is_python(str(path)):
        return
    if IN_A_PAGE:
        raise UsageError(Diagnostic("E0513", f"{path} is not a Python file, which ends in .py, and a page can't start programs"))
    if not os.access(path, os.X_OK):
        mend = (f"chmod +x {quote(printable(str(path)))} makes a program of it",)
        raise UsageError(Diagnostic("E0513", f"{path} is neither a Python file, which ends in .py, nor can it be executed", help=mend))


def passes_of_file(path: Path, seconds: float = SECONDS, *, trust: bool = False) -> tuple[Pass, ...]:
    """The passes that a Python file defines, in their order there, with their default options.

    The file is executed, in a child or, for those who `trust` it, here. Raises `UsageError` when it can't be read or defines no pass,
    `PluginError` when it fails.
    """
    _require_python(path)
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


def pass_of_function(path: Path, function: str, like: Pass, seconds: float = SECONDS, *, trust: bool = False) -> Pass:
    """A function of a Python file, which gets a graph and returns one, as a pass in the place of tpucc's pass `like`.

    The file is executed as by `passes_of_file`. Raises `UsageError` when it can't be read or doesn't define the function, and `PluginError`
    when it fails.
    """
    _require_python(path)
    if trust or IN_A_PAGE:
        own = getattr(executed(path), function, None)
        if callable(own):
            return brought(GraphPass(like.name, like.summary, like.level, lambda graph, _: own(graph), {}), str(path))
        raise _no_function(path, function, "graph")
    file = file_at(path, seconds)
    if (code := file.functions().get(function)) is None:
        raise _no_function(path, function, "graph")
    step = _AskedFunction(like.name, like.summary, like.level, file, function)
    return _PassInChild(like.name, like.summary, like.level, None, {}, code, step)


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
        return _received(self.file.call(f"{INSIDE}:run", self.number, self.values, graph, given), graph)


@dataclass(frozen=True)
class _AskedFunction:
    """Asks the child of a file for what a function makes of a graph."""

    name: str
    summary: str
    level: int
    file: File
    function: str

    def run(self, graph: Graph, context: Context) -> Graph:
        """The graph. Raises `Failed`."""
        return _received(self.file.call(f"{INSIDE}:rewrite", self.function, graph), graph)


def _received(found: Mapping[str, Any] | None, before: Graph) -> Graph:
    """The graph that a child made of the one `before`."""
    if found is None:
        return before
    with failing("result", "gave a graph that"):
        return graph_of(found, before)


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


def stages_of_files(files: Mapping[str, Path], seconds: float = SECONDS, *, trust: bool = False) -> Stages:
    """Stages from files, by the stage's name: each is a Python file that defines a function of that name, or a program.

    The files are executed, in a child or, for those who `trust` them, here. Raises `UsageError` for a stage or a function that is not
    there, `PluginError` when a file fails.
    """
    return Stages(**{stage: _function(stage, path, seconds, trust or IN_A_PAGE) for stage, path in files.items()})


def _function(stage: str, path: Path, seconds: float, here: bool) -> Callable[..., Any]:
    if stage not in STAGES:
        mend = did_you_mean(stage, STAGES) or f"there are {listed(STAGES)}"
        raise UsageError(Diagnostic("E0526", f"no stage is named {stage}", help=(mend,)))
    _require_stage(path)
    if here:
        own = {name: value for name, value in vars(executed(path)).items() if callable(value)}
    else:
        file = file_at(path, seconds)
        ask = partial(stage_result, partial(file.call, f"{INSIDE}:stage", stage))
        own = {name: FileFunction(ask, code.file, code.line) for name, code in file.functions().items()}
    if stage not in own:
        raise _no_function(path, stage, *signature(getattr(BUILT_IN, stage)).parameters, near=did_you_mean(stage, list(own)))
    function: Callable[..., Any] = own[stage]
    return function


def _no_function(path: Path, name: str, *parameters: str, near: str = "") -> UsageError:
    mend = near or f"it begins with: def {name}({', '.join(parameters)}):"
    return UsageError(Diagnostic("E0526", f"{path} defines no function {name}", help=(mend,)))


def stage_result(ask: Callable[..., Any], *arguments: Any, with_lines: bool = True) -> Any:
    """What a stage in a child gives. The built-in lines of a layer, which only this process can make, go `with_lines` along. Raises
    `Failed` and `TooLarge`."""
    given = [_with_lines(each, with_lines) if type(each) is ProductLayer else each for each in arguments]
    try:
        return ask(*given)
    except Failed as failure:
        if failure.kind == "TooLarge":
            raise TooLarge(failure.message) from None
        raise


def _with_lines(layer: ProductLayer, with_lines: bool) -> ProductLayer:
    """The layer whose built-in lowering gives the lines that it has here, or none."""
    return replace(layer, builtin=partial(list, layer.builtin()) if with_lines else list)
