"""Lab 12: the steps of float32 in a lane of the activation unit, each of which rounds, as hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from tpucc.isa.assembler import assemble
from tpucc.labs.circuits import Circuit, Driven, asked, on_chip, signed
from tpucc.labs.judging import all_or_nothing, some_right
from tpucc.labs.lab import Outcome, Submission, Test, Wrong, declared, filled, judging_seed
from tpucc.labs.rounding import exact
from tpucc.labs.rounding.exact import BIAS, EXPONENT, SIGNIFICAND, Number, Rules, any_number, near, rules
from tpucc.sim.interpret import Interpreter

if TYPE_CHECKING:
    from pyrtl import WireVector

    from tpucc.rtl.float32 import Float, Steps

INTEGER, WHOLE = 32, 11
"""Bits of an integer that is converted, and of one that a number is rounded to."""
FLOAT = {"sign": 1, "exponent": EXPONENT, "significand": SIGNIFICAND}
PORTS: Mapping[str, Mapping[str, int]] = {
    "from_integer": {"number": INTEGER},
    "product": {f"{name}.{part}": bits for name in "ab" for part, bits in FLOAT.items()},
    "to_integer": {**{f"number.{part}": bits for part, bits in FLOAT.items()}, "mode": 1},
}
"""The inputs of the circuits."""
COUNT = 40
"""Cases of a group."""


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    numbers = (2.5, -2.5, 3.5, 2.75, -2.75)
    row = (f"{exact.to_integer(_number(x), rules.mode, rules.most)}" for x in numbers)
    even = (f"{exact.to_integer(_number(x), 'even', rules.most)}" for x in numbers)
    return {"even_row": " | ".join(even), "mode_row": " | ".join(row)}


def _number(value: float) -> Number:
    return exact.number_of(int(value < 0), int(abs(value) * 4), -2)


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    other = [f"{kind}, mode 1" for kind in ("near", "ties", "tiny")]
    return (
        Test("from_integer: exact", 5, partial(groups, rules, "from_integer", ("small",), 1)),
        Test("from_integer: rounding", 10, partial(groups, rules, "from_integer", ("near", "ties", "carries", "ends"), 2)),
        Test("product: exact", 5, partial(groups, rules, "product", ("few bits", "zeros"), 3)),
        Test("product: rounding", 10, partial(groups, rules, "product", ("many bits", "ties", "near", "carries", "far exponents"), 4)),
        Test("to_integer: nearest", 5, partial(groups, rules, "to_integer", ("near", "zeros", "tiny", "huge"), 5)),
        Test("to_integer: ties", 5, partial(groups, rules, "to_integer", ("ties",), 6)),
        Test("to_integer: the other mode", 10, partial(every_group, rules, "to_integer", other, 7)),
        Test("chip: a program", 10, partial(chips, 1, 8)),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs."""
    key = partial(draw.getrandbits, 32)
    both = [f"{kind}{mode}" for mode in ("", ", mode 1") for kind in ("tiny", "huge", "zeros", "near")]
    return (
        Test("from_integer: edges", 10, partial(every_group, rules, "from_integer", ("carries", "ends", "ties", "near"), key())),
        Test("product: edges", 10, partial(every_group, rules, "product", ("carries", "zeros", "far exponents", "ties", "near"), key())),
        Test("to_integer: edges", 10, partial(every_group, rules, "to_integer", both, key())),
        Test("chip: other programs", 10, partial(chips, 3, key())),
    )


Case = tuple[Mapping[str, int], Number | int, str]
"""The inputs of a circuit, what it must give, and both in words."""


def every_group(rules: Rules, function: str, names: Sequence[str], key: int, submission: Submission) -> Outcome:
    """Groups of cases, of which all must be right."""
    return all_or_nothing(groups(rules, function, names, key, submission))


def groups(rules: Rules, function: str, names: Sequence[str], key: int, submission: Submission) -> Outcome:
    """Groups of cases: each of which all are right earns its share."""
    circuit = _circuit(submission, function)
    driven, draw = Driven(circuit, PORTS[function]), Random(f"{key}/{judging_seed()}")
    return some_right((partial(one_group, rules, driven, function, name, draw) for name in names), "groups of numbers are right")


