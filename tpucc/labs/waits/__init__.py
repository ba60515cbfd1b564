"""Lab 7: waits between engines, so that every conflict over rows is ordered and nothing waits in vain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc import api
from tpucc.explain.timed import Timed
from tpucc.labs.call_text import shown
from tpucc.labs.judging import Scale, in_the_mean, verdict_on
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Test, Wrong, declared, require_fit
from tpucc.labs.listings import listing_of, program_of
from tpucc.labs.timelines import Beside
from tpucc.labs.waits import checks
from tpucc.labs.waits.checks import Rules, as_words, rules
from tpucc.labs.waits.families import Family, alone, bursts, chains, eight, holes, mixed, on_two_units, pipelined, seven, six, stale
from tpucc.machines.twin.machine import TWIN
from tpucc.machines.v1 import V1, Engine, Opcode
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait
from tpucc.sim.timing import time_program
from tpucc.stages import Stages

MOST = 28
"""Instructions of a listing that a question is about."""
ROW_A_CYCLE = 4e6
"""The host link's bytes a second of a row a cycle."""
CYCLES, WAITS = Scale(1.02, 1.25), Scale(1.05, 1.5)


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    engines = ", ".join(f'"{engine.name}"' for engine in (TWIN if rules.twin else V1).row_units)
    return {"last": rules.page - 1, "engines": engines, "term_cycles": _term_cycles(rules), "cycles": CYCLES, "waits": WAITS}


def _term_cycles(rules: Rules) -> str:
    """The example's cycles on the term's machine, where they aren't those of the text."""
    if rules.target.host_bandwidth == ROW_A_CYCLE:
        return "This term's machine has such a link."
    speed = "faster" if rules.target.host_bandwidth > ROW_A_CYCLE else "slower"
    return f"On this term's machine, whose host link is {speed}, it takes {_example(rules, 1)} and {_example(rules, 2)}."


def _example(rules: Rules, first: int) -> int:
    """The cycles of the handout's example with its first wait before this instruction."""
    places = ((first, Engine.MATRIX, Engine.HOST), (3, Engine.ACTIVATION, Engine.MATRIX), (4, Engine.HOST, Engine.ACTIVATION))
    return cycles_of(six(), [Wait(before, engine, (other,)) for before, engine, other in places], rules)


