"""The labs on order and on waits: answers that mean to fool them, other terms' solutions, and what is judged by."""

from __future__ import annotations

import re
from functools import partial
from random import Random

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.lab_results import SEED, Here
from tests.support.lab_solutions import main_file
from tpucc.labs import find
from tpucc.labs.grading import run
from tpucc.labs.judging import outcome_of
from tpucc.labs.lab import AS_WRITTEN, Lab, Term
from tpucc.labs.listings import listing_of
from tpucc.labs.order import as_given, best_cycles, drawn, example, fast, machine
from tpucc.labs.order import rules as order_rules
from tpucc.labs.order.checks import Rules as OrderRules
from tpucc.labs.order.checks import wrong
from tpucc.labs.order.families import Net, beside, plain_order, reuse, several
from tpucc.labs.results import _verdict
from tpucc.labs.timelines import Beside
from tpucc.labs.waits import Answer, cycles, cycles_of, exact, ordered
from tpucc.labs.waits.checks import Rules, as_words, built_in, built_in_spent, needless, rules, unordered
from tpucc.labs.waits.families import FAMILIES, read, seven, six, write
from tpucc.machines.v1 import V1, Engine
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait

LABS = [find("order"), find("waits")]


TERMS = [("", "spring"), ("spring", "2027 autumn"), ("2027 autumn", "")]


@pytest.mark.soak
@pytest.mark.parametrize(("lab", "written", "graded"), one_of(5, [(lab, *terms) for terms in TERMS for lab in LABS]))
def test_a_solution_of_another_term_does_not_pass(lab: Lab, written: str, graded: str) -> None:
    submission = Here(main_file(lab, term=Term(written)))
    tests = (*lab.public(Term(graded)), *lab.hidden(Term(graded), SEED))
    assert sum(run(test, submission).score for test in tests) < 90


@pytest.mark.long
@pytest.mark.parametrize("rules", one_of(3, [Rules(), Rules(4, True), Rules(8)]), ids=lambda rules: f"pages of {rules.page}")
def test_the_reference_waits_for_all_that_is_needed_and_no_more(rules: Rules) -> None:
    for family in FAMILIES:
        for seed in range(2):
            listing = family(Random(seed))
            waits = built_in(listing, rules)
            assert unordered(listing, waits, rules) is None
            assert needless(listing, waits, rules) is None
            for number in range(len(waits)):
                assert unordered(listing, waits[:number] + waits[number + 1 :], rules) is not None


def test_a_message_names_both_instructions_and_the_row() -> None:
    given = rules(AS_WRITTEN)
    submission = Here("def synchronise(listing): return [(1, 'matrix', 'host'), (4, 'host', 'activation')]")
    found = outcome_of(partial(exact, [six()], given, submission))
    words = "V0801, read after write: instruction 3 `activate acc=0 ub=16 inner=4` reads accumulator row 0, which instruction 2"
    assert found.message.startswith(words)
    assert found.found == "for instruction 3: none\n          all: (1, 'matrix', ['host']), (4, 'host', ['activation'])"
    assert max(map(len, found.drawing.splitlines())) <= 72
    assert found.picture is not None
    assert found.picture().startswith("<svg")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            Wait(5, Engine.HOST, (Engine.MATRIX,)),
            "instruction 5 `read_host_memory host=0 ub=0 rows=4` comes after instruction 2 `matrix_multiply ub=0 acc=0 rows=4` by "
            "(3, 'activation', ['matrix']) and (4, 'host', ['activation'])",
        ),
        (Wait(0, Engine.MATRIX, (Engine.HOST,)), "no instruction after it conflicts with one before it that it waits for"),
    ],
    ids=["ordered by others", "no conflict"],
)
def test_a_wait_too_many_is_named_with_those_that_make_it_so(more: Wait, why: str) -> None:
    given = rules(AS_WRITTEN)
    waits = sorted([*built_in(six(), given), more], key=lambda wait: wait.before)
    assert needless(six(), waits, given) == (more, why)
    plain = [(wait.before, wait.engine.name, [engine.name for engine in wait.engines]) for wait in waits]
    found = exact([six()], given, Here(f"def synchronise(listing): return {plain!r}")).found
    assert re.match(rf"for instruction (5|2): .*{re.escape(as_words(more))}.*\n +all: \(", found)