def one_group(rules: Rules, driven: Driven, function: str, group: str, draw: Random) -> Outcome:
    """Cases of one kind, one in each cycle."""
    for given, wanted, words in CASES[function](rules, group, draw):
        out = driven.step(**given)
        if isinstance(wanted, int):
            found: Number | int = signed(out[""], WHOLE)
        else:
            found = Number(out["sign"], out["exponent"], out["significand"]) if out["significand"] else Number(0, 0, 0)
        if found != wanted:
            raise Wrong(f"{group}: {words} is not right", given=words, expected=_said(wanted), found=_said(found))
    return Outcome(1, f"{group}: all right")


def _said(found: Number | int) -> str:
    """A number by its parts, which decide, before its value: a terminal cuts the end of a line."""
    if isinstance(found, int):
        return f"{found}"
    return f"sign {found.sign}, exponent {found.exponent}, significand {found.significand:#x}: {found}"


def _circuit(submission: Submission, function: str) -> Circuit:
    """What a function makes, without registers."""
    given, bits = _asked(function)
    returns = "one wire" if "" in bits else f"`Float({', '.join(bits)})`"
    return asked(submission, function, given, bits, returns, registers=False)


def _asked(function: str) -> tuple[tuple[Any, ...], Mapping[str, int]]:
    """What a function is called with, and the outputs that it has."""
    from tpucc.rtl.float32 import Float
    from tpucc.rtl.netlist import Port

    def number(name: str) -> Any:
        return Float(*(Port(f"{name}.{part}", bits) for part, bits in FLOAT.items()))

    if function == "from_integer":
        return (Port("number", INTEGER),), FLOAT
    if function == "product":
        return (number("a"), number("b")), FLOAT
    return (number("number"), Port("mode", 1)), {"": WHOLE}


def _conversions(rules: Rules, group: str, draw: Random) -> Iterator[Case]:
    for _ in range(COUNT):
        places, off = min(draw.randrange(1, 12), 7), draw.choice((1, -1)) if group == "near" else 0
        if group == "small":
            value = draw.choice((0, 1, -1, 2**24 - 1, draw.randrange(-(2**23), 2**23), draw.randrange(-300, 300)))
        elif group == "ends":
            value = draw.choice((2**31 - 1, -(2**31), -(2**31) + 1, 2**31 - 64, 2**31 - 65, -(2**31) + 65))
        else:
            kept = draw.randrange(2**23, 2**24)
            if off:  # a tie would be rounded the other way
                kept = kept & ~1 | (off < 0)
            value = (kept << places) + (1 << places - 1) + off
            if group == "carries":
                value = (1 << 24 + places) - draw.randrange(1, (1 << places) + 1)
            value = min(value, 2**31 - 1) * draw.choice((1, -1))
        yield {"number": value}, exact.converted(value), f"from_integer({value})"


