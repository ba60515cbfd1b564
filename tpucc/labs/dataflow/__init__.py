"""Lab 13: data flow over the parts of a listing: the rows that are live, what they hold, and a pass that uses both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc.diagnostics import counted, listed
from tpucc.explain.comparison.pairs import spent
from tpucc.explain.timed import Timed
from tpucc.guest.values import Plain
from tpucc.labs.dataflow.plans import DECLARED, MOTIFS, Motif, Plan, Rules, mixed, plan, rules
from tpucc.labs.judging import Run, every, in_words, several
from tpucc.labs.lab import Outcome, Submission, Test, Wrong, declared, judging_seed
from tpucc.labs.listings import program_of
from tpucc.labs.solutions import Solution
from tpucc.labs.timelines import Beside, characters_svg
from tpucc.plugins.failures import Failed
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import synchronise
from tpucc.target import load_target

Fact = tuple[int, ...]
"""A row that is live; a row and a host's row that hold the same; an instruction that stays."""
FUNCTIONS: Mapping[str, tuple[str, str]] = {"live": ("after", "rows"), "held": ("before", "pairs of a row and a host's row")}
"""Of each analysis, at which side of an instruction its facts are, and what they are."""
NAMES = {"live": "what nobody needs", "held": "what is there already"}
WALKS = 10
"""Walks on which the plan that is left is tried beside the whole one."""


def _kinds(function: str) -> dict[str, list[Motif]]:
    """The plans by what they show. Those of `clean` are the others' as well."""
    own = {kind: list(motifs.values()) for kind, motifs in MOTIFS[function].items()}
    return own if function in FUNCTIONS else {each: [*chain(*_kinds(each).values())] for each in FUNCTIONS} | own


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term, and the answers of its example."""
    return {"example": _table(_example(rules), rules)}


def _example(rules: Rules) -> Plan:
    return plan(Random(0), rules, DECLARED["example"], shuffled=False)


def _table(given: Plan, rules: Rules) -> str:
    """A plan with its facts, as rows of a table. An archive of another lab doesn't know them."""
    answers = {function: Solution.of(Path(__file__).parent, rules).answer(function, *given.asked) for function in FUNCTIONS}
    facts = [answer and _facts(function, given, answer) for function, answer in answers.items()]
    lines = []
    for p, (first, end, after) in enumerate(given.parts):
        for n in range(first, end):
            then = [*map(str, after), *(["the end"] if rules.anywhere or not after else [])]
            part = f"{p}, then {' or '.join(then)}" if n == first else ""
            said = " | ".join(_said(some[n]) if some else "…" for some in facts)
            lines.append(f"| {part} | {n} | `{given.code[n].text}` | {said} |")
    return "\n".join(lines)


