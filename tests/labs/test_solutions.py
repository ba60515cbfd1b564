"""The labs' own solutions, which submissions are compared with, answer as second programs do; archives have what the public tests ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from tests.support import lab_answers
from tests.support.cases import one_of
from tpucc.labs import find, solutions
from tpucc.labs.front_end import cases
from tpucc.labs.front_end.comparing import MOST, drawn, rule_text
from tpucc.labs.front_end.rules import rules as rules_of_lag
from tpucc.labs.here import Here
from tpucc.labs.lab import AS_WRITTEN, Lab, Term
from tpucc.labs.packing import references
from tpucc.labs.passes import KINDS
from tpucc.labs.passes.comparing import _differs, wanted
from tpucc.labs.passes.comparing import rules as rules_of_passes
from tpucc.labs.passes.motifs import graphs
from tpucc.labs.quantisation.rules import rules as rules_of_integers
from tpucc.labs.solutions import recorded, recorded_file, recording
from tpucc.ops.opdef import RuleError
from tpucc.plugins.failures import Failed

TERMS = [AS_WRITTEN, Term("spring"), Term("fall"), Term("a")]


@pytest.mark.parametrize("term", one_of(2, TERMS), ids=str)
def test_lab_1_is_right_about_types_values_and_errors(term: Term) -> None:
    rules, draw, compared = rules_of_lag(term), Random(5), 0
    kinds = (cases.plain, cases.broadcast, cases.axes, cases.sizes, cases.refused, cases.far)
    for case in (case for kind in kinds for group in kind(draw) for case in group):
        expected = lab_answers.type_of_lag(rules, case.given, case.types)
        told = rule_text(rules.rule(case.given, case.types))
        if isinstance(expected, RuleError):
            assert told == f"RuleError {expected.code}, about={expected.about}"
        else:
            assert told == str(expected)
            if max(expected.size, *(type_.size for type_ in case.types)) <= MOST:
                a, b = (drawn(type_.shape, draw) for type_ in case.types)
                by, axis = (int(str(value)) for value in (case.by, case.axis))
                assert np.array_equal(rules.value(case.given, [a, b]), lab_answers.values_of_lag(rules, by, axis, a, b))
                compared += 1
    assert compared > 30


@pytest.mark.parametrize("function", KINDS)
@pytest.mark.parametrize("term", one_of(2, TERMS), ids=str)
def test_lab_2_leaves_of_a_graph_what_it_must(function: str, term: Term) -> None:
    """Names, operators, operands, attributes and types of all nodes."""
    rules, motifs = rules_of_passes(term), [motif for kind in KINDS[function]["hidden"].values() for motif in kind["parts"]]
    for graph in graphs(Random(7), rules, KINDS[function]["plain"], motifs):
        made, nodes = wanted(function, graph, rules), lab_answers.PASSES[function](graph, rules)
        assert made is not None
        needed = {output.node for output in graph.outputs}
        for node in reversed(list(nodes.values())):
            needed |= set(node.operands) if node.name in needed else set()
        assert [problem for name, node in nodes.items() if name in needed and (problem := _differs(node, made))] == []
        assert {node.name for node in made if node.op != "constant"} <= set(nodes)
        assert {node.name for node in made if node.name in graph.by_name} == {name for name in needed if name in graph.by_name}


ARITHMETIC: Mapping[str, Callable[..., object]] = {"quantise": lab_answers.quantise, "requantise": lab_answers.requantise}


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_lab_3_rounds_and_saturates_as_its_term_says(term: Term) -> None:
    rules, draw = rules_of_integers(term), np.random.default_rng(3)
    halves = np.arange(-2 * rules.high, 2 * rules.high).astype(np.float32) / 2
    values = np.concatenate([halves, draw.normal(0, 30, 300), [np.inf, -np.inf, 1e-45]]).astype(np.float32)
    sums = np.append(draw.integers(-(2**31), 2**31, 300), [2**31 - 1, -(2**31), 2**24 + 1, 2**25 - 1]).astype(np.int32)
    for zero in (-7, 0, 5):
        for factor in (2.0**-24, 0.3, 1.0):
            for function, given in (("quantise", values), ("requantise", sums)):
                found = rules.solution.expected(function, given, factor, zero)
                assert (found == ARITHMETIC[function](rules, given, factor, zero)).all()
    weights = draw.normal(0, 1, (30, 7)).astype(np.float32)
    weights[:, 2], weights[:, 4] = 0, 1e-42
    integers, scales = rules.solution.expected("quantise_weights", weights)
    expected = lab_answers.quantise_weights(rules, weights)
    assert (integers == expected[0]).all()
    assert (scales == expected[1]).all()
    for low, high in ((-1.0, 3.0), (0.0, 0.0), (-3e38, 3e38), (2.0, 5.0), (-1e-44, 0.0), (-7.0, -3.0)):
        scale, zero_point = lab_answers.parameters(rules, low, high)
        assert rules.solution.expected("parameters", low, high) == [scale, int(lab_answers.rounded(rules, np.array(zero_point)))]


@pytest.mark.long
@pytest.mark.parametrize("lab", [find("order"), find("waits"), find("tiling")], ids=lambda lab: lab.name)
def test_what_is_recorded_is_no_answer(lab: Lab) -> None:
    """Of labs that are measured by cycles."""
    made = references(lab, Term("spring"))
    assert made
    assert all(type(number) is int for value in made.values() for number in value.values())


def test_an_archive_has_what_was_recorded_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a submission may be asked in public tests is recorded. A lab without that says which solution is missing."""
    lab, rules = find("quantisation"), rules_of_integers(AS_WRITTEN)
    made = references(lab, AS_WRITTEN)
    known = msgspec.msgpack.decode(recorded_file(made))
    monkeypatch.setattr(solutions, "_known", lambda: known)
    monkeypatch.setattr(solutions, "is_archive", lambda: True)
    monkeypatch.setattr(solutions, "_submission", solutions._submission.__wrapped__)
    assert rules.solution.expected("parameters", -1.0, 3.0) == [0.01568627543747425, -64]
    assert rules.solution.answer("parameters", -1.0, 3.5) is None
    with pytest.raises(NotImplementedError, match="lab 3: write parameters, calibrate"):
        rules.solution.expected("parameters", -1.0, 3.5)


def test_a_result_is_recorded_by_all_arguments() -> None:
    @recorded
    def total(numbers: list[int], more: int) -> int:
        return sum(numbers) + more

    with recording() as made:
        assert [total([1, 2], 3), total([1, 2], 3), total([2, 1], 3), total([1, 2], more=3)] == [6, 6, 6, 6]
    assert list(made.values()) == [6, 6, 6]
    assert total([1], 1) == 2
    assert len(made) == 3


def test_a_result_is_known_by_the_whole_text_of_its_arguments() -> None:
    """Also by what is cut where a message shows it."""

    @recorded
    def last(values: object) -> int:
        return 0

    long = np.arange(5000)
    with recording() as made:
        for values in (long, np.where(long == 2500, 0, long), [long], list(range(99)), list(range(98))):
            last(values)
    assert len(made) == 5


def test_a_solution_fails_as_a_submission_does(tmp_path: Path) -> None:
    solution = rules_of_integers(AS_WRITTEN).solution
    with pytest.raises(Failed, match=r"reference\.py defines no function nothing"):
        solution.call("nothing")
    with pytest.raises(Failed) as found:
        solution.call("quantise", "a", 1.0, 0)
    assert found.value.frames
    with pytest.raises(Failed, match="the submission has no notes"):
        Here({}, tmp_path).text("notes.txt")
