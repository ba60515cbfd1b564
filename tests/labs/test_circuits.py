"""The labs of hardware: what each wrong solution earns, lists of gates that lie, what the circuits must give, and without PyRTL."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import LONG, each
from tests.support.command_line import run
from tests.support.lab_results import results, score
from tests.support.lab_solutions import files_of, mistakes, reference
from tpucc.labs import find
from tpucc.labs.circuits import Circuit, Driven
from tpucc.labs.elements.rules import CHOICES, OTHERS, Expected, Rules
from tpucc.labs.lab import Term
from tpucc.labs.rounding import COUNT, exact
from tpucc.plugins.failures import Failed

pytestmark = pytest.mark.annex


@pytest.fixture(autouse=True)
def _needs_pyrtl() -> None:
    """All tests here need PyRTL; some go on as if it weren't there."""
    pytest.importorskip("pyrtl")


POINTS = {
    "elements": {
        "element_alone": 30,
        "half_a_sum": 75,
        "keeps_nothing": 5,
        "multiplies_unsigned": 10,
        "never_stops": 10,
        "no_triangle_above": 55,
        "one_register": 20,
        "one_register_too_few": 30,
        "only_four_lanes": 81.5,
        "past_the_shadow": 45,
        "switch_from_the_left_edge": 35,
        "switches_late": 10,
    },
    "rounding": {
        "conversions_alone": 25,
        "cuts_off": 46.5,
        "forgets_the_top_bit": 57.5,
        "no_carry": 73,
        "no_minimum": 87.5,
        "one_mode": 80,
        "rounds_the_integer_down": 62.5,
        "shifts_by_four_bits": 74,
        "short_rest": 88,
        "short_rest_of_integers": 87.5,
        "ties_up": 45.5,
        "wraps": 88.5,
        "zero_by_its_exponent": 88.5,
    },
}
"""What wrong solutions earn, in one term and by one seed: who has understood more has more."""
WRONG = [pytest.param(name, path, id=f"{name}-{path.stem}", marks=LONG) for name in POINTS for path in mistakes(find(name))]


@pytest.mark.parametrize(("name", "path"), WRONG)
def test_wrong_solutions_earn(name: str, path: Path) -> None:
    assert score(results(find(name), files_of(find(name), path), Term("spring"))) == POINTS[name][path.stem]


PORTS = {"a": 4, "b": 4}
GATES: dict[str, Any] = {
    "wires": [
        ["Input", "a", 4, 0],
        ["Input", "b", 4, 0],
        ["WireVector", "sum", 5, 0],
        ["Register", "held", 5, 3],
        ["Output", "output ", 5, 0],
    ],
    "gates": [["+", [], [0, 1], [2]], ["r", [], [2], [3]], ["w", [], [3], [4]]],
}


def driven(wires: dict[int, list[Any]] | None = None, gates: dict[int, list[Any]] | None = None) -> Driven:
    """An adder with a register, with other wires and gates at some places."""
    made: dict[str, Any] = {key: list(value) for key, value in GATES.items()}
    for key, changes in (("wires", wires or {}), ("gates", gates or {})):
        for place, entry in changes.items():
            made[key][place:] = [*([entry] if entry else []), *made[key][place + 1 :]]
    return Driven(Circuit("adder", made, {"": 5}, "one wire"), PORTS)


def test_a_list_of_gates_is_a_circuit_again() -> None:
    """With its registers, and what they hold at first."""
    adder = driven()
    assert [adder.step(a=a, b=-1)[""] for a in (1, 7, 0)] == [3, 16, 22]


