"""Running a lab's tests on a submission: the same code for `check` and `grade`."""

from __future__ import annotations

import math
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from tpucc.diagnostics import Diagnostic, Error, UsageError, did_you_mean, listed, printable
from tpucc.guest.jails import JAILS, NONE, Finding, Jail, probed
from tpucc.guest.leftover_files import Left
from tpucc.guest.serving import module_of
from tpucc.guest.values import Plain
from tpucc.labs.call_text import call_text
from tpucc.labs.cells import cell, workshop
from tpucc.labs.child import MODULE, Child
from tpucc.labs.here import Here, missing
from tpucc.labs.lab import AS_WRITTEN, ASKED, Asked, Exchange, Lab, Outcome, Submission, Term, Test, lost
from tpucc.labs.likeness import likeness
from tpucc.labs.start import disagreement
from tpucc.labs.submissions import date, digest_of_graded, seen, submitted
from tpucc.plugins.failures import Failed, failed, failing, failure_behind

KEPT = 16
"""Calls of a test that are kept with their answers: a submission decides how large these are."""


@dataclass(frozen=True, slots=True)
class Result:
    """A test with what it found, and the seconds it took. `fault` is the grader's own failure, which is no verdict on the submission.

    `printed` is what the submission printed while the test ran, of the first one also what it printed while it was loaded. Public tests
    run before the hidden ones, so that theirs can have nothing of hidden inputs.
    """

    test: Test
    outcome: Outcome
    seconds: float
    fault: str = ""
    printed: str = ""

    @property
    def score(self) -> float:
        """The points that are earned, in halves and rounded down: of hidden inputs, hundredths would tell more than is needed."""
        return math.floor(2 * round(self.test.points * min(1.0, max(0.0, self.outcome.share)), 6)) / 2


@dataclass(frozen=True, slots=True)
class Grade:
    """The results so far. `isolation` is the jail's name; `printed` what a submission printed that couldn't be loaded."""

    lab: Lab
    term: Term
    isolation: str
    results: tuple[Result, ...] = ()
    tests: tuple[Test, ...] = ()
    printed: str = ""
    problem: str = ""
    """Why no test was run: the submission has no such file, or links, or can't be loaded. All tests have their results, of no points."""
    note: str = ""
    """What the submission's own `lab.toml` says, where that is another lab or term."""
    like: tuple[str, ...] = ()
    """Files of tpucc's own that the submission is nearly a copy of: a hint for instructors, which changes no points."""
    seed: int | None = None
    """What the hidden tests were drawn with."""
    origin: str = ""
    """The submission's path, as it was given."""
    digest: str = ""
    """A hash of the files that are graded: equal submissions have equal ones, whatever notes lie beside them."""
    date: str = ""
    """When the submission's newest file was written (UTC)."""
    spent: float = 0.0
    """Seconds of processor time that its calls took, of `child.BUDGET`."""

    @property
    def score(self) -> float:
        return round(sum(result.score for result in self.results), 2)

    @property
    def most(self) -> float:
        """The points of all tests."""
        return sum(test.points for test in self.tests)

    @property
    def measures(self) -> dict[str, float]:
        """The numbers for a leaderboard: of the hidden tests where there are some, and none before each of these has earned points or
        measured something. What is only right where everybody can see the inputs has no place."""
        hidden = [test for test in self.tests if test.hidden]
        counted = [result for result in self.results if result.test.hidden or not hidden]
        if hidden and not (len(counted) == len(hidden) and all(found.score or found.outcome.measures for found in counted)):
            return {}
        return {name: value for result in counted for name, value in (result.outcome.measures or {}).items()}


@dataclass(frozen=True, slots=True)
class Contents:
    """A submission as it was read. A grader needs nothing else of it, so that it may be on another machine."""

    origin: str
    """The path, as it was given."""
    files: Mapping[str, bytes]
    main: str
    """The name of the file that a lab of functions loads; empty where there is none."""
    note: str
    """What the submission's own `lab.toml` says, where that is another lab or term."""
    date: str
    """When its newest file was written (UTC)."""
    problem: str
    """Why its files can't be read; else empty."""
    term: Term
    """The term that it is graded for."""
    digest: str
    """A hash of the files that are graded; empty where there are none."""


