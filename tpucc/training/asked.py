"""The keywords of `tpucc.train`, checked: each has its kind of value, and another one is refused before anything is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed, printable
from tpucc.numerics import AnyArray
from tpucc.training.numerics import CHOICES
from tpucc.training.session import EXECUTORS, Settings
from tpucc.training.state import LARGEST

COUNTS = ("epochs", "steps", "seed", "cores", "microbatches")
PATHS = ("weights", "resume")
ARRAYS = ("examples", "held_out")
TEXTS: Mapping[str, str] = {
    "target": "the name of a machine",
    "executor": f"{listed([*EXECUTORS], 'or')}, as text",
    **{name: f"{listed([*values], 'or')}, as text" for name, values in CHOICES.items()},
}
"""Keywords that are texts, and what these are."""
KEYWORDS = (*COUNTS, *PATHS, *ARRAYS, *TEXTS, "params")


def settings_of(**asked: object) -> Settings:
    """The settings that the keywords ask for. Raises `UsageError` E0529 for one that isn't one, and for a value of another kind than its
    own."""
    for name in asked:
        if name not in KEYWORDS:
            near = did_you_mean(name, KEYWORDS) or f"there are {listed(KEYWORDS)}"
            raise UsageError(Diagnostic("E0529", f"training has no keyword {name}", help=(near,)))
    given = {name: value for name, value in asked.items() if value is not None or name in (*TEXTS, "cores", "microbatches")}
    for name, meaning in TEXTS.items():
        if not isinstance(text := given.get(name, ""), str):
            raise _mistaken(name, meaning, text)
    read = dict.fromkeys(COUNTS, _count) | dict.fromkeys(PATHS, _path) | dict.fromkeys(ARRAYS, _arrays)
    return Settings(**{name: read[name](name, value) if name in read else value for name, value in given.items()})  # type: ignore[arg-type]


def _count(name: str, value: object) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise _mistaken(name, "an integer", value)
    number = int(value)
    if not 0 <= number <= LARGEST:
        raise UsageError(
            Diagnostic("E0529", f"{name} is 0 to {LARGEST:,}, found {number if abs(number) < 2**64 else 'one of many digits'}")
        )
    return number


def _path(name: str, value: object) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise _mistaken(name, "the path of a file", value)
    return Path(value)


def _arrays(name: str, value: object) -> Path | Mapping[str, AnyArray]:
    if isinstance(value, str | os.PathLike):
        return Path(value)
    if not isinstance(value, Mapping):
        raise _mistaken(name, "a dict of arrays by name, or the path of a file of them", value)
    return {_name(name, key): _array(f"{name}[{printable(repr(key))}]", array) for key, array in value.items()}


def _name(name: str, key: object) -> str:
    if not isinstance(key, str):
        raise _mistaken(f"a key of {name}", "the name of an input", key)
    return key


def _array(name: str, value: object) -> AnyArray:
    """Raises `UsageError` for rows of different lengths."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise _mistaken(name, "an array, whose rows are of one length", value) from None


def _mistaken(name: str, wanted: str, value: object) -> UsageError:
    return UsageError(Diagnostic("E0529", f"{name} is {wanted}, found {type(value).__name__}"))
