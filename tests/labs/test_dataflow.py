"""Lab 13: its solution says what reachability in a graph says, and what its pass leaves out no walk misses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import networkx as nx
import pytest

from tests.support.cases import one_of
from tpucc.labs import dataflow
from tpucc.labs.dataflow.plans import DECLARED, MOTIFS, Plan, Rules, mixed, plan, rules
from tpucc.labs.here import Here
from tpucc.labs.lab import AS_WRITTEN, Term, Wrong
from tpucc.labs.solutions import Solution

TERMS = [AS_WRITTEN, Term("fall"), Term("2027 autumn")]
HOST = "the host"
NOWHERE = "before the start"


def plans(rules: Rules) -> Iterator[Plan]:
    """A plan of each motif, and some of anything."""
    draw = Random(13)
    for function, kinds in MOTIFS.items():
        yield from (plan(draw, rules, motif, function) for motifs in kinds.values() for motif in motifs.values())
    yield from (mixed(draw, rules, "clean") for _ in range(60))


def steps(given: Plan) -> Iterator[tuple[int, int, bool]]:
    """Pairs of instructions that may follow each other, and whether a part begins between them."""
    for first, end, after in given.parts:
        yield from ((n, following, False) for n, following in pairwise(range(first, end)))
        yield from ((end - 1, given.parts[q][0], True) for q in after)


def live(given: Plan, rules: Rules) -> list[set[int]]:
    """By a graph of (instruction, row), from whose nodes paths lead to the host: a value is handed on by rows and by instructions."""
    graph, kept, code = nx.DiGraph(), range(rules.low, rules.low + rules.size), list(given.listing)
    rows = {row for i in code for row in (*i.reads.buffer.tolist(), *i.writes.buffer.tolist(), *kept)}
    for _, end, after in given.parts:
        graph.add_edges_from(((end - 1, row), HOST) for row in kept if rules.anywhere or not after)
    for n, following, _ in steps(given):
        i = code[following]
        written = set(i.writes.buffer.tolist())
        graph.add_edges_from(((n, row), (following, row)) for row in rows - written)
        graph.add_edges_from(((n, row), (following, to)) for row in i.reads.buffer.tolist() for to in written)
        graph.add_edges_from(((n, row), HOST) for row in i.reads.buffer.tolist() if len(i.writes.host))
    reaching = nx.ancestors(graph, HOST)
    return [{row for row in rows if (n, row) in reaching} for n in range(len(code))]


def held(given: Plan, rules: Rules) -> list[set[tuple[int, int]]]:
    """By a graph of (instruction, pair), to whose nodes paths lead from where a pair may come to differ."""
    graph, code, begun = nx.DiGraph(), list(given.listing), []
    for i in code:
        row, host = (i.writes.buffer, i.reads.host) if len(i.reads.host) else (i.reads.buffer, i.writes.host)
        begun.append(set(zip(row.tolist(), host.tolist(), strict=False)))
    pairs = set().union(*begun)
    graph.add_edges_from((NOWHERE, (0, pair)) for pair in pairs)
    for n, following, is_new in steps(given):
        for pair in pairs - begun[n]:
            ended = pair[0] in code[n].writes.buffer or pair[1] in code[n].writes.host
            graph.add_edge(NOWHERE if ended else (n, pair), (following, pair))
        graph.add_edges_from((NOWHERE, (following, pair)) for pair in pairs if is_new and pair[1] < rules.inputs)
    differing = nx.descendants(graph, NOWHERE)
    return [{pair for pair in pairs if (n, pair) not in differing} for n in range(len(code))]


@pytest.mark.parametrize("term", one_of(2, TERMS), ids=str)
def test_the_facts_are_paths_in_a_graph(term: Term) -> None:
    own = rules(term)
    solution = Solution.of(Path(dataflow.__file__).parent, own)
    for given in plans(own):
        assert [set(rows) for rows in solution.call("live", *given.asked)] == live(given, own)
        assert [{(row, host) for row, host in found} for found in solution.call("held", *given.asked)] == held(given, own)


@pytest.mark.parametrize("term", one_of(2, TERMS), ids=str)
def test_what_is_left_out_no_walk_misses(term: Term) -> None:
    own, draw, fewer = rules(term), Random(31), 0
    solution = Solution.of(Path(dataflow.__file__).parent, own)
    for given in plans(own):
        whole, stays = frozenset(range(len(given.listing))), frozenset(solution.call("clean", *given.asked))
        assert all(n in stays for n in whole if len(given.listing[n].writes.host))
        fewer += len(whole) - len(stays)
        for walk, numbers in ((given.walk(draw), dict[object, int]()) for _ in range(10)):
            assert given.effect(walk, stays, own, numbers) == given.effect(walk, whole, own, numbers)
    assert fewer > 200


def test_a_walk_shows_what_was_left_out() -> None:
    """In words, where the host gets another value; else the message says that it doesn't."""
    own = Rules()
    given = plan(Random(0), own, DECLARED["example"], shuffled=False)
    assert "row 12 of the host, which instruction 3 writes" in dataflow._lost(given, frozenset(range(11)) - {2, 7}, own)
    assert "the host still gets the same values" in dataflow._lost(given, frozenset(range(11)) - {5, 7, 8}, own)
    loop = plan(Random(0), own, [("a < 0; a > A", 1), ("a < 0; a > B", 1)], shuffled=False)
    assert "the parts 0, 1" in dataflow._lost(loop, frozenset({0, 1, 3}), own)


def test_a_set_with_too_little_is_wrong_and_so_is_one_with_too_much() -> None:
    own = Rules()
    given = plan(Random(0), own, DECLARED["example"], shuffled=False)
    right = live(given, own)
    assert dataflow.flowing("live", own, given, Here({"live": lambda *_: right}, Path())).passed
    for rows, words in ((right[4] - {0}, "0 missing"), (right[4] | {9}, "9 too many"), (right[4] ^ {1, 8}, "1 missing and 8 too many")):
        answer = [*right[:4], rows, *right[5:]]
        with pytest.raises(Wrong, match=f"live after instruction 4 `read_host_memory .*`: {words}"):
            dataflow.flowing("live", own, given, Here({"live": lambda *_, answer=answer: answer}, Path()))
