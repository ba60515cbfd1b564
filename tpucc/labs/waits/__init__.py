"""Lab 7: waits between engines, so that every conflict over rows is ordered and nothing waits in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc import api
from tpucc.explain.timed import Timed
from tpucc.labs.call_text import shown
from tpucc.labs.judging import Scale, in_the_mean, judged
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Term, Test, Wrong, declared, require_fit
from tpucc.labs.timelines import Beside
from tpucc.labs.waits.checks import (
    Rules,
    as_words,
    built_in,
    built_in_spent,
    instead,
    needless,
    ordered_pairs,
    program_of,
    read_waits,
    unordered,
    waits_of_instruction,
)
from tpucc.labs.waits.families import (
    Family,
    activate,
    bursts,
    chains,
    holes,
    listing_of,
    mixed,
    multiply,
    on_two_units,
    pipelined,
    read,
    stale,
    write,
)
from tpucc.machines.twin.machine import TWIN
from tpucc.machines.v1 import V1, Engine, Opcode
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait
from tpucc.sim.timing import time_program
from tpucc.stages import Stages
from tpucc.target import Target, load_target

SIZES = {"unified_buffer_rows": 256, "accumulator_rows": 96}
MOST = 28
"""Instructions of a listing that a question is about."""
ROW_A_CYCLE = 4e6
"""The host link's bytes a second of a row a cycle."""
CYCLES, WAITS = Scale(1.02, 1.25), Scale(1.05, 1.5)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a term's tests are judged by."""

    rules: Rules
    target: Target

    @property
    def structure(self) -> str:
        return self.rules.structure

    def machine(self, listings: Sequence[Listing]) -> Sequence[Listing]:
        """Listings for the term's machine."""
        return list(map(on_two_units, listings)) if self.rules.twin else listings


def setting(term: Term) -> Setting:
    """The rules and the machine of a term; without one, pages of one row, and waits for any number of engines."""
    draw = term.draw("waits")
    if draw is None:
        return Setting(Rules(1, False), load_target("tiny", SIZES))
    rules = Rules(draw.choice((2, 4, 8)), draw.random() < 0.5, term.has_structure("waits"))
    return Setting(rules, load_target("tiny", {**SIZES, "host_bandwidth": draw.choice((3e6, 4e6, 6e6))}))


UNITS = (
    "The machine has one matrix unit.",
    "In this term some listings are for a machine with a second matrix unit, the engine `MATRIX_2`. It reads the same buffer and writes "
    "the same accumulators as the first, at the same time. It touches rows, waits and is waited for like the other three.",
)
"""What the handout says of one matrix unit, and of two."""


def _words(given: Setting) -> Mapping[str, Any]:
    """What the handout says for this term."""
    rules = given.rules
    pages = (
        f"The host link moves pages of {rules.page} rows: rows 0 to {rules.page - 1} are one page, and so on. A transfer that touches a "
        "row of a page occupies the whole page: a read from the host counts as a write of all of its rows, a write to the host as a read "
        "of all of them. `i.reads.buffer` and `i.writes.buffer` of a transfer have only the rows that it names: the others of "
        "their pages are yours to add. The other engines touch the rows that they name, and accumulators have no pages."
        if rules.page > 1
        else "The host link touches the rows that it names, and no others (a page has one row)."
    )
    single = "A wait names one engine to wait for." if rules.single else "A wait may name several engines to wait for."
    told = {"page_rule": pages, "single_rule": single, "term_cycles": _term_cycles(given), "units_rule": UNITS[rules.twin]}
    told["engines"] = ", ".join(f'"{engine.name}"' for engine in (TWIN if rules.twin else V1).row_units)
    return {"page": rules.page, **told, "cycles": CYCLES, "waits": WAITS}


def _term_cycles(given: Setting) -> str:
    """The example's cycles on the term's machine, where they aren't those of the text."""
    if given.target.host_bandwidth == ROW_A_CYCLE:
        return "This term's machine has such a link."
    speed = "faster" if given.target.host_bandwidth > ROW_A_CYCLE else "slower"
    return f"On this term's machine, whose host link is {speed}, it takes {_example(given, 1)} and {_example(given, 2)}."