@each(
    {
        "code in a name": ({2: ["WireVector", "x\nraise SystemExit", 5, 0]}, {}, None),
        "another input": ({0: ["Input", "record", 4, 0]}, {}, "the input record isn't one that was given"),
        "other bits": ({0: ["Input", "a", 3, 0]}, {}, "the input a isn't one that was given"),
        "no bits": ({2: ["WireVector", "sum", 0, 0]}, {}, "the wire sum has 0 bits"),
        "a million bits": ({2: ["WireVector", "sum", 10**6, 0]}, {}, "the wire sum has 1000000 bits"),
        "bits in words": ({2: ["WireVector", "sum", "5", 0]}, {}, "the wire sum has 5 bits"),
        "a value that is too large": ({3: ["Register", "held", 5, 32]}, {}, "the wire held has 5 bits"),
        "no result": ({4: ["WireVector", "result", 5, 0]}, {}, "returns no wires, and should return one wire"),
        "a narrow result": ({4: ["Output", "output ", 4, 0]}, {}, "the result has 4 bits, and should have 5"),
        "a wire too few": ({3: []}, {}, ""),
        "a memory": ({}, {0: ["m", ["x"], [0], [2]]}, "m is no gate"),
        "bits without end": ({}, {0: ["s", [0] * 2000, [0], [2]]}, "select or join 2,003 bits and wires, and one of them 2,001; at most"),
        "a place that isn't there": ({}, {0: ["+", [], [0, 99], [2]]}, ""),
        "a place from the end": ({}, {0: ["+", [], [0, -1], [2]]}, "+ is no gate"),
        "an input that is driven": ({}, {0: ["w", [], [2], [0]]}, "w is no gate"),
        "a wire that nothing drives": ({}, {0: []}, "used but never driven"),
        "a loop": ({}, {0: ["~", [], [2], [2]]}, "loops"),
        "no list": ({}, {0: [5]}, ""),
    }
)
def test_a_list_of_gates_that_lies(wires: dict[int, list[Any]], gates: dict[int, list[Any]], message: str | None) -> None:
    """It is refused, or what it says has no effect: nothing of it is executed."""
    if message is None:
        assert driven(wires, gates).step(a=1)[""] == 3
    else:
        with pytest.raises(Failed, match=f"adder: .*{message.replace('+', '[+]')}"):
            driven(wires, gates)


def test_what_is_no_circuit_is_said_where_it_is_made() -> None:
    from pyrtl import MemBlock, WireVector

    from tpucc.rtl.netlist import MOST, Port, netlist

    def inverted(wire: Any) -> Any:
        for _ in range(MOST + 1):
            wire = ~wire
        return wire

    def undriven(wire: Any) -> Any:
        return wire & WireVector(4, "nobody")

    for made, message in (
        (lambda wire: [wire, 5], "1 of made is no wire of this circuit"),
        (lambda wire: MemBlock(4, 4, "m", asynchronous=True)[wire] & wire, "made makes a memory [(]`MemBlock`[)], which isn't taken"),
        (lambda wire: None, "made returns nothing: is there a `return`[?]"),
        (lambda wire: [wire, None], "1 of made is None, no wire of this circuit"),
        (inverted, "made makes 20,002 gates, and at most 20,000 are taken"),
        (undriven, "used but never driven"),
    ):
        with pytest.raises(Exception, match=message):
            netlist(SimpleNamespace(made=made), "made", (Port("a", 4),))  # type: ignore[arg-type]


def test_a_sum_that_comes_early_or_late_is_said_to() -> None:
    """With a register too few or too many on the way into the array, by the cycle in which it stands."""
    lab = find("elements")
    text = files_of(lab, reference(lab))[lab.file]
    for more, words in ((-1, "a register too few"), (1, "a register too many")):
        moved = text.replace("delayed(lane, r + 1,", f"delayed(lane, r + {1 + more},").replace(
            "delayed(switch, r + 1,", f"delayed(switch, r + {1 + more},"
        )
        assert moved != text
        (found,) = results(lab, {lab.file: moved}, Term("spring"), only="array: one tile")
        said = re.search(r"in cycle (\d+) has the sum .*; that sum stands in cycle (\d+): (.*) on its way", found.outcome.message)
        assert said is not None, found.outcome.message
        assert (int(said[2]) - int(said[1]), said[3]) == (more, words)


REGISTER = "def to_integer(number, mode):\n    r = Register(11)\n    r.next <<= number.exponent\n    return r"
ELEMENT = "`Element(right=Activation(x, switch), down=Weight(weight, tag), sum=total)`"


@each(
    {
        "a tuple for a Float": (
            "rounding",
            "def product(a, b):\n    return a.sign, a.exponent, a.significand",
            "`Float(sign, exponent, significand)`",
        ),
        "a tuple for an Element": ("elements", "def element(r, c, left, above, s):\n    return left.x, left.switch, s, s, s", ELEMENT),
        "a wire for a list": (
            "elements",
            "def array(x, switch, weights, tag):\n    return x[0]",
            "array: returns one wire, and should return a list of",
        ),
        "a register": ("rounding", REGISTER, "makes a register: a lane computes in one cycle"),
    }
)
def test_what_should_be_returned_is_said(name: str, text: str, message: str) -> None:
    function = text.removeprefix("def ").partition("(")[0]
    found = results(find(name), f"from pyrtl import Register\n\n\n{text}\n", Term("spring"))
    said = [each.outcome.message for each in found if each.test.name.startswith(function)]
    assert said
    assert all(message in each for each in said), said


