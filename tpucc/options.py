"""The options of a compilation, in one list. The keywords of `tpucc.compile` and the options of the command line follow from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack, get_type_hints

import numpy as np

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed
from tpucc.frontend.elaborate import Limits
from tpucc.ir.dtypes import BY_BITS
from tpucc.passes.base import GOALS, Goal, Pass
from tpucc.passes.choices import require_choice
from tpucc.passes.plugins import brought
from tpucc.plugins.guard import SECONDS
from tpucc.stages.stages import STAGES, Stages
from tpucc.target import Target, load_target, with_overrides

HOST = "host"
"""The one way of keeping a layer."""
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Flag:
    """How the command line asks for an option. `kind` says what its value is: `pairs` are written NAME=VALUE and may be several."""

    flag: str
    help: str
    metavar: str | None = None
    kind: Literal["text", "names", "file", "files", "pairs", "choice", "count", "seconds"] = "text"
    default: Any = None
    choices: tuple[int | str, ...] = ()
    example: str = ""
    once: bool = False
    """Whether a name may have one value only; of several the last counts otherwise."""


class Keywords(TypedDict, total=False):
    """The keywords of `tpucc.compile`, each with its option of the command line; those that have none are asked for in another way."""

    target: Annotated[str | Target, Flag("--target", "The machine to compile for.", "NAME|FILE.toml", default="tpu_v1")]
    overrides: Annotated[
        Mapping[str, object],
        Flag("--set", "Change a number of the target.", "FIELD=VALUE", "pairs", example="--set weight_bandwidth=136e9"),
    ]
    params: Annotated[Mapping[str, object], Flag("-D", "Set a param of the source.", "NAME=VALUE", "pairs", example="-D batch=8")]
    weights: Annotated[PathLike, Flag("--weights", "Read the weights from here.", "FILE", "file")]
    calibration: Annotated[PathLike, Flag("--calibrate", "Measure the activations' ranges on these inputs.", "FILE.npz", "file")]
    level: Annotated[int, Flag("-O", "How much to optimise.", kind="choice", default=2, choices=(0, 1, 2))]
    passes: Annotated[tuple[Pass, ...], Flag("--pass", "Add the passes of this file.", "FILE.py", "files")]
    omit: Annotated[tuple[str, ...], Flag("--omit", "Leave out an optional pass.", "PASS", "names")]
    include: Annotated[tuple[str, ...], Flag("--with", "Also run a pass that only runs when it is asked for.", "PASS", "names")]
    stages: Annotated[
        Stages,
        Flag(
            "--replace",
            f"Use the function STAGE of this file in place of the built-in one: {', '.join(STAGES)}.",
            "STAGE=FILE.py",
            "pairs",
            example="--replace allocate=mine.py",
            once=True,
        ),
    ]
    plugin_timeout: Annotated[
        float, Flag("--plugin-timeout", "How long one call of your passes and stages may take.", "SECONDS", "seconds", SECONDS)
    ]
    activation_bits: Annotated[int, Flag("--activation-bits", "Width of quantised activations.", kind="choice", choices=tuple(BY_BITS))]
    keep: Annotated[
        Mapping[str, str],
        Flag("--keep", "Keep a layer, or those of a line, in float32 on the host.", "LAYER=host", "pairs", example="--keep fc1=host"),
    ]
    cores: Annotated[int, Flag("--cores", "Cores that share the batch.", kind="count", default=1)]
    goal: Annotated[
        Goal,
        Flag("--for", "What to make short: the time of one batch, or of each in a stream.", kind="choice", default=GOALS[0], choices=GOALS),
    ]
    settings: Mapping[str, Mapping[str, object]]


FLAGS: Mapping[str, Flag] = {
    name: flag
    for name, hint in get_type_hints(Keywords, include_extras=True).items()
    for flag in getattr(hint, "__metadata__", ())
    if isinstance(flag, Flag)
}
"""The option of each keyword that has one."""


@dataclass(frozen=True)
class Options:
    """The options of one compilation: the keywords as the driver needs them.

    `weights` and `calibration` are files that override those that the source names. `extra` are passes that the user brought; `settings`
    maps a pass's name to options for it; `omit` names optional passes to leave out, `include` those to run that need to be asked for;
    `cores` share the batch. One call of a pass or stage of the user's has `plugin_timeout` seconds. `on_host` are the layers to keep there.
    `goal` is what to make short.
    """

    target: Target = field(default_factory=lambda: load_target("tpu_v1"))
    params: Mapping[str, str] = field(default_factory=dict)
    weights: Path | None = None
    calibration: Path | None = None
    level: int = 2
    extra: tuple[Pass, ...] = ()
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    omit: frozenset[str] = frozenset()
    include: frozenset[str] = frozenset()
    stages: Stages = field(default_factory=Stages)
    plugin_timeout: float = SECONDS
    activation_bits: int | None = None
    on_host: tuple[str, ...] = ()
    cores: int = 1
    goal: Goal = GOALS[0]
    stop_after: str | None = None
    limits: Limits = field(default_factory=Limits)


def options_of(**asked: Unpack[Keywords]) -> Options:
    """The options that the keywords of `tpucc.compile` ask for. Raises `UsageError`, and `ProgramError` for a target's file."""
    _require_kinds(asked)
    machine, overrides = asked.get("target", "tpu_v1"), asked.get("overrides") or {}
    bits, weights, calibration = asked.get("activation_bits"), asked.get("weights"), asked.get("calibration")
    if bits is not None and bits not in BY_BITS:
        raise UsageError(Diagnostic("E0518", f"activations have {listed([*map(str, BY_BITS)], 'or')} bits, found {bits}"))
    if (seconds := asked.get("plugin_timeout", SECONDS)) <= 0:
        raise UsageError(Diagnostic("E0518", f"plugin_timeout is a number of seconds above 0, found {seconds}"))
    return Options(
        target=load_target(machine, overrides) if isinstance(machine, str) else with_overrides(machine, overrides),
        params={name: static_text(value) for name, value in (asked.get("params") or {}).items()},
        weights=None if weights is None else Path(weights),
        calibration=None if calibration is None else Path(calibration),
        level=asked.get("level", 2),
        extra=tuple(brought(step, seconds) for step in asked.get("passes", ())),
        settings=asked.get("settings") or {},
        omit=frozenset(asked.get("omit", ())),
        include=frozenset(asked.get("include", ())),
        stages=asked.get("stages") or Stages(),
        plugin_timeout=seconds,
        activation_bits=bits,
        on_host=_on_host(asked.get("keep") or {}),
        cores=asked.get("cores", 1),
        goal=_goal(asked.get("goal", GOALS[0])),
    )