def _example(given: Setting, first: int) -> int:
    """The cycles of the handout's example with its first wait before this instruction."""
    places = ((first, Engine.MATRIX, Engine.HOST), (3, Engine.ACTIVATION, Engine.MATRIX), (4, Engine.HOST, Engine.ACTIVATION))
    return cycles_of(six(), [Wait(before, engine, (other,)) for before, engine, other in places], given)


def cycles_of(listing: Listing, waits: Sequence[Wait], given: Setting) -> int:
    """What a listing takes with these waits."""
    return time_program(program_of(listing, waits, given.target)).makespan


def _public(given: Setting) -> Sequence[Test]:
    """What `check` runs."""
    some, more = (_drawn(Random(seed), (mixed, chains), count) for seed, count in ((7, 2), (77, 4)))
    return (
        Test("six to eight instructions", 5, partial(exact, [six(), seven(), eight()], given)),
        Test("nothing to wait for", 5, partial(exact, [*alone(), listing_of([])], given)),
        Test("random listings", 5, partial(ordered, some, given)),
        Test("a program", 5, partial(program, 8, given)),
        Test("no wait too many", 10, partial(exact, given.machine(more), given)),
        Test("cycles", 15, partial(cycles, _drawn(Random(777), (bursts, pipelined), 2), given)),
    )


