"""What tests of all labs do alike: reading answers, several answers in one test, measures between two thresholds, judging programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tpucc import api
from tpucc.diagnostics import Error, counted
from tpucc.guest.values import Plain
from tpucc.ir import Graph
from tpucc.ir.parser import parse_graph
from tpucc.labs.lab import Outcome, Submission, Wrong, judging_seed, lost
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.numerics import AnyArray
from tpucc.passes.pipeline import verify_stage
from tpucc.plugins.code import short
from tpucc.plugins.failures import Failed
from tpucc.plugins.judged import NOISE, NOISE_STAGE
from tpucc.runtime.check import float_reference, random_inputs
from tpucc.runtime.judge import Verdict

Case = TypeVar("Case")
Run = Callable[[Submission], Outcome]
DRAWS = 16
"""Random inputs on which noise is measured, where it must be known better than from one."""


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


def several(test: Callable[[Case, Submission], Outcome], cases: Iterable[Case], what: str, none: float = 1.0) -> Run:
    """What runs a test on cases, of which each earns its share, as in `some_right`."""
    return lambda submission: some_right((partial(test, case, submission) for case in cases), what, none)


def every(test: Callable[[Case, Submission], Outcome], cases: Iterable[Case], what: str) -> Run:
    """The same of cases of which all must be right."""
    return lambda submission: all_or_nothing(several(test, cases, what)(submission))


def all_or_nothing(outcome: Outcome) -> Outcome:
    """An outcome without the points of a part."""
    return outcome if outcome.passed else replace(outcome, share=0)


def judged(exe: api.Executable, seed: int | None = None) -> tuple[Verdict, str]:
    """The verdict on a program, on inputs that no submission knows, and what is wrong with the program; nothing where it is right."""
    verdict = api.judge(exe, seed=judging_seed() if seed is None else seed)
    return verdict, "" if verdict.equal else "; ".join(found.message for found in verdict.findings) or str(verdict.first_difference)


def verdict_on(exe: api.Executable, **told: Any) -> Verdict:
    """The verdict on a program that is right. Raises `Wrong` for another, with what else is `told`."""
    verdict, problem = judged(exe)
    if problem:
        raise Wrong(problem, **told)
    return verdict


LONGEST = 2**20
"""Characters of the longest text of a graph that is read."""
ELEMENTS = 2**16
"""Elements of all values that a graph may have more than twice those of the one that was given: the grader computes them."""


def integers(answer: Plain, shape: tuple[int, ...], expected: str) -> AnyArray:
    """An array of integers of this shape, of any of NumPy's types. Raises `Failed`, which says what was `expected`."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        raise Failed("result", f"returned {in_words(answer)}; expected {expected}") from None
    if found.shape != shape or (found.dtype.kind not in "iu" and found.size):
        whole = ": `.astype(int)` makes integers, and `//` divides them" if found.dtype.kind == "f" and found.shape == shape else ""
        raise Failed("result", f"returned {in_words(answer)}; expected {expected}{whole}")
    return found


def in_words(answer: Plain) -> str:
    """`a str, 'here'`, `None`, `3 integers`; of other numbers in an array or in lists, their type and shape, as `float64 of shape [3]`."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        found = np.asarray(None)
    if found.ndim == 1 and found.dtype.kind in "iu":
        return counted(len(found), "integer")
    if found.ndim and found.dtype.kind in "biuf":
        return f"{found.dtype} of shape {list(found.shape)}"
    if answer is None:
        return "None"
    kind = type(answer).__name__
    return f"a{'n' if kind[0] in 'aeiou' else ''} {kind}, {short(answer)}"


def read_graph(answer: Plain, given: Graph, who: str = "") -> Graph:
    """The graph that a function made of `given`: valid, of bounded size, with the same inputs and outputs. Raises `Failed`; `who` begins
    its messages, as `rewrite `."""
    if not isinstance(answer, str) or not answer.startswith("graph "):
        raise Failed("result", f"{who}returned {in_words(answer)}; expected a graph")
    if len(answer) > LONGEST:
        raise Failed("result", f"{who}returned a graph of {len(answer):,} characters; at most {LONGEST:,} are read")
    most = 2 * elements(given) + ELEMENTS
    try:
        made = parse_graph(answer, "result.graph", ATTRIBUTES, most=most)
        verify_stage(made)
    except Error as error:
        first = error.diagnostics[0]
        raise Failed("wrong", f"{who}made a graph that is not valid: {first.code}: {first.message}") from None
    if elements(made) > most:
        raise Failed("wrong", f"{who}made values with {elements(made):,} elements in all; at most {most:,} are computed")
    for what, found in (("inputs", _inputs), ("outputs", _outputs)):
        if (after := found(made)) != (before := found(given)):
            raise Failed("wrong", f"{who}changed the {what} from {', '.join(before)} to {', '.join(after)}")
    return made


def _inputs(graph: Graph) -> list[str]:
    """Names and types with their ranges; their order says nothing."""
    return sorted(f"{node.name}: {node.type}" for node in graph.inputs)


def _outputs(graph: Graph) -> list[str]:
    """Names and shapes; the range of an output may become known."""
    return [f"{output.name}: {graph[output.node].type.brief}" for output in graph.outputs]


def elements(graph: Graph) -> int:
    """The elements of all values of a graph."""
    return sum(node.type.size for node in graph)


def judged_beside(exe: api.Executable, plain: api.Executable, seed: int | None = None) -> str:
    """What is wrong with a program, or nothing. `plain` is tpucc's own program of the same model. On a few values that may be exact by
    chance; so noise is no fault where it is as small on many inputs, within `NOISE`."""
    seed = judging_seed() if seed is None else seed
    verdict, problem = judged(exe, seed)
    noise = verdict.first_difference is not None and verdict.first_difference.stage == NOISE_STAGE
    return "" if noise and _is_as_exact(exe, plain, seed) else problem


def _is_as_exact(exe: api.Executable, plain: api.Executable, seed: int) -> bool:
    errors = np.zeros(2)
    assert plain.compilation is not None
    assert plain.compilation.meant is not None
    for draw in range(DRAWS):
        inputs = random_inputs(exe.runtime, seed + draw)
        reference = float_reference(plain.compilation.meant, inputs)
        for number, each in enumerate((exe, plain)):
            errors[number] += sum(float(np.square(values - reference[name]).sum()) for name, values in each.run(inputs).items())
    return bool(errors[0] <= NOISE**2 * errors[1])