def cycles_of(listing: Listing, waits: Sequence[Wait], rules: Rules) -> int:
    """What a listing takes with these waits."""
    return time_program(program_of(listing, waits, rules.target)[0]).makespan


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    some, more = (_drawn(Random(seed), (mixed, chains), count) for seed, count in ((7, 2), (77, 4)))
    return (
        Test("six to eight instructions", 5, partial(exact, [six(), seven(), eight()], rules)),
        Test("nothing to wait for", 5, partial(exact, [*alone(), listing_of([])], rules)),
        Test("random listings", 5, partial(ordered, some, rules)),
        Test("a program", 5, partial(program, 8, rules)),
        Test("no wait too many", 10, partial(exact, _of_the_machine(more, rules), rules)),
        Test("cycles", 15, partial(cycles, _drawn(Random(777), (bursts, pipelined), 2), rules)),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: the same kinds of question, of other listings."""
    return (
        Test("random listings", 5, partial(ordered, _drawn(draw, (mixed, stale, holes), 2), rules)),
        Test("rows with holes", 10, partial(exact, _drawn(draw, (holes,), 4), rules)),
        Test("transitive waits", 15, partial(exact, _of_the_machine(_drawn(draw, (chains, stale), 3), rules), rules)),
        Test("engines that idle", 15, partial(cycles, _drawn(draw, (pipelined, bursts), 2), rules)),
        Test("number of waits", 5, partial(number, _drawn(draw, (mixed, bursts, chains), 2), rules)),
        Test("another program", 5, partial(program, draw.randrange(9, 24), rules)),
    )


def _drawn(draw: Random, families: Sequence[Family], count: int) -> Sequence[Listing]:
    return [family(draw) for family in families for _ in range(count)]


def _of_the_machine(listings: Sequence[Listing], rules: Rules) -> Sequence[Listing]:
    """Listings for the term's machine."""
    return list(map(on_two_units, listings)) if rules.twin else listings


@dataclass(frozen=True, eq=False)
class Answer:
    """Waits for a listing. `best` is what the cycles with tpucc's own waits are spent on."""

    listing: Listing
    waits: Sequence[Wait]
    rules: Rules
    best: Mapping[str, int]

    @cached_property
    def beside(self) -> Beside:
        """The listing with these waits beside the one with tpucc's own."""
        return Beside(Timed(program_of(self.listing, self.waits, self.rules.target)[0]), "reference", self.best)

    def details(self, about: int | None = None) -> dict[str, Any]:
        """What an outcome without all points has beside its message, which may be `about` an instruction: its waits come first."""
        shown = self.beside.drawings() if is_drawn(self.listing) else {}
        found = f"all: {_listed(self.waits)}" if self.waits else "no waits"
        if self.waits and about is not None:
            found = f"for instruction {about}: {_listed(checks.waits_of_instruction(self.listing, self.waits, about))}\n{'':10}{found}"
        return {"found": found, "call": ("synchronise", (self.listing,)), **shown}


def is_drawn(listing: Listing) -> bool:
    """Whether it has instructions, of the machine whose cycles are explained."""
    return len(listing) > 0 and listing.machine is V1


def _listed(waits: Sequence[Wait]) -> str:
    return ", ".join(map(as_words, waits)) or "none"


def waits_of(submission: Submission, listing: Listing, rules: Rules) -> list[Wait]:
    """The submission's waits for a listing. Raises `Failed`."""
    copied = replace(listing, records=listing.records.copy(), layer=listing.layer.copy(), placed=listing.placed.copy())
    return checks.read_waits(submission.call("synchronise", copied), listing, rules)


def answers(cases: Sequence[Listing], rules: Rules, submission: Submission) -> list[Answer]:
    """The submission's waits for each listing. Raises `Wrong` for the first conflict that they leave open, and `Failed`. What tpucc's own
    waits cost is asked for of every listing, so that an archive for students has recorded it."""
    found = []
    for listing in cases:
        best = checks.built_in_spent(listing, rules) if is_drawn(listing) else {}
        found.append(Answer(listing, waits_of(submission, listing, rules), rules, best))
        if problem := checks.unordered(listing, found[-1].waits, rules):
            raise Wrong(problem.message, **found[-1].details(problem.later))
    return found


def ordered(cases: Sequence[Listing], rules: Rules, submission: Submission) -> Outcome:
    """Every conflict of every listing is ordered."""
    found = answers(cases, rules, submission)
    message = f"all conflicts of {len(cases)} listings are ordered"
    if all(waits_for_all(answer.listing, answer.waits) for answer in found):
        return Outcome(0, f"{message}. {FOR_ALL}", **found[-1].details())
    return Outcome(1, message, picture=found[-1].beside.svg)


FOR_ALL = "There are more waits than instructions, which earns nothing"
"""What the skeleton does. It is valid, and who tries and fails would earn less."""


def waits_for_all(listing: Listing, waits: Sequence[Wait]) -> bool:
    """Whether engines are waited for more often than there are instructions: the skeleton does so twice as often."""
    return sum(len(wait.engines) for wait in waits) > len(listing)


def exact(cases: Sequence[Listing], rules: Rules, submission: Submission) -> Outcome:
    """Listings whose conflicts are ordered, with no wait that could be left out: all of them earn all, half of them none; a conflict left
    open loses all."""
    found = [(checks.needless(answer.listing, answer.waits, rules), answer) for answer in answers(cases, rules, submission)]
    few = [(*wait, answer) for wait, answer in found if wait is not None]
    message = f"{len(cases) - len(few)} of {len(cases)} listings have every wait that they need and no other"
    if not few:
        return Outcome(1, message)
    wait, why, answer = few[0]
    message = f"{message}. {as_words(wait)} can be left out: {why}"
    about = next((i.index for i in answer.listing if i.engine == wait.engine and i.index >= wait.before), None)
    return Outcome(max(0.0, 1 - 2 * len(few) / len(cases)), message, **answer.details(about))


def cycles(cases: Sequence[Listing], rules: Rules, submission: Submission) -> Outcome:
    """The time that the engines take, against that with tpucc's own waits."""
    return _measured("cycles", CYCLES, lambda answer: (answer.beside.cycles, answer.beside.least), answers(cases, rules, submission))


def number(cases: Sequence[Listing], rules: Rules, submission: Submission) -> Outcome:
    """How many waits there are, against tpucc's own."""

    def counts(answer: Answer) -> tuple[int, int]:
        return len(answer.waits), len(checks.built_in(answer.listing, rules))

    return _measured("waits", WAITS, counts, answers(cases, rules, submission))


def _measured(what: str, scale: Scale, measure: Callable[[Answer], tuple[int, int]], found: Sequence[Answer]) -> Outcome:
    """What the quotients of a measure and the reference's earn."""
    measured = list(map(measure, found))
    outcome, worst = in_the_mean(f"{what} ÷ reference", scale, measured)
    if outcome.passed:
        return replace(outcome, picture=found[worst].beside.svg)
    own, best = measured[worst]
    message = f"{outcome.message}: {own:,} {what}, the reference's {best:,}. {found[worst].beside.slower()}".rstrip()
    return replace(outcome, message=message, **found[worst].details())


def program(batch: int, rules: Rules, submission: Submission) -> Outcome:
    """A model compiled with the submission's waits, and judged."""

    plain = list[bool]()

    def stage(listing: Listing) -> Sequence[Wait]:
        waits = waits_of(submission, listing, rules)
        plain.append(waits_for_all(listing, waits))
        if problem := checks.unordered(listing, waits, rules):
            raise Wrong(problem.message)
        return waits

    exe = api.compile_source(MODEL, params={"batch": batch}, target="tiny", level=0, stages=Stages(synchronise=stage))
    verdict = verdict_on(exe, given=f"-D batch={batch}")
    waits = int(np.count_nonzero(exe.runtime.program.instructions["opcode"] == Opcode.SYNCHRONIZE))
    message = f"equal; {waits:,} waits, {verdict.cycles:,} cycles"
    return Outcome(0, f"{message}. {FOR_ALL}", f"-D batch={batch}") if all(plain) else Outcome(1, message)


def _made(exchange: Exchange, rules: Rules) -> tuple[Answer, dict[str, Any]]:
    """The waits for a short listing, which they order, and what a question on them shows. Raises `Failed`."""
    listing: Listing = exchange.arguments[0]
    waits = checks.read_waits(exchange.answer, listing, rules)
    problem = checks.unordered(listing, waits, rules)
    require_fit(len(waits) > 0 and len(listing) <= MOST and is_drawn(listing) and problem is None, problem.message if problem else "")
    made = Answer(listing, waits, rules, {})
    return made, {"given": f"{shown(listing)}\nyour waits: {', '.join(map(as_words, waits))}", "picture": made.beside.svg}


def needed(exchange: Exchange, oral: Oral) -> Question:
    """Which conflict a wait orders."""
    made, more = _made(exchange, oral.rules)
    wait = oral.draw.choice(made.waits)
    others = [other for other in made.waits if other is not wait]
    problem = checks.unordered(made.listing, others, oral.rules)
    asked = f"What is your wait {as_words(wait)} for, and what may go wrong without it?"
    lost = problem.message if problem else "nothing, as the other waits order all conflicts"
    return Question(asked, f"Without it: {lost}.", **more)


def not_needed(exchange: Exchange, oral: Oral) -> Question:
    """What orders two instructions that conflict and have no wait between them."""
    made, more = _made(exchange, oral.rules)
    apart = checks.ordered_pairs(made.listing, made.waits, oral.rules)
    require_fit(bool(apart))
    pair = oral.draw.choice(apart)
    asked = f"Instructions {pair[0]} and {pair[1]} of two engines share rows, and none of your waits is for these two. What orders them?"
    return Question(asked, f"{checks.instead(made.listing, pair, made.waits)}.", **more)


def once_more(exchange: Exchange, oral: Oral) -> Question:
    """Which waits an instruction needs that stands once more at the end."""
    made, more = _made(exchange, oral.rules)
    number = oral.draw.randrange(len(made.listing))
    order = np.append(np.arange(len(made.listing)), number)
    listing = Listing(made.listing.records[order], made.listing.layer[order], np.arange(len(order)))
    words = f"instruction {number} stood once more at the end, as instruction {len(made.listing)}"

    def said(each: Exchange) -> str:
        return f"{cycles_of(each.arguments[0], _made(each, oral.rules)[0].waits, oral.rules)} cycles"

    return oral.what_if(exchange, words, (listing,), said, **more)


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")

LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(needed, not_needed, once_more))