def test_conversions_and_products_are_float32_s() -> None:
    """As NumPy rounds them."""
    draw = Random(1)
    for _ in range(2000):
        value = draw.randrange(-(2**31), 2**31) >> draw.randrange(25)
        a, b = (np.float32(draw.randrange(-(2**24), 2**24)) * np.float32(2.0) ** draw.randrange(-20, 20) for _ in range(2))
        assert float_of(exact.converted(value)) == np.float64(np.int32(value).astype(np.float32))
        assert float_of(exact.multiplied(number_of(a), number_of(b))) == np.float64(a * b)


def number_of(value: np.float32) -> exact.Number:
    fraction, exponent = np.frexp(np.float64(abs(value)))
    return exact.number_of(int(value < 0), int(fraction * 2**24), int(exponent) - 24)


def float_of(number: exact.Number) -> float:
    return float((-1) ** number.sign * np.ldexp(float(number.significand), number.exponent - 300 - 23))


@each([8, 12, 20, 22])
def test_a_rest_that_is_looked_at_in_part_is_found(bits: int) -> None:
    """The products of the group `near` find whoever takes the highest bits of a rest of 24 for all of it, by every seed."""
    for seed in range(100):
        draw = Random(seed)
        cut = 24 - bits
        cases = [a * b << (a * b < 2**47) for a, b in (exact.near_a_tie(draw) for _ in range(COUNT))]
        assert all(case >> 47 == 1 for case in cases)
        assert any(round(Fraction(case, 2**24)) != round(Fraction(case >> cut, 2**bits)) for case in cases)


MODES: Mapping[str, Callable[[float], float]] = {
    "even": np.rint,
    "zero": np.trunc,
    "down": np.floor,
    "up": lambda value: np.floor(value + 0.5),
    "away": lambda value: np.copysign(np.floor(abs(value) + 0.5), value),
}


@each(list(MODES))
def test_modes(mode: str) -> None:
    for eighths in range(-200, 200):
        value = eighths / 8
        assert exact.to_integer(number_of(np.float32(value)), mode, 20) == np.clip(MODES[mode](value), -20, 20), value


def test_the_constants_are_the_hardware_s() -> None:
    from tpucc.rtl import float32

    assert (exact.SIGNIFICAND, exact.BIAS, exact.EXPONENT) == (float32.SIGNIFICAND, float32.BIAS, float32.EXPONENT)


def test_no_term_has_tpuccs_own_tags_and_switch() -> None:
    """Terms have all others of which an array can see something."""
    assert {(rules.counts, rules.marks, rules.switch) for rules in CHOICES if rules not in OTHERS} == {
        ("row", "zero", "take"),
        ("steps", "zero", "take"),
    }
    assert Rules() in OTHERS


@each(CHOICES)
def test_a_weight_reaches_its_row(rules: Rules) -> None:
    """Whatever the tags are, a tile that is shifted through a column of elements leaves each with its own weight."""
    column = [Expected(rules, row) for row in range(4)]
    for cycle in range(8):
        arriving = (10 + 3 - cycle, 3 - cycle) if cycle < 4 else (99, -1)
        for element in column:
            below = (element.shadow, element.target) if element.fresh and element.target > element.row else (99, -1)
            element.step(0, int(rules.keeps), arriving, 0)
            arriving = below
    assert [element.shadow for element in column] == [10, 11, 12, 13]


@pytest.mark.parametrize("name", ["elements", "rounding"])
def test_without_pyrtl(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The labs are listed and begun, and say what is missing when they are checked, graded or packed."""
    monkeypatch.setitem(sys.modules, "pyrtl", None)
    lab = find(name)
    assert run("lab", "list") == 0
    assert run("lab", "start", lab.number, tmp_path / "mine") == 0
    said = f"error E0963: lab {lab.number} needs a package that isn't installed: pyrtl"
    for words in (("check", tmp_path / "mine"), ("grade", tmp_path / "mine", "--trust"), ("pack", lab.number, "-o", tmp_path / "lab.zip")):
        capsys.readouterr()
        assert run("lab", *words) == 2
        assert said in capsys.readouterr().err
