"""What tests of all labs do alike: several answers in one test, measures between two thresholds, programs that are compiled and run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc import api
from tpucc.labs.lab import Outcome, judging_seed
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


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def all_right(found: Iterable[Outcome]) -> Outcome:
    """The first outcome that isn't passed, or else the last one. The outcomes after a failure aren't made."""
    for outcome in found:
        if not outcome.passed:
            break
    return outcome


def some_right(found: Sequence[Outcome], what: str, none: float = 1.0) -> Outcome:
    """Outcomes of which each earns its share; no share is left where the failed are `none` of all, 0 to 1. The message counts `what` is
    right, and goes on with the first failure, which is shown."""
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
