"""What calls need: of the Python API a path where a path is meant, and a text where a text is; and packages that are no part of every
installation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tpucc.diagnostics import MAX_LINE, Diagnostic, UsageError, counted, did_you_mean, listed, printable

SUFFIXES = (".tpu", ".tpub", ".graph", ".tile", ".asm")
"""How the names of files end that such a path may mean."""


def require_package(who: str, name: str, mend: str) -> None:
    """Raises `UsageError` E0963 where a package isn't installed that `who` needs."""
    if find_spec(name) is None:
        help = (f"python -m pip install {mend} installs it",)
        raise UsageError(Diagnostic("E0963", f"{who} needs a package that isn't installed: {name}", help=help))


def path_of(given: object, what: str, instead: str) -> Path:
    """The path that a call was given. Raises `UsageError` E0529 for a text, an empty one too, or anything else."""
    if not isinstance(given, str | os.PathLike) or (isinstance(given, str) and (not given or "\n" in given)):
        raise mistaken(f"{what} takes the path of a file", given, instead if isinstance(given, str) else "")
    return Path(given)


def is_path(given: object) -> bool:
    """Whether this is a path where a text was asked for: a text has several lines, and none of them ends like a file's name."""
    return isinstance(given, os.PathLike) or (isinstance(given, str) and "\n" not in given and Path(given).suffix in SUFFIXES)


def mistaken(wanted: str, given: object, instead: str) -> UsageError:
    """A call with a value of another kind: what it takes, what it was given, and which call is meant."""
    if is_path(given):
        found = f"the path {printable(str(given))}"
    elif isinstance(given, str):
        found = f"a text of {counted(given.count(chr(10)) + 1, 'line')}" if given else "an empty text"
    else:
        found = type(given).__name__
    return UsageError(Diagnostic("E0529", f"{wanted}, found {found}", help=(f"did you mean {instead}?" if instead else "",)))


def no_choice(what: str, choices: Sequence[str], found: object) -> UsageError:
    """The error of a call with a value that is none of the texts that it may be."""
    given = repr(found[:MAX_LINE]) if isinstance(found, str) else type(found).__name__
    near = did_you_mean(found, choices) if isinstance(found, str) else ""
    return UsageError(Diagnostic("E0529", f"{what} is {listed([*map(repr, choices)], 'or')}, found {printable(given)}", help=(near,)))
