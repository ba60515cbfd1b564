"""What differs between terms: the second mode of rounding to an integer, and the largest integer. And what the circuits must give, in
Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import NamedTuple

from tpucc.labs.lab import Term

SIGNIFICAND, BIAS, EXPONENT = 24, 300, 10
"""Of `tpucc.rtl.float32`, which can't be imported without PyRTL; a test compares them."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's second mode: ties go `away` from zero or `up`, or what is behind the point is cut off, towards `zero` or `down`. Integers
    are at most `most` from zero: the chip needs 256 or more."""

    mode: str = "away"
    most: int = 511


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("rounding")
    return Rules(draw.choice(("away", "up", "zero", "down")), draw.choice((511, 400, 300))) if draw else Rules()


class Number(NamedTuple):
    """A number as the hardware has it: (-1)^sign · significand · 2^(exponent - 300 - 23)."""

    sign: int
    exponent: int
    significand: int

    def __str__(self) -> str:
        exponent, value = self.exponent - BIAS - 23, -self.significand if self.sign else self.significand
        return f"{value} · 2^{exponent} = {math.ldexp(value, exponent)!r}"


def number_of(sign: int, value: int, exponent: int) -> Number:
    """The number of 24 bits that is nearest to value · 2^exponent, ties to even; value is not negative."""
    if not value:
        return Number(0, 0, 0)
    places = value.bit_length() - SIGNIFICAND
    significand = round(value / Fraction(2) ** places)
    if significand >> SIGNIFICAND:  # a carry
        significand, places = significand >> 1, places + 1
    return Number(sign, exponent + places + BIAS + SIGNIFICAND - 1, significand)


def converted(value: int) -> Number:
    """`from_integer`."""
    return number_of(int(value < 0), abs(value), 0)


def multiplied(a: Number, b: Number) -> Number:
    """`product`."""
    return number_of(a.sign ^ b.sign, a.significand * b.significand, a.exponent + b.exponent - 2 * (BIAS + SIGNIFICAND - 1))


def to_integer(number: Number, mode: str, most: int) -> int:
    """A number rounded to an integer, at most `most` from zero. The mode `even` is the first one of every term."""
    value = number.significand * Fraction(2) ** (number.exponent - BIAS - SIGNIFICAND + 1)
    return min(max(MODES[mode](-value if number.sign else value), -most), most)


HALF = Fraction(1, 2)
MODES: Mapping[str, Callable[[Fraction], int]] = {
    "even": round,
    "away": lambda value: math.trunc(value + (HALF if value > 0 else -HALF)),
    "up": lambda value: math.floor(value + HALF),
    "zero": math.trunc,
    "down": math.floor,
}


def any_number(draw: Random, exponent: int, bits: int = SIGNIFICAND) -> Number:
    """A number with an exponent, of which only so many of the highest bits may be 1."""
    significand = (1 << bits - 1 | draw.getrandbits(bits)) & ((1 << bits) - 1)
    return Number(draw.getrandbits(1), exponent, significand << SIGNIFICAND - bits)


def near_a_tie(draw: Random) -> tuple[int, int]:
    """Two significands whose product has 47 or 48 bits and is a little more or less than a tie, which would be rounded the other way."""
    while True:
        a, bits, off = draw.randrange(2**23 + 1, 2**24, 2), draw.choice((23, 24)), draw.choice((1, 1, -1, 1 << draw.randrange(12)))
        rest = (1 << bits - 1) + off
        b = rest * pow(a, -1, 1 << bits) % (1 << bits) | 1 << SIGNIFICAND - 1
        kept, behind = divmod(a * b, 1 << bits)
        if behind == rest and kept.bit_length() == SIGNIFICAND and kept & 1 == (off < 0):
            return a, b


def near(draw: Random, halves: int, size: int, off: int) -> Number:
    """halves / 2 with `size` bits before the point, moved by `off` of its last places."""
    value = (halves << SIGNIFICAND - size - 1) + off
    return number_of(draw.getrandbits(1), value, size - SIGNIFICAND)
