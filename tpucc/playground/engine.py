"""Answers a request of the page (`requests`): compile a model, judge it with passes and stages of the visitor's, compare two, check a
puzzle's solution. What is wrong with the visitor's text is part of the answer, never an exception.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import asdict
from importlib import import_module
from io import TextIOBase
from itertools import pairwise
from pathlib import Path

import msgspec

from tpucc.artifacts import artifacts
from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, UsageError, counted, misfit, printable
from tpucc.explain.timed import Timed
from tpucc.ir import Graph
from tpucc.isa.container import encode
from tpucc.labs import puzzle
from tpucc.plain_errors import as_error, as_plain, plain_diagnostic
from tpucc.playground.making import for_page, made
from tpucc.playground.requests import Answer, Checked, Compiled, Judged, Judgement, Model, Request, Solution, Two
from tpucc.plugins.judged import judge
from tpucc.plugins.printed import Printed
from tpucc.see.drawn import program_page, rewrites_page

STANDARD_ERROR = 2


def answered(request: bytes | str, heard: Callable[[str], object] | None = None) -> bytes:
    """The answer to a request, both JSON. One that isn't a request is answered with E0529. `heard` gets what the visitor's code prints as
    soon as it does: who is stopped gives no answer."""
    printed = Printed(heard)
    with redirect_stderr(printed), _without_input():
        answer = _answer(request)
    return msgspec.json.encode(asdict(answer) | {"printed": printed.text})


def answered_in_child(request: bytes) -> str:
    """The answer of a child process, which hands on at once what the visitor's code prints."""
    return answered(request, lambda text: os.write(STANDARD_ERROR, text.encode("utf-8", "replace"))).decode()


class _NoInput(TextIOBase):
    """Standard input in the visitor's Python: a page has none."""

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        raise EOFError("nobody can type into this page: there is no standard input, so write the value into the text")

    def read(self, size: int | None = -1, /) -> str:
        return self.readline()


@contextmanager
def _without_input() -> Iterator[None]:
    before, sys.stdin = sys.stdin, _NoInput()
    try:
        yield
    finally:
        sys.stdin = before


def _answer(request: bytes | str) -> Answer:
    try:
        given = msgspec.json.decode(request, type=Request)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Answer(as_plain(UsageError(Diagnostic("E0529", f"this is no request of the playground: {misfit(error)}"))))
    try:
        return _work(given)
    except Exception as error:
        return Answer(as_plain(as_error(error)))


def compiled(model: Model) -> Compiled:
    """Compiles, and draws the report. Raises what compiling does."""
    with made(model) as (compilation, runtime):
        program = encode(runtime.program)
        report = artifacts(compilation, runtime, Path(model.name).stem, ("report",)).files["report.html"].decode()
        warnings = compilation.model.warnings if compilation.model else ()
        return Compiled(
            diagnostics=[plain_diagnostic(warning, compilation.source) for warning in warnings],
            summary=runtime.summary,
            explanation=runtime.stats["explanation"],
            stats=runtime.stats,
            notes=[for_page(note) for note in compilation.notes],
            report=report,
            program=program,
            digest=hashlib.sha256(program).hexdigest(),
        )


def judged(model: Model) -> Judged:
    """Compiles, and judges as `tpucc judge` does: on the calibration inputs and on random ones. Raises what compiling does."""
    with made(model) as (compilation, runtime):
        found = judge(runtime, compilation)
        rows = f"unified buffer: at most {counted(found.peak_rows, 'row')} in use, {found.lower_bound:,} needed"
        values = "equal" if found.equal else f"NOT EQUAL: {found.first_difference or 'there is no valid program'}"
        lines = [f"{printable(model.name)}: {values}", f"{counted(found.cycles, 'cycle')}; {rows}"]
        lines += [f"note: {note}" for note in found.notes]
        lines += ["your pass changed nothing in this model"] if model.passes and not compilation.rewritten else []
        diagnostics = [plain_diagnostic(finding, None) for finding in found.findings]
        page = "" if model.passes else program_page(runtime, "The program")
        if compilation.rewritten:
            page = rewrites_page(_rewritten(compilation))
        return Judged(diagnostics, equal=found.equal, text="\n".join(lines), cycles=found.cycles, page=page)


def _rewritten(compilation: Compilation) -> Iterator[tuple[str, Graph, Graph]]:
    """Each pass of the visitor's that changed the graph: its name, and the graph before and after it."""
    graphs = [(made.stage, made.value) for made in compilation.snapshots if isinstance(made.value, Graph)]
    for (_, before), (name, after) in pairwise(graphs):
        if name in compilation.rewritten and after is not before:
            yield name, before, after


def checked(solution: Solution) -> Checked:
    """The verdict on a solution of a puzzle. Raises `UsageError` E0550 where there is no such puzzle."""
    found = puzzle(solution.number).check(solution.text, solution.seed)
    page = "" if found.program is None else program_page(Timed(found.program), found.title)
    return Checked(solved=found.solved, text=str(found), line=found.line, instructions=found.instructions, cycles=found.cycles, page=page)


def _work(request: Request) -> Answer:
    match request:
        case Judgement():
            return judged(request)
        case Model():
            return compiled(request)
        case Solution():
            return checked(request)
        case Two():
            answer: Answer = import_module("tpucc.playground.comparing").compared(request)
            return answer
