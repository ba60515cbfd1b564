"""Lab 15: what is loaded, counted in another way; that the grader's programs compute the product; and what answers are told."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.lab_results import Here
from tpucc.floating.matrix_unit import Machine
from tpucc.isa.verify import check
from tpucc.labs import find
from tpucc.labs.grading import run
from tpucc.labs.lab import AS_WRITTEN, Term
from tpucc.labs.stationary import CYCLES, best_cycles, best_order
from tpucc.labs.stationary.products import SHAPES, TO_WIN, Made, Pair, Product, Rules, drawn, loads_of, plain_orders, rules
from tpucc.training.in_rows import InRows

LAB = find("stationary")
RULES = [Rules(), Rules(leaves="used")]


def shuffled(product: Product, seed: int) -> tuple[Pair, ...]:
    pairs = [*product.pairs]
    Random(seed).shuffle(pairs)
    return tuple(pairs)


def counted_by_looking(product: Product, order: tuple[Pair, ...], leaves: str) -> int:
    """Loads, by looking through all turns before or after each."""
    there, loads = set[tuple[str, int]](), 0
    turns = [list(zip("xw", pair, strict=True)) for pair in order]
    for turn, own in enumerate(turns):
        for block in own:
            if block in there:
                continue
            loads += 1
            if len(there) == product.places:
                others = there - {*own}
                if leaves == "last":
                    gone = max(others, key=lambda each: next((at for at in range(turn, len(turns)) if each in turns[at]), len(turns)))
                else:
                    gone = min(others, key=lambda each: (max(at for at in range(turn) if each in turns[at]), each[0] == "w"))
                there.discard(gone)
            there.add(block)
    return loads


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.leaves)
def test_loads_are_those_that_one_counts_by_looking(rules: Rules) -> None:
    for seed in range(12):
        draw = Random(seed)
        product = Product(draw.randrange(2, 7), draw.randrange(2, 7), draw.randrange(2, 6))
        for order in (*plain_orders(product), shuffled(product, seed)):
            assert loads_of(product, order, rules.leaves) == counted_by_looking(product, order, rules.leaves), product


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.leaves)
def test_a_program_is_valid_and_computes_the_product(rules: Rules) -> None:
    product = Product(3, 4, 3)
    made = Made(Rules(2, rules.leaves), product, shuffled(product, 1))
    check(made.program)
    draw = np.random.default_rng(0)
    x, w = (draw.integers(-9, 10, size).astype(np.float32) for size in ((3 * 128, 256), (256, 4 * 128)))
    rows, columns = np.split(x, 3), np.split(w, 4, axis=1)
    program = InRows(made.program)
    found = program.run(
        program.accepted({f"x{n}": each for n, each in enumerate(rows)} | {f"w{n}": each for n, each in enumerate(columns)})
    )
    wanted = Machine(128).product(x, w)
    for row, column in product.pairs:
        block = wanted[128 * row :, 128 * column :][:128, :128]
        assert found[f"y{row}_{column}"].tobytes() == np.ascontiguousarray(block).tobytes()


@pytest.mark.parametrize("term", [AS_WRITTEN, Term("fall")], ids=str)
def test_products_have_something_to_win(term: Term) -> None:
    own = rules(term)
    for shape in SHAPES:
        product = drawn(own, shape, Random(5), best_cycles)
        plain = min(Made(own, product, order).cycles for order in plain_orders(product))
        assert plain >= TO_WIN * best_cycles(own, product)
        check(Made(own, product, best_order(own, product)).program)


def test_more_places_and_fewer_loads_take_no_longer() -> None:
    own = Rules()
    for places in range(3, 8):
        few, more = (best_cycles(own, Product(8, 9, each)) for each in (places, places + 1))
        assert more <= few


def asked(answer: object) -> str:
    """What the first public test says of an answer to everything."""
    (test, *_) = LAB.public(AS_WRITTEN)
    return run(test, Here({"blocks": lambda *_: answer})).outcome.message


PAIRS = [(row, column) for row in range(4) for column in range(4)]


@each(
    [
        ("one twice", [*PAIRS[:5], (0, 1), *PAIRS[5:]], "entry 5 is (0, 1), again"),
        ("one missing", PAIRS[:-1], "1 block of y is missing: (3, 3) for one"),
        ("outside", [(4, 0), *PAIRS], "entry 0 is (4, 0), and y has 4 rows and 4 columns of blocks"),
        ("no pair", [3], "entry 0 is 3, and y has"),
        ("no list", "abc", "blocks returned no list of pairs but str"),
    ]
)
def test_what_is_no_order_is_said(title: str, answer: object, words: str) -> None:
    assert asked(answer).startswith("4 times 4 blocks, 3 places: " + words), title


def test_a_product_that_is_wrong_loses_its_own_points_alone() -> None:
    solution = [list(pair) for pair in best_order(Rules(), Product(4, 4, 3))]
    found = {test.name: run(test, Here({"blocks": lambda *_: solution})).score for test in LAB.public(AS_WRITTEN)}
    assert found == {"the example": 5, "few places": 0, "many places": 0, "wide and tall": 0}


def test_the_drawing_shows_what_is_loaded_and_when_units_work() -> None:
    (test, *_) = LAB.public(AS_WRITTEN)
    outcome = run(test, Here({"blocks": lambda rows, columns, places: [*Product(rows, columns, places).pairs]})).outcome
    lines = outcome.drawing.splitlines()
    assert lines[0] == "loaded for each block of y (16 blocks in all):"
    assert lines[1] == "2 w w w"
    assert [line.split()[0] for line in lines[5:9]] == ["yours:", "memory", "weights", "matrix"]
    assert f"{CYCLES.full:g} earns all points" in outcome.message
