"""Lab 4: the handout's example obeys its term's rules, rules are found broken where they are, and pictures number every multiply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.lab_results import Here
from tests.support.lab_solutions import main_file
from tpucc.labs import find
from tpucc.labs.lab import Term
from tpucc.labs.tiling.rules import Rules, broken_rule, order_text, rules, visits_of
from tpucc.lowering.tileprogram import VirtualBuffer
from tpucc.stages.product_lines import read_product
from tpucc.stages.products import ProductLayer, ProductLevel
from tpucc.target import load_target

LAYER = ProductLayer(
    name="y",
    kind="fc",
    shape=(3,),
    levels=(ProductLevel("x.0", 0, (1,), (0, 1)), ProductLevel("x.1", 0, (1,), (2, 3))),
    results=("y.0", "y.1"),
    start=0,
    steps=(1,),
    blocks=(0, 1),
    wide=False,
    target=load_target("tiny"),
    buffers=tuple(VirtualBuffer(name, 3, 0) for name in ("x.0", "x.1", "y.0", "y.1")),
    builtin=list,
)


def by_hand(term: Term) -> list[str]:
    return find("tiling").words(term)["hand"].split("\n")


@pytest.mark.parametrize("term", [Term(), *(Term(str(n)) for n in range(6))])
def test_the_example_by_hand_obeys_its_terms_rules_and_no_others(term: Term) -> None:
    lines, rule = by_hand(term), rules(term)
    product = read_product(LAYER, lines)
    assert broken_rule(LAYER, product, rule, lines) == ""
    assert "3 rows; 2 are the most" in broken_rule(LAYER, product, replace(rule, most=2), lines)
    assert "takes the tiles" in broken_rule(LAYER, product, replace(rule, levels_down=not rule.levels_down), lines)
    assert "is activated first" in broken_rule(LAYER, product, replace(rule, columns_down=not rule.columns_down), lines)


MULTIPLIED = "matrix_multiply ub=x.0 acc=g0 rows=3 tile=0, switch"


@pytest.mark.parametrize(
    ("accumulators", "rows", "says"),
    [
        (
            8,
            1,
            "switch` fills the lower half, which is being emptied: 2 rows of it must be activated",
        ),
        (8, 3, "fills the lower half again"),
        (4, 3, "fills the lower half with 3 rows; it has 2"),
    ],
)
def test_a_half_of_the_accumulators_is_filled_and_then_emptied_in_its_turn(accumulators: int, rows: int, says: str) -> None:
    lines = [".groups [3]", MULTIPLIED, f"activate acc=g0 ub=y.0 inner={rows}", MULTIPLIED]
    rule = Rules(8, False, False, accumulators, halves=True)
    assert says in broken_rule(LAYER, read_product(LAYER, lines), rule, lines)
    assert "half" not in broken_rule(LAYER, read_product(LAYER, lines), replace(rule, halves=False), lines)


def test_no_terms_order_is_the_built_in_one() -> None:
    assert all(rules(Term(str(n))).columns_down or rules(Term(str(n))).levels_down for n in range(20))


def test_a_slower_lowering_is_compared_with_the_built_in_one() -> None:
    lab = find("tiling")
    found = next(test for test in lab.public(Term()) if test.name == "cycles").run(Here(main_file(lab, "one_chunk_at_a_time")))
    said = "(1,008 instead of 668); 1.1 earns all points, 1.6 none. 192 more are spent waiting for"
    assert (
        f"{said} weight memory. 192 more are spent waiting for the weight shift. Other rows: waits for the host link +32, " in found.message
    )


def test_a_lowering_of_small_passes_is_told_what_waits_for_the_host() -> None:
    lab, term = find("tiling"), Term("2027-autumn")
    text = main_file(lab, term=term).replace("else (room, room // 2)", "else (room * 5 // 8,)").replace("(count, MOST", "(count, 4")
    found = next(test for test in lab.public(term) if test.name == "cycles").run(Here(text))
    assert ". 109 more are spent waiting for the host link: a result's buffer goes to the host after its last activation" in found.message


def test_the_order_is_drawn() -> None:
    visits = visits_of(LAYER, read_product(LAYER, by_hand(Term())))
    said = "levels k, column blocks n, and the order of the multiplies"
    assert order_text(LAYER, visits).split("\n") == ["      rows 0-2", "       n=0 n=1", "k=0      1   3", "k=1      2   4", said]


def test_marks_in_a_drawing_are_explained_where_they_are() -> None:
    visits = visits_of(LAYER, read_product(LAYER, by_hand(Term())))
    assert "; - is a product that is missing" in " ".join(order_text(LAYER, visits[:3]).splitlines())
    again = order_text(LAYER, visits * 4)
    assert "multiplies; + a product that is there again" in " ".join(again.splitlines())
    assert max(map(len, again.splitlines())) <= 78


def test_lines_that_walk_no_end_of_rows_are_not_drawn() -> None:
    line = "convolve ub=x.0 ub_pitch=4294967295 acc=g0 outer=4294967295 inner=4294967295 tile=0, switch"
    assert visits_of(LAYER, read_product(LAYER, [".groups [3]", line])) == []