@pytest.mark.parametrize(
    ("order", "rules", "message"),
    [
        ([0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10], OrderRules(2, "kept"), ""),
        ([0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10], OrderRules(0, "at once"), ""),
        (
            [0, 2, 3, 1, 4, 5, 6, 7, 8, 9, 10],
            OrderRules(0, "free"),
            "acc=g0 inner=4 tile=1, switch, accumulate` stands before instruction 1 ",
        ),
        ([0, 1, 3, 2, 4, 5, 6, 7, 8, 9, 10], OrderRules(0, "free"), "which begins the sum that it adds to"),
        ([0, 1, 2, 4, 5, 3, 6, 7, 8, 9, 10], OrderRules(0, "free"), "which adds to the sum that it activates"),
        ([0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10], OrderRules(0, "free"), "finds no block chosen, and needs block 0"),
        ([0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10], OrderRules(1, "free"), "opens a sum while 1 are open"),
        ([1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10], OrderRules(0, "kept"), "transfers keep their order in this term"),
    ],
)
def test_what_is_wrong_with_an_order_is_said(order: list[int], rules: OrderRules, message: str) -> None:
    (case,) = example(order_rules(AS_WRITTEN))
    found = wrong(case.tiles, np.array(order), rules)
    assert message in found
    assert bool(found) is bool(message)


def test_a_write_that_stands_later_than_it_can_is_named() -> None:
    tiles = plain_order(Net(((4, 4), (4, 4)), 4), machine(order_rules(AS_WRITTEN), several), "at once", 0)
    write = next(i.index for i in tiles if i.text.startswith("write_host_memory"))
    order = [*(n for n in range(len(tiles)) if n != write), write]
    assert "doesn't stand right after" in wrong(tiles, np.array(order), OrderRules(0, "at once"))
    assert wrong(tiles, np.arange(len(tiles)), OrderRules(0, "at once")) == ""


@pytest.mark.long
def test_programs_have_something_to_win() -> None:
    for case in drawn(order_rules(Term("spring")), 7, (reuse, beside), 2):
        assert as_given(case) > 1.3 * best_cycles(case)


def test_an_order_that_wins_nothing_in_one_program_loses_all_points() -> None:
    public = find("order").public(AS_WRITTEN)
    copied = "def order(tiles): return [0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10] if len(tiles) == 11 else range(len(tiles))"
    found = run(public[0], Here(copied))
    assert found.score == 0
    assert found.outcome.message.startswith("One program takes as long as in the order as given, which loses all points\n")
    why = "Yours takes 18 cycles more than the reference (80 instead of 62, +29.0 %). 12 more are spent waiting for the weight shift"
    assert f"{why}. " in found.outcome.message
    assert "10 fewer are spent waiting for the activation unit" in found.outcome.message
    assert "than the reference" not in _verdict(found)


def test_waits_that_cost_time_are_compared_with_the_references() -> None:
    given = rules(AS_WRITTEN)
    late = [(w.before + (w.before == 1), w.engine.name, [e.name for e in w.engines]) for w in built_in(six(), given)]
    found = cycles([six()], given, Here(f"def synchronise(listing): return {late!r}"))
    assert (
        "and is drawn: 32 cycles, the reference's 28. Yours takes 4 cycles more than the reference (32 instead of 28, +14.3 %)."
        in found.message
    )
    assert "spent waiting for the host" in found.message