def contents_of(lab: Lab, path: Path, term: Term) -> Contents:
    """Reads a submission. What can't be read is its problem, and no exception."""
    when, problem, files = "", "", dict[str, bytes]()
    try:
        with failing("file", path.name):
            when = date(path)
            files = submitted(path, lab.program)
    except Failed as failure:
        problem = failure.words
    named = next((name for name in (lab.program, lab.file) if name in files), "")
    main = named or (lab.file if path.is_dir() else next(iter(files), ""))
    digest = digest_of_graded(files, lab, lab.files(term), main)
    return Contents(str(path), files, main, disagreement(path, lab, term), when, problem, term, digest)


Watch = Callable[[Grade], None]
"""Called after every test with the grade so far."""


def check(
    lab: Lab, path: Path, term: Term = AS_WRITTEN, only: Sequence[str] = (), watch: Watch | None = None, trust: bool = False
) -> Grade:
    """The public tests on one's own submission, without isolation, or those that `only` names. Code of those who `trust` it runs in this
    process, without limits. Raises `UsageError` for a name of no test."""
    lab.require()
    grade = Grade(lab, term, NONE.name, tests=tuple(chosen(lab.public(term), only)))
    return _whole(grade, contents_of(lab, path, term), None if trust else NONE, watch)


def grade(lab: Lab, path: Path, term: Term, seed: int, jail: Jail, only: Sequence[str] = (), watch: Watch | None = None) -> Grade:
    """The public and the hidden tests on a submission in a jail, or those that `only` names."""
    return grade_contents(lab, contents_of(lab, path, term), seed, jail, only, watch)


def grade_contents(
    lab: Lab,
    contents: Contents,
    seed: int,
    jail: Jail,
    only: Sequence[str] = (),
    watch: Watch | None = None,
    shared: Path | None = None,
) -> Grade:
    """The same of a submission that is read already. The lab's workshop is made for it, unless it is `shared` with others."""
    lab.require()
    term = contents.term
    tests = chosen((*lab.public(term), *lab.hidden(term, seed)), only)
    return _whole(Grade(lab, term, jail.name, tests=tuple(tests), seed=seed), contents, jail, watch, shared)


def _whole(grade: Grade, contents: Contents, jail: Jail | None, watch: Watch | None, shared: Path | None = None) -> Grade:
    """The grade with the results of its tests. Without a jail the submission's functions are called in this process."""
    grade = replace(grade, note=contents.note, origin=contents.origin, date=contents.date, digest=contents.digest)
    with nullcontext(shared) if shared or jail is None else workshop_of(grade.lab) as there:
        return _graded(contents, grade, there, jail, watch)


def workshop_of(lab: Lab) -> AbstractContextManager[Path | None]:
    """A lab's workshop; none where nothing of a submission is executed."""
    return workshop(lab.modules) if lab.functions else nullcontext()


def chosen(tests: Sequence[Test], only: Sequence[str]) -> Sequence[Test]:
    """The tests that are named, in their order, or all. Raises `UsageError` E0550 for a name of none."""
    named = {test.name for name in only for test in _named(tests, name)}
    return [test for test in tests if not only or test.name in named]


def _named(tests: Sequence[Test], name: str) -> Sequence[Test]:
    """The test of this name, or else those whose names begin with these whole words: `puzzle 1` isn't `puzzle 10: …`."""
    begins = [test for test in tests if name and re.match(rf"{re.escape(name)}\b", test.name)]
    if found := [test for test in tests if test.name == name] or begins:
        return found
    names = [test.name for test in tests]
    begun = [test.partition(":")[0] for test in names]
    help = (did_you_mean(name, [*names, *begun]), f"the tests are {listed(names)}")
    raise UsageError(Diagnostic("E0550", f"no test is named {printable(name)}", help=help))


def isolation(modules: Sequence[str] = ()) -> Iterator[Finding]:
    """What each jail finds out about this machine, the best first."""
    with workshop(modules) as shared, cell(shared, {}, "") as made:
        for jail in JAILS:
            yield probed(jail, made)


def strongest() -> tuple[Jail, list[Finding]]:
    """The best jail that works here, or none, with what was found out about each that was tried."""
    findings: list[Finding] = []
    for finding in isolation():
        findings.append(finding)
        if finding.works:
            return finding.jail, findings
    return NONE, findings


def isolated() -> Jail:
    """The best jail that works here. Raises `UsageError` E0552 where there is none."""
    jail, findings = strongest()
    if not jail.keeps_secrets:
        reasons = "; ".join(f"{found.jail.name}: {found.reason}" for found in findings)
        help = ("tpucc doctor says what this machine could have", "--trust grades without isolation: only what you have read")
        raise UsageError(Diagnostic("E0552", f"this machine can't keep the tests secret: {reasons}", help=help))
    return jail