def _products(rules: Rules, group: str, draw: Random) -> Iterator[Case]:
    for _ in range(COUNT):
        a, b = (any_number(draw, draw.randrange(BIAS - 40, BIAS + 20)) for _ in range(2))
        if group == "few bits":
            a, b = (any_number(draw, draw.randrange(BIAS - 9, BIAS + 9), 12) for _ in range(2))
        elif group == "ties":  # 25 bits, the last one 1
            value = draw.randrange(2**12, 2**13) | 1
            a, b = exact.number_of(a.sign, value, 0), exact.number_of(b.sign, draw.randrange(-(-(2**24) // value), 2**25 // value) | 1, -9)
        elif group == "near":
            a, b = (x._replace(significand=significand) for x, significand in zip((a, b), exact.near_a_tie(draw), strict=True))
        elif group == "carries":
            a, b = Number(a.sign, a.exponent, 2**24 - draw.randrange(1, 3)), Number(b.sign, b.exponent, 2**23 + draw.randrange(3))
        elif group == "zeros":
            a, b = draw.choice(((Number(0, 0, 0), b), (a, Number(1, 0, 0)), (Number(0, BIAS, 0), Number(0, 1, 0))))
        elif group == "far exponents":
            a, b = a._replace(exponent=draw.choice((BIAS - 126, 174, 430))), b._replace(exponent=draw.choice((BIAS - 126, 174, 430)))
        given = {f"{name}.{part}": value for name, x in (("a", a), ("b", b)) for part, value in x._asdict().items()}
        yield given, exact.multiplied(a, b), f"product({a}, {b})"


def _roundings(rules: Rules, group: str, draw: Random) -> Iterator[Case]:
    kind, mode = group.partition(",")[0], int(group.endswith("mode 1"))
    for _ in range(COUNT):
        size = draw.randrange(1, 9)
        halves = draw.randrange(1 << size, 2 << size)
        if kind == "near":
            number = near(draw, halves | 1, size, draw.choice((1, -1, 1 << 10, -(1 << 12))))
        elif kind == "ties":
            number = near(draw, halves | draw.choice((0, 1, 1)), size, 0)
        elif kind == "tiny":
            number = draw.choice((near(draw, 1, 1, draw.choice((0, 1, -1))), any_number(draw, draw.choice((BIAS - 1, BIAS - 2, 150, 1)))))
        elif kind == "zeros":
            number = Number(draw.getrandbits(1), draw.choice((1, BIAS - 2, BIAS + 9, BIAS + 20, draw.getrandbits(EXPONENT))), 0)
        else:
            number = draw.choice(
                (any_number(draw, BIAS + draw.choice((8, 9, 10, 24, 40, 200))), near(draw, 2 * rules.most + 1, 9, draw.choice((0, 1, -1))))
            )
        given = {f"number.{part}": value for part, value in number._asdict().items()}
        wanted = exact.to_integer(number, rules.mode if mode else "even", rules.most)
        yield {**given, "mode": mode}, wanted, f"to_integer({number}, {mode})"


CASES: Mapping[str, Callable[[Rules, str, Random], Iterator[Case]]] = {
    "from_integer": _conversions,
    "product": _products,
    "to_integer": _roundings,
}
"""The cases of a group."""


def chips(count: int, key: int, submission: Submission) -> Outcome:
    """Programs on a chip whose lanes convert, multiply and round as the submission does: each that runs as on the simulator earns its
    share."""
    from tpucc.rtl.chip import chip
    from tpucc.rtl.shape import shape_of
    from tpucc.target import load_target

    circuits = {function: _circuit(submission, function) for function in PORTS}
    made = chip(shape_of(load_target("tiny")), compute=steps(circuits))
    draw = Random(f"{key}/{judging_seed()}")

    def one(number: int) -> Outcome:
        text = listing(draw)
        begun = Interpreter(assemble(text, "program.asm"))
        begun.begin({"x": np.random.default_rng(draw.getrandbits(32)).integers(-128, 128, (4, 4)).astype(np.int8)})
        return on_chip(made, begun, f"program {number}", text)

    return some_right((partial(one, number) for number in range(1, count + 1)), "programs are equal")


def steps(circuits: Mapping[str, Circuit]) -> Steps:
    """The circuits as what a lane calls, in the mode 0."""
    from pyrtl import Const

    from tpucc.rtl.float32 import Float, Steps

    def parts(name: str, number: Float) -> dict[str, WireVector]:
        return {f"{name}.{part}": getattr(number, part) for part in FLOAT}

    def to_integer(number: Float) -> WireVector:
        return circuits["to_integer"].placed(parts("number", number) | {"mode": Const(0, 1)})[0]

    return Steps(
        lambda number: Float(*circuits["from_integer"].placed({"number": number.sign_extended(INTEGER)})),
        lambda a, b: Float(*circuits["product"].placed(parts("a", a) | parts("b", b))),
        to_integer,
    )


def listing(draw: Random) -> str:
    """A program of one product, whose sums are requantised by three parameter blocks: one with many ties, one with few, and one whose
    sums have more than 24 bits, and are ties or near to one."""
    words = {
        "ties": f"multiplier={draw.choice((0.125, 0.25, 0.375, 0.5, 0.625))} zero={draw.choice((-3, 0, 5))} low=-128 high=127",
        "few": f"multiplier={draw.choice((0.0123, 0.3, 0.071))} zero={draw.randrange(-20, 20)} low=-128 high={draw.choice((6, 127))}",
        "wide": f"multiplier={2**-24:.12g} bias={draw.choice((1, -1)) * (2 * draw.randrange(32, 120) + 1) * 2**23}",
        "tile": "\n".join(f"| {' '.join(str(draw.randrange(-3, 4)) for _ in range(4))}" for _ in range(4)),
    }
    return filled(PROGRAM, words)


PROGRAM = Path(__file__).with_name("program.asm").read_text("utf-8")

LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
