"""Lab 3: real numbers as integers, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

from tpucc.labs.judging import Scale
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Test, declared, require_fit
from tpucc.labs.quantisation.network import DEFECTS, TENSORS, Network, network, run, spoilt
from tpucc.labs.quantisation.rules import Rules, element_text, exact_integers, exact_weights, integers, pair, rules
from tpucc.numerics import ZERO_SCALE, AnyArray, Float32, Float64

MOST = 200
"""Elements of a call of which one is asked about."""
BINS, LINES = 64, 8
Range = tuple[float, float]


def ranges_text(samples: Float32, chosen: Range, name: str) -> str:
    """The histogram in characters, logarithmic upwards, above its axis; below it, `[` and `]` are the ends of the range."""
    counts, edges = _histogram(samples, chosen)
    heights = np.ceil(LINES * np.log1p(counts) / np.log1p(counts.max())).astype(int)
    bars = ["".join("█" if height >= level else " " for height in heights) for level in range(LINES, 0, -1)]
    left, right = (min(BINS - 1, max(0, int(np.searchsorted(edges, end, side="right")) - 1)) for end in chosen)
    bracket = " " * left + ("[" + "─" * (right - left - 1) + "]" if right > left else "|")
    words = f"{name}: samples {samples.min():.3g} to {samples.max():.3g}, integers {chosen[0]:.3g} to {chosen[1]:.3g}"
    first, last = (f"{edges[end]:.3g}" for end in (0, -1))
    axis = f"{first}{last:>{BINS - len(first)}}"
    return "\n".join(part.rstrip() for part in (words, *bars, "─" * BINS, axis, bracket))


def _histogram(samples: Float32, chosen: Range) -> tuple[Float64, Float64]:
    ends = [min(float(samples.min()), chosen[0]), max(float(samples.max()), chosen[1])]
    counts, edges = np.histogram(samples.astype(np.float64), BINS, range=(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1))
    return counts.astype(np.float64), edges


RATIOS = {8: Scale(21.5, 12.0), 7: Scale(21.5, 10.0), 6: Scale(21.0, 8.0)}
"""Of the decibels of a network, for integers of so many bits. Ranges that leave defects out gave 21.7 at least, in 1,500 draws of terms
and seeds."""
Case = tuple[Literal["quantise", "requantise", "quantise_weights"], tuple[Any, ...]]
"""A function, and its arguments: values or accumulators, scale or multiplier, and zero point; or weights."""


def _words(rule: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    hand = rule.solution.expected("quantise", np.array([1.25, 1.75, -1.25], np.float32), 0.5, 3)
    hand_scale, hand_zero = rule.solution.expected("parameters", -1.0, 3.0)
    return {
        "steps": rule.high if rule.symmetric else rule.high - rule.low,
        "hand_scale": hand_scale,
        "hand_zero": hand_zero,
        "hand": hand,
        "hand_rounded": hand - 3,
        "ratio": RATIOS[rule.bits],
        "defects": DEFECTS,
    }


def ranges_at_ties(rule: Rules) -> list[tuple[float, float]]:
    """Ranges of which the zero point is a tie, with a scale of 1; and nearly one where the scale is rounded to float32, up and down."""
    steps = rule.high - rule.low
    return [(-before * scale, (steps - before) * scale) for scale in (1.0, 0.1, 0.7) for before in (0.5, 1.5)]


RANGES = [(-1.0, 3.0), (0.0, 6.0), (-2.5, 2.5), (-4.0, 0.0), (2.0, 5.0)]


def fixed(rule: Rules, draw: Random) -> Mapping[str, Sequence[Case]]:
    """The public cases that are the same for every submission, by their tests."""
    return {
        "quantise": [_halves(draw, rule, 4), _plain_values(draw), ("quantise", (HALVES.astype(np.float32), 2.0, 3)), _float32_quotients()],
        "requantise": [
            *(_sums(draw, 4), _sums(draw, 0)),
            ("requantise", (HALVES.astype(np.int32)[:, None], np.array([0.5], np.float32), 3)),
            _float32_products(),
        ],
        "weights": [_weights(_column_ties(rule)), _weights(_matrix(draw))],
    }


def _public(rule: Rules) -> Sequence[Test]:
    """What `check` runs."""
    draw = Random(3)
    net = network()
    cases = fixed(rule, draw)
    return (
        Test("ranges", 6, partial(ranges, rule, [*RANGES, *ranges_at_ties(rule)])),
        *(Test(name, points, partial(exact, rule, cases[name])) for name, points in (("quantise", 8), ("requantise", 8), ("weights", 6))),
        Test("a network", 10, partial(digits, rule, net, net.samples)),
        Test("samples with defects", 12, partial(digits, rule, net, _spoilt(net, draw))),
    )


def _hidden(rule: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs."""
    net = network(draw)
    ties = [make(draw, rule, zero) for zero in _odd(draw, rule) for make in (_halves, _half_sums)]
    return (
        Test("ranges", 6, partial(all_ranges, rule, list(_ranges(draw)), draw.randrange(2**32))),
        Test("ties", 12, partial(exact, rule, ties)),
        Test("dead channels", 10, partial(dead, rule, draw.randrange(2**32))),
        Test("extremes", 10, partial(exact, rule, list(_extremes(draw, rule)))),
        Test("samples with defects", 12, partial(digits, rule, net, _spoilt(net, draw))),
    )


