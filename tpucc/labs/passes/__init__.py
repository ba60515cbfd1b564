"""Lab 2: three passes on the operator graph: constant folding, fuse bias, fuse activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tpucc.ir import Graph
from tpucc.ir.node import Output
from tpucc.labs.judging import all_or_nothing, read_graph, some_right
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Test, declared, require_fit
from tpucc.labs.passes.comparing import Rules, compiled, node_words, rewritten, rules
from tpucc.labs.passes.motifs import graphs
from tpucc.see.pictures import graph_svg

PLAIN: Mapping[str, str] = {"fold_constants": "folds", "fuse_bias": "right", "fuse_activation": "activated"}
"""What each pass has to do in every graph."""
PUBLIC: Mapping[str, tuple[str, ...]] = {
    "fold_constants": (
        "weights that the source computes",
        "an operator without operands",
        "partly",
        "a constant that something else reads",
        "more elements",
    ),
    "fuse_bias": ("left", "a shared product", "no constant", "a second bias", "a pinned product", "a pinned sum"),
    "fuse_activation": (
        "a parameter",
        "after a bias",
        "another function",
        "read by two",
        "a range",
        "without constant weights",
        "pinned after",
    ),
}
"""What `check` has beside it."""

Kinds = Mapping[str, tuple[float, tuple[str, ...]]]
"""What a pass may overlook, by what it is: the points of its own test, and the parts of graphs that show it."""
HIDDEN: Mapping[str, Kinds] = {
    "fold_constants": {
        "the limit": (
            2,
            (
                "as many elements as the limit",
                "more elements",
                "no operands, more elements",
                "no larger than its operands",
                "as large as two uses",
            ),
        ),
        "pinned values": (2, ("a pinned constant", "a pinned result")),
        "what depends on nothing": (2, ("an operator without operands", "an output that depends on no input", "partly")),
    },
    "fuse_bias": {
        "shared products": (2, ("a shared product", "a product that is an output", "a second bias of a shared sum", "added to itself")),
        "the other side": (2, ("left", "subtracted", "subtracted from")),
        "a second bias": (1, ("a second bias", "after an activation")),
        "shapes": (1, ("a scalar", "a row of rank two", "a value each", "a column", "a sum of higher rank")),
        "no constants": (1, ("no constant", "no constant weights")),
        "pinned values": (1, ("a pinned product", "a pinned bias", "pinned weights", "a pinned sum")),
    },
    "fuse_activation": {
        "functions": (
            2,
            ("a parameter", "another function", "softmax", "two functions", "after a sum with no constant", "a range"),
        ),
        "shared products": (
            2,
            ("shared by a function", "read by two", "an output before", "without constant weights", "without a constant bias"),
        ),
        "pinned values": (2, ("pinned before", "pinned after")),
    },
}
GONE = "it is gone"
WITHOUT_A_FAULT = 10
"""The points of a pass that is right for every kind of graph: one that isn't can't be used, however rare its fault is."""
Judge = Callable[[str, Rules, Sequence[Graph], str, Submission], Outcome]


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    joined = "A product that has a bias already takes in another one: the two constants are added, and their sum is the bias."
    stays = "A product that has a bias already takes in no other: a constant that is added to it stays a sum of its own."
    *first, last = (f"`{name}`" for name in rules.functions)
    return {"taken": f"{', '.join(first)} and {last}", "without": WITHOUT_A_FAULT, "second_rule": joined if rules.second else stays}


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    one = {function: list(graphs(Random(2), rules, plain, (plain,))) for function, plain in PLAIN.items()}
    some = {function: list(graphs(Random(22), rules, PLAIN[function], chosen)) for function, chosen in PUBLIC.items()}
    return (
        *(Test(f"{_short(function)}: one graph", 5, partial(several, function, rules, one[function], "")) for function in PLAIN),
        *(Test(f"{_short(function)}: graphs", 8, partial(several, function, rules, some[function], "")) for function in PLAIN),
        Test("a program", 11, partial(compiled, rules, 4)),
    )


def _short(function: str) -> str:
    return function.replace("_", " ")


def _hidden(rules: Rules, draw: Random, seed: str) -> Sequence[Test]:
    """What only `grade` runs: one thing that a pass may overlook in each test, and for each pass all of them once more."""

    def test(function: str, what: str, points: float, motifs: Sequence[str], judge: Judge) -> Test:
        cases = list(graphs(draw, rules, PLAIN[function], motifs))
        return Test(f"{_short(function)}: {what}", points, partial(judge, function, rules, cases, seed))

    def of(function: str, kinds: Kinds) -> Iterator[Test]:
        for what, (points, chosen) in kinds.items():
            yield test(function, what, points, chosen * 2, several)
        yield test(function, "every kind", WITHOUT_A_FAULT, [motif for _, chosen in kinds.values() for motif in chosen], all_of)

    return [each for function, kinds in HIDDEN.items() for each in of(function, kinds)]


def several(function: str, rules: Rules, cases: Sequence[Graph], key: str, submission: Submission) -> Outcome:
    """Graphs, of which each earns its share; the first one that is wrong is shown."""
    tests = (partial(rewritten, function, rules, graph, f"{key}/{number}", submission) for number, graph in enumerate(cases))
    return some_right(tests, "graphs are right")


def all_of(function: str, rules: Rules, cases: Sequence[Graph], key: str, submission: Submission) -> Outcome:
    """Graphs, of which all must be right."""
    return all_or_nothing(several(function, rules, cases, key, submission))


def became(exchange: Exchange, oral: Oral) -> Question:
    """What became of an operator, or why it stayed."""
    graph, name = exchange.arguments[0], oral.draw.choice(_operators(exchange))
    asked = f"What has your `{exchange.function}` made of `{name} = {node_words(graph[name])}`, and what had to hold for that?"
    words = f"{_now(exchange, name)}.{oral.beside(exchange, lambda other: _now(other, name))}"
    return Question(asked, words, **_shown(exchange), dull=_now(exchange, name) == node_words(graph[name]))


def read_twice(exchange: Exchange, oral: Oral) -> Question:
    """What a pass leaves when a value that it took away is an output, too."""
    graph: Graph = exchange.arguments[0]
    require_fit(bool(gone := [name for name in _operators(exchange) if _now(exchange, name) == GONE]))
    given = replace(graph, outputs=(*graph.outputs, Output("one_more", name := oral.draw.choice(gone))))
    words = f"{name} were an output of the model, too"
    return oral.what_if(exchange, words, (given,), lambda each: _now(each, name), **_shown(exchange))


def _operators(exchange: Exchange) -> list[str]:
    return [node.name for node in exchange.arguments[0] if node.operands]


def _now(exchange: Exchange, name: str) -> str:
    """What a pass made of a node."""
    made = read_graph(exchange.answer, exchange.arguments[0]).by_name.get(name)
    return node_words(made) if made else GONE


def _shown(exchange: Exchange) -> dict[str, Any]:
    return {"picture": partial(graph_svg, exchange.arguments[0], f"What {exchange.function} gets")}


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(became, read_twice))
