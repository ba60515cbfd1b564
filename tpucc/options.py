"""The options of a compilation, in one list: the fields of `Options`. Command line, Python API, sweeps and playground read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from tpucc.back_end import STAGES, BackEnd
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed
from tpucc.ir.dtypes import BY_BITS
from tpucc.language.problem import Limits
from tpucc.passes.base import GOALS, Goal, Pass, require_choice
from tpucc.target import Target, load_target, with_overrides

SECONDS = 60.0
"""Seconds of processor time that one call of the passes and stages of files may take, unless `--plugin-timeout` says otherwise."""
HOST = "host"
"""The one way of keeping a layer."""
DEFAULT_TARGET = "tpu_v1"
PathLike = str | os.PathLike[str]
Form = Literal["text", "names", "file", "files", "pairs", "choice", "count", "seconds", "switch"]
"""The values of a flag: `pairs` are written NAME=VALUE, and may be several, as may `names` and `files`."""
_ARCHIVE = 'np.savez("data.npz", name=array, …) writes arrays to a file'


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Flag:
    """How the command line asks for an option."""

    name: str
    form: Form = "text"
    metavar: str | None = None
    choices: tuple[int | str, ...] = ()
    example: str = ""
    once: bool = False
    """Whether a name may have one value only; of several the last counts otherwise."""


@dataclass(frozen=True)
class Option:
    """One option, as Python and the command line ask for it.

    `accepts` are the types of the keyword's value, which `kind` describes in a message; `instead` is the message's help. `default` is the
    value of a keyword that is left out. `value` makes the field's value of the keyword's; it raises `UsageError` for one out of bounds.
    An option without a `flag` has another form on the command line.
    """

    help: str
    accepts: tuple[type, ...]
    kind: str
    default: Any = None
    value: Callable[[Any], Any] = _same
    instead: str = ""
    flag: Flag | None = None


def _field(option: Option, flag: Flag | None = None) -> Any:
    """A field of `Options`, with its row of the list."""
    return field(default_factory=lambda: option.value(option.default), metadata={"option": replace(option, flag=flag)})


def _machine(target: str | Target) -> Target:
    return load_target(target) if isinstance(target, str) else target


def _path(value: PathLike | None) -> Path | None:
    return None if value is None else Path(value)


def _texts(params: Mapping[str, object]) -> Mapping[str, str]:
    return {name: static_text(value) for name, value in params.items()}


def _seconds(value: float | None) -> float | None:
    if value is not None and value <= 0:
        raise UsageError(Diagnostic("E0518", f"plugin_timeout is a number of seconds above 0, found {value}"))
    return value


def _bits(value: int | None) -> int | None:
    if value is not None and value not in BY_BITS:
        raise UsageError(Diagnostic("E0518", f"activations have {listed([*map(str, BY_BITS)], 'or')} bits, found {value}"))
    return value


def _kept(keep: Mapping[str, str]) -> Mapping[str, str]:
    """Raises `UsageError` E0534 for another way of keeping a layer than `HOST`."""
    for layer, way in keep.items():
        if way != HOST:
            near = f"--keep {layer}={HOST} computes it in float32"
            if way in map(str, BY_BITS):
                near = f"a program has one width: --activation-bits {way} is for all its layers; {near}"
            message = f"a layer is kept on the {HOST}, in float32; {layer} can't be kept as {way}"
            raise UsageError(Diagnostic("E0534", message, help=(near,)))
    return keep


def _goal(goal: Goal) -> Goal:
    """Raises `UsageError` E0517 for another goal than one of `GOALS`."""
    require_choice("goal", goal, GOALS)
    return goal


_PATH = ((str, os.PathLike), "the path of a file")
_TABLE = ((Mapping,), "a dict")
_NAMES = ((tuple, list, set, frozenset), "a tuple of names of passes")


@dataclass(frozen=True)
class Options:
    """The options of one compilation.

    `weights` and `calibration` are files that override those that the source names. `params` are texts of the language. `passes` are
    passes that the user brought; `settings` maps a pass's name to options for it.
    """

    target: Target = _field(
        Option("The machine to compile for.", (str, Target), "the name of a machine or a Target", DEFAULT_TARGET, _machine),
        Flag("--target", metavar="NAME|FILE.toml"),
    )
    params: Mapping[str, str] = _field(
        Option("Set a param of the source.", *_TABLE, {}, _texts),
        Flag("-D", "pairs", "NAME=VALUE", example="-D batch=8"),
    )
    weights: Path | None = _field(
        Option("Read the weights from here.", *_PATH, None, _path, _ARCHIVE),
        Flag("--weights", "file", "FILE"),
    )
    calibration: Path | None = _field(
        Option("Measure the activations' ranges on these inputs.", *_PATH, None, _path, _ARCHIVE),
        Flag("--calibrate", "file", "FILE.npz"),
    )
    level: int = _field(
        Option("How much to optimise.", (int,), "0, 1 or 2", 2),
        Flag("-O", "choice", choices=(0, 1, 2)),
    )
    passes: tuple[Pass, ...] = _field(
        Option("Add the passes of this file.", (tuple, list), "a tuple of passes", (), tuple, "passes=(Mine(),)"),
        Flag("--pass", "files", "FILE.py"),
    )
    omit: frozenset[str] = _field(
        Option("Leave out an optional pass.", *_NAMES, (), frozenset),
        Flag("--omit", "names", "PASS"),
    )
    include: frozenset[str] = _field(
        Option("Also run a pass that the level of -O leaves out.", *_NAMES, (), frozenset),
        Flag("--with", "names", "PASS"),
    )
    stages: BackEnd = _field(
        Option(
            f"Use the function STAGE of this file in place of the built-in one: {', '.join(STAGES)}.",
            (BackEnd,),
            "a tpucc.Stages",
            BackEnd(),
            _same,
            "tpucc.Stages(allocate=mine)",
        ),
        Flag("--replace", "pairs", "STAGE=FILE", example="--replace allocate=mine.py", once=True),
    )
    plugin_timeout: float = _field(
        Option(
            "Processor time of one call of the passes and stages of your files.", (int, float), "a number of seconds", SECONDS, _seconds
        ),
        Flag("--plugin-timeout", "seconds", "SECONDS"),
    )
    trust: bool = _field(
        Option("Run the passes and stages of your files in this process, where a debugger finds them.", (bool,), "True or False", False),
        Flag("--trust", "switch"),
    )
    activation_bits: int | None = _field(
        Option("Width of quantised activations.", (int,), "a number of bits", None, _bits),
        Flag("--activation-bits", "choice", choices=tuple(BY_BITS)),
    )
    keep: Mapping[str, str] = _field(
        Option("Keep a layer, or those of a line, in float32 on the host.", *_TABLE, {}, _kept),
        Flag("--keep", "pairs", "LAYER=host", example="--keep fc1=host"),
    )
    cores: int = _field(
        Option("Cores that share the batch.", (int,), "a number of cores", 1),
        Flag("--cores", "count"),
    )
    goal: Goal = _field(
        Option("What to make short: the time of one batch, or of each in a stream.", (str,), "latency or stream", GOALS[0], _goal),
        Flag("--for", "choice", choices=GOALS),
    )
    settings: Mapping[str, Mapping[str, object]] = _field(Option("Set the options of passes.", *_TABLE, {}))
    stop_after: str | None = None
    limits: Limits = field(default_factory=Limits)


OVERRIDES = Option(
    "Change a number of the target.", *_TABLE, {}, flag=Flag("--set", "pairs", "FIELD=VALUE", example="--set weight_bandwidth=136e9")
)
"""The keyword `overrides`, which has no field: it changes the target."""


def _rows() -> Iterator[tuple[str, Option]]:
    for each in fields(Options):
        if "option" in each.metadata:
            yield each.name, each.metadata["option"]
        if each.name == "target":
            yield "overrides", OVERRIDES


OPTIONS: Mapping[str, Option] = dict(_rows())
"""The option of each keyword, in the order in which the command line lists them."""


class Keywords(TypedDict, total=False):
    """The keywords of `tpucc.compile`, for type checkers: the types that each option may be given as."""

    target: str | Target
    overrides: Mapping[str, object]
    params: Mapping[str, object]
    weights: PathLike
    calibration: PathLike
    level: int
    passes: tuple[Pass, ...]
    omit: Collection[str]
    include: Collection[str]
    stages: BackEnd
    plugin_timeout: float
    trust: bool
    activation_bits: int
    keep: Mapping[str, str]
    cores: int
    goal: Goal
    settings: Mapping[str, Mapping[str, object]]


if tuple(Keywords.__annotations__) != tuple(OPTIONS):
    raise TypeError("the keywords of tpucc.compile are the options, in one order")


def options_of(**asked: Unpack[Keywords]) -> Options:
    """The options that the keywords of `tpucc.compile` ask for. Raises `UsageError`, and `ProgramError` for a target's file."""
    _require_kinds(asked)
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    overrides, machine = given.pop("overrides", {}), given.pop("target", DEFAULT_TARGET)
    values = {name: OPTIONS[name].value(value) for name, value in given.items()}
    values["target"] = load_target(machine, overrides) if isinstance(machine, str) else with_overrides(machine, overrides)
    return Options(**values)


def _require_kinds(asked: Mapping[str, object]) -> None:
    """Raises `UsageError` E0529 for a keyword that isn't one, and for a value of another kind than its own."""
    for name, value in asked.items():
        if name not in OPTIONS:
            of_flag = [f"did you mean {keyword}?" for keyword, option in OPTIONS.items() if option.flag and option.flag.name == f"--{name}"]
            near = did_you_mean(name, OPTIONS) or next(iter(of_flag), "") or f"there are {listed(list(OPTIONS))}"
            raise UsageError(Diagnostic("E0529", f"compiling has no keyword {name}", help=(near,)))
        option = OPTIONS[name]
        empty = isinstance(value, str) and not value and (option.accepts, option.kind) == _PATH
        if empty or (value is not None and not isinstance(value, option.accepts)):
            found = "an empty text" if empty else type(value).__name__
            raise UsageError(Diagnostic("E0529", f"{name} is {option.kind}, found {found}", help=(option.instead,)))


def static_text(value: object) -> str:
    """A Python value as the language writes it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return '"' + escaped.replace("{", "{{").replace("}", "}}") + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(static_text, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
