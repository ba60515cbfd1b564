"""Lab 5: rows of the unified buffer for buffers whose lives are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np

from tpucc import api
from tpucc.diagnostics import counted, some
from tpucc.labs.allocation.drawing import NAMES, lives_svg, lives_text, sharing
from tpucc.labs.allocation.families import Family, cut, layered, small, staircase
from tpucc.labs.child import BUDGET
from tpucc.labs.judging import Scale, in_the_mean, integers, several, verdict_on
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Term, Test, Wrong, declared, require_fit
from tpucc.lowering.liveness import largest_live_sum
from tpucc.numerics import Int64
from tpucc.plugins.failures import Failed
from tpucc.schedule.allocate import Lives
from tpucc.stages import Stages
from tpucc.target import load_target

Number = TypeVar("Number", int, Int64)
MEMORY = Scale(1.06, 1.45)
"""Of the quotient of peak and lower bound, as a geometric mean."""
ROWS = 2**17
CALLS = {"checking": 28, "grading": 100, "buffers": 80}
"""About how many calls `check` and `grade` make of a submission, and the buffers of the largest: a test counts them."""
FEWEST, MOST, NAMED = 4, 24, 8
"""Buffers of an allocation that a question is about, and buffers that its answer names."""
PROGRAM_ROWS = 4096
"""The unified buffer's rows in the tests of programs: each of their buffers could have rows of its own."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's rules: every buffer begins at a multiple of `alignment` rows; of all rows the host has the first `below` or the last
    `above`."""

    alignment: int = 1
    below: int = 0
    above: int = 0

    @property
    def first(self) -> int:
        """The first row at which a buffer may begin."""
        return rounded(self.below, self.alignment)

    @property
    def lost(self) -> int:
        """Rows in which no buffer lies."""
        return self.first + self.above


def rules(term: Term) -> Rules:
    """The rules of a term; without one there is no alignment, and the host has no rows."""
    draw = term.draw("allocation")
    if draw is None:
        return Rules()
    alignment = draw.choice((3, 5, 6, 7, 9, 10, 11, 12, 13))
    hosts = draw.randrange(2, 5) * alignment + 1  # whoever takes one of them may begin there
    return Rules(alignment, hosts, 0) if draw.random() < 0.5 else Rules(alignment, 0, hosts)


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    host = f"The {'first' if rules.below else 'last'} {rules.below or rules.above} of the rows belong to the host: no buffer lies there."
    return {
        "host_rule": host if rules.lost else "A buffer may lie in any of the rows.",
        "memory": MEMORY,
        "budget": BUDGET,
        **CALLS,
    }


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    align = rules.alignment
    return (
        Test("three buffers", 5, partial(placed, three(align), ROWS, rules)),
        Test("too large", 5, partial(just_fits, rules, three(align))),
        Test("a program", 5, partial(program, 8, rules)),
        Test("random lives", 5, partial(all_placed, list(_families(Random(5), (layered, staircase), 6, align)), rules)),
        Test("memory", 25, partial(memory, list(_families(Random(55), (layered, staircase, cut), 4, align)), rules)),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: the same kinds of question, of other lives."""
    align = rules.alignment
    tight = partial(several, partial(just_fits, rules), what="are right")
    return (
        Test("random lives", 5, partial(all_placed, list(_families(draw, (layered, staircase, small), 12, align)), rules)),
        Test("a buffer that is just large enough", 15, tight(list(_families(draw, (small,), 8, align)))),
        Test("another program", 5, partial(program, draw.randrange(9, 40), rules)),
        Test("memory", 30, partial(memory, list(_families(draw, (layered, staircase, cut), 6, align)), rules)),
    )


def _families(draw: Random, families: Sequence[Family], count: int, align: int) -> Iterator[Lives]:
    for family in families:
        for _ in range(count):
            yield family(draw, align)


def three(align: int) -> Lives:
    """Two buffers that are alive together at one instruction only, and a third that can have the rows of the first."""
    return Lives(np.array([0, 4, 5]), np.array([4, 8, 9]), align * np.array([10, 4, 9]) - np.array([0, align > 1, align > 1]))


NOT_SHARED = "No buffers share rows, which earns nothing"
"""What the skeleton does. It is valid, and who tries and fails would earn less."""


class Refused(Wrong):
    """The submission's `TooLarge`, where the rows are enough or not."""


def ask(submission: Submission, lives: Lives, rows: int, rules: Rules) -> Int64:
    """The first row of each buffer. Raises `Wrong` for an allocation that isn't right, `Refused` for a `TooLarge`, and `Failed`."""
    starts = _answer(submission, lives, rows, rules)
    if problem := wrong(lives, starts, rows, rules):
        raise Wrong(problem, found=str(starts.tolist()), **drawn(lives, starts, rules, problem))
    return starts


