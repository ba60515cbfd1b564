"""Answers a request of the page: compile a model, judge it with passes and stages of the visitor's, check a puzzle's solution.

A request is an object with a `kind` (`compile`, `judge` or `puzzle`) and the fields of `Model`, `Judgement` or `Solution`. The answer has
the fields of `Compiled`, `Judged` or `Checked`, and bytes are base64, as msgspec writes them. What is wrong with the visitor's text is part
of the answer, never an exception: then it has the fields of `Answer` alone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import asdict, field, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from tpucc.compilation import Compilation
from tpucc.diagnostics import (
    Diagnostic,
    Error,
    InternalError,
    LimitError,
    Source,
    UsageError,
    as_plain,
    counted,
    misfit,
    plain_diagnostic,
    printable,
)
from tpucc.driver import compile_source
from tpucc.files import write_files
from tpucc.interop.programs import folder as programs_folder
from tpucc.isa.container import encode
from tpucc.labs import puzzle
from tpucc.options import Options, options_of
from tpucc.passes.plugins import passes_of_file
from tpucc.runtime.judge import judge
from tpucc.runtime.runtime import Runtime
from tpucc.sim.durations import duration
from tpucc.stages.stages import stages_of_files
from tpucc.values import dataclass
from tpucc.viz.artifacts import artifacts

PASS = "pass.py"
_ARCHIVE = re.compile(r'"([\w.-]+\.npz)"', re.ASCII)


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


class Solution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="puzzle"):
    """A text for a puzzle of lab 0. Without a `seed` its numbers are fresh."""

    number: int
    text: str
    seed: int | None = None


Request = Model | Judgement | Solution


@dataclass(frozen=True, slots=True)
class Answer:
    """What every answer has: errors and warnings as `tpucc compile --json` writes them, and what the visitor's code has printed."""

    diagnostics: Sequence[Mapping[str, Any]] = ()
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Compiled(Answer):
    """A compiled model; all but the diagnostics is empty where there is an error. `digest` is the SHA-256 of the `.tpub` file `program`."""

    summary: str = ""
    explanation: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    report: str = ""
    program: bytes = b""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Judged(Answer):
    """The judge's verdict: `equal` is that all is right, `text` says it in words."""

    equal: bool = False
    text: str = ""
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class Checked(Answer):
    """The verdict on a puzzle's solution, with the fields of the lab's `Verdict`."""

    solved: bool = False
    text: str = ""
    line: int = 0
    instructions: int = 0
    cycles: int = 0


def answered(request: bytes | str) -> bytes:
    """The answer to a request, both JSON. One that isn't a request is answered with E0529."""
    printed = StringIO()
    with redirect_stderr(printed):
        answer = _answer(request)
    return msgspec.json.encode(asdict(answer) | {"printed": printed.getvalue()})


def _answer(request: bytes | str) -> Answer:
    try:
        given = msgspec.json.decode(request, type=Request)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Answer(as_plain(UsageError(Diagnostic("E0529", f"this is no request of the playground: {misfit(error)}"))))
    try:
        return _work(given)
    except Error as error:
        return Answer(as_plain(error))
    except MemoryError:
        return Answer(as_plain(LimitError(Diagnostic("E0613", "out of memory; a smaller batch needs less"))))
    except Exception as error:
        return Answer(as_plain(InternalError(Diagnostic("E0900", f"a fault in tpucc: {type(error).__name__}: {error}"))))


def compiled(model: Model) -> Compiled:
    """Compiles, and draws the report. Raises what compiling does."""
    with _made(model) as (compilation, runtime):
        stats, stem = runtime.stats, Path(model.name).stem
        program = encode(runtime.program)
        report = artifacts(compilation, runtime, stem, ("report",)).files["report.html"].decode()
        warnings = compilation.model.warnings if compilation.model else ()
        source = Source(model.name, model.source)
        placed = {warning.render(source) for warning in warnings}
        return Compiled(
            diagnostics=[plain_diagnostic(warning, source) for warning in warnings],
            summary=f"{counted(stats['cycles'], 'cycle')}, {duration(stats['seconds'])}, {stats['bottleneck']} bound",
            explanation=stats["explanation"],
            stats=stats,
            notes=[note for note in compilation.warnings if note not in placed],
            report=report,
            program=program,
            digest=hashlib.sha256(program).hexdigest(),
        )


def judged(model: Model) -> Judged:
    """Compiles, and judges as `tpucc judge` does: on the calibration inputs and on random ones. Raises what compiling does."""
    with _made(model) as (compilation, runtime):
        found = judge(runtime, compilation)
        rows = f"at most {counted(found.peak_rows, 'row')} in use, at least {found.lower_bound:,} alive"
        values = "equal" if found.equal else f"NOT EQUAL: {found.first_difference or 'there is no valid program'}"
        lines = [f"{printable(model.name)}: {values}", f"{counted(found.cycles, 'cycle')}; {rows}"]
        lines += [f"note: {note}" for note in found.notes]
        diagnostics = [plain_diagnostic(finding, None) for finding in found.findings]
        return Judged(diagnostics, equal=found.equal, text="\n".join(lines), cycles=found.cycles)


def checked(solution: Solution) -> Checked:
    """The verdict on a solution of a puzzle. Raises `UsageError` E0530 where there is no such puzzle."""
    found = puzzle(solution.number).check(solution.text, solution.seed)
    return Checked(solved=found.solved, text=str(found), line=found.line, instructions=found.instructions, cycles=found.cycles)


def _work(request: Request) -> Answer:
    match request:
        case Judgement():
            return judged(request)
        case Model():
            return compiled(request)
        case Solution():
            return checked(request)


@contextmanager
def _made(model: Model) -> Iterator[tuple[Compilation, Runtime]]:
    """The compiled model, with its files in a folder of their own for as long as it is used: passes and stages are read from it."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        write_files(folder, {**_known_archives(model.source), **model.files})
        try:
            compilation = compile_source(Source(model.name, model.source), folder, _options(model, folder))
        except Error as error:
            found = [replace(each, message=_called(each.message.replace(f"{place}{os.sep}", ""), model)) for each in error.diagnostics]
            raise type(error)(found, error.source) from None
        assert compilation.program is not None
        yield compilation, Runtime(compilation.program)


def _called(message: str, model: Model) -> str:
    """A message that calls the visitor's Python so, and not by the name of a file that the visitor hasn't seen."""
    for name in (PASS, *(f"{stage}.py" for stage in model.stages)):
        message = message.replace(f"the file {name}", "your Python").replace(name, "your Python")
    return message


def _options(model: Model, folder: Path) -> Options:
    files = {folder / f"{stage}.py": text for stage, text in model.stages.items()}
    files |= {folder / PASS: model.passes} if model.passes else {}
    for path, text in files.items():
        path.write_text(text, "utf-8")
    passes = passes_of_file(folder / PASS) if model.passes else ()
    stages = stages_of_files({stage: folder / f"{stage}.py" for stage in model.stages})
    return replace(options_of(target=model.target, level=model.level, passes=passes, stages=stages), params=model.params)


def _known_archives(source: str) -> dict[str, bytes]:
    """The archives of tpucc's own programs that a source names."""
    paths = [place / name for name in _ARCHIVE.findall(source) for place in (programs_folder(), programs_folder() / "gallery")]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}
