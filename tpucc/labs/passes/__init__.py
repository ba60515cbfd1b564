"""Lab 2: three passes on the operator graph: constant folding, fuse bias, fuse activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from tpucc.ir import Graph
from tpucc.labs.judging import all_or_nothing, some_right
from tpucc.labs.lab import Outcome, Submission, Term, Test, declared
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

Kinds = Mapping[str, tuple[float, tuple[Motif, ...]]]
"""What a pass may overlook, by what it is: the points of its own test, and the parts of graphs that show it."""
HIDDEN: Mapping[str, Kinds] = {
    "fold_constants": {
        "the limit": (2, (motifs.at_the_limit, motifs.beyond_the_limit, motifs.large_already)),
        "pinned values": (2, (motifs.pinned_constant, motifs.pinned_result)),
        "what depends on nothing": (2, (motifs.from_nothing, motifs.whole_output, motifs.partly)),
    },
    "fuse_bias": {
        "shared products": (2, (motifs.shared_product, motifs.product_is_output, motifs.second_after_shared, motifs.added_to_itself)),
        "the other side": (2, (motifs.left, motifs.subtracted, motifs.subtracted_from)),
        "a second bias": (1, (motifs.second_bias, motifs.after_activation)),
        "shapes": (1, (motifs.scalar, motifs.row_of_rank_two, motifs.a_value_each, motifs.a_column, motifs.grows)),
        "no constants": (1, (motifs.no_constant, motifs.no_weights)),
        "pinned values": (1, (motifs.pinned_product, motifs.pinned_bias, motifs.pinned_weights, motifs.pinned_sum)),
    },
    "fuse_activation": {
        "functions": (
            2,
            (motifs.with_parameter, motifs.other_function, motifs.softmax, motifs.two_functions, motifs.after_sum, motifs.with_range),
        ),
        "shared products": (2, (motifs.shared_by_function, motifs.read_by_two, motifs.output_before, motifs.without_weights)),
        "pinned values": (2, (motifs.pinned_before, motifs.pinned_after)),
    },
}
WITHOUT_A_FAULT = 10
"""The points of a pass that is right for every kind of graph: one that isn't can't be used, however rare its fault is."""
Judge = Callable[[str, Rules, Sequence[Graph], str, Submission], Outcome]


def _words(term: Term) -> Mapping[str, str]:
    """What the handout says for this term."""
    term_rules = rules(term)
    joined = "A product that has a bias already takes in another one: the two constants are added, and their sum is the bias."
    stays = "A product that has a bias already takes in no other: a constant that is added to it stays a sum of its own."
    *first, last = (f"`{name}`" for name in term_rules.functions)
    return {
        **term_rules.words,
        "functions": f"{', '.join(first)} and {last}",
        "other": term_rules.others[0],
        "without": str(WITHOUT_A_FAULT),
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
    """What only `grade` runs: one thing that a pass may overlook in each test, and for each pass all of them once more."""
    term_rules, draw = rules(term), Random(f"{seed}/passes")

    def test(function: str, what: str, points: float, motifs: Sequence[Motif], judge: Judge) -> Test:
        cases = list(graphs(draw, term_rules, PLAIN[function], motifs))
        return Test(f"{_short(function)}: {what}", points, partial(judge, function, term_rules, cases, str(seed)))

    def of(function: str, kinds: Kinds) -> Iterator[Test]:
        for what, (points, chosen) in kinds.items():
            yield test(function, what, points, chosen * 2, several)
        yield test(function, "every kind", WITHOUT_A_FAULT, [motif for _, chosen in kinds.values() for motif in chosen], all_of)

    return [each for function, kinds in HIDDEN.items() for each in of(function, kinds)]


def several(function: str, rules: Rules, cases: Sequence[Graph], key: str, submission: Submission) -> Outcome:
    """Graphs, of which each earns its share; the first one that is wrong is shown."""
    found = [rewritten(function, rules, graph, f"{key}/{number}", submission) for number, graph in enumerate(cases)]
    return some_right(found, "graphs are right")


def all_of(function: str, rules: Rules, cases: Sequence[Graph], key: str, submission: Submission) -> Outcome:
    """Graphs, of which all must be right."""
    return all_or_nothing(several(function, rules, cases, key, submission))


LAB = declared(Path(__file__).parent, words=_words, public=_public, hidden=_hidden)
