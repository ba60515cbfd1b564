"""Lab 8: a rule of the verifier, and programs that tell right detectors from wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from textwrap import fill
from typing import Any

from tpucc.diagnostics import Error, counted, listed
from tpucc.isa.assembler import assemble
from tpucc.isa.verify import verify
from tpucc.labs.break_it.faulty import DETECTORS, SHOWN, Detector
from tpucc.labs.break_it.mutants import Case, compiled, mutants, short
from tpucc.labs.break_it.rules import RULES, Faults, Plain, Rule, line, plain
from tpucc.labs.judging import Scale, in_words
from tpucc.labs.lab import Outcome, Submission, Term, Test, declared, lost
from tpucc.labs.solutions import is_archive, recorded
from tpucc.plugins.code import short_text
from tpucc.plugins.failures import Failed
from tpucc.target import load_target

CAUGHT = Scale(1.0, 0.5)
"""Of bugs caught minus false alarms, as a share of the bugs."""
PROGRAMS, LETTERS = 20, 5_000
"""The most programs that a submission may have, and the characters of one."""
HOST_ROWS = 1000
"""The most rows of inputs and outputs of one."""
RANKED = "bugs missed + false alarms"
"""What a leaderboard sorts by, the least first: the bugs, less those caught minus false alarms."""
NEAR = 6
"""Instructions that are shown before and after one that matters."""


def rule_of(term: Term) -> Rule:
    """The rule that a term asks for."""
    draw = term.draw("break_it")
    return RULES[draw.choice(tuple(RULES))] if draw else RULES["unwritten"]


def _words(rule: Rule) -> Mapping[str, Any]:
    detectors = DETECTORS[rule.name]
    return {
        "told": fill(rule.says, 120),
        "codes": f"{listed(rule.codes)} {'is' if len(rule.codes) == 1 else 'are'}",
        "caught": CAUGHT,
        "detectors": "\n".join(f"- {detector.bug}" for detector in detectors[:SHOWN]),
        "kept_too": "\n".join(f"- *{other.name}*: {other.kept}" for other in RULES.values() if other != rule),
        "programs": PROGRAMS,
        "shown": SHOWN,
        "others": len(detectors) - SHOWN,
    }


def _public(rule: Rule) -> Sequence[Test]:
    return (
        Test("sound programs", 5, partial(caught, _sound, False)),
        Test("one change", 15, partial(caught, partial(_public_cases, rule, are_short=False), True)),
        Test("short programs", 5, partial(caught, partial(_public_cases, rule, are_short=True), False)),
        Test("programs", 5, partial(readable, rule)),
        *_exposing(rule, range(SHOWN), 16),
    )


def _hidden(rule: Rule, draw: Random, seed: str) -> Sequence[Test]:
    sizes = [(draw.randint(2, 5), draw.randint(3, 9), draw.randint(3, 9)) for _ in SIZES]
    return (
        Test("one change", 15, partial(caught, partial(_changed, rule, f"{seed}/break_it/changes", sizes, 20), True)),
        Test("short programs", 15, partial(caught, partial(_short, rule, f"{seed}/break_it/short", 40), False)),
        *_exposing(rule, range(SHOWN, len(DETECTORS[rule.name])), 24),
    )


Size = tuple[int, int, int]
"""Of a model: its batch, its inputs, its layers' columns."""
SIZES: Sequence[Size] = ((3, 7, 5), (2, 4, 9))


def _sound() -> Sequence[Case]:
    return [Case(compiled(*size), "", {}) for size in SIZES]


def _changed(rule: Rule, seed: str, sizes: Sequence[Size], count: int) -> Sequence[Case]:
    """Compiled programs with one change each, half of which break the rule."""
    return mutants(rule, Random(seed), [compiled(*size) for size in sizes], count, count)


Told = Sequence[tuple[Plain, str, Faults]]
"""Program, change and faults of each case: values that an archive can have recorded."""


@recorded
def public_cases(rule: str, are_short: bool) -> Told:
    """The programs of a public test for a rule by its name: short ones, or compiled ones with one change."""
    found = _short(RULES[rule], "public", len(DETECTORS[rule])) if are_short else _changed(RULES[rule], "public", SIZES, 12)
    return [(case.program, case.change, dict(case.faults)) for case in found]


def _public_cases(rule: Rule, are_short: bool) -> Sequence[Case]:
    return [Case(*said) for said in public_cases(rule.name, are_short)]


@cache
def _short(rule: Rule, seed: str, count: int) -> Sequence[Case]:
    return short(rule, Random(seed), count, count)


def _exposing(rule: Rule, numbers: Sequence[int], points: float) -> Iterator[Test]:
    """Tests of detectors by their numbers, with these points in all."""
    for number in numbers:
        yield Test(f"detector {number + 1}", points / len(numbers), partial(exposed, rule, DETECTORS[rule.name][number]))


def reported(submission: Submission, program: Plain) -> set[int]:
    """The instructions that the submission reports. Raises `Failed`."""
    found = submission.call("violations", program)
    count = len(program["instructions"])
    if not isinstance(found, list) or not all(type(number) is int and 0 <= number < count for number in found[: count + 1]):
        raise Failed("result", f"returned {short_text(str(found))}, expected a list of numbers from 0 to {count - 1}")
    if len(found) > count:
        raise Failed("result", f"returned {len(found):,} numbers for {counted(count, 'instruction')}")
    return set(found)