def _require_kinds(asked: Mapping[str, object]) -> None:
    """Raises `UsageError` E0529 for a keyword that isn't one, and for a value of another kind than its own."""
    for name, value in asked.items():
        if name not in _KINDS:
            of_option = [f"did you mean {keyword}?" for keyword, flag in FLAGS.items() if flag.flag == f"--{name}"]
            near = did_you_mean(name, _KINDS) or next(iter(of_option), "") or f"there are {listed(list(_KINDS))}"
            raise UsageError(Diagnostic("E0529", f"compiling has no keyword {name}", help=(near,)))
        kind, words = _KINDS[name]
        empty = isinstance(value, str) and not value and (kind, words) == _PATH
        if empty or (value is not None and not isinstance(value, kind)):
            found = "an empty text" if empty else type(value).__name__
            raise UsageError(Diagnostic("E0529", f"{name} is {words}, found {found}", help=(_INSTEAD.get(name, ""),)))


_PATH = ((str, os.PathLike), "the path of a file")
_TABLE = (Mapping, "a dict")
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "target": ((str, Target), "the name of a machine or a Target"),
    "overrides": _TABLE,
    "params": _TABLE,
    "weights": _PATH,
    "calibration": _PATH,
    "level": (int, "0, 1 or 2"),
    "passes": ((tuple, list), "a tuple of passes"),
    "omit": ((tuple, list, set, frozenset), "a tuple of names of passes"),
    "include": ((tuple, list, set, frozenset), "a tuple of names of passes"),
    "stages": (Stages, "a tpucc.Stages"),
    "plugin_timeout": ((int, float), "a number of seconds"),
    "activation_bits": (int, "a number of bits"),
    "keep": _TABLE,
    "cores": (int, "a number of cores"),
    "goal": (str, "latency or stream"),
    "settings": _TABLE,
}
"""The values of each keyword, as a type and in words."""
_ARCHIVE = 'np.savez("data.npz", name=array, …) writes arrays to a file'
_INSTEAD = {"weights": _ARCHIVE, "calibration": _ARCHIVE, "stages": "tpucc.Stages(allocate=mine)", "passes": "passes=(Mine(),)"}


def changed(options: Options, **asked: Unpack[Keywords]) -> Options:
    """`options` with what these keywords ask for in their place; numbers of the machine change those of its own. Raises as `options_of`."""
    if "overrides" in asked:
        asked.setdefault("target", options.target)
    made = options_of(**asked)
    names = {_FIELDS.get(keyword, keyword) for keyword in asked}
    return replace(options, **{name: getattr(made, name) for name in names})


_FIELDS = {"passes": "extra", "overrides": "target", "keep": "on_host"}
"""The fields of `Options` that have other names than their keywords."""


def _goal(asked: Goal) -> Goal:
    """Raises `UsageError` E0517 for another goal than one of `GOALS`."""
    require_choice("goal", asked, GOALS)
    return asked


def _on_host(keep: Mapping[str, str]) -> tuple[str, ...]:
    """The layers to keep on the host. Raises `UsageError` E0534 for another way of keeping one."""
    for layer, way in keep.items():
        if way != HOST:
            near = f"--keep {layer}={HOST} computes it in float32"
            if way in map(str, BY_BITS):
                near = f"a program has one width: --activation-bits {way} is for all its layers; {near}"
            message = f"a layer is kept on the {HOST}, in float32; {layer} can't be kept as {way}"
            raise UsageError(Diagnostic("E0534", message, help=(near,)))
    return tuple(keep)


def static_text(value: object) -> str:
    """A Python value as the language writes it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return '"' + escaped.replace("{", "{{").replace("}", "}}") + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(static_text, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