def ranges(rule: Rules, cases: Sequence[tuple[float, float]], submission: Submission) -> Outcome:
    """`parameters` of ranges: the scale to a millionth, the zero point exactly."""
    for low, high in cases:
        scale, zero = pair(submission.call("parameters", low, high), rule)
        expected, nearest = rule.solution.expected("parameters", low, high)
        if abs(scale - expected) > 1e-6 * expected or zero != nearest:
            given, wanted = f"parameters({low!r}, {high!r})", f"scale {expected:.8g}, zero point {nearest}"
            if expected != ZERO_SCALE and not rule.symmetric:
                wanted += f", which is {rule.zero_point(low, expected):.9g} before it is rounded"
            return Outcome(0, "another scale or zero point", given, wanted, f"scale {scale:.8g}, zero point {zero}")
    return Outcome(1, f"{len(cases)} ranges")


def all_ranges(rule: Rules, cases: Sequence[tuple[float, float]], seed: int, submission: Submission) -> Outcome:
    """`parameters` of ranges of all sizes, and `calibrate` of samples that say little."""
    found = ranges(rule, cases, submission)
    if not found.passed:
        return found
    values = np.random.default_rng(seed).uniform(-2, 2, 3000).astype(np.float32)
    unbounded = values.copy()
    unbounded[7::1500] = np.inf, -np.inf
    for samples, largest in ((values, 2.0), (unbounded, 2.0), (np.full(40, 3.0, np.float32), 3.0), (-np.abs(values), 2.0)):
        scale, zero = pair(submission.call("calibrate", samples), rule)
        reach = max(-(rule.low - zero) * scale, (rule.high - zero) * scale)
        if not 0.5 * largest <= reach <= 2.1 * largest:
            message = f"the integers reach to ±{reach:.3g}; the finite samples to ±{largest:g}"
            given = f"calibrate of {samples.size} samples: {samples.tolist()}"
            return Outcome(0, message, given, "", f"scale {scale:g}, zero point {zero}")
    for samples in (np.zeros((5, 3), np.float32), np.full(3, np.inf, np.float32), np.zeros((0, 4), np.float32)):
        answer = pair(submission.call("calibrate", samples), rule)
        if answer != (ZERO_SCALE, 0):
            return Outcome(0, "a range of nothing but zero", f"calibrate({samples.tolist()})", "scale 2**-24, zero point 0", str(answer))
    return Outcome(1, f"{len(cases)} ranges, and samples of 7 kinds")


def exact(rule: Rules, cases: Sequence[Case], submission: Submission) -> Outcome:
    """Integers that must be exact, and with weights their scales."""
    count = 0
    for function, given in cases:
        if function == "quantise_weights":
            count += exact_weights(rule, submission, *given)[0].size
        else:
            count += exact_integers(rule, function, submission, *given).size
    return Outcome(1, f"{count:,} integers are exact")


