"""Lab 15: what stays in vector memory, while blocks of the other matrix pass by: the order in which a large product is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from tpucc.diagnostics import counted
from tpucc.labs.judging import Scale, geometric_mean, outcome_of
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Test, Wrong, declared, require_fit
from tpucc.labs.solutions import Solution, recorded
from tpucc.labs.stationary.products import TO_WIN, Made, Pair, Product, Rules, drawn, loads_of, plain_orders, rules
from tpucc.labs.timelines import units_text
from tpucc.see.charts.units import units_svg

CYCLES = Scale(1.02, TO_WIN)
"""Of the quotient of cycles and the reference's. Plain orders take at least the second."""
EXAMPLE = Product(4, 4, 3)
"""The handout's."""
MOST = 60
"""Blocks of a product that a question is about."""


def best_order(rules: Rules, product: Product) -> tuple[Pair, ...]:
    """The solution's."""
    found = Solution.of(Path(__file__).parent, rules).call("blocks", product.rows, product.columns, product.places)
    return tuple((row, column) for row, column in found)


@recorded
@cache
def best_cycles(rules: Rules, product: Product) -> int:
    """What the solution's order takes. An archive for students has these alone."""
    return Made(rules, product, best_order(rules, product)).cycles


def read_order(answer: Any, product: Product) -> tuple[Pair, ...]:
    """The order in an answer, which has each block of y once. Raises `Wrong`."""
    if not isinstance(answer, list | tuple):
        raise Wrong(f"blocks returned no list of pairs but {type(answer).__name__}")
    left, found = set(product.pairs), list[Pair]()
    for number, entry in enumerate(answer):
        pair = tuple(entry) if isinstance(entry, list | tuple) else ()
        if any(type(value) is not int for value in pair) or pair not in left:
            why = "again" if pair in found else f"and y has {product.rows} rows and {product.columns} columns of blocks"
            raise Wrong(f"entry {number} is {str(pair or entry)[:40]}, {why}", found=str(answer)[:2000])
        left.remove(pair)
        found.append(pair)
    if left:
        raise Wrong(f"{counted(len(left), 'block')} of y {'is' if len(left) == 1 else 'are'} missing: {min(left)} for one")
    return tuple(found)


def made(rules: Rules, product: Product, submission: Submission) -> Made:
    """The submission's order of a product. Raises `Failed`."""
    answer = submission.call("blocks", product.rows, product.columns, product.places)
    return Made(rules, product, read_order(answer, product))


def one(rules: Rules, product: Product, submission: Submission) -> Outcome:
    """The cycles of one product against the reference's."""
    found, best = made(rules, product, submission), best_cycles(rules, product)
    quotient = found.cycles / best
    loads = loads_of(product, found.order, rules.leaves)
    message = f"{counted(loads, 'block')} loaded, {found.cycles:,} cycles, {quotient:.3f} times the reference's; {CYCLES}"
    drawing = f"{found.grid}\n{units_text(found.program, found.time, 'reference', best)}"
    return Outcome(
        CYCLES.share(quotient),
        message,
        drawing=drawing,
        picture=partial(units_svg, found.program, found.time),
        measures={MEASURE: quotient},
    )


MEASURE = "cycles ÷ reference"
Products = Callable[[], Sequence[Product]]
"""Products that are drawn when a test runs."""


def fast(rules: Rules, products: Products, submission: Submission) -> Outcome:
    """Several products, of which each earns its share. The worst is shown."""
    found = [(product, outcome_of(partial(one, rules, product, submission))) for product in products()]
    product, worst = min(found, key=lambda each: each[1].share)
    share = sum(outcome.share for _, outcome in found) / len(found)
    quotients = [outcome.measures[MEASURE] for _, outcome in found if outcome.measures]
    measures = {MEASURE: geometric_mean(quotients)} if len(quotients) == len(found) else None
    size = f"{product.rows} times {product.columns} blocks, {product.places} places"
    return replace(worst, share=share, message=f"{size}: {worst.message}", measures=measures)