def test_half_of_the_listings_with_a_wait_too_many_earn_nothing() -> None:
    given, (first, *_) = rules(AS_WRITTEN), [six(), seven()]
    pairs = "(('matrix', 'host'), ('host', 'activation'), ('activation', 'matrix'))"
    spare = f"[(n, engine, [other]) for n in range(7) for engine, other in {pairs}]"
    right = [(w.before, w.engine.name, [e.name for e in w.engines]) for w in built_in(first, given)]
    waits = Here(f"def synchronise(listing): return {right!r} if len(listing) == 6 else {spare}")
    assert exact([seven()], given, waits).message.endswith(
        "(0, 'matrix', ['host']) can be left out: no instruction after it conflicts with one before it that it waits for"
    )
    assert [exact(cases, given, waits).share for cases in ([six()], [six(), six(), six(), seven()], [six(), seven()])] == [1, 0.5, 0]


@pytest.mark.parametrize("term", [AS_WRITTEN, Term("spring"), Term("a"), Term("d")], ids=str)
def test_the_handouts_cycles_are_those_of_the_terms_machine(term: Term) -> None:
    given, text = rules(term), find("waits").material("handout.md", term)
    found = cycles_of(six(), built_in(six(), given), given)
    if given.target.host_bandwidth == 4e6:
        assert found == 28
        assert "This term's machine has such a link." in text
    else:
        assert f"whose host link is {'slower' if found > 28 else 'faster'}, it takes {found} and " in text
    assert ("have only the rows that it names" in text) is (given.page > 1)
    assert listing_of([read(2, 3)])[0].writes.buffer.tolist() == [2, 3, 4]


def test_both_programs_share_an_axis() -> None:
    given = (case,) = example(order_rules(AS_WRITTEN))
    found = fast(lambda: given, Here("def order(tiles): return range(len(tiles))"))
    lines = found.drawing.splitlines()
    assert max(map(len, lines)) <= 72
    assert [line for line in lines if line.endswith("cycles")] == [
        f"yours: {as_given(case)} cycles",
        f"reference: {best_cycles(case)} cycles",
    ]
    assert found.picture is not None
    assert ">60<" in found.picture()


ALL_WAITS = [Wait(n, engine, (other,)) for n in range(6) for engine in V1.row_units for other in V1.row_units if other != engine]


def answer(waits: list[Wait], listing: Listing) -> Answer:
    given = rules(AS_WRITTEN)
    return Answer(listing, waits, given, built_in_spent(listing, given))


def test_of_the_reference_nothing_but_its_cycles_is_drawn() -> None:
    """An answer that can be read off a picture is none that a student finds."""
    given = rules(AS_WRITTEN)
    slow = answer(ALL_WAITS, six()).beside
    assert slow.svg() == Beside(slow.own, "other", {"anything": slow.least}).svg()
    text = outcome_of(partial(exact, [six()], given, Here("def synchronise(listing): return []"))).drawing
    assert text[text.index("reference: ") :].splitlines()[:2] == ["reference: 28 cycles", f"{'total':<11}{'█' * 54}"]


def test_right_waits_have_a_picture() -> None:
    given = rules(AS_WRITTEN)
    right = [(w.before, w.engine.name, [e.name for e in w.engines]) for w in built_in(six(), given)]
    picture = ordered([six()], given, Here(f"def synchronise(listing): return {right!r}")).picture
    assert picture is not None
    assert picture().startswith("<svg")


def test_an_order_that_is_slower_is_told_why() -> None:
    given = example(order_rules(AS_WRITTEN))
    found = fast(lambda: given, Here("def order(tiles): return range(len(tiles))"))
    assert re.search(
        r"11 cycles more than the reference \(60 instead of 49, .*\)\. 12 more are spent waiting for the weight shift", found.message
    )


def test_the_waits_of_the_matrix_unit_stand_below_its_name() -> None:
    """A unit that does nothing has no line, but for this one: else its waits would look like the host's."""
    names = [line.split()[0] for line in answer([], listing_of([read(0, 4), write(0, 4)])).beside.text().splitlines()]
    assert names[names.index("waits") - 1] == "matrix"
    assert "activation" not in names
