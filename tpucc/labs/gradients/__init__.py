"""Lab 10: the gradient rules of three operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from textwrap import fill
from typing import Any

import numpy as np

from tpucc.diagnostics import counted
from tpucc.ir import Graph
from tpucc.labs.gradients.cases import FUNCTIONS, LARGE, OPERATORS, PLAIN, SMALL, Case, Rules, drawn, rules
from tpucc.labs.gradients.rule_graphs import ALLOWED, MOST, ask, call, computed, inputs_of, listing
from tpucc.labs.gradients.training import NEAR, STEPS, curves_text, gradients_of, network
from tpucc.labs.judging import Run, every, several
from tpucc.labs.lab import Outcome, Submission, Test, Wrong, declared, judging_seed
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops import OPS
from tpucc.see.pictures import graph_svg

EXACT, SINGLE = 1e-6, 3e-6
"""How far a gradient may be from the differences, of 1 and the largest gradient together: in float64, and in float32."""
PUBLICLY = "public"
"""Begins the keys that public operands are drawn by."""
DIRECTIONS = 3
LINES = 12
"""Lines of an array in a message."""


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    words: dict[str, Any] = {}
    for function in FUNCTIONS:
        op = getattr(rules, function)
        words |= {f"{function}_formula": OPERATORS[op].formula, f"{function}_details": fill(OPERATORS[op].paragraph, 150)}
        words[f"{function}_operands"] = ", ".join(operand.name for operand in OPS[op].operands)
    return {
        **words,
        "operators": ", ".join(f"`{op}`" for op in ALLOWED),
        "most": MOST,
        "steps": STEPS,
        "near": NEAR,
        "exact": EXACT,
        "single": SINGLE,
    }


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    return (
        *(Test(f"{function}: one value", 3, _right(several, function, _cases(rules, function, "one"))) for function in FUNCTIONS),
        *(Test(f"{function}: shapes", 8, partial(public_shapes, rules, function)) for function in FUNCTIONS),
        Test("training", 12, partial(public_training, rules)),
    )


def public_shapes(rules: Rules, function: str, submission: Submission) -> Outcome:
    return _right(several, function, _cases(rules, function, _public_key()))(submission)


def _right(earning: Callable[..., Run], function: str, cases: Sequence[Case]) -> Run:
    return earning(partial(compared, function), cases, "cases are right")


def public_training(rules: Rules, submission: Submission) -> Outcome:
    return trained(rules, _public_key(), submission)


def _public_key() -> str:
    """What public operands are drawn by: the same for all who check, others for each grader."""
    seed = judging_seed()
    return f"{PUBLICLY} {seed}" if seed else PUBLICLY


def _hidden(rules: Rules, _: Random, seed: str) -> Sequence[Test]:
    """What only `grade` runs."""

    def tests(function: str) -> tuple[Test, ...]:
        cases = _cases(rules, function, seed)
        return (
            Test(f"{function}: shapes", 5, _right(several, function, cases)),
            Test(f"{function}: every shape", 8, _right(every, function, cases)),
            Test(f"{function}: directions", 3, partial(directions, function, _larger(rules, function, seed))),
        )

    return (
        *(test for function in FUNCTIONS for test in tests(function)),
        Test("training", 7, partial(trained, rules, seed)),
    )


@cache
def _cases(rules: Rules, function: str, key: str) -> tuple[Case, ...]:
    """The cases of a function's operator, which keep the differences that they have taken: `key` is "one", `_public_key()`, or a seed."""
    op, draw = getattr(rules, function), Random(f"{key}/{function}")
    forms = OPERATORS[op].cases("one" if key == "one" else "public" if key.startswith(PUBLICLY) else "hidden")
    return tuple(drawn(op, form, rules.slope, draw, PLAIN if key == "one" else SMALL) for form in forms)


@cache
def _larger(rules: Rules, function: str, key: str) -> tuple[Case, ...]:
    """Three larger cases, away from kinks."""
    op, draw = getattr(rules, function), Random(f"{key}/{function}/large")
    return tuple(drawn(op, form, rules.slope, draw, LARGE) for form in draw.sample(OPERATORS[op].cases("hidden"), 3))


def compared(function: str, case: Case, submission: Submission) -> Outcome:
    """One case: the gradients, element by element, in float64 and in float32."""
    graphs = _asked(function, case, submission)
    for index, graph in enumerate(graphs):
        _require_exact(case, index, graph, _shown(case, graphs))
    return Outcome(1, f"the gradient of {_call(case)} is right", **_shown(case, graphs))


def _require_exact(case: Case, index: int, graph: Graph, shown: Mapping[str, Any]) -> None:
    """Raises `Wrong` with the first element of an operand's gradient that differs, where one does."""
    expected = case.gradients[index]
    for dtype, near, where in ((np.float64, EXACT, ""), (np.float32, SINGLE, ", computed in float32: it is not exact enough")):
        found = _computed(graph, case, dtype)
        wrong = _far(found, expected, near)
        if wrong.any():
            place = place_of_largest(wrong)
            name = f"d{OPS[case.op].operands[index].name}{list(place) if place else ''}"
            kink = "; x is at a kink there" if case.is_at_kink(index, place) else ""
            message = f"{name} is {found[place]:.8g}, and by differences {expected[place]:.8g}{kink}{where}"
            texts = {"given": _given(case, place), "expected": _gradient(case, expected, place), "found": _gradient(case, found, place)}
            raise Wrong(message, **texts, **shown)


