"""What tests of all labs do alike: several answers in one test, measures between two thresholds, programs that are compiled and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc import api
from tpucc.labs.lab import Outcome, judging_seed, lost
from tpucc.plugins.failures import Failed
from tpucc.runtime.judge import Verdict


@dataclass(frozen=True, slots=True)
class Scale:
    """The thresholds of a measure: the value that earns all points and the one that earns none. Between them points fall evenly."""

    full: float
    none: float

    def share(self, value: float) -> float:
        """The share of the points that a value earns, 0 to 1."""
        return min(1.0, max(0.0, (self.none - value) / (self.none - self.full)))

    def __str__(self) -> str:
        return f"{self.full:g} earns all points, {self.none:g} none"


def in_the_mean(what: str, scale: Scale, found: Sequence[tuple[int, int]], name: str = "") -> tuple[Outcome, int]:
    """What quotients of a submission's measure and a reference's earn in their geometric mean, and which is the worst. A leaderboard knows
    the mean by the `name`, which is `what` it is of, if not given."""
    quotients = [max(1, own) / max(1, best) for own, best in found]
    mean = geometric_mean(quotients)
    worst = quotients.index(max(quotients))
    message = f"{what} is {mean:.3f} in the mean of {len(found)}; {scale}. The worst is {quotients[worst]:.3f}, and is drawn"
    return Outcome(scale.share(mean), message, measures={name or what: mean}, call=None), worst


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def outcome_of(test: Callable[[], Outcome]) -> Outcome:
    """What a test finds. A wrong answer, and a call without a result, are outcomes without points."""
    try:
        return test()
    except Failed as failure:
        return lost(failure)


def some_right(tests: Iterable[Callable[[], Outcome]], what: str, none: float = 1.0) -> Outcome:
    """Tests of which each earns its share; no share is left where the failed are `none` of all, 0 to 1. The message counts `what` is
    right, and goes on with the first failure, which is shown."""
    found = list(map(outcome_of, tests))
    failed = [outcome for outcome in found if not outcome.passed]
    message = f"{len(found) - len(failed)} of {len(found)} {what}"
    if not failed:
        return replace(found[-1], message=message)
    share = max(0.0, 1 - len(failed) / len(found) / none)
    return replace(failed[0], share=share, message=f"{message}: {failed[0].message}")


def all_or_nothing(outcome: Outcome) -> Outcome:
    """An outcome without the points of a part."""
    return outcome if outcome.passed else replace(outcome, share=0)


def judged(exe: api.Executable) -> tuple[Verdict, str]:
    """The verdict on a program, on inputs that no submission knows, and what is wrong with the program; nothing where it is right."""
    verdict = api.judge(exe, seed=judging_seed())
    return verdict, "" if verdict.equal else "; ".join(found.message for found in verdict.findings) or str(verdict.first_difference)