def caught(drawn: Callable[[], Sequence[Case]], ranked: bool, submission: Submission) -> Outcome:
    """Bugs caught minus false alarms. A bug is caught when its first fault is reported; an alarm is false when it names what is none.

    `ranked`: the result counts for the leaderboard.
    """
    cases = drawn()
    bugs = sum(bool(case.faults) for case in cases)
    score, alarms, first = 0, 0, Outcome(1, "")
    for case in cases:
        try:
            found = reported(submission, case.program)
        except Failed as failure:
            return replace(lost(failure), given=_listing(case.program))
        missed, false = case.verdict(found)
        score += bool(case.faults) and not missed
        alarms += bool(false)
        if (false or missed) and first.passed:
            first = _shown(case, found, min(case.faults) if missed else false[0])
    words = f"false alarms in {alarms} of {counted(len(cases), 'program')}"
    words = f"{score} of {counted(bugs, 'bug')} caught, {words}" if bugs else words
    words += f"; the first: {first.message}" if first.message else ""
    share = float(alarms == 0) if not bugs else CAUGHT.share((score - alarms) / bugs)
    measures = {RANKED: bugs - score + alarms} if ranked else None
    return replace(first, share=share, message=words, measures=measures)


def _shown(case: Case, found: set[int], at: int) -> Outcome:
    """The first program that was judged wrongly, with the numbers at fault before it. Of a longer one, the instructions around the one that
    matters are drawn as well."""
    numbers, lines = listed(list(map(str, case.faults))) or "none", _lines(case.program, at)
    faults = "; ".join(f"{number}: {why}" for number, why in list(case.faults.items())[:3]) or "no instruction is at fault"
    start, end = max(0, at - NEAR), min(len(lines), at + NEAR + 1)
    drawing = "\n".join([*["..."] * (start > 0), *lines[start:end], *["..."] * (end < len(lines))])
    given = f"at fault: {numbers}\n{_listing(case.program, at)}"
    return Outcome(0, case.change, given=given, expected=faults, found=str(sorted(found)), drawing=drawing * (end - start < len(lines)))


def _listing(program: Plain, at: int = -1) -> str:
    """A program as messages show it, with a mark at an instruction."""
    lines = _lines(program, at)
    return "\n".join([f"{counted(len(lines), 'instruction')}, a FIFO of {counted(program['fifo'], 'tile')}", *lines])


def _lines(program: Plain, at: int) -> list[str]:
    return [f"{'>' if number == at else ' '}{line(number, each)}"[:78] for number, each in enumerate(program["instructions"])]


def programs(rule: Rule, submission: Submission) -> list[tuple[Plain, bool]]:
    """The submission's programs, each with whether it breaks the rule. Raises `Failed` for one that isn't a program of the task."""
    found = submission.call("programs")
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found[: PROGRAMS + 1]):
        raise Failed("result", f"returned {in_words(found)}; expected a list of texts")
    if not 0 < len(found) <= PROGRAMS:
        raise Failed("result", f"returned {counted(len(found), 'program')}, expected 1 to {PROGRAMS}")
    return [_read(rule, number, text) for number, text in enumerate(found)]


def _read(rule: Rule, number: int, text: str) -> tuple[Plain, bool]:
    """A program that breaks no other rule of the verifier than this one, and whether it breaks this one."""
    if len(text) > LETTERS:
        raise Failed("result", f"program {number} has more than {LETTERS:,} characters")
    try:
        program = assemble(text, f"program{number}.asm")
    except Error as error:
        raise Failed("result", f"program {number} can't be read: {error.diagnostics[0].render()}") from None
    if program.target != load_target("tiny"):
        raise Failed("result", f"program {number} is for {program.target.name}; it needs the line .target tiny")
    if program.host_rows > HOST_ROWS:
        raise Failed("result", f"program {number} has {program.host_rows:,} host rows; {HOST_ROWS} are enough")
    violations = verify(program)
    for violation in violations:
        if violation.code not in rule.codes:
            raise Failed("wrong", f"program {number} breaks another rule, {violation.code}: {violation.message}")
    return plain(program), bool(violations)


def readable(rule: Rule, submission: Submission) -> Outcome:
    """The submission's programs: some break the rule, and some don't."""
    faults = [broken for _, broken in programs(rule, submission)]
    words = f"programs that break the rule: {sum(faults)} of {len(faults)}"
    right = any(faults) and not all(faults)
    return Outcome(float(right), words, expected="" if right else "some that break it, and some that don't")


def exposed(rule: Rule, detector: Detector, submission: Submission) -> Outcome:
    """Whether one of the submission's programs shows that a detector is wrong.

    An archive for students has no rule. There the submission's own stands for it, and for the detector on what it sees.
    """
    told = f"a detector is wrong: {detector.bug}"
    for number, (program, _) in enumerate(programs(rule, submission)):
        if is_archive() and detector.sees is not None:
            wrong, right = reported(submission, detector.sees(program)), reported(submission, program)
        else:
            wrong, right = detector.find(program, rule), set(rule.faults(program))
        if wrong != right:
            return Outcome(1, f"{told}. Program {number} shows it: it reports {_list(wrong)}, and {_list(right)} are at fault")
    return Outcome(0, told, expected="a program on which it reports something else than the rule", found="it is right on all of yours")


def _list(numbers: set[int]) -> str:
    return str(sorted(numbers)) if numbers else "none"


LAB = declared(Path(__file__).parent, rules=rule_of, words=_words, public=_public, hidden=_hidden)
