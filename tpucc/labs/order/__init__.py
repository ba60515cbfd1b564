"""Lab 6: the order of a tile program's instructions, so that fetches, sums and transfers hide behind each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc import api
from tpucc.explain.comparison.pairs import spent
from tpucc.explain.timed import Timed
from tpucc.labs.call_text import shown
from tpucc.labs.judging import Scale, in_the_mean, verdict_on
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Term, Test, Wrong, declared, require_fit
from tpucc.labs.order.checks import Rules, in_order, read_order, scheduled, wrong
from tpucc.labs.order.families import Family, Net, arriving, beside, compiled, plain_order, reuse, several
from tpucc.labs.solutions import Solution, recorded
from tpucc.labs.timelines import Beside
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.tiletext import print_tiles
from tpucc.numerics import Int64
from tpucc.plugins.failures import Failed
from tpucc.sim.timing import time_program
from tpucc.target import Target, load_target

CYCLES = Scale(1.06, 1.25)
"""Of the quotient of cycles and the reference's, as a geometric mean."""
TO_WIN = 1.3
"""What programs take at least, as they are given, in the reference's cycles."""
TRIED = 40
"""How many programs are drawn until one has so much to win; then the best of them is taken."""
NOTHING_WON = "One program takes as long as in the order as given, which loses all points"
MOST, EXCHANGED = 40, 40
"""Instructions of a program that a question is about, and pairs of them that are exchanged until cycles are lost."""
SIZES = {"unified_buffer_rows": 1024, "accumulator_rows": 64}
MACHINES: Mapping[Family, Mapping[str, float]] = {
    reuse: {"weight_bandwidth": 1e6},
    beside: {"weight_bandwidth": 8e6},
    arriving: {"host_bandwidth": 2e6, "weight_bandwidth": 4e6},
    several: {},
}
"""What the machine of a family has other than `tiny`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program in the order in which it is given: a net for a machine, under the term's rules."""

    net: Net
    target: Target
    rules: Rules
    seed: int

    @property
    def tiles(self) -> TileProgram:
        """A value of its own each time, so that nobody can change another's."""
        return plain_order(self.net, self.target, self.rules.transfers, self.seed)


def machine(rules: Rules, family: Family) -> Target:
    """The machine for programs of a family."""
    return load_target("tiny", {**SIZES, "weight_fifo_tiles": rules.places, **MACHINES[family]})