def _answer(submission: Submission, lives: Lives, rows: int, rules: Rules) -> Int64:
    """A row for each buffer. Raises `Refused` and `Failed`."""
    try:
        found = submission.call("allocate", lives, rows)
    except Failed as failure:
        if failure.kind != "TooLarge":
            raise
        alive = bound(lives, rules.alignment)
        enough = f"{rows:,} rows, {'which' if rows == alive + rules.lost else f'of which {alive + rules.lost:,}'} are enough"
        words = f"TooLarge is raised for {enough}: {alive:,} for the buffers that are alive at one time{_taken(rules)}"
        raise Refused(words, expected="a row for each buffer") from None
    if found is None:
        raise Failed("result", "returned None: is a `return` missing?")
    return integers(found, lives.rows.shape, f"{len(lives.rows)} integers").astype(np.int64)


def whole(lives: Lives, align: int) -> Lives:
    """The lives with rows rounded up to the alignment: of these, `bound` is exact to the row."""
    return replace(lives, rows=rounded(lives.rows, align))


def wrong(lives: Lives, starts: Int64, rows: int, rules: Rules) -> str:
    """What is wrong with an allocation, or nothing."""
    end = rows - rules.above
    outside = np.flatnonzero((starts < rules.below) | (starts > end - lives.rows))
    if len(outside):
        b = int(outside[0])
        return f"{_place(lives, starts, b)} is not inside rows {rules.below} to {end - 1:,}"
    crooked = np.flatnonzero(starts % rules.alignment)
    if len(crooked):
        return f"{_buffer(lives, int(crooked[0]))} begins at row {starts[crooked[0]]:,}, which {rules.alignment} does not divide"
    for one, other in sharing(lives, starts):
        return f"{_place(lives, starts, one)} and {_place(lives, starts, other)} share rows while both are alive"
    return ""


def _place(lives: Lives, starts: Int64, b: int) -> str:
    start, rows = int(starts[b]), int(lives.rows[b])
    return f"{_buffer(lives, b)}, instructions {lives.first[b]} to {lives.last[b]}, on rows {start:,} to {start + rows - 1:,}"


def _buffer(lives: Lives, b: int) -> str:
    """A buffer's number, and the letter that it has in characters."""
    return f"buffer {b} ({NAMES[b]})" if 9 < b < len(lives.rows) <= len(NAMES) else f"buffer {b}"


def placed(lives: Lives, rows: int, rules: Rules, submission: Submission) -> Outcome:
    """One allocation, which must be right: its peak and the lower bound, both of rows rounded up to the alignment."""
    starts = ask(submission, lives, rows, rules)
    message = _counts(lives, starts, rules)
    if not_shared(lives, starts, rules):
        return Outcome(0, f"{message}. {NOT_SHARED}", **drawn(lives, starts, rules, message))
    return Outcome(1, message, **drawn(lives, starts, rules, message))


def not_shared(lives: Lives, starts: Int64, rules: Rules) -> bool:
    """Whether an allocation takes as many rows as all buffers together, though not all are alive at one time."""
    rows = int(rounded(lives.rows, rules.alignment).sum())
    return bound(lives, rules.alignment) < rows <= used(lives, starts, rules)


def _counts(lives: Lives, starts: Int64, rules: Rules) -> str:
    needed = bound(lives, rules.alignment)
    return f"{counted(len(starts), 'buffer')} in {used(lives, starts, rules):,} rows; {needed:,} are needed at one time"


def drawn(lives: Lives, starts: Int64, rules: Rules, message: str) -> dict[str, Any]:
    """An outcome's pictures, where its rows exist: buffers have the rows that count, rounded up to the alignment."""
    if starts.min(initial=0) < 0 or starts.max(initial=0) > ROWS:
        return {}
    drawn = lives if (starts % rules.alignment).any() else whole(lives, rules.alignment)
    return {"drawing": lives_text(drawn, starts), "picture": partial(lives_svg, drawn, starts, message, rules.first)}


def all_placed(cases: Sequence[Lives], rules: Rules, submission: Submission) -> Outcome:
    """Many allocations, which must all be right, and of which one must share rows."""
    found = [placed(lives, ROWS, rules, submission) for lives in cases]
    return next((outcome for outcome in reversed(found) if outcome.passed), found[-1])


def just_fits(rules: Rules, lives: Lives, submission: Submission) -> Outcome:
    """`TooLarge` where one row is missing, and only there: buffers of whole steps of the alignment in as many rows as they need, and in one
    fewer."""
    lives, needed = whole(lives, rules.alignment), bound(lives, rules.alignment)
    few = needed + rules.lost - 1
    try:
        starts = _answer(submission, lives, few, rules)
    except Refused:
        pass
    else:
        message = f"{few:,} rows are too few: {needed:,} are alive at one time, and {_left(few, rules)}"
        raise Wrong(message, expected="TooLarge is raised", found=str(starts.tolist()))
    found = placed(lives, few + 1, rules, submission)
    return replace(found, message=f"{found.message}; TooLarge with one row fewer")


def _taken(rules: Rules) -> str:
    """The rows in which no buffer lies, and why."""
    if rules.above:
        return f", and the last {rules.above:,}, which are the host's"
    return f", and {rules.first:,} before row {rules.first:,}, the first at which one may begin" if rules.first else ""