def _drawn(rules: Rules, seed: int, *shapes: str) -> Products:
    def products() -> Sequence[Product]:
        draw = Random(seed)
        return [drawn(rules, shape, draw, best_cycles) for shape in shapes]

    return products


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    return (
        Test("the example", 5, partial(fast, rules, lambda: [EXAMPLE])),
        Test("few places", 10, partial(fast, rules, _drawn(rules, 1, "few places"))),
        Test("many places", 10, partial(fast, rules, _drawn(rules, 2, "many places"))),
        Test("wide and tall", 10, partial(fast, rules, _drawn(rules, 3, "wide", "tall"))),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: other products."""
    seed = partial(draw.randrange, 2**32)
    return (
        Test("few places", 20, partial(fast, rules, _drawn(rules, seed(), "few places", "few places"))),
        Test("many places", 20, partial(fast, rules, _drawn(rules, seed(), "many places", "many places"))),
        Test("wide and tall", 25, partial(fast, rules, _drawn(rules, seed(), "wide", "tall"))),
    )


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    plain = Made(rules, EXAMPLE, next(plain_orders(EXAMPLE)))
    time = (plain.time.end - plain.time.start).tolist()
    load, store = time[0], time[-2]
    return {
        "example": EXAMPLE,
        "plain": plain,
        "plain_loads": loads_of(EXAMPLE, plain.order, rules.leaves),
        "load_cycles": f"{load:,}",
        "store_cycles": f"{store:,}",
        "work_cycles": f"{rules.block_rows:,}",
        "cycles": CYCLES,
    }


def _made(exchange: Exchange, rules: Rules) -> Made:
    """A product of few blocks and its order. Raises `Failed`."""
    product = Product(*exchange.arguments)
    require_fit(product.rows * product.columns <= MOST)
    return Made(rules, product, read_order(exchange.answer, product))


def _given(made: Made) -> str:
    size = f"blocks({made.product.rows}, {made.product.columns}, {made.product.places})"
    return f"{size} returned\n{list(made.order)}\n{made.grid}"


def again(exchange: Exchange, oral: Oral) -> Question:
    """Why a block is loaded a second time."""
    found = _made(exchange, oral.rules)
    turns: dict[str, list[int]] = {}
    for turn, step in enumerate(found.steps):
        for block in step.loads:
            turns.setdefault(block, []).append(turn)
    twice = sorted(block for block, loaded in turns.items() if len(loaded) > 1)
    require_fit(bool(twice))
    block = oral.draw.choice(twice)
    first, second = turns[block][:2]
    place = found.steps[first].loads[block]
    taker, when = next(
        (other, turn) for turn in range(first + 1, second + 1) for other, to in found.steps[turn].loads.items() if to == place
    )
    asked = f"Block {block} is loaded for {found.order[first]}, and again for {found.order[second]}. Which block took its place, and why?"
    words = f"Block {taker}, which {found.order[when]} needs. {LEAVES[oral.rules.leaves]}."
    return Question(asked, words, _given(found))


LEAVES = {"last": "Of the blocks that were there, it is used last of all", "used": "Of the blocks that were there, it was used longest ago"}


def one_more(exchange: Exchange, oral: Oral) -> Question:
    """What one more place is worth."""
    found = _made(exchange, oral.rules)
    rows, columns, places = exchange.arguments
    words = f"there were {places + 1} places and not {places}"
    return oral.what_if(exchange, words, (rows, columns, places + 1), partial(_counts, oral.rules), given=_given(found))


def _counts(rules: Rules, exchange: Exchange) -> str:
    found = _made(exchange, rules)
    return f"{counted(loads_of(found.product, found.order, rules.leaves), 'block')} loaded, {found.cycles:,} cycles"


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(again, one_more))
