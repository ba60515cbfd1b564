"""What can be wrong with an ONNX file: malformed (status 3), or what tpucc can't do (status 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from tpucc.diagnostics import MAX_LINE, CompileError, Diagnostic, Error, ProgramError, printable

CHECKER = "onnx.checker.check_model(model, full_check=True) may say more"
"""What to do about a node that isn't what ONNX says."""

USUAL = {
    "E1001": CHECKER,
    "E1002": CHECKER,
    "E1003": "no network is so large: the file is damaged, or meant to do harm",
    "E1004": "the files with a model's weights lie beside it, as its exporter wrote them: copy all of them together",
}
"""What to do about a malformed file where nothing more is known."""

LONGEST = 60
"""Characters of what a file has, in a message."""

E = TypeVar("E", bound=Error)

ELSEWHERE = "change this layer in the program that makes the model, and export it again"
"""What to do where an operator of tpucc doesn't take what the file has."""
COMPUTED = (
    "tpucc has integers as inputs and constants only: compute these in your own program, and give them to the model as an input, or as a "
    "second one of float32 where they are values like others"
)
"""What to do where a network computes numbers of rows or places, or with them."""


class Unsupported(Exception):
    """A use of an operator that has no counterpart in tpucc; `help` says what would do instead."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help


class Misfit(Exception):
    """Operands, or attributes, of a node that can't be together. The message shows all of them, and has nothing of its own."""


class TooLarge(Exception):
    """A result that no memory has."""


def require(fits: bool) -> None:
    """Raises `Misfit` where operands or attributes of a node don't fit each other, or its operator."""
    if not fits:
        raise Misfit


def shortened(value: object) -> str:
    """What a file has, in a message."""
    text = f"a tensor of the shape {list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def named(text: str) -> str:
    """A name that a file has, in a message or a comment: printable, and no longer than a line."""
    return printable(text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…")


def malformed(message: str, help: str = "", code: str = "E1001") -> ProgramError:
    """The error of a file that isn't what ONNX says."""
    return ProgramError(Diagnostic(code, message, help=(help or USUAL[code],)))


def in_file(error: E, file: str) -> E:
    """The error with the name of the file."""
    return type(error)([replace(found, message=f"{file}: {found.message}") for found in error.diagnostics])


def refused(code: str, message: str, help: str = "") -> CompileError:
    """The error of a sound file that tpucc can't take."""
    return CompileError(Diagnostic(code, message, help=(help,)))