def _said(facts: frozenset[Fact]) -> str:
    """`3 to 5, 8`, or `(3, 8) to (5, 10)`; `none`."""
    runs: list[list[Fact]] = []
    for fact in sorted(facts, key=lambda fact: (fact[-1] - fact[0], fact)):
        if runs and fact == tuple(part + 1 for part in runs[-1][-1]):
            runs[-1].append(fact)
        else:
            runs.append([fact])
    words = [[str(fact if len(fact) > 1 else fact[0]) for fact in (run[0], run[-1])][: len(run)] for run in runs]
    return ", ".join(map(" to ".join, words)) or "none"


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    example, draw = _example(rules), Random(13)
    plans = {function: [*chain(*(_drawn(draw, rules, function, *kind, 2) for kind in _kinds(function).items()))] for function in MOTIFS}
    return (
        *(Test(f"{function}: the example", 3, partial(flowing, function, rules, example)) for function in FUNCTIONS),
        Test("clean: the example", 4, partial(timed, rules, example)),
        *(
            Test(f"{function}: plans", points, _right(several, function, plans[function], rules))
            for function, points in (("live", 12), ("held", 12), ("clean", 16))
        ),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: one kind of plans in each test, and for each function all of them, and plans of anything."""
    tests = []
    for function, points in DECLARED["points"].items():
        every_kind = [mixed(draw, rules, function) for _ in range(20)]
        for kind, motifs in _kinds(function).items():
            cases = _drawn(draw, rules, function, kind, motifs)
            every_kind += _drawn(draw, rules, function, kind, motifs)
            tests.append(Test(f"{function}: {NAMES.get(kind, kind)}", points[kind], _right(several, function, cases, rules)))
        tests.append(Test(f"{function}: every kind", points["every kind"], _right(every, function, every_kind, rules)))
    return tests


def _drawn(draw: Random, rules: Rules, function: str, kind: str, motifs: Sequence[Motif], step: int = 1) -> list[Plan]:
    """A plan of each motif of a kind, or of each second one. Where one analysis decides what is left out, the other has nothing to do."""
    return [plan(draw, rules, motif, kind if function == "clean" else function) for motif in motifs[::step]]


def _right(earning: Callable[..., Run], function: str, cases: Sequence[Plan], rules: Rules) -> Run:
    test = cleaned if function == "clean" else partial(flowing, function)
    return earning(partial(test, rules), cases, "plans are right")


def _wanted(function: str, given: Plan, rules: Rules) -> list[frozenset[Fact]]:
    """The lab's own answer."""
    answer = Solution.of(Path(__file__).parent, rules).expected(function, *given.asked)
    return _facts(function, given, answer)


def _facts(function: str, given: Plan, answer: Plain) -> list[frozenset[Fact]]:
    """For each instruction the facts that an answer names; of `clean`, whose answer is one set, these alone. Raises `Failed`."""
    count, width, whole = len(given.listing), 2 if function == "held" else 1, function == "clean"
    try:
        entries = [answer] if whole else list(answer)
        found = [frozenset(_fact(fact, width) for fact in np.asarray(each, object).tolist()) for each in entries]
    except (TypeError, ValueError):
        found = []
    if len(found) != (1 if whole else count):
        what = "numbers of instructions" if whole else f"{counted(count, 'set')} of {FUNCTIONS[function][1]}"
        raise Failed("result", f"returned {in_words(answer)}; expected {what}")
    return found


def _fact(fact: Any, width: int) -> Fact:
    parts = [fact] if width == 1 else list(fact)
    if len(parts) != width or any(type(part) is not int for part in parts):
        raise TypeError
    return tuple(parts)


def flowing(function: str, rules: Rules, given: Plan, submission: Submission) -> Outcome:
    """One plan: the facts at each instruction. Raises `Wrong`, which shows the first that differs, and all of them drawn."""
    wanted = _wanted(function, given, rules)
    found = _facts(function, given, submission.call(function, *given.asked))
    drawing = _drawing(given, wanted, found)
    pictured: dict[str, Any] = {"drawing": drawing, "picture": partial(characters_svg, function, drawing)}
    for i, own, right in zip(given.code, found, wanted, strict=True):
        if own != right:
            parts = [f"{_said(some)} {word}" for some, word in ((right - own, "missing"), (own - right, "too many")) if some]
            message = f"{function} {FUNCTIONS[function][0]} instruction {i.index} `{i.text}`: {listed(parts)}"
            raise Wrong(message, expected=_said(right), found=_said(own), **pictured)
    return Outcome(1, f"the facts at {counted(len(found), 'instruction')} are right", **pictured)


def _drawing(given: Plan, wanted: Sequence[frozenset[Fact]], found: Sequence[frozenset[Fact]]) -> str:
    """A line for each instruction, a column for each row of the buffer."""
    rows = 1 + max((fact[0] for facts in wanted for fact in facts), default=0)
    begins = {first: f"part {p}" for p, (first, _, _) in enumerate(given.parts)}
    lines = [
        f"{'':>11}{''.join(str(row // 10 or ' ') for row in range(rows))}",
        f"{'row':>10} {''.join(str(row % 10) for row in range(rows))}",
    ]
    for n, (right, own) in enumerate(zip(wanted, found, strict=True)):
        lost, more, both = ({fact[0] for fact in some} for some in (right - own, own - right, right & own))
        marks = ("-" if row in lost else "+" if row in more else "#" if row in both else "·" for row in range(rows))
        lines.append(f"{begins.get(n, ''):<7}{n:>3} {''.join(marks)}")
    return "\n".join([*lines, "#: as it should be, -: missing, +: too many"])


def cleaned(rules: Rules, given: Plan, submission: Submission) -> Outcome:
    """One plan: the instructions that stay. Raises `Wrong`, with a walk on which the host gets another value where one is found."""
    (wanted,) = _wanted("clean", given, rules)
    (found,) = _facts("clean", given, submission.call("clean", *given.asked))
    count = f"{len(found)} of {counted(len(given.listing), 'instruction')} stay"
    if found == wanted:
        return Outcome(1, count)
    (n,), stays = min(wanted - found or found - wanted), frozenset(n for (n,) in found)
    if not stays <= set(range(len(given.code))):
        raise Wrong("a number is no instruction's", expected=_said(wanted), found=_said(found))
    verb = "is left out, and should stay" if (n,) in wanted else "stays, and should be left out"
    lines = []
    for i in given.code:
        mark = "!" if ((i.index,) in found) != ((i.index,) in wanted) else " "
        lines.append(f"{i.index:>3} {'stays' if i.index in stays else 'out  '} {mark} {i.text}")
    drawing = "\n".join([*lines, "!: should be the other way"])
    message = f"instruction {n} `{given.code[n].text}` {verb}{_lost(given, stays, rules)}"
    raise Wrong(message, expected=_said(wanted), found=_said(found), drawing=drawing, picture=partial(characters_svg, "clean", drawing))


def _lost(given: Plan, stays: frozenset[int], rules: Rules) -> str:
    """What the host gets on a walk that isn't what the whole plan gives it, in words."""
    draw, whole = Random(judging_seed()), frozenset(range(len(given.listing)))
    for _ in range(WALKS):
        walk, numbers = given.walk(draw), dict[object, int]()
        before, after = (given.effect(walk, some, rules, numbers) for some in (whole, stays))
        for (what, value), own in zip(before, [*after, *[None] * len(before)], strict=False):
            if own != (what, value):
                sent = f"the part{'s' * (len(walk) > 1)} {listed(list(map(str, walk)))}"
                return f". And with your choice the host gets something else: with {sent}, {what}, has another value"
    return ". With your choice the host still gets the same values; but another choice was meant"


def timed(rules: Rules, given: Plan, submission: Submission) -> Outcome:
    """The same, with the cycles of what is left on a walk beside those of the whole plan."""
    found = cleaned(rules, given, submission)
    (stays,) = _wanted("clean", given, rules)
    walk = [0, 1, 1, 1, 2]
    whole, left = (_timed(given.along(walk, some)) for some in (frozenset(range(len(given.listing))), frozenset(n for (n,) in stays)))
    beside = Beside(left, "whole", spent(whole))
    cycles = f"{beside.cycles:,} cycles instead of {beside.least:,}"
    return replace(found, message=f"{found.message}. For parts {listed(list(map(str, walk)))}: {cycles}", **beside.drawings())


def _timed(listing: Listing) -> Timed:
    """The time of a listing on the machine `tiny`, with tpucc's waits."""
    return Timed(program_of(listing, synchronise(listing), load_target("tiny"))[0])


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
