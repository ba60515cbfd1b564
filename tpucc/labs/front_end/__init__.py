"""Lab 1: an operator of the language: its rule, its reference, its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc.ir import f32
from tpucc.labs.front_end import cases
from tpucc.labs.front_end.comparing import groups_right, rule_text
from tpucc.labs.front_end.programs import Program, accepted, all_accepted, all_refused, beside, refused_there, source
from tpucc.labs.front_end.rules import FUNCTIONS, Rules, rules
from tpucc.labs.judging import outcome_of
from tpucc.labs.lab import Outcome, Submission, Test, declared
from tpucc.ops.opdef import Array

A, B = np.array([1, 4, 9, 16, 25], np.float32), np.array([2, 3, 5, 7, 11], np.float32)
"""The operands of the handout's example."""


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    example = rules.value({"by": 2, "axis": 0}, [A, B])
    places = [f"{values[2 if name == rules.ahead else 0]:g}" for name, values in (("a", A), ("b", B))]
    formula, function, _ = FUNCTIONS[rules.function]
    return {
        "function": function,
        **{name: _row(values) for name, values in (("a", A), ("b", B), ("result", example))},
        "first": f"{formula.format(*places)} = {example[0]:g}",
    }


def _row(values: Array) -> str:
    return " | ".join(f"{value:g}" for value in values)


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    draw = Random(1)
    return (
        Test("defaults", 10, partial(defaults, rules)),
        Test("one shape", 8, partial(groups_right, rules, list(cases.plain(draw)), "1")),
        Test("two shapes", 10, partial(groups_right, rules, list(cases.broadcast(draw)), "2")),
        Test("errors", 8, partial(groups_right, rules, list(cases.refused(draw)), "3")),
        Test("a program", 9, partial(accepted, rules, Random(4), MODEL)),
        Test("a program that is wrong", 5, partial(one_refused, rules)),
    )


def _hidden(rules: Rules, draw: Random, key: str) -> Sequence[Test]:
    """What only `grade` runs: other shapes, every axis, results without elements."""
    return (
        Test("broadcasting", 10, partial(groups_right, rules, [*cases.broadcast(draw), *cases.broadcast(draw)], key)),
        Test("axes", 8, partial(groups_right, rules, list(cases.axes(draw)), key)),
        Test("sizes", 10, partial(groups_right, rules, list(cases.sizes(draw)), key)),
        Test("errors", 4, partial(groups_right, rules, list(cases.refused(draw)), key)),
        Test("types", 10, partial(groups_right, rules, list(cases.far(draw)), key)),
        Test("programs", 4, partial(all_accepted, rules, key)),
        Test("programs that are wrong", 4, partial(all_refused, rules, key)),
    )


def defaults(rules: Rules, submission: Submission) -> Outcome:
    """The attributes and their defaults, from which the call's form follows, and what calls give that leave them out."""
    found, expected = submission.call("defaults"), {"by": rules.by, "axis": rules.axis}
    right = isinstance(found, dict) and list(found.items()) == list(expected.items()) and all(type(v) is int for v in found.values())
    if not right:
        return Outcome(0, "the attributes differ, or their order or their defaults do", "", str(expected), str(found)[:200])
    types = f32(5, 6, 7), f32(5, 6, 7)
    for given in ({}, {"by": 4}, {"axis": 1}):
        wanted, answered = rule_text(rules.rule({**expected, **given}, types)), rule_text(submission.call("rule", given, types))
        if answered != wanted:
            said_too = "".join(f", {name}={value}" for name, value in given.items())
            call = f"lag(a: {types[0]}, b: {types[1]}{said_too})"
            return Outcome(0, "the attributes are right, but not the rule of a call that leaves some out", call, wanted, answered)
    return Outcome(1, f"the call is {rules.signature}")


def one_refused(rules: Rules, submission: Submission) -> Outcome:
    """A program with one error, and one that is right."""
    right, wrong = Random(4), Program(source("lag(x, y, axis=2)"), "E0304", "2")
    tests = (partial(accepted, rules, right, MODEL, submission), partial(refused_there, rules, wrong, submission))
    return beside(*map(outcome_of, tests))


MODEL = source("lag(relu(x), y, by=2, axis=-1) * 2.0")

LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
