"""What tests of all labs do alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tpucc.labs.judging import Scale, all_or_nothing, all_right, geometric_mean, some_right
from tpucc.labs.lab import Outcome

RIGHT, HALF, WRONG = Outcome(1, "fine"), Outcome(0.5, "slow", given="x"), Outcome(0, "no")


@pytest.mark.parametrize("scale", [Scale(1.0, 2.0), Scale(1.0, 0.5)], ids=["less is better", "more is better"])
def test_points_fall_evenly_between_two_thresholds(scale: Scale) -> None:
    middle = (scale.full + scale.none) / 2
    assert [scale.share(value) for value in (scale.full, middle, scale.none)] == [1, 0.5, 0]
    assert {scale.share(scale.full + 9 * (scale.full - scale.none)), scale.share(scale.none - 9 * (scale.full - scale.none))} == {0, 1}
    assert str(Scale(1.06, 1.25)) == "1.06 earns all points, 1.25 none"


def test_quotients_are_averaged_by_their_products() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)


def test_after_a_failure_nothing_is_asked() -> None:
    asked = []

    def found() -> Iterator[Outcome]:
        for outcome in (RIGHT, WRONG, HALF):
            asked.append(outcome)
            yield outcome

    assert all_right(found()) == WRONG
    assert asked == [RIGHT, WRONG]
    assert all_right([WRONG, RIGHT]) == WRONG
    assert all_right([HALF, RIGHT]) == HALF
    assert all_right([RIGHT, RIGHT]) == RIGHT


@pytest.mark.parametrize(("none", "share"), [(1.0, 0.5), (0.5, 0.0), (0.8, 0.375)])
def test_each_of_several_outcomes_earns_its_share(none: float, share: float) -> None:
    found = some_right([RIGHT, HALF, WRONG, RIGHT], "cases are right", none)
    assert found.share == pytest.approx(share)
    assert (found.message, found.given) == ("2 of 4 cases are right: slow", "x")
    assert some_right([RIGHT, RIGHT], "cases are right", none) == Outcome(1, "2 of 2 cases are right")


def test_a_part_may_earn_nothing() -> None:
    assert [all_or_nothing(outcome).share for outcome in (RIGHT, HALF, WRONG)] == [1, 0, 0]
