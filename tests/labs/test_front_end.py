"""Lab 1: what a message says of groups of calls, and the rule of the axis in the handout."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.lab_results import Here, submitted
from tests.support.lab_solutions import reference
from tpucc.labs import find
from tpucc.labs.front_end.comparing import refused
from tpucc.labs.front_end.rules import rules
from tpucc.labs.grading import Result, run
from tpucc.labs.lab import AS_WRITTEN, Term
from tpucc.plugins.failures import Failed

LAB = find("front_end")


def found(name: str, **replaced: str) -> Result:
    """What a test finds in the reference, in which each word on the left stands as on the right."""
    text = reference(LAB).read_text("utf-8")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return run(next(test for test in LAB.public(AS_WRITTEN) if test.name == name), submitted(LAB, {LAB.file: text}, AS_WRITTEN))


def test_a_message_names_the_group_and_the_call() -> None:
    """True and 1.0 are no integers, though Python has them equal to 1: each stands in the group of its attribute."""
    result = found("errors", **{"type(getattr(attributes, name)) is not int": "not isinstance(getattr(attributes, name), int)"})
    assert result.outcome.message == "7 of 9 groups of calls are right: group 7, call 3 of 4: the rule says something else"
    assert "by=True" in result.outcome.given


def test_what_is_to_blame_is_a_tuple() -> None:
    result = found("errors", **{'about=("by",)': 'about="by"'})
    assert "has about='by', and about is a tuple: write about=('by',), with the comma" in result.outcome.message


def test_no_message_has_more_of_a_code_than_its_first_letters() -> None:
    with pytest.raises(Failed) as caught:
        refused({"code": "E" * 400_000, "message": "shapes differ", "about": [5], "help": ""})
    assert len(caught.value.message) < 400


def test_defaults_alone_earn_nothing() -> None:
    constants: dict[str, Callable[..., object]] = {"defaults": lambda: {"by": 1, "axis": -1}, "rule": lambda *_: "f32[5, 6, 6]"}
    result = run(LAB.public(AS_WRITTEN)[0], Here(constants))
    assert result.score == 0
    assert result.outcome.message.startswith("the attributes are right, but not")


def test_a_wrong_program_is_shown_with_the_error_that_it_must_have() -> None:
    """Also where right programs aren't accepted either; where only these fail, one of them is shown, which the message says."""
    unwritten = 'RuleError("E0399", "nothing is accepted")\n    by, axis'
    nothing = found("a program that is wrong", **{"by, axis": f"raise {unwritten}"}).outcome
    assert "axis=2)" in nothing.given
    assert (nothing.expected, nothing.share) == ("error E0304 at `2`", 0)
    only = found("a program that is wrong", **{"rank = ": "rank = 3 if attributes.by == 2 else "}).outcome
    assert "by=2" in only.given
    assert (only.message.partition(":")[0], only.share) == ("the program that is wrong is refused as it must be, but this one is right", 0)


@pytest.mark.parametrize("name", ["spring", "fall", "a", "b"])
def test_the_table_of_errors_has_the_rule_of_the_axis_where_it_refuses(name: str) -> None:
    text = LAB.material("handout.md", Term(name))
    assert "**The rule of the axis.**" in text
    assert ("| the sizes along the axis differ" in text) is not rules(Term(name)).repeats
