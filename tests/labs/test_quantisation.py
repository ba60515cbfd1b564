"""Lab 3: as it is written, its arithmetic is the machine's own; ties go where a term says; scales that nothing multiplies are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.lab_answers import rounded
from tests.support.lab_results import Here
from tests.support.lab_solutions import handed_in
from tpucc import numerics
from tpucc.guest.values import Plain
from tpucc.labs import find
from tpucc.labs.grading import run as run_test
from tpucc.labs.lab import Term
from tpucc.labs.quantisation import exact, fixed, ranges, ranges_at_ties, ranges_text
from tpucc.labs.quantisation.network import network, run
from tpucc.labs.quantisation.rules import Rules, rules
from tpucc.numerics import Float32
from tpucc.plugins.failures import Failed

AS_WRITTEN = rules(Term())
SOLVED = AS_WRITTEN.solution.call


class Exact:
    """A submission that answers what the rules say, but for the scales of tensors."""

    def __init__(self, scales: tuple[float, ...]) -> None:
        self._scales = list(scales)

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        if function == "calibrate":
            return [self._scales.pop(0), 0]
        return AS_WRITTEN.solution.call(function, *arguments)

    def text(self, name: str) -> str:
        raise Failed("file", name)


def test_the_lab_as_written_has_the_machines_arithmetic() -> None:
    draw = np.random.default_rng(3)
    x = np.append(draw.normal(0, 3, 400), [np.inf, -np.inf, 0.5, 1.5, -2.5]).astype(np.float32)
    sums = np.append(draw.integers(-(2**31), 2**31, 400), [2**31 - 1, -(2**31), 2**24 + 1]).astype(np.int32)
    weights = draw.normal(0, 1, (30, 7)).astype(np.float32)
    weights[:, 2], weights[:, 4] = 0, 1e-42
    for zero in (-7, 0, 4):
        assert (SOLVED("quantise", x, 0.5, zero) == numerics.quantise(x, 0.5, zero)).all()
        for factor in (2.0**-24, 3e-9, 1.0):
            assert (SOLVED("requantise", sums, factor, zero) == numerics.requantise(sums, np.float32(factor), zero)).all()
    integers, scales = SOLVED("quantise_weights", weights)
    assert (scales == numerics.weight_scales(weights, True)).all()
    assert (integers == numerics.quantise_weights(weights, scales)).all()
    for low, high in ((-1.0, 3.0), (0.0, 0.0), (-3e38, 3e38), (2.0, 5.0), (-1e-44, 0.0), (-7.0, -3.0)):
        assert tuple(SOLVED("parameters", low, high)) == numerics.affine_parameters(low, high)


@pytest.mark.parametrize(
    ("ties", "expected"),
    [("even", [-2, -2, 0, 0, 0, 2, 2]), ("away", [-3, -2, -1, 0, 1, 2, 3]), ("zero", [-2, -1, 0, 0, 0, 1, 2])],
)
def test_ties_go_where_the_term_says(ties: Any, expected: list[int]) -> None:
    halves = np.array([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5], np.float32)
    assert Rules(8, ties, False).solution.call("quantise", halves, 1.0, 0).tolist() == expected


def test_no_terms_ties_are_the_machines() -> None:
    assert all(rules(Term(str(n))).ties != "even" for n in range(20))


def test_a_drawing_in_characters_has_its_ends_below_it() -> None:
    *_, axis, ends, bracket = ranges_text(np.linspace(-1, 3, 50, dtype=np.float32), (-2.4, 2.3), "fc1").splitlines()
    assert (axis, ends.split(), bracket[0]) == ("─" * 64, ["-2.4", "3"], "[")
    assert max(map(len, (axis, ends, bracket))) == 64


@pytest.mark.parametrize("scales", [(3e38, 3e38, 3e38, 3e38), (1.2e-38, 1.0, 3e38, 3e38)])
def test_scales_of_any_size_have_a_ratio(scales: tuple[float, ...]) -> None:
    net = network()
    assert run(AS_WRITTEN, net, net.samples, Exact(scales)).ratio < 1


@pytest.mark.parametrize("scales", [(1e38, 1.2e-38, 1.0, 1.0), (1.2e-38, 1e38, 1e38, 1.2e-38)])
def test_scales_that_no_float32_joins_are_refused(scales: tuple[float, ...]) -> None:
    net = network()
    with pytest.raises(Failed, match="so far apart"):
        run(AS_WRITTEN, net, net.samples, Exact(scales))


class Rounding(Exact):
    """A submission whose `quantise` and `requantise` round as another term's rules say."""

    def __init__(self, given: Rules) -> None:
        super().__init__(())
        self._given = given

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        return self._given.solution.call(function, *arguments)


@pytest.mark.parametrize("function", ["quantise", "requantise"])
@pytest.mark.parametrize("term", ["", "spring", "fall", "a", "b"])
def test_a_public_test_finds_where_ties_go_and_says_that_there_is_one(function: str, term: str) -> None:
    rule = rules(Term(term))
    test = next(test for test in find("quantisation").public(Term(term)) if test.name == function)
    found = run_test(test, Rounding(replace(rule, ties="away" if rule.ties == "even" else "even")))  # as np.rint
    assert re.search(r"; the (quotient|product) -?\d+\.5 is a tie: expected", found.outcome.message)