def _hidden(given: Setting, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: the same kinds of question, of other listings."""
    return (
        Test("random listings", 5, partial(ordered, _drawn(draw, (mixed, stale, holes), 2), given)),
        Test("rows with holes", 10, partial(exact, _drawn(draw, (holes,), 4), given)),
        Test("transitive waits", 15, partial(exact, given.machine(_drawn(draw, (chains, stale), 3)), given)),
        Test("engines that idle", 15, partial(cycles, _drawn(draw, (pipelined, bursts), 2), given)),
        Test("number of waits", 5, partial(number, _drawn(draw, (mixed, bursts, chains), 2), given)),
        Test("another program", 5, partial(program, draw.randrange(9, 24), given)),
    )


def _drawn(draw: Random, families: Sequence[Family], count: int) -> Sequence[Listing]:
    return [family(draw) for family in families for _ in range(count)]


def six() -> Listing:
    """The handout's example."""
    return listing_of([read(0, 4), read(8, 4), multiply(0, 0, 4), activate(0, 16, 4), write(16, 4), read(0, 4)])


def seven() -> Listing:
    """A listing of the same kind, of which the handout says no waits."""
    return listing_of(
        [read(8, 4), multiply(8, 4, 4), read(0, 4), activate(4, 24, 4), multiply(0, 8, 4), write(24, 4), read(8, 4)],
    )


def eight() -> Listing:
    """The host waits for instruction 2 of the activation unit, which has waited since, for what is known only to its instruction 5."""
    blocks = ([read(row, 4), multiply(row, acc, 4), activate(acc, to, 4)] for row, acc, to in ((0, 0, 16), (8, 4, 24)))
    return listing_of([*chain(*blocks), write(16, 4), read(8, 4)])


def alone() -> Iterator[Listing]:
    """Listings in which nothing conflicts: one engine; rows of the buffer and accumulators of the same numbers; rows that are only read;
    walks through each other's gaps."""
    yield listing_of([read(0, 8), write(0, 8), read(4, 4), write(0, 8)])
    yield listing_of([multiply(0, 8, 8), activate(0, 8, 4), read(16, 8), activate(4, 24, 4)])
    yield listing_of([multiply(0, 0, 4), write(0, 8), multiply(0, 4, 4), write(0, 4)])
    yield listing_of([multiply(0, 0, 4, stride=2), activate(8, 1, 4, stride=2), multiply(0, 4, 4, stride=2)])


@dataclass(frozen=True, eq=False)
class Answer:
    """Waits for a listing. `best` is what the cycles with tpucc's own waits are spent on."""

    listing: Listing
    waits: Sequence[Wait]
    given: Setting
    best: Mapping[str, int]

    @cached_property
    def beside(self) -> Beside:
        """The listing with these waits beside the one with tpucc's own."""
        return Beside(Timed(program_of(self.listing, self.waits, self.given.target)), "reference", self.best)

    def details(self, about: int | None = None) -> dict[str, Any]:
        """What an outcome without all points has beside its message, which may be `about` an instruction: its waits come first."""
        shown = self.beside.drawings() if is_drawn(self.listing) else {}
        found = f"all: {_listed(self.waits)}" if self.waits else "no waits"
        if self.waits and about is not None:
            found = f"for instruction {about}: {_listed(waits_of_instruction(self.listing, self.waits, about))}\n{'':10}{found}"
        return {"found": found, "call": ("synchronise", (self.listing,)), **shown}


def is_drawn(listing: Listing) -> bool:
    """Whether it has instructions, of the machine whose cycles are explained."""
    return len(listing) > 0 and listing.machine is V1


def _listed(waits: Sequence[Wait]) -> str:
    return ", ".join(map(as_words, waits)) or "none"


def waits_of(submission: Submission, listing: Listing, given: Setting) -> list[Wait]:
    """The submission's waits for a listing. Raises `Failed`."""
    copied = replace(listing, records=listing.records.copy(), layer=listing.layer.copy(), placed=listing.placed.copy())
    return read_waits(submission.call("synchronise", copied), listing, given.rules)


def answers(cases: Sequence[Listing], given: Setting, submission: Submission) -> list[Answer]:
    """The submission's waits for each listing. Raises `Wrong` for the first conflict that they leave open, and `Failed`. What tpucc's own
    waits cost is asked for of every listing, so that an archive for students has recorded it."""
    found = []
    for listing in cases:
        best = built_in_spent(listing, given.rules, given.target) if is_drawn(listing) else {}
        found.append(Answer(listing, waits_of(submission, listing, given), given, best))
        if problem := unordered(listing, found[-1].waits, given.target, given.rules.page):
            raise Wrong(problem.message, **found[-1].details(problem.later))
    return found


def ordered(cases: Sequence[Listing], given: Setting, submission: Submission) -> Outcome:
    """Every conflict of every listing is ordered."""
    found = answers(cases, given, submission)
    message = f"all conflicts of {len(cases)} listings are ordered"
    if all(waits_for_all(answer.listing, answer.waits) for answer in found):
        return Outcome(0, f"{message}. {FOR_ALL}", **found[-1].details())
    return Outcome(1, message, picture=found[-1].beside.svg)


FOR_ALL = "There are more waits than instructions, which earns nothing"
"""What the skeleton does. It is valid, and who tries and fails would earn less."""


def waits_for_all(listing: Listing, waits: Sequence[Wait]) -> bool:
    """Whether engines are waited for more often than there are instructions: the skeleton does so twice as often."""
    return sum(len(wait.engines) for wait in waits) > len(listing)


def exact(cases: Sequence[Listing], given: Setting, submission: Submission) -> Outcome:
    """Listings whose conflicts are ordered, with no wait that could be left out: all of them earn all, half of them none; a conflict left
    open loses all."""
    found = [(needless(answer.listing, answer.waits, given.rules.page), answer) for answer in answers(cases, given, submission)]
    few = [(*wait, answer) for wait, answer in found if wait is not None]
    message = f"{len(cases) - len(few)} of {len(cases)} listings have every wait that they need and no other"
    if not few:
        return Outcome(1, message)
    wait, why, answer = few[0]
    message = f"{message}. {as_words(wait)} can be left out: {why}"
    about = next((i.index for i in answer.listing if i.engine == wait.engine and i.index >= wait.before), None)
    return Outcome(max(0.0, 1 - 2 * len(few) / len(cases)), message, **answer.details(about))


def cycles(cases: Sequence[Listing], given: Setting, submission: Submission) -> Outcome:
    """The time that the engines take, against that with tpucc's own waits."""
    return _measured("cycles", CYCLES, lambda answer: (answer.beside.cycles, answer.beside.least), answers(cases, given, submission))


def number(cases: Sequence[Listing], given: Setting, submission: Submission) -> Outcome:
    """How many waits there are, against tpucc's own."""

    def counts(answer: Answer) -> tuple[int, int]:
        return len(answer.waits), len(built_in(answer.listing, given.rules))

    return _measured("waits", WAITS, counts, answers(cases, given, submission))


def _measured(what: str, scale: Scale, measure: Callable[[Answer], tuple[int, int]], found: Sequence[Answer]) -> Outcome:
    """What the quotients of a measure and the reference's earn."""
    measured = list(map(measure, found))
    outcome, worst = in_the_mean(f"{what} ÷ reference", scale, measured)
    if outcome.passed:
        return replace(outcome, picture=found[worst].beside.svg)
    own, best = measured[worst]
    message = f"{outcome.message}: {own:,} {what}, the reference's {best:,}. {found[worst].beside.slower()}".rstrip()
    return replace(outcome, message=message, **found[worst].details())


def program(batch: int, given: Setting, submission: Submission) -> Outcome:
    """A model compiled with the submission's waits, and judged."""

    plain = list[bool]()

    def stage(listing: Listing) -> Sequence[Wait]:
        waits = waits_of(submission, listing, given)
        plain.append(waits_for_all(listing, waits))
        if problem := unordered(listing, waits, given.target, given.rules.page):
            raise Wrong(problem.message)
        return waits

    exe = api.compile_source(MODEL, params={"batch": batch}, target="tiny", level=0, stages=Stages(synchronise=stage))
    verdict, problem = judged(exe)
    if problem:
        return Outcome(0, problem, f"-D batch={batch}")
    waits = int(np.count_nonzero(exe.runtime.program.instructions["opcode"] == Opcode.SYNCHRONIZE))
    message = f"equal; {waits:,} waits, {verdict.cycles:,} cycles"
    return Outcome(0, f"{message}. {FOR_ALL}", f"-D batch={batch}") if all(plain) else Outcome(1, message)


def _made(exchange: Exchange, given: Setting) -> tuple[Answer, dict[str, Any]]:
    """The waits for a short listing, which they order, and what a question on them shows. Raises `Failed`."""
    listing: Listing = exchange.arguments[0]
    waits = read_waits(exchange.answer, listing, given.rules)
    problem = unordered(listing, waits, given.target, given.rules.page)
    require_fit(len(waits) > 0 and len(listing) <= MOST and is_drawn(listing) and problem is None, problem.message if problem else "")
    made = Answer(listing, waits, given, {})
    return made, {"given": f"{shown(listing)}\nyour waits: {', '.join(map(as_words, waits))}", "picture": made.beside.svg}


def needed(exchange: Exchange, oral: Oral) -> Question:
    """Which conflict a wait orders."""
    made, more = _made(exchange, oral.rules)
    wait = oral.draw.choice(made.waits)
    others = [other for other in made.waits if other is not wait]
    problem = unordered(made.listing, others, oral.rules.target, oral.rules.rules.page)
    asked = f"What is your wait {as_words(wait)} for, and what may go wrong without it?"
    lost = problem.message if problem else "nothing, as the other waits order all conflicts"
    return Question(asked, f"Without it: {lost}.", **more)


def not_needed(exchange: Exchange, oral: Oral) -> Question:
    """What orders two instructions that conflict and have no wait between them."""
    made, more = _made(exchange, oral.rules)
    apart = ordered_pairs(made.listing, made.waits, oral.rules.rules.page)
    require_fit(bool(apart))
    pair = oral.draw.choice(apart)
    asked = f"Instructions {pair[0]} and {pair[1]} of two engines share rows, and none of your waits is for these two. What orders them?"
    return Question(asked, f"{instead(made.listing, pair, made.waits)}.", **more)


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

LAB = declared(Path(__file__).parent, rules=setting, words=_words, public=_public, hidden=_hidden, asks=(needed, not_needed, once_more))
