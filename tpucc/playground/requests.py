"""What a page may ask for, and what it is answered: values that are JSON objects on the way.

A request has a `kind` (`compile`, `judge`, `compare` or `puzzle`) and the fields of `Model`, `Judgement`, `Two` or `Solution`. The answer
has the fields of `Compiled`, `Judged`, `Compared` or `Checked`, and bytes are base64, as msgspec writes them. Where something is wrong with
the visitor's text, it has the fields of `Answer` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="compile"):
    """A source to be compiled, and how.

    `files` lie beside the source; archives of the programs that come with tpucc are there without being given. `params` are the texts of
    -D. `passes` is the text of a Python file with passes, `stages` has the text of a Python file for each stage that it replaces.
    """

    source: str
    name: str = "model.tpu"
    files: Mapping[str, bytes] = {}
    target: str = "tpu_v1"
    params: Mapping[str, str] = {}
    level: int = 2
    passes: str = ""
    stages: Mapping[str, str] = {}


class Judgement(Model, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="judge"):
    """A source to be compiled and judged."""


class Two(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="compare"):
    """Two compiles to be compared, and what the sentences call each."""

    a: Model
    b: Model
    said: tuple[str, str] = ("A", "B")


class Solution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="puzzle"):
    """A text for a puzzle of lab 0. Without a `seed` its numbers are fresh."""

    number: int
    text: str
    seed: int | None = None


Request = Model | Judgement | Two | Solution


@dataclass(frozen=True, slots=True)
class Answer:
    """What every answer has: errors and warnings as `tpucc compile --json` writes them, and what the visitor's code has printed."""

    diagnostics: Sequence[Mapping[str, Any]] = ()
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Compiled(Answer):
    """A compiled model. `digest` is the SHA-256 of the `.tpub` file `program`."""

    summary: str = ""
    explanation: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    report: str = ""
    program: bytes = b""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Judged(Answer):
    """The judge's verdict: `equal` is that all is right, `text` says it in words. `page` has pictures of what
    the visitor's passes rewrote, or of the program that the visitor's stage made."""

    equal: bool = False
    text: str = ""
    cycles: int = 0
    page: str = ""


@dataclass(frozen=True, slots=True)
class Compared(Answer):
    """b beside a: both cycles in a line, what made the difference, and the page of `tpucc compare`.

    Each diagnostic has a `side`, "a", "b" or "both", which its message says by name, too.
    """

    summary: str = ""
    cause: str = ""
    cycles: tuple[int, int] = (0, 0)
    page: str = ""


@dataclass(frozen=True, slots=True)
class Checked(Answer):
    """The verdict on a puzzle's solution, with the fields of the lab's `Verdict`. `page` has pictures of the program, where it is valid."""

    solved: bool = False
    text: str = ""
    line: int = 0
    instructions: int = 0
    cycles: int = 0
    page: str = ""