def _left(rows: int, rules: Rules) -> str:
    """How many of `rows` buffers may have, and which these are."""
    free = f"{counted(rows - rules.lost, 'row')} from row {rules.first} on" if rules.first else counted(rows - rules.lost, "row")
    return f"the rules leave {free}" if rules.lost else f"there are {free}"


def memory(cases: Sequence[Lives], rules: Rules, submission: Submission) -> Outcome:
    """How many rows are used, against the least that any allocator needs. One wrong allocation loses all points."""
    found = [(lives, ask(submission, lives, ROWS, rules)) for lives in cases]
    rows = [(used(lives, starts, rules), bound(lives, rules.alignment)) for lives, starts in found]
    outcome, worst = in_the_mean("peak ÷ lower bound", MEMORY, rows, "peak ÷ bound")
    return replace(outcome, **drawn(*found[worst], rules, outcome.message))


def program(batch: int, rules: Rules, submission: Submission) -> Outcome:
    """A model compiled with the submission as its allocator, and judged. It has rows enough for every term's rules: where the submission
    raises `TooLarge`, the test is lost, and not a buffer spilled."""
    placed: list[tuple[Lives, Int64]] = []

    def stage(lives: Lives, rows: int) -> Int64:
        placed.append((lives, ask(submission, lives, rows, rules)))
        return placed[-1][1]

    machine = load_target("tiny", {"unified_buffer_rows": PROGRAM_ROWS, "accumulator_rows": 64})
    exe = api.compile_source(MODEL, params={"batch": batch}, target=machine, stages=Stages(allocate=stage))
    verdict = verdict_on(exe, given=f"-D batch={batch}")
    message = f"equal; {_counts(*placed[-1], rules)}; {verdict.cycles:,} cycles"
    if all(not_shared(*each, rules) for each in placed):
        return Outcome(0, f"{message}. {NOT_SHARED}", f"-D batch={batch}")
    return Outcome(1, message)


def bound(lives: Lives, align: int) -> int:
    """The most rows that are alive at one time, each buffer's rounded up to the alignment: no allocation has fewer."""
    return int(largest_live_sum(lives.first, lives.last, rounded(lives.rows, align)))


def used(lives: Lives, starts: Int64, rules: Rules) -> int:
    """The peak without the host's rows, rounded up to the alignment."""
    return rounded(lives.peak(starts), rules.alignment) - rules.first


def rounded(rows: Number, align: int) -> Number:
    return -(-rows // align) * align


def _made(exchange: Exchange, rules: Rules) -> tuple[Lives, Int64]:
    """The allocation of a few buffers, right or wrong, to rows that exist. Raises `Failed`."""
    lives = exchange.arguments[0]
    require_fit(FEWEST <= len(lives.rows) <= MOST)
    starts = integers(exchange.answer, lives.rows.shape, "rows").astype(np.int64)
    require_fit(starts.min() >= 0 and starts.max() <= ROWS)
    return lives, starts


def landed(exchange: Exchange, oral: Oral) -> Question:
    """Why a buffer lies where it lies."""
    lives, starts = _made(exchange, oral.rules)
    b, align, lowest = oral.draw.randrange(len(starts)), oral.rules.alignment, oral.rules.first
    both = (lives.first <= lives.last[b]) & (lives.last >= lives.first[b]) & (np.arange(len(starts)) != b)
    others = [n for n in np.argsort(starts, kind="stable").tolist() if both[n]]
    for n in others:
        if starts[n] < lowest + lives.rows[b]:
            lowest = max(lowest, rounded(int(starts[n] + lives.rows[n]), align))
    taken = some([f"buffer {n} has rows {starts[n]:,} to {starts[n] + lives.rows[n] - 1:,}" for n in others], NAMED)
    words = f"It has {counted(int(lives.rows[b]), 'row')}, and is alive from instruction {lives.first[b]} to {lives.last[b]}; {taken}. "
    words += f"The lowest gap for it begins at row {lowest:,}; the submission chose row {starts[b]:,}."
    words += oral.beside(exchange, lambda other: f"row {_made(other, oral.rules)[1][b]:,}")
    asked = f"Why did buffer {b} land on row {starts[b]:,}, and not lower or higher?"
    return Question(asked, words, **_shown(lives, starts, oral.rules), dull=bool(starts[b] == oral.rules.first))


def larger(exchange: Exchange, oral: Oral) -> Question:
    """What a buffer changes that has more rows."""
    lives, starts = _made(exchange, oral.rules)
    b = oral.draw.randrange(len(starts))
    given = replace(lives, rows=lives.rows + oral.rules.alignment * (np.arange(len(starts)) == b))
    words = f"buffer {b} had {given.rows[b]} rows and not {lives.rows[b]}"

    def said(each: Exchange) -> str:
        return _counts(*_made(each, oral.rules), oral.rules)

    return oral.what_if(exchange, words, (given, exchange.arguments[1]), said, **_shown(lives, starts, oral.rules))


def _shown(lives: Lives, starts: Int64, rules: Rules) -> dict[str, Any]:
    return {"picture": drawn(lives, starts, rules, _counts(lives, starts, rules)).get("picture")}


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")

LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(landed, larger))
