"""How a submission's answers and arguments travel: bounds, and what a message says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.lab_results import Here
from tpucc.guest.values import MOST, packed, require_plain, unpacked
from tpucc.labs import find
from tpucc.labs.call_text import LONGEST, call_text
from tpucc.labs.front_end.comparing import refused
from tpucc.labs.grading import run
from tpucc.labs.judging import integers
from tpucc.labs.lab import Term
from tpucc.machine.instruction import RECORD
from tpucc.plugins.failures import Failed, Unfit
from tpucc.schedule.allocate import Lives
from tpucc.schedule.listing import Listing


@pytest.mark.parametrize(
    "answer",
    one_of(
        2, [lambda: range(MOST), lambda: repeat(np.zeros(1)), lambda: [[k] for k in range(MOST)], lambda: dict.fromkeys(range(MOST), 1)]
    ),
)
def test_a_list_of_too_many_values_is_refused_before_it_is_packed(answer: Callable[[], object]) -> None:
    """Values of lists are packed one by one; an array of as many is one value."""
    with pytest.raises(Unfit, match="more than 200,000 values in lists; return an array"):
        packed(answer())
    assert len(packed(np.zeros(5 * MOST, np.int8))["data"]) == 5 * MOST


NONE = np.zeros(60, np.int64)
NOPS = "".join(f"    {number:>3}  nop\n" for number in range(50))


@dataclass
class Buffers:
    first: object
    rows: object


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.array([0.1, 2], np.float32), 0.5, "a", None), "f(np.array([0.1, 2.0], np.float32), 0.5, 'a', None)"),
        ((np.zeros(2000, np.int8),), "f(array of int8, shape [2000]: [0, 0, 0, …, 0, 0, 0])"),
        (([1, (2, 3)], {"k": np.int64(4)}), "f([1, (2, 3)], {'k': 4})"),
        ((list(range(60)),), f"f(\n  [{', '.join(map(str, range(50)))}, … 10 more]\n)"),
        ((Buffers([1], 2), 3), "f(Buffers(first=[1], rows=2), 3)"),
        ((Buffers("x" * 80, 2), 3), f"f(\n  Buffers(\n    first='{'x' * 80}',\n    rows=2,\n  ),\n  3\n)"),
        ((object(),), "f(object(…))"),
        ((Listing(np.zeros(60, RECORD), NONE, NONE),), f"f(\n  Listing: 60 instructions\n{NOPS}    …\n)"),
    ],
)
def test_a_call_in_words(arguments: tuple[Any, ...], said: str) -> None:
    assert call_text("f", arguments) == said


def test_a_call_with_a_value_of_tpuccs_can_be_pasted() -> None:
    lives = Lives(np.array([0, 4]), np.array([4, 8]), np.array([10, 3]))
    text = call_text("allocate", (lives, 20))
    assert text.startswith("import numpy as np; from tpucc.schedule.allocate import Lives\nallocate(")
    found: list[Lives] = []
    exec(text, {"allocate": lambda lives, rows: found.append(lives)})
    assert [(each.first.tolist(), each.rows.tolist()) for each in found] == [([0, 4], [10, 3])]


def test_a_call_in_words_is_bounded() -> None:
    nested: list[object] = []
    for _ in range(100):
        nested = [nested, "x" * LONGEST]
    assert len(call_text("f", (nested, "y" * 10**6))) < 3 * LONGEST


@pytest.mark.parametrize(
    ("about", "message", "said"),
    [
        ("axis", "no such axis", r"the error E0304 has about='axis', and about is a tuple: write about=\('axis',\), with the comma"),
        (0, "no such axis", r"about is a tuple: write about=\(0,\)"),
        ("by, axis", "wrong", r"""about is a tuple: operands are 0 and 1, attributes are "by" and "axis\""""),
        (["a"], "wrong", r"the error E0304 has about=\('a',\): operands are 0 and 1"),
        ([0], "{2} is wrong", r"the error E0304 says '\{2\} is wrong': there are \{0\}, which is a, and \{1\}, which is b"),
        ([0], "", "an error has a code and a message, in words, as in RuleError"),
    ],
)
def test_a_refusal_of_another_form_says_how_to_write_it(about: object, message: str, said: str) -> None:
    with pytest.raises(Failed, match=said):
        refused({"code": "E0304", "message": message, "about": about, "help": ""})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("here", "returned a str, 'here'; expected 3 integers"),
        (7, "returned an int, 7; expected 3 integers"),
        ({0: 4}, "returned a dict, {0: 4}; expected 3 integers"),
        ([[1], [2, 3]], "returned a list, [[1], [2, 3]]; expected 3 integers"),
        (np.zeros((3, 1), np.int8), "returned int8 of shape [3, 1]; expected 3 integers"),
        ([1.0, 2.0, 3.0], "returned float64 of shape [3]; expected 3 integers: `.astype(int)` makes integers, and `//` divides them"),
        ([1, 2], "returned 2 integers; expected 3 integers"),
        (["x" * 99], f"returned a list, ['{'x' * 58}…; expected 3 integers"),
    ],
)
def test_a_wrong_kind_of_answer_is_said_in_pythons_words(answer: object, message: str) -> None:
    with pytest.raises(Failed) as found:
        integers(answer, (3,), "3 integers")
    assert found.value.words == message


@pytest.mark.parametrize(
    ("name", "test", "text", "message"),
    [
        ("tiling", "one tile", "lower_fc", "returned None; expected lines, a list of strings"),
        ("break_it", "programs", "programs", "returned None; expected a list of texts"),
        ("break_it", "sound programs", "violations", "returned None, expected a list of numbers from 0 to 49"),
    ],
)
def test_a_function_without_a_return_is_told_so(name: str, test: str, text: str, message: str) -> None:
    term = Term("2027-spring")
    (found,) = (each for each in find(name).public(term) if each.name == test)
    assert run(found, Here({text: lambda *_: None})).outcome.message == message


class Thing:
    pass


def test_what_cannot_be_handed_back_is_named() -> None:
    for answer, message in (
        (Thing(), "^returned a Thing$"),
        ([Thing()], "^returned values with a Thing in them, which can't be handed back$"),
    ):
        with pytest.raises(Failed, match=message):
            require_plain(unpacked(packed(answer)))
