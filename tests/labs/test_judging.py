"""What tests of all labs do alike."""

from __future__ import annotations

from functools import partial

import pytest

from tpucc.labs.judging import Scale, all_or_nothing, geometric_mean, in_the_mean, some_right
from tpucc.labs.lab import Outcome, Wrong
from tpucc.plugins.failures import Failed

RIGHT, HALF, WRONG = Outcome(1, "fine"), Outcome(0.5, "slow", given="x"), Outcome(0, "no")


@pytest.mark.parametrize("scale", [Scale(1.0, 2.0), Scale(1.0, 0.5)], ids=["less is better", "more is better"])
def test_points_fall_evenly_between_two_thresholds(scale: Scale) -> None:
    middle = (scale.full + scale.none) / 2
    assert [scale.share(value) for value in (scale.full, middle, scale.none)] == [1, 0.5, 0]
    assert {scale.share(scale.full + 9 * (scale.full - scale.none)), scale.share(scale.none - 9 * (scale.full - scale.none))} == {0, 1}
    assert str(Scale(1.06, 1.25)) == "1.06 earns all points, 1.25 none"


def test_quotients_are_averaged_by_their_products() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)


def test_quotients_of_measures_earn_by_their_mean_and_the_worst_is_named() -> None:
    found, worst = in_the_mean("cycles ÷ best", Scale(1, 2), [(3, 3), (18, 8), (0, 0)], "quotient")
    assert found.share == pytest.approx(2 - 2.25 ** (1 / 3))
    assert found.message == "cycles ÷ best is 1.310 in the mean of 3; 1 earns all points, 2 none. The worst is 2.250, and is drawn"
    assert (worst, found.measures) == (1, {"quotient": pytest.approx(2.25 ** (1 / 3))})


def _raised(failure: Failed) -> Outcome:
    raise failure


@pytest.mark.parametrize(("none", "share"), [(1.0, 0.4), (0.5, 0.0), (0.8, 0.25)])
def test_each_of_several_outcomes_earns_its_share(none: float, share: float) -> None:
    """A wrong answer and a call without a result are outcomes, too."""
    wrong, late = Wrong("slow", given="x"), Failed("time", "late")
    tests = [lambda: RIGHT, partial(_raised, wrong), lambda: WRONG, lambda: RIGHT, partial(_raised, late)]
    found = some_right(tests, "cases are right", none)
    assert found.share == pytest.approx(share)
    assert (found.message, found.given) == ("2 of 5 cases are right: slow", "x")
    assert some_right(tests[4:], "cases are right", none).message == "0 of 1 cases are right: late"
    assert some_right([lambda: RIGHT] * 2, "cases are right", none) == Outcome(1, "2 of 2 cases are right")


def test_a_part_may_earn_nothing() -> None:
    assert [all_or_nothing(outcome).share for outcome in (RIGHT, HALF, WRONG)] == [1, 0, 0]