def _graded(contents: Contents, grade: Grade, shared: Path | None, jail: Jail | None, watch: Watch | None) -> Grade:
    lab, files, main = grade.lab, contents.files, contents.main
    if contents.problem:
        return _without_tests(grade, Failed("file", contents.problem), watch)
    if lab.functions and main not in files:
        there = next((name for name in files if name.rpartition("/")[2] == lab.file), next(iter(files), ""))
        return _without_tests(grade, missing(lab.file, there), watch)
    if grade.seed is not None:
        grade = replace(grade, like=likeness(lab, files))
    try:
        if shared is None or jail is None:
            return _run_all(grade, _trusted(contents) if lab.functions else Here({}, Path(contents.origin), files), watch)
        with cell(shared, seen(files), main) as made, Child(jail, made, lab.modules) as child:
            try:
                child.load()
            except Failed:
                grade = replace(grade, printed=child.printed())
                raise
            return replace(_run_all(grade, child, watch), spent=child.spent)
    except Failed as failure:
        return _without_tests(grade, failure, watch)


def _trusted(contents: Contents) -> Here:
    """The submission in this process. Raises `Failed` where its file can't be loaded."""
    origin = Path(contents.origin).absolute()
    file = origin / contents.main if origin.is_dir() else origin
    sys.path.insert(0, str(file.parent))
    try:
        return Here(vars(module_of(str(file), MODULE)), file)
    except Exception as error:
        raise failed(error, lambda name: name.startswith(str(file.parent))) from error


def _without_tests(grade: Grade, failure: Failed, watch: Watch | None) -> Grade:
    """The grade of a submission on which no test can be run: each has no points, for the same reason."""
    outcome = Outcome(0, f"not run: {failure.words.splitlines()[0]}", trouble="no test could be run")
    results = tuple(Result(test, outcome, 0.0) for test in grade.tests)
    grade = replace(grade, problem=failure.words, results=results)
    if watch:
        watch(grade)
    return grade


def _run_all(grade: Grade, submission: Child | Here, watch: Watch | None) -> Grade:
    seed = 0 if grade.seed is None else random.Random(f"{grade.seed}/judging").getrandbits(32)
    for test in grade.tests:
        result = run(test, submission, seed)
        grade = replace(grade, results=(*grade.results, replace(result, printed=submission.printed())))
        if watch:
            watch(grade)
    return grade


def run(test: Test, submission: Submission, seed: int = 0) -> Result:
    """One test, whose inputs for answers `seed` draws. Whatever the submission answers, there is a result. Raises `Left`."""
    start, fault = monotonic(), ""
    asked = Asked(seed=seed)
    ASKED.set(asked)
    try:
        outcome = test.run(_Noted(submission, asked))
    except Left:
        raise
    except Exception as error:
        if isinstance(error, Failed | Error) and (failure := failure_behind(error)):
            outcome = lost(failure)
        elif isinstance(error, Error):
            words = "\n".join(f"{found.code}: {found.message}" for found in error.diagnostics)
            outcome = Outcome(0, words, trouble="an answer was refused")
        else:  # an answer that the test didn't foresee: the points are lost, and the grader's author hears of it
            outcome, fault = Outcome(0, "the test itself failed; tell your instructor"), "".join(traceback.format_exception(error))
    if not (outcome.passed or outcome.given or fault) and outcome.call and outcome.call[1]:
        outcome = replace(outcome, given=call_text(*outcome.call))
    return Result(test, outcome, monotonic() - start, fault)


class _Noted:
    """A submission whose last call is noted, and its first calls with their answers."""

    def __init__(self, submission: Submission, asked: Asked) -> None:
        self._submission, self._asked = submission, asked

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        self._asked.call = function, arguments
        answer = self._submission.call(function, *arguments, seconds=seconds)
        if len(self._asked.exchanges) < KEPT:
            self._asked.exchanges.append(Exchange(function, arguments, answer))
        return answer

    def defines(self) -> tuple[str, ...]:
        return self._submission.defines()

    def text(self, name: str) -> str:
        return self._submission.text(name)


KEPT_DIGITS = 15
"""Digits of a number that spreadsheets keep."""


def random_seed() -> int:
    """A seed that nobody knows before, and that a spreadsheet keeps."""
    return random.SystemRandom().randrange(10 ** (KEPT_DIGITS - 1), 10**KEPT_DIGITS)