def dead(rule: Rules, seed: int, submission: Submission) -> Outcome:
    """Weights with columns of nothing but zeros, or too small for a scale."""
    matrix = np.random.default_rng(seed).normal(0, 1, (12, 9)).astype(np.float32)
    matrix[:, 2], matrix[:, 5], matrix[:, 6] = 0, 1e-42, matrix[:, 6] * np.float32(1e-30)
    return exact(rule, [_weights(matrix), _weights(np.zeros((4, 3))), _weights(np.zeros((0, 3)))], submission)


def digits(rule: Rules, net: Network, samples: tuple[Float32, ...], submission: Submission) -> Outcome:
    """The digits network, with ranges that the submission takes from samples."""
    found = run(rule, net, samples, submission)
    scale = RATIOS[rule.bits]
    message = f"signal-to-noise ratio {found.ratio:.1f} dB; {scale.full:g} dB earn all points, {scale.none:g} none"
    drawing = ranges_text(samples[1], found.ranges[1], TENSORS[1])
    return Outcome(scale.share(found.ratio), message, drawing=drawing, measures={"noise (dB)": -found.ratio}, call=None)


def _spoilt(net: Network, draw: Random) -> tuple[Float32, ...]:
    return tuple(spoilt(held, draw) for held in net.samples)


