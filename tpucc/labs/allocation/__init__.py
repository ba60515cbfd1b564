"""Lab 5: rows of the unified buffer for buffers whose lives are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

import numpy as np

import tpucc
from tpucc.labs.allocation.drawing import lives_svg, lives_text
from tpucc.labs.allocation.families import Family, cut, layered, small, staircase
from tpucc.labs.lab import Failed, Lab, Outcome, Submission, Term, Test
from tpucc.lowering.liveness import largest_live_sum
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives

Number = TypeVar("Number", int, Int64)
BEST, WORST = 1.06, 1.45
"""The quotient of peak and lower bound, as a geometric mean, that earns all points for memory, and the one that earns none."""
ROWS = 2**17


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's rule: every buffer begins at a multiple of `alignment` rows."""

    alignment: int


def rules(term: Term) -> Rules:
    """The rules of a term; without one there is no alignment."""
    draw = term.draw("allocation")
    return Rules(draw.choice((3, 5, 6, 7, 9, 10, 11, 12, 13)) if draw else 1)


def _words(term: Term) -> Mapping[str, str]:
    """What the handout says for this term."""
    alignment = rules(term).alignment
    rule = (
        f"Every buffer begins at a row whose number can be divided by {alignment}." if alignment > 1 else "A buffer may begin at any row."
    )
    return {"alignment": str(alignment), "alignment_rule": rule, "best": f"{BEST:g}", "worst": f"{WORST:g}"}


def _public(term: Term) -> Sequence[Test]:
    """What `check` runs."""
    align = rules(term).alignment
    return (
        Test("three buffers", 5, partial(placed, three(align), ROWS, align)),
        Test("too large", 5, partial(too_large, align)),
        Test("a program", 5, partial(program, 8, align)),
        Test("random lives", 5, partial(all_placed, list(_families(Random(5), (layered, staircase), 6, align)), align)),
        Test("memory", 25, partial(memory, list(_families(Random(55), (layered, staircase, cut), 4, align)), align)),
    )


def _hidden(term: Term, seed: int) -> Sequence[Test]:
    """What only `grade` runs: the same kinds of question, of other lives."""
    align, draw = rules(term).alignment, Random(f"{seed}/allocation")
    return (
        Test("hidden: random lives", 5, partial(all_placed, list(_families(draw, (layered, staircase, small), 12, align)), align), True),
        Test("hidden: a buffer that is just large enough", 15, partial(tight, list(_families(draw, (small,), 8, align)), align), True),
        Test("hidden: another program", 5, partial(program, draw.randrange(9, 40), align), True),
        Test("hidden: memory", 30, partial(memory, list(_families(draw, (layered, staircase, cut), 6, align)), align), True),
    )


def _families(draw: Random, families: Sequence[Family], count: int, align: int) -> Iterator[Lives]:
    for family in families:
        for _ in range(count):
            yield family(draw, align)


def three(align: int) -> Lives:
    """Two buffers that are alive together, and a third that can have the rows of the first."""
    return Lives(np.array([0, 2, 5]), np.array([4, 8, 9]), align * np.array([10, 4, 9]) - np.array([0, align > 1, align > 1]))


def ask(submission: Submission, lives: Lives, rows: int) -> Int64:
    """What the submission answers, as one row number for each buffer. Raises `Failed`."""
    found = submission.call("allocate", lives, rows)
    if found is None:
        raise Failed("result", "returned None: is a `return` missing?")
    try:
        starts = np.asarray(found)
    except (ValueError, TypeError, OverflowError):
        raise Failed("result", "returned no list of numbers") from None
    if starts.shape != lives.rows.shape or starts.dtype.kind not in "iu":
        raise Failed("result", f"returned {starts.dtype} of shape {list(starts.shape)}, expected {len(lives.rows)} integers")
    return starts.astype(np.int64)


def wrong(lives: Lives, starts: Int64, rows: int, align: int) -> str:
    """What is wrong with an allocation, or nothing."""
    outside = np.flatnonzero((starts < 0) | (starts > rows - lives.rows))
    if len(outside):
        b = int(outside[0])
        return f"{_place(lives, starts, b)} is not inside rows 0 to {rows - 1:,}"
    crooked = np.flatnonzero(starts % align)
    if len(crooked):
        return f"buffer {crooked[0]} begins at row {starts[crooked[0]]:,}, which {align} does not divide"
    for b in range(len(starts)):
        both = (lives.first <= lives.last[b]) & (lives.last >= lives.first[b]) & (starts < starts[b] + lives.rows[b])
        both &= starts + lives.rows > starts[b]
        both[b] = False
        if both.any():
            return f"{_place(lives, starts, b)} and {_place(lives, starts, int(np.argmax(both)))} share rows while both are alive"
    return ""


def _place(lives: Lives, starts: Int64, b: int) -> str:
    end = starts[b] + lives.rows[b] - 1
    return f"buffer {b} (instructions {lives.first[b]} to {lives.last[b]}) on rows {starts[b]:,} to {end:,}"


def _given(lives: Lives, rows: int) -> str:
    shown = [f"{name}={getattr(lives, name)[:12].tolist()}" for name in ("first", "last", "rows")]
    more = f" … ({len(lives.rows)} buffers)" if len(lives.rows) > 12 else ""
    return f"{', '.join(shown)}{more}, and {rows:,} rows"