def rules(term: Term) -> Rules:
    """The rules of a term; without one, sums and transfers are free."""
    draw, places = term.draw("order"), term.draw("order machine")
    if draw is None or places is None:
        return Rules()
    return Rules(draw.choice((2, 3, 4)), draw.choice(("kept", "at once")), places.choice((1, 2, 3)))


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    (case,) = example(rules)
    return {
        "example": "\n".join(f"{i.index:>2} {i.text}" for i in case.tiles),
        "example_cycles": as_given(case),
        "example_best": best_cycles(case),
        "cycles": CYCLES,
    }


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    cases = partial(_cases, rules)
    return (
        Test("two tiles", 5, partial(fast, partial(two_tiles, rules))),
        Test("valid orders", 5, partial(valid, cases(6, (reuse, beside), 1), judging=False)),
        Test("integers", 5, partial(valid, cases(61, (several,), 1), judging=True)),
        Test("weight tiles", 10, partial(fast, cases(62, (reuse,), 1))),
        Test("chains side by side", 10, partial(fast, cases(63, (beside,), 1))),
        Test("transfers", 10, partial(fast, cases(64, (arriving,), 1))),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: the same kinds of question, of other programs."""
    cases = partial(_cases, rules)
    seed = partial(draw.randrange, 2**32)
    return (
        Test("valid orders", 5, partial(valid, cases(seed(), (several, beside), 1), judging=False)),
        Test("integers", 5, partial(valid, cases(seed(), (several,), 1), judging=True)),
        Test("fetches that nothing hides", 15, partial(fast, cases(seed(), (reuse,), 2))),
        Test("chains side by side", 15, partial(fast, cases(seed(), (beside,), 2))),
        Test("a little of all", 15, partial(fast, cases(seed(), (several, arriving), 1))),
    )


Cases = Callable[[], Sequence[Case]]
"""Programs that are drawn when a test runs."""


def example(rules: Rules) -> Sequence[Case]:
    """The handout's example: two tiles, two chunks of rows."""
    return (Case(Net(((8, 4),), 8), machine(rules, several), rules, 0),)


def two_tiles(rules: Rules) -> Sequence[Case]:
    """The example, and the same with three chunks, of which the handout says no order."""
    (case,) = example(rules)
    return case, replace(case, net=Net(((8, 4),), 12))


def _cases(rules: Rules, seed: int, families: Sequence[Family], count: int) -> Cases:
    return partial(drawn, rules, seed, families, count)


def drawn(rules: Rules, seed: int, families: Sequence[Family], count: int) -> Sequence[Case]:
    """Programs with something to win."""
    draw = Random(seed)
    return tuple(_drawn(family, rules, draw.randrange(2**32)) for family in families for _ in range(count))


def _drawn(family: Family, rules: Rules, seed: int) -> Case:
    draw, target = Random(seed), machine(rules, family)
    tried = list[tuple[float, Case]]()
    while len(tried) < TRIED and (not tried or tried[-1][0] < TO_WIN):
        case = Case(family(draw), target, rules, draw.randrange(100))
        tried.append((as_given(case) / best_cycles(case), case))
    return max(tried, key=lambda entry: entry[0])[1]


def best_cycles(case: Case) -> int:
    """What the solution's order takes."""
    return sum(best_spent(case).values())


@recorded
@cache
def best_spent(case: Case) -> Mapping[str, int]:
    """What these cycles are spent on, by the rows of the accounting. An archive for students has these alone."""
    order = Solution.of(Path(__file__).parent, case.rules).call("order", case.tiles)
    return spent(Timed(scheduled(case.tiles, np.array(order, np.int64))))


@cache
def as_given(case: Case) -> int:
    """The cycles of the order in which the instructions are given."""
    return cycles(case.tiles, np.arange(len(case.tiles)))


def cycles(tiles: TileProgram, order: Int64) -> int:
    """What the machine program of an order takes."""
    return time_program(scheduled(tiles, order)).makespan


def ask(case: Case, submission: Submission) -> Int64:
    """The submission's order of a program, which is valid. Raises `Wrong` for another, and `Failed`."""
    order = read_order(submission.call("order", case.tiles), len(case.tiles))
    if problem := wrong(case.tiles, order, case.rules):
        raise Wrong(problem, found=str(order.tolist()))
    return order


def valid(cases: Cases, submission: Submission, *, judging: bool) -> Outcome:
    """Every order is valid, and the machine has room for it. With `judging`, so is the whole program, by the verifier and by its integers.
    Nothing is earned by orders of which none is faster than the order as given: who tries and fails would earn less."""
    won, message = False, "the orders are valid"
    for case in cases():
        order = ask(case, submission)
        won |= cycles(case.tiles, order) < as_given(case)
        if judging:
            exe = api.resume(print_tiles(in_order(case.tiles, order)), like=compiled(case.net, case.target))
            message = f"equal; {verdict_on(exe, found=str(order.tolist())).cycles:,} cycles"
    return Outcome(1, message) if won else Outcome(0, f"{message}, and none is faster than the order as given, which earns nothing")


def fast(cases: Cases, submission: Submission) -> Outcome:
    """The cycles against the reference's. An order that isn't valid loses all points, and so does one that wins nothing."""
    found = [(case, ask(case, submission)) for case in cases()]
    pairs = [(cycles(case.tiles, order), best_cycles(case)) for case, order in found]
    outcome, worst = in_the_mean("cycles ÷ reference", CYCLES, pairs)
    (case, order), (own, least) = found[worst], pairs[worst]
    won = all(own <= CYCLES.full * best or own < as_given(case) for (own, best), (case, _) in zip(pairs, found, strict=True))
    beside = Beside(Timed(scheduled(case.tiles, order)), "reference", best_spent(case))
    outcome = replace(outcome, share=outcome.share if won else 0, **beside.drawings())
    if outcome.passed:
        return replace(outcome, message=f"{outcome.message}: {own:,} cycles, the reference's {least:,}")
    lines = ["" if won else NOTHING_WON, f"{outcome.message}. As given it takes {as_given(case):,} cycles", beside.slower()]
    return replace(outcome, message="\n".join(filter(None, lines)), found=str(order.tolist()), call=("order", (case.tiles,)))


def _made(exchange: Exchange, rules: Rules) -> tuple[TileProgram, Int64]:
    """A short program and its order, which is valid. Raises `Failed`."""
    tiles: TileProgram = exchange.arguments[0]
    require_fit(len(tiles) <= MOST)
    order = read_order(exchange.answer, len(tiles))
    problem = wrong(tiles, order, rules)
    require_fit(not problem, problem)
    return tiles, order


def _shown(tiles: TileProgram, order: Int64) -> dict[str, Any]:
    own = Timed(scheduled(tiles, order))
    return {"given": f"{shown(tiles)}\nyour order: {order.tolist()}", "picture": Beside(own, "yours", spent(own)).svg}


def _taken(exchange: Exchange, rules: Rules) -> str:
    return f"{cycles(*_made(exchange, rules)):,} cycles"


def sooner(exchange: Exchange, oral: Oral) -> Question:
    """What it wins that an instruction stands before one that it came after."""
    tiles, order = _made(exchange, oral.rules)
    place, best = np.argsort(order).tolist(), cycles(tiles, order)
    pairs = [(a, b) for a in range(len(place)) for b in range(a) if place[b] > place[a]]
    for a, b in oral.draw.sample(pairs, min(EXCHANGED, len(pairs))):
        kept = order[order != a]
        back = np.insert(kept, np.flatnonzero(kept == b)[0] + 1, a)
        if not wrong(tiles, back, oral.rules) and (took := cycles(tiles, back)) > best:
            one, other = (f"instruction {number} `{tiles[number].text}`" for number in (a, b))
            asked = f"In your order, {one} stands before {other}, and it came after. What does that win, and what was it for?"
            words = f"Moved back, right behind instruction {b}, it makes the program take {took:,} cycles, not {best:,}."
            return Question(asked, words + oral.beside(exchange, lambda each: _taken(each, oral.rules)), **_shown(tiles, order))
    raise Failed("result", "no instruction wins anything by itself")


def twice(exchange: Exchange, oral: Oral) -> Question:
    """What becomes of a program that has the submission's own order already."""
    tiles, order = _made(exchange, oral.rules)
    words = "the program came in the order that you returned, its instructions numbered so"
    return oral.what_if(exchange, words, (in_order(tiles, order),), lambda each: _taken(each, oral.rules), **_shown(tiles, order))


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(sooner, twice))
