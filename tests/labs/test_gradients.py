"""Lab 10: every operator that a term may ask for, what counts at kinks, what a rule may not make, and losses that are no numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.lab_results import SEED, results, submitted
from tests.support.lab_solutions import files_of, jailed, mistakes, reference
from tpucc.guest.values import Plain
from tpucc.ir import f32
from tpucc.labs import find
from tpucc.labs.gradients import LINES, PUBLICLY, _cases
from tpucc.labs.gradients.cases import KINKED, OPERATORS, SHAPED, SMOOTH, Case, Rules, rules
from tpucc.labs.gradients.rule_graphs import ask
from tpucc.labs.gradients.training import STEPS, curves_text, gradients_of, network
from tpucc.labs.grading import run
from tpucc.labs.lab import Term
from tpucc.ops import OPS
from tpucc.plugins.failures import Failed
from tpucc.training.passes.build import Apart

LAB = find("gradients")
TERMS = [Term(name) for name in ("", "3", "6", "2026-autumn", "2027-spring")]


def test_the_terms_here_and_spring_have_every_operator() -> None:
    drawn = [rules(term) for term in (*TERMS, Term("spring"))]
    assert {each.smooth for each in drawn} == set(SMOOTH)
    assert {each.shaped for each in drawn} == set(SHAPED)
    assert {(each.kinked, each.slope) for each in drawn} == {(op, slope) for op in KINKED for slope in OPERATORS[op].slopes}


@pytest.mark.long
@pytest.mark.parametrize("term", one_of(3, TERMS), ids=lambda term: term.name or "as written")
def test_every_operator_has_a_solution_and_wrong_ones(term: Term) -> None:
    found = results(LAB, files_of(LAB, reference(LAB)), term)
    assert [result.outcome.message for result in found if not result.outcome.passed] == []
    tests = {test.name: test for test in (*LAB.public(term), *LAB.hidden(term, SEED))}
    for path in mistakes(LAB):
        named = re.search(r"Fails `(?P<test>[^`]+)`", path.read_text("utf-8"))
        assert named is not None
        result = run(tests[named["test"]], submitted(LAB, files_of(LAB, path), term))
        assert not result.outcome.passed, path.name
        assert not result.fault


@pytest.mark.parametrize("term", [*TERMS, Term("spring")], ids=lambda term: term.name or "as written")
def test_no_term_has_the_slope_of_tpuccs_own_rule(term: Term) -> None:
    (own,) = jailed(LAB)
    (result,) = results(LAB, files_of(LAB, own), term, only="kinked: shapes")
    assert result.score == 0


@pytest.mark.parametrize(("slope", "middle"), [("larger", 1.0), ("smaller", 0.25), ("mean", 0.625)])
def test_the_slope_at_a_kink_is_the_terms(slope: str, middle: float) -> None:
    """Whatever the sign of `dy`: the slopes are those of the operator, not of the loss."""
    attributes = OPS["leaky_relu"].attributes(alpha=0.25)
    for dy in (1.0, -2.0):
        case = Case("leaky_relu", attributes, (np.array([-1.0, 0.0, 1.0]),), np.full(3, dy), slope)
        assert case.gradients[0].tolist() == [0.25 * dy, middle * dy, dy]
        assert [case.is_at_kink(0, (place,)) for place in range(3)] == [False, True, False]


class Answers:
    """A submission that answers every call alike."""

    def __init__(self, answer: Plain) -> None:
        self._answer = answer

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        return self._answer

    def defines(self) -> tuple[str, ...]:
        return ("smooth",)

    def text(self, name: str) -> str:
        raise Failed("file", name)


DY = "dy = input : f32[2]"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((DY, "v = tanh(dy) : f32[2]"), "uses tanh, which a rule may not"),
        (("v = input : f32[2]",), "reads v, which the rule was not given"),
        (("dy = input : f32[3]", "v = add(dy, dy) : f32[3]"), "reads dy, which the rule was not given"),
        ((DY, "v = add(dy, dy) : f32[3]"), "nodes that are not valid"),
        ((DY, "v = sum(dy) : f32[]"), "a gradient has its operand's shape"),
        ((DY, f"v = reshape(dy, shape={(2, *[1] * 10)}) : f32{[2, *[1] * 10]}"), "2 elements and 11 axes"),
        (("v = zeros(shape=(1000000,)) : f32[1000000]",), "1,000,000 elements"),
        ((DY, "v = equal(dy, dy) : i32[2]"), "not plain"),
        ((DY, *(f"v{n} = add(dy, dy) : f32[2]" for n in range(40)), "v = add(dy, dy) : f32[2]"), "more than 40 operators"),
        (("nothing",), "not valid"),
        (('v = constant(value=f32[16384, 16384] random(1, "k")) : f32[16384, 16384]',), "at most 100,000 elements in all"),
    ],
)
def test_what_a_rule_may_not_make(lines: tuple[str, ...], message: str) -> None:
    text = "\n".join(("graph rule", "", *lines, "", 'return v as "gradient"'))
    with pytest.raises(Failed, match=message):
        ask("smooth", "tanh", OPS["tanh"].attributes(), [(2,)], Answers([text]))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("x", "returns no list"),
        ([], "one gradient for each operand, 1 here"),
        ([None], "should be a value"),
        (["g" * 9], "should be a value"),
    ],
)
def test_an_answer_that_is_no_list_of_gradients(answer: Plain, message: str) -> None:
    with pytest.raises(Failed, match=message):
        ask("smooth", "tanh", OPS["tanh"].attributes(), [(2,)], Answers(answer))


@pytest.mark.parametrize(("axis", "shape"), [(0, (3,)), (1, (2,)), ((), (2, 3)), ((0, 1), ())])
def test_a_sum_is_over_the_axes_that_are_named(axis: int | tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert Apart().input("x", f32(2, 3)).sum(axis).shape == shape


def test_a_message_names_the_types_that_an_operator_refuses() -> None:
    text = "def smooth(g):\n    return [g.dy @ g.dy]\n"
    (result,) = results(LAB, text, Term(), only="smooth: one value")
    assert re.search(r"ValueError: matmul\(f32\[\d\], f32\[\d\]\): ", result.outcome.message)
    assert re.fullmatch(r"tanh\(x\) with x \[\d\]", result.outcome.given)


def test_of_a_pool_the_window_that_is_wrong_stands_first_and_arrays_are_cut() -> None:
    (result,) = results(LAB, "def kinked(g):\n    return [g.operands[0].zeros()]\n", Term("spring"), only="kinked: shapes")
    call, window, *given = result.outcome.given.splitlines()
    assert re.fullmatch(r"max_pool\(x, size=\(2, 2\)\) with x \[.*\]", call)
    assert re.match(r"x\[\d, \d:\d, \d:\d, \d\] = \[\[", window)
    assert result.outcome.found.startswith("dx[")
    assert given.index("… 12 more lines") > LINES
    assert result.outcome.expected.count("\n") == 1 + 1 + LINES


@pytest.mark.parametrize(
    ("condition", "instead"),
    [
        ("x > 0", 'write mask.call("where", v, w)'),
        ("not x", 'write mask.call("where", v, w)'),
        ("x == 0", 'write v.call("equal", w)'),
        ("x != g.result", 'v.call("not_equal", w)'),
    ],
)
def test_a_condition_about_numbers_is_refused(condition: str, instead: str) -> None:
    """Else it would hold of every value, and be gone from the gradient."""
    text = f"def kinked(g):\n    (x,) = g.operands\n    return [g.dy] if {condition} else [x.zeros()]\n"
    (result,) = results(LAB, text, Term(), only="kinked: one value")
    assert "TypeError: the numbers of a value aren't there yet" in result.outcome.message
    assert instead in result.outcome.message


def test_a_value_is_a_key_by_what_it_is() -> None:
    value = Apart().input("x", f32(2))
    assert {value: 1}[value] == 1
    assert value in [value]


def test_a_training_is_followed_as_long_as_its_losses_are_near() -> None:
    """A term's rules, of which one has a small fault: the loss leaves the reference's after some steps, and earns these."""
    text = files_of(LAB, reference(LAB))[LAB.file]
    fault = "\ndef kinked(g):\n    return [dx * 1.00015 for dx in RULES['{{kinked}}'](g)]\n"
    [test] = [test for test in LAB.public(Term()) if test.name == "training"]
    outcome = run(test, submitted(LAB, {LAB.file: text + fault}, Term())).outcome
    assert 0 < outcome.share < 1
    assert outcome.share == float(re.findall(r"for (\d+) of", outcome.message)[0]) / STEPS


def test_gradients_made_for_known_operands_earn_nothing_of_a_grader() -> None:
    """A rule that answers each public case with the gradient that is right for the operands of `check`."""
    known = {case.operands[0].shape: case.gradients[0].tolist() for case in _cases(Rules(), "smooth", PUBLICLY)}
    made = f"\nimport numpy as np\nKNOWN = {known!r}\ndef smooth(g):\n    return [g.dy * 0.0 + np.array(KNOWN[g.dy.shape], np.float32)]\n"
    submission = submitted(LAB, {LAB.file: files_of(LAB, reference(LAB))[LAB.file] + made}, Term())
    [test] = [test for test in LAB.public(Term()) if test.name == "smooth: shapes"]
    assert [run(test, submission, seed).outcome.share for seed in (0, SEED)] == [1, 0]


def test_a_training_that_explodes_ends_and_is_drawn() -> None:
    net = network(Rules(), "public")
    made = gradients_of(net, Rules(), submitted(LAB, files_of(LAB, reference(LAB)), Term()))
    losses = replace(net, rate=1e200).trained(made)
    assert not math.isfinite(losses[-1])
    assert len(losses) < STEPS
    assert max(map(len, curves_text(losses, net.reference).splitlines())) <= 78
