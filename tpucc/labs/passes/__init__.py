"""Lab 2: three passes on the operator graph: constant folding, fuse bias, fuse activation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from tpucc.ir.graph import Graph
from tpucc.labs.lab import Lab, Outcome, Submission, Term, Test
from tpucc.labs.passes import motifs
from tpucc.labs.passes.comparing import rewritten
from tpucc.labs.passes.motifs import Motif, graphs
from tpucc.labs.passes.program import compiled
from tpucc.labs.passes.rules import Rules, rules

PLAIN: Mapping[str, Motif] = {"fold_constants": motifs.folds, "fuse_bias": motifs.right, "fuse_activation": motifs.activated}
"""What each pass has to do in every graph."""
PUBLIC: Mapping[str, tuple[Motif, ...]] = {
    "fold_constants": (motifs.weights, motifs.from_nothing, motifs.partly, motifs.shared_constant, motifs.beyond_the_limit),
    "fuse_bias": (motifs.left, motifs.shared_product, motifs.no_constant, motifs.second_bias, motifs.pinned_product),
    "fuse_activation": (motifs.with_parameter, motifs.after_bias, motifs.other_function, motifs.read_by_two, motifs.with_range),
}
"""What `check` has beside it."""


def _words(term: Term) -> Mapping[str, str]:
    """What the handout says for this term."""
    term_rules = rules(term)
    joined = "A product that has a bias already takes in another one: the two constants are added, and their sum is the bias."
    stays = "A product that has a bias already takes in no other: a constant that is added to it stays a sum of its own."
    *first, last = (f"`{name}`" for name in term_rules.functions)
    return {
        "limit": str(term_rules.limit),
        "functions": f"{', '.join(first)} and {last}",
        "names": str(term_rules.functions).replace("'", '"'),
        "other": term_rules.others[0],
        "second": str(term_rules.second),
        "second_rule": joined if term_rules.second else stays,
    }


def _public(term: Term) -> Sequence[Test]:
    """What `check` runs."""
    term_rules = rules(term)
    one = {function: list(graphs(Random(2), term_rules, plain, (plain,))) for function, plain in PLAIN.items()}
    some = {function: list(graphs(Random(22), term_rules, PLAIN[function], chosen)) for function, chosen in PUBLIC.items()}
    return (
        *(Test(f"{_short(function)}: one graph", 5, partial(several, function, term_rules, one[function], "")) for function in PLAIN),
        *(Test(f"{_short(function)}: graphs", 8, partial(several, function, term_rules, some[function], "")) for function in PLAIN),
        Test("a program", 11, partial(compiled, term_rules, 4)),
    )


def _short(function: str) -> str:
    return function.replace("_", " ")


def _hidden(term: Term, seed: int) -> Sequence[Test]:
    """What only `grade` runs: one thing that a pass may overlook in each test."""
    term_rules, draw = rules(term), Random(f"{seed}/passes")

    def test(function: str, what: str, points: float, *chosen: Motif) -> Test:
        cases = list(graphs(draw, term_rules, PLAIN[function], chosen * 2))
        return Test(f"hidden: {_short(function)}: {what}", points, partial(several, function, term_rules, cases, str(seed)), True)

    m = motifs
    return (
        test("fold_constants", "the limit", 6, m.at_the_limit, m.beyond_the_limit, m.large_already),
        test("fold_constants", "pinned values", 4, m.pinned_constant, m.pinned_result),
        test("fold_constants", "what depends on nothing", 4, m.from_nothing, m.whole_output, m.partly),
        test("fuse_bias", "shared products", 5, m.shared_product, m.product_is_output, m.second_after_shared, m.added_to_itself),
        test("fuse_bias", "the other side", 5, m.left, m.subtracted, m.subtracted_from),
        test("fuse_bias", "a second bias", 4, m.second_bias, m.after_activation),
        test("fuse_bias", "shapes", 4, m.scalar, m.row_of_rank_two, m.a_value_each, m.a_column, m.grows),
        test("fuse_bias", "no constants", 2, m.no_constant, m.no_weights),
        test("fuse_bias", "pinned values", 4, m.pinned_product, m.pinned_bias, m.pinned_weights, m.pinned_sum),
        test("fuse_activation", "functions", 4, m.with_parameter, m.other_function, m.softmax, m.two_functions, m.after_sum, m.with_range),
        test("fuse_activation", "shared products", 4, m.shared_by_function, m.read_by_two, m.output_before, m.without_weights),
        test("fuse_activation", "pinned values", 4, m.pinned_before, m.pinned_after),
    )


def several(function: str, rules: Rules, cases: Sequence[Graph], key: str, submission: Submission) -> Outcome:
    """Graphs, of which each earns its share; the first one that is wrong is shown."""
    found = [rewritten(function, rules, graph, f"{key}/{number}", submission) for number, graph in enumerate(cases)]
    failed = [outcome for outcome in found if not outcome.passed]
    message = f"{len(found) - len(failed)} of {len(found)} graphs are right"
    if not failed:
        return replace(found[-1], message=message)
    return replace(failed[0], share=1 - len(failed) / len(found), message=f"{message}: {failed[0].message}")


LAB = Lab(
    number=2,
    name="passes",
    title="Three passes",
    file="passes.py",
    functions=("fold_constants", "fuse_bias", "fuse_activation"),
    public=_public,
    hidden=_hidden,
    words=_words,
    folder=Path(__file__).parent,
    modules=("tpucc.passes.rewriter", "tpucc.ops.evaluate", "tpucc.ops.linear", "tpucc.ir.printer"),
)
