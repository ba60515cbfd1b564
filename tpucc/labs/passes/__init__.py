"""Lab 2: three passes on the operator graph: constant folding, fuse bias, fuse activation."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tpucc.ir import Graph
from tpucc.ir.node import Output
from tpucc.labs.judging import Run, every, read_graph, several
from tpucc.labs.lab import Exchange, Oral, Question, Test, declared, require_fit
from tpucc.labs.passes.comparing import Rules, compiled, node_words, rewritten, rules
from tpucc.labs.passes.motifs import graphs
from tpucc.see.pictures import graph_svg

KINDS: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
"""The graphs of each pass."""
GONE = "it is gone"
WITHOUT_A_FAULT = 10
"""The points of a pass that is right for every kind of graph: one that isn't can't be used, however rare its fault is."""


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    *first, last = (f"`{name}`" for name in rules.functions)
    return {"taken": f"{', '.join(first)} and {last}", "without": WITHOUT_A_FAULT}


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    one = {function: list(graphs(Random(2), rules, said["plain"], [said["plain"]])) for function, said in KINDS.items()}
    some = {function: list(graphs(Random(22), rules, said["plain"], said["public"])) for function, said in KINDS.items()}
    return (
        *(Test(f"{_short(function)}: one graph", 5, _right(several, function, rules, graphs)) for function, graphs in one.items()),
        *(Test(f"{_short(function)}: graphs", 8, _right(several, function, rules, graphs)) for function, graphs in some.items()),
        Test("a program", 11, partial(compiled, rules, 4)),
    )


def _right(earning: Callable[..., Run], function: str, rules: Rules, graphs: Sequence[Graph]) -> Run:
    return earning(partial(rewritten, function, rules), graphs, "graphs are right")


def _short(function: str) -> str:
    return function.replace("_", " ")


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: one thing that a pass may overlook in each test, and for each pass all of them once more."""

    def test(function: str, what: str, points: float, parts: Sequence[str], earning: Callable[..., Run]) -> Test:
        drawn = list(graphs(draw, rules, KINDS[function]["plain"], parts))
        return Test(f"{_short(function)}: {what}", points, _right(earning, function, rules, drawn))

    found = list[Test]()
    for function, said in KINDS.items():
        kinds = said["hidden"]
        found += [test(function, what, kind["points"], kind["parts"] * 2, several) for what, kind in kinds.items()]
        found.append(test(function, "every kind", WITHOUT_A_FAULT, [part for kind in kinds.values() for part in kind["parts"]], every))
    return found


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