@pytest.mark.parametrize("name", ["a network", "samples with defects"])
def test_of_a_tie_a_network_takes_either_neighbour(name: str) -> None:
    """Where ties go costs points in the tests that are about ties alone; what is no nearest integer is refused."""
    term = Term("2027-autumn")
    rule, weights = rules(term), network().weights[0]
    other = replace(rule, ties="even")
    integers = [each.solution.call("quantise_weights", weights)[0] for each in (rule, other)]
    assert (integers[0] != integers[1]).any()
    test = next(test for test in find("quantisation").public(term) if test.name == name)
    assert run_test(test, Rounding(other)).outcome.share == 1
    found = run_test(test, Truncating(rule)).outcome
    assert (found.share, "mend `quantise` first: quantise, element [" in found.message) == (0, True)


class Truncating(Rounding):
    """A submission whose `quantise` gives integers nearer to zero than they should be."""

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        answer = super().call(function, *arguments)
        return np.trunc(answer * 0.99).astype(np.int64) if function == "quantise" else answer


class Mistaken:
    """The rules with one mistake."""

    def __init__(self, rule: Rules, mistake: str) -> None:
        self._rule, self._mistake = rule, mistake

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        rule, first = self._rule, self._mistake == "zero point first"
        if function == "quantise_weights":
            return self._weights(*arguments)
        values, factor, zero = arguments
        scaled = values / np.float32(factor) if function == "quantise" else values.astype(np.float32) * factor
        with np.errstate(over="ignore"):
            whole = rounded(rule, scaled + zero) if first else rounded(rule, scaled) + zero
        return np.clip(whole, rule.low, rule.high).astype(np.int64)

    def _weights(self, weights: Float32) -> Plain:
        scales = np.abs(weights).max(axis=0) / np.float32(self._rule.high)
        whole = self._rule if self._mistake == "zero columns" else replace(self._rule, ties="away" if self._rule.ties == "even" else "even")
        with np.errstate(invalid="ignore"):
            integers = np.nan_to_num(rounded(whole, weights / scales)).astype(np.int64)
        return [integers, scales if self._mistake == "zero columns" else np.where(scales == 0, np.float32(1), scales)]

    def text(self, name: str) -> str:
        raise Failed("file", name)


@pytest.mark.parametrize("rule", [Rules(bits, ties, False) for bits in (6, 7, 8) for ties in ("even", "away", "zero")], ids=str)
@pytest.mark.parametrize(
    ("mistake", "function", "message"),
    [
        ("zero point first", "quantise", "is a tie"),
        ("zero point first", "requantise", "is a tie"),
        ("weights' ties", "quantise_weights", "expected"),
        ("zero columns", "quantise_weights", "whose largest magnitude is 0"),
    ],
)
def test_public_cases_show_what_the_handout_forbids(mistake: str, function: str, message: str, rule: Rules) -> None:
    cases = fixed(rule, Random(3))["weights" if function == "quantise_weights" else function]
    with pytest.raises(Failed, match=message):
        exact(rule, cases, Mistaken(rule, mistake))


class Unrounded(Rounding):
    """A submission whose zero points come of a scale in float64."""

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        low, high = arguments
        scale = (high - low) / (self._given.high - self._given.low)
        return [scale, int(rounded(self._given, np.array(self._given.zero_point(low, scale))))]


@pytest.mark.parametrize("rule", [Rules(bits, ties, False) for bits in (6, 7, 8) for ties in ("even", "away", "zero")], ids=str)
def test_public_ranges_show_how_a_zero_point_is_rounded_and_of_which_scale(rule: Rules) -> None:
    cases = ranges_at_ties(rule)
    assert ranges(rule, cases, Rounding(rule)).passed
    mistaken = [Rounding(replace(rule, ties=ties)) for ties in ("even", "away", "zero") if ties != rule.ties]
    for submission in (*mistaken, Unrounded(rule)):
        found = ranges(rule, cases, submission)
        assert not found.passed
        assert found.expected.endswith(" before it is rounded")


def test_a_term_with_symmetric_ranges_says_its_zero_point_once() -> None:
    symmetric = next(Term(str(n)) for n in range(20) if rules(Term(str(n))).symmetric)
    said = " ".join(find("quantisation").material("handout.md", symmetric).split())
    assert "six digits. The zero point is always 0. A scale of 0.5" in said
    assert re.search(
        r"six digits\. Then the zero point is round\(.*: here it is -\d+\.",
        find("quantisation").material("handout.md", Term()).replace("\n", " "),
    )


@pytest.mark.parametrize("term", one_of(3, ["", "2027-spring", "fall"]))
def test_ranges_that_leave_defects_out_earn_all_points_with_every_seed(term: str) -> None:
    """What is drawn decides how much noise is left; what earns all points is less than that."""
    lab, which = find("quantisation"), Term(term)
    submission = Here(handed_in(lab, "", which))
    for seed in range(12):
        (found,) = (test for test in lab.hidden(which, seed) if test.name == "hidden: samples with defects")
        outcome = run_test(found, submission).outcome
        assert outcome.share == 1, (seed, outcome.message)
