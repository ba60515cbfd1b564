"""What a submission says of calls of `lag`, compared with what is meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np

from tpucc.guest.values import Plain
from tpucc.ir import TensorType
from tpucc.labs.front_end.cases import Case, Group
from tpucc.labs.front_end.rules import Given, Rules, type_of
from tpucc.labs.judging import outcome_of, some_right
from tpucc.labs.lab import Outcome, Submission, Wrong
from tpucc.labs.solutions import is_archive
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.opdef import Array, RuleError
from tpucc.plugins.failures import Failed

MOST = 10_000
"""Elements of a result of which the values are compared, too."""
SHOWN = 8
"""Values of a line that are drawn."""
LONGEST_CODE = 100
"""Characters of a code that are read: a submission may say any text."""
NONE = 0.5
"""The share of groups or programs that are wrong from which on a test earns nothing."""


def groups_right(rules: Rules, groups: Sequence[Group], seed: str, submission: Submission) -> Outcome:
    """Calls in groups: a group counts when all its calls are right. The first call that is wrong is shown, with the place of its group."""

    def right(number: int, group: Group) -> Outcome:
        for place, case in enumerate(group, 1):
            outcome = outcome_of(partial(case_right, rules, case, Random(f"{seed}/{number}"), submission))
            if not outcome.passed:
                return replace(outcome, message=f"group {number + 1}, call {place} of {len(group)}: {outcome.message}")
        return outcome

    return some_right((partial(right, number, group) for number, group in enumerate(groups)), "groups of calls are right", NONE)


def case_right(rules: Rules, case: Case, draw: Random, submission: Submission) -> Outcome:
    """One call: its type or its refusal, and its values."""
    expected = rule_text(rules.rule(case.given, case.types))
    found = rule_text(submission.call("rule", case.given, case.types))
    if found != expected:
        raise Wrong("the rule says something else", given=str(case), expected=expected, found=found)
    type_ = type_of(expected)
    if type_ is not None and max(type_.size, *(operand.size for operand in case.types)) <= MOST:
        a, b = (drawn(operand.shape, draw) for operand in case.types)
        require_values(rules, case.given, (a, b), array_of(submission.call("value", case.given, [a, b]), type_), str(case))
    return Outcome(1, expected)


def rule_text(found: Plain) -> str:
    """What a rule says: a type's text, or an error's code and what is to blame. Raises `Failed`."""
    if not isinstance(found, dict):
        return str(found)[:200]
    error = refused(found)
    return f"RuleError {error.code}, about={error.about}"


BLAMED = 'operands are 0 and 1, attributes are "by" and "axis"'
"""What a refusal may blame."""


def _to_blame(entry: Plain) -> bool:
    return type(entry) in (int, str) and entry in (0, 1, "by", "axis")


def refused(found: Plain) -> RuleError:
    """The error that a submission's rule raised, of its parts. Raises `Failed` where they are none."""
    code, message, about, help = (found.get(name) for name in ("code", "message", "about", "help"))
    if not (isinstance(code, str) and isinstance(message, str) and isinstance(help, str)) or not message:
        form = 'RuleError("E0302", "shapes differ", about=(0, 1))'
        raise Failed("result", f"an error has a code and a message, in words, as in {form}; help is in words, too")
    code = code[:LONGEST_CODE]
    if not isinstance(about, list):
        tuple_of_it = f"write about=({about!r},), with the comma" if _to_blame(about) else BLAMED
        raise Failed("result", f"the error {code} has about={repr(about)[:80]}, and about is a tuple: {tuple_of_it}")
    if not all(map(_to_blame, about)):
        raise Failed("result", f"the error {code} has about={str(tuple(about))[:80]}: {BLAMED}")
    error = RuleError(code, message[:1000], about=tuple(sorted(about, key=str)), help=help[:1000])
    try:
        error.named(["a", "b"])
    except IndexError:
        said = f"the error {code} says {message[:200]!r}{f' and {help[:200]!r}' if help else ''}"
        raise Failed("result", f"{said}: there are {{0}}, which is a, and {{1}}, which is b") from None
    return error


def require_values(rules: Rules, attributes: Given, operands: tuple[Array, Array], found: Array, given: str) -> None:
    """Raises `Wrong`, with the first difference, where these aren't the values of a call."""
    expected = rules.value(attributes, operands)
    if not np.array_equal(found, expected):
        place = place_of_largest(found != expected)
        shown = drawing(rules, attributes, operands, (expected, found), place)
        told = f"the value at {list(place)} is {expected[place]:g}"
        raise Wrong("a value differs", given=given, expected=told, found=f"{found[place]:g}", drawing=shown)


def array_of(found: Plain, type_: TensorType) -> Array:
    """A submission's result as an array of this type. Raises `Failed`."""
    if not isinstance(found, np.ndarray) or (found.dtype, found.shape) != (type_.numpy, type_.shape):
        what = f"{found.dtype} of shape {list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        raise Failed("result", f"the reference gives {what}, expected {type_.numpy} of shape {list(type_.shape)}")
    return found


def drawn(shape: Sequence[int], draw: Random) -> AnyArray:
    """Small whole numbers, with which every function is exact, and none of which is 0."""
    generator = np.random.default_rng(draw.randrange(2**32))
    return generator.integers(1, 90, shape).astype(np.float32) * generator.choice([-1, 1], shape).astype(np.float32)


def drawing(rules: Rules, attributes: Given, operands: tuple[Array, Array], results: tuple[Array, Array], place: Sequence[int]) -> str:
    """The line along the axis in which the first difference of the results lies, those expected and those found, with the values that meet
    there; nothing in an archive for students."""
    if is_archive():
        return ""
    # lab 1 begin: find the values that meet
    by, axis = attributes["by"], attributes["axis"] % len(place)
    line = tuple(slice(None) if k == axis else index for k, index in enumerate(place))
    left, right = (np.broadcast_to(values, np.broadcast_shapes(*(x.shape for x in operands)))[line] for values in operands)
    size = len(left) - by
    rows: dict[str, AnyArray] = {"i": np.arange(size)}
    rows |= {rules.place(name): values[by * (name == rules.ahead) :][:size] for name, values in (("a", left), ("b", right))}
    rows |= {"expected": results[0][line], "found": results[1][line]}
    first = max(0, min(place[axis] - SHOWN // 2, size - SHOWN))
    return "\n".join(f"{name:<9}" + "".join(f"{v:>8g}" for v in row[first : first + SHOWN]) for name, row in rows.items())
    # lab 1 end