def _odd(draw: Random, rule: Rules) -> list[int]:
    """Zero points that are odd, of both signs."""
    return [2 * draw.randrange(rule.high // 4) + 1, -2 * draw.randrange(rule.high // 4) - 1]


def _halves(draw: Random, rule: Rules, zero: int) -> Case:
    """Values whose quotient with the scale is a half more than an integer, and a few beyond the ends."""
    scale = 2.0 ** draw.randrange(-6, 4)
    steps = np.array([draw.randrange(-rule.high, rule.high) for _ in range(40)], np.float32)
    values = np.append((steps + np.float32(0.5)) * np.float32(scale), np.array([0, 1e9, -1e9], np.float32))
    return "quantise", (values, scale, zero)


def _half_sums(draw: Random, rule: Rules, zero: int) -> Case:
    """The same of accumulators, with a multiplier for each column."""
    sums = np.array([2 * draw.randrange(-rule.high, rule.high) + 1 for _ in range(40)], np.int32).reshape(10, 4)
    return "requantise", (sums * np.array([1, 1, 4, 16], np.int32), np.array([0.5, 0.5, 0.125, 0.03125], np.float32), zero)


HALVES = np.array([29, 31, -29, -31, 1, -1, -3])
"""Twice the ties that tell every rule from the others, and from a zero point of 3 that is added before rounding."""


TENTH, SEVEN_TENTHS = np.float32(0.1), np.float32(0.7)
"""Larger than a tenth, and smaller than seven: products with them are ties in float32, and in float64 not quite."""


def _float32_quotients() -> Case:
    return "quantise", ((HALVES / 2 * TENTH).astype(np.float32), float(TENTH), 3)


def _float32_products() -> Case:
    sums = np.array([[145, 25], [-145, -25]], np.int32)
    return "requantise", (sums, np.array([TENTH, SEVEN_TENTHS]), 3)


def _weights(matrix: AnyArray) -> Case:
    return "quantise_weights", (matrix.astype(np.float32),)


def _column_ties(rule: Rules) -> Float32:
    """Weights with ties in the first column, whose scale is 1, and with a column of zeros."""
    matrix = np.zeros((len(HALVES) + 1, 3), np.float32)
    matrix[:, 0] = rule.high, *(HALVES / 2)
    matrix[:3, 1] = 0.5, -1.0, 0.75
    return matrix


def _plain_values(draw: Random) -> Case:
    values = np.array([[draw.uniform(-2, 3) for _ in range(8)] for _ in range(6)], np.float32)
    return "quantise", (values, 0.019607843831181526, draw.randrange(-9, 9) * 2)


def _sums(draw: Random, zero: int) -> Case:
    sums = np.array([[draw.randrange(-90_000, 90_000) for _ in range(5)] for _ in range(6)], np.int32)
    return "requantise", (sums, np.array([draw.uniform(1e-4, 2e-3) for _ in range(5)], np.float32), zero)


def _matrix(draw: Random) -> Float32:
    return np.array([[draw.gauss(0, 0.3 * (n + 1)) for n in range(5)] for _ in range(7)], np.float32)


def _ranges(draw: Random) -> Iterator[tuple[float, float]]:
    """Ranges of all sizes: those of zero alone, the largest, and ones too small for a scale."""
    yield from ((0.0, 0.0), (-3.0e38, 3.0e38), (0.0, 3.4e38), (0.0, 1e-41), (-1e-44, 0.0), (-7.0, -3.0))
    for _ in range(20):
        size = 10.0 ** draw.uniform(-12, 12)
        yield -size * draw.random(), size * draw.random()


def _extremes(draw: Random, rule: Rules) -> Iterator[Case]:
    """Infinite values; accumulators at their ends; what is a tie in float32, and in float64 nearly one."""
    zero = draw.choice(_odd(draw, rule))
    largest = float(np.finfo(np.float32).max)
    for scale in (1e-30, 2.0**-24, 1.0, 1e30):
        yield "quantise", (np.array([np.inf, -np.inf, largest, -largest, 0, -0.0, 1e-45], np.float32), scale, zero)
    ends = np.array([[-(2**31)], [2**31 - 1], [2**31 - 64], [-1], [0], [1]], np.int32)
    for factors in ([1e-9, 1.0, 3e38], [2.0**-31, 2.0**-26, 1e-38]):
        yield "requantise", (np.broadcast_to(ends, (6, 3)).copy(), np.array(factors, np.float32), draw.randrange(rule.low, rule.high))
    # float32(2**25 - 1) is 2**25, and float32(2**24 + 1) is 2**24: in float32 these products are ties, in float64 they aren't
    steps = np.array([draw.randrange(rule.high // 2) for _ in range(12)], np.float32) + np.float32(0.5)
    for sums, power in ((2**25 - 1, 25), (2**24 + 1, 24), (1 - 2**25, 25), (-(2**24) - 1, 24), (2**31 - 1, 31)):
        yield "requantise", (np.full((1, 12), sums, np.int32), steps * np.float32(2.0**-power), zero)
    for factor in (TENTH, SEVEN_TENTHS):
        yield "quantise", (steps * factor, float(factor), zero)


def element(exchange: Exchange, oral: Oral) -> Question:
    """How an element becomes an integer: a tie, if there is one."""
    require_fit(exchange.function in ("quantise", "requantise") and 0 < exchange.arguments[0].size <= MOST)
    values, factor, zero = exchange.arguments
    texts = {place: element_text(exchange.function, values, factor, zero, place) for place in np.ndindex(values.shape)}
    place = oral.draw.choice([place for place, text in texts.items() if "tie" in text] or list(texts))
    said, _, tie = texts[place].partition("; ")
    words = f"{integers(exchange.answer, values.shape, exchange.function)[place]}{f': {tie}' if tie else ''}. "
    words += f"Ties go {oral.rules.ties_go}; integers are {oral.rules.low} to {oral.rules.high}."
    asked = f"{said}. Which integer does your `{exchange.function}` make of it? Say what is computed in which type, and in which order."
    return Question(asked, words + oral.beside(exchange, lambda other: str(other.answer[place])), dull=not tie)


def defect(exchange: Exchange, oral: Oral) -> Question:
    """What a sample that is far too large does to a range."""
    samples = exchange.arguments[0]
    require_fit(exchange.function == "calibrate" and samples.size > MOST and bool(np.isfinite(samples).all()))
    given = samples.copy()
    given.flat[oral.draw.randrange(given.size)] = 20 * np.abs(samples).max()
    words = f"one of these {samples.size:,} samples were a defect, 20 times the largest"
    return oral.what_if(exchange, words, (given,), lambda each: "integers from {:.4g} to {:.4g}".format(*_reach(each, oral.rules)))


def _reach(exchange: Exchange, rule: Rules) -> Range:
    """The values of the least and of the largest integer."""
    scale, zero = pair(exchange.answer, rule)
    return (rule.low - zero) * scale, (rule.high - zero) * scale


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(element, defect))