def directions(function: str, cases: Sequence[Case], submission: Submission) -> Outcome:
    """The dot test: how the sum of dy times y changes along a direction of all operands, by the gradients and by a difference."""
    for number, case in enumerate(cases):
        graphs, random = _asked(function, case, submission), np.random.default_rng(number)
        told = {"given": _call(case), **_shown(case, graphs)}
        found = [_computed(graph, case, np.float64) for graph in graphs]
        single = [_computed(graph, case, np.float32) for graph in graphs]
        if any(_far(gradient, exact, SINGLE).any() for gradient, exact in zip(single, found, strict=True)):
            raise Wrong("computed in float32, a gradient is not exact enough", **told)
        for _ in range(DIRECTIONS):
            moves = [random.standard_normal(x.shape) for x in case.operands]
            terms = np.concatenate([(gradient * move).ravel() for gradient, move in zip(found, moves, strict=True)])
            change = case.change(moves)
            if not abs(terms.sum() - change) <= EXACT * (1 + abs(change)):
                message = f"the change along a direction is {terms.sum():.8g} by the gradients, and {change:.8g} by a difference"
                raise Wrong(message, **told)
    return Outcome(1, f"{len(cases)} cases, {DIRECTIONS} directions each")


def trained(rules: Rules, key: str, submission: Submission) -> Outcome:
    """A network that is trained with the three rules: each step whose loss follows the reference's earns its share."""
    net = network(rules, key)
    losses, reference = net.trained(gradients_of(net, rules, submission)), net.reference
    near = [abs(loss - expected) <= NEAR * reference[0] for loss, expected in zip(losses, reference, strict=False)]
    followed = [*near, False].index(False) - 1  # the first loss is that before any step
    end = f"the reference goes from {reference[0]:.4f} to {reference[-1]:.4f}"
    message = f"the loss follows the reference's for {followed} of {STEPS} steps; {end}"
    drawing, step = curves_text(losses, reference), followed + 1
    if followed == STEPS:
        return Outcome(1, message, drawing=drawing)
    expected, found = f"loss {reference[step]:.6g} after step {step}", f"loss {losses[step]:.6g}"
    return Outcome(followed / STEPS, message, expected=expected, found=found, drawing=drawing, call=None)


def _asked(function: str, case: Case, submission: Submission) -> list[Graph]:
    return ask(function, case.op, case.attributes, case.shapes, submission)


def _call(case: Case) -> str:
    return call(case.op, case.attributes, case.shapes)


def _computed(graph: Graph, case: Case, dtype: type) -> AnyArray:
    return computed(graph, inputs_of(case.op, case.operands, case.result, case.dy), dtype)


def _far(found: AnyArray, expected: AnyArray, near: float) -> AnyArray:
    """Where values differ by more than a share of 1 and the largest together; NaN does."""
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(found - expected) <= near * (1 + np.abs(expected).max(initial=0))))


def _shown(case: Case, graphs: Sequence[Graph]) -> dict[str, Any]:
    """What a rule has made: its nodes in characters, and those of the first operand's gradient in a picture."""
    names = [operand.name for operand in OPS[case.op].operands]
    picture = partial(graph_svg, graphs[0], f"What your rule makes of dy: the gradient of {names[0]}")
    return {"drawing": listing(graphs, names), "picture": picture}


def _given(case: Case, place: tuple[int, ...]) -> str:
    """The call with all numbers; of a pool first those of the window with this pixel."""
    names, values = [operand.name for operand in OPS[case.op].operands], (*case.operands, case.dy)
    lines = [_call(case)]
    if (window := case.window(place)) is not None:
        lines += [_array(case.operands[0][window.pixels], f"x{window}"), _array(case.dy[window.place], f"dy{list(window.place)}")]
    return "\n".join((*lines, *(_array(x, name) for name, x in zip((*names, "dy"), values, strict=True))))


def _gradient(case: Case, values: AnyArray, place: tuple[int, ...]) -> str:
    """A gradient; of a pool the window with this pixel first."""
    window = case.window(place)
    first = "" if window is None else f"{_array(values[window.pixels], f'dx{window}')}\n"
    return f"{first}{_array(values)}"


def _array(values: AnyArray, name: str = "") -> str:
    """An array, behind its name if it has one, in as few characters as say which float32s they are, and in at most `LINES` lines."""
    digits = {"float_kind": lambda x: np.format_float_positional(np.float32(x), trim="-")}
    prefix = f"{name} = " if name else ""
    with np.errstate(over="ignore"):
        text = np.array2string(np.asarray(values), 150, separator=", ", prefix=prefix, formatter=digits, threshold=10_000)  # type: ignore[arg-type]
    lines = re.sub(r"\n\s*\n", "\n", f"{prefix}{text}").splitlines()
    return "\n".join([*lines[:LINES], *([f"… {counted(len(lines) - LINES, 'more line')}"] if len(lines) > LINES else [])])


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