def placed(lives: Lives, rows: int, align: int, submission: Submission) -> Outcome:
    """One allocation, which must be right."""
    starts = ask(submission, lives, rows)
    if problem := wrong(lives, starts, rows, align):
        return _shown(Outcome(0, problem, _given(lives, rows), "", str(starts[:12].tolist())), lives, starts)
    words = f"{len(starts)} buffers in {_rounded(lives.peak(starts), align):,} rows; {bound(lives, align):,} are needed at one time"
    return _shown(Outcome(1, words), lives, starts)


def _shown(outcome: Outcome, lives: Lives, starts: Int64) -> Outcome:
    """An outcome with its pictures."""
    return replace(outcome, drawing=lives_text(lives, starts), picture=partial(lives_svg, lives, starts, outcome.message))


def all_placed(cases: Sequence[Lives], align: int, submission: Submission) -> Outcome:
    """Many allocations, which must all be right."""
    for lives in cases:
        found = placed(lives, ROWS, align, submission)
        if not found.passed:
            return found
    return found


def too_large(align: int, submission: Submission) -> Outcome:
    """`TooLarge` where the buffers don't fit, and only there."""
    lives = three(align)
    needed = bound(lives, align)
    try:
        starts = ask(submission, lives, needed - align)
    except Failed as failure:
        if failure.kind != "TooLarge":
            raise
    else:
        return Outcome(0, "more rows are alive than there are", _given(lives, needed - align), "TooLarge is raised", str(starts.tolist()))
    try:
        return placed(lives, needed, align, submission)
    except Failed as failure:
        raise Failed("result", f"{failure.message or failure.kind} for {needed:,} rows, in which the buffers fit") from None


def tight(cases: Sequence[Lives], align: int, submission: Submission) -> Outcome:
    """Buffers that fill the rows to the last one: each case that is solved earns its share."""
    solved, last = 0, Outcome(0, "")
    for lives in cases:
        rows = bound(lives, align)
        try:
            last = placed(lives, rows, align, submission)
        except Failed as failure:
            if failure.kind != "TooLarge":
                raise
            last = Outcome(0, "raised TooLarge, and there is a way", _given(lives, rows))
        solved += last.passed
    return Outcome(solved / len(cases), f"{solved} of {len(cases)} were placed", last.given, "", last.found)


def memory(cases: Sequence[Lives], align: int, submission: Submission) -> Outcome:
    """How many rows are used, against the least that any allocator needs. One wrong allocation loses all points."""
    quotients, worst = [], (0.0, cases[0], np.zeros(0, np.int64))
    for lives in cases:
        starts = ask(submission, lives, ROWS)
        if problem := wrong(lives, starts, ROWS, align):
            return Outcome(0, problem, _given(lives, ROWS), "", str(starts[:12].tolist()))
        quotients.append(_rounded(lives.peak(starts), align) / bound(lives, align))
        worst = max(worst, (quotients[-1], lives, starts), key=lambda entry: entry[0])
    mean = float(np.exp(np.mean(np.log(quotients))))
    scale = f"{BEST:g} earns all points, {WORST:g} none"
    message = f"peak ÷ lower bound is {mean:.3f} in the mean of {len(cases)}; {scale}. The worst is {worst[0]:.3f}, and is drawn"
    share = min(1.0, max(0.0, (WORST - mean) / (WORST - BEST)))
    return _shown(Outcome(share, message, measures={"peak ÷ bound": mean}), worst[1], worst[2])


def program(batch: int, align: int, submission: Submission) -> Outcome:
    """A model compiled with the submission as its allocator, and judged."""
    stage: Callable[[Lives, int], Int64] = partial(_stage, submission, align)
    exe = tpucc.compile_source(MODEL, params={"batch": batch}, target="tiny", stages=tpucc.Stages(allocate=stage))
    verdict = tpucc.judge(exe)
    if not verdict.equal:
        return Outcome(0, "; ".join(found.message for found in verdict.findings) or str(verdict.first_difference), f"-D batch={batch}")
    return Outcome(1, f"equal; {verdict.peak_rows:,} rows in use, {verdict.lower_bound:,} alive; {verdict.cycles:,} cycles")


def _stage(submission: Submission, align: int, lives: Lives, rows: int) -> Int64:
    try:
        starts = ask(submission, lives, rows)
        if problem := wrong(lives, starts, rows, align):
            raise Failed("result", problem)
        return starts
    except Failed as failure:
        if failure.kind == "TooLarge":
            raise tpucc.TooLarge(failure.message) from None
        raise


def bound(lives: Lives, align: int) -> int:
    """The most rows that are alive at one time, each buffer's rounded up to the alignment: no allocation has fewer."""
    return int(largest_live_sum(lives.first, lives.last, _rounded(lives.rows, align)))


def _rounded(rows: Number, align: int) -> Number:
    return -(-rows // align) * align


MODEL = """\
param batch = 8
weights random(seed=5)

def dense(x, units, name):
    weight w: f32[x.shape[-1], units] = "{name}.w"
    return x @ w

model lab5(x: f32[batch, 7] in [-1.0, 1.0]):
    h = relu(dense(x, 11, "h"))
    g = relu(dense(h, 6, "g")) + relu(dense(x, 6, "s"))
    return dense(g, 3, "out")
"""

LAB = Lab(
    number=5,
    name="allocation",
    title="Where buffers live",
    file="allocation.py",
    functions=("allocate",),
    public=_public,
    hidden=_hidden,
    words=_words,
    folder=Path(__file__).parent,
    floor=30,
    ranks="peak ÷ bound",
    modules=("tpucc.schedule.allocate",),
)
