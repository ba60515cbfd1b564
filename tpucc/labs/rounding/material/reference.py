"""Lab 12, a solution for every term."""

from pyrtl import Const, concat, or_all_bits, select, shift_left_logical, signed_sub

from tpucc.rtl.float32 import BIAS, EXPONENT, SIGNIFICAND, Float, normalised

MODE = "{{mode}}"
LARGEST = {{most}}


def to_even(kept, rest):
    return rest[-1] & (or_all_bits(rest[:-1]) | kept[0])


def float_of(sign, exponent, bits):
    """The nearest number. The highest bit of `bits` is 1 and counts 2^(exponent - BIAS)."""
    kept, rest = bits[-SIGNIFICAND:], bits[:-SIGNIFICAND]
    up = kept + to_even(kept, rest)
    carry = up[SIGNIFICAND]
    significand = select(carry, up[1:], up[:SIGNIFICAND])
    return Float(sign, (exponent + carry)[:EXPONENT], significand)


def from_integer(number):
    sign = number[-1]
    magnitude = select(sign, signed_sub(0, number)[: len(number)], number)
    bits, zeros = normalised(magnitude)
    return float_of(sign, (BIAS + len(number) - 1 - zeros)[:EXPONENT], bits)


def product(a, b):
    exact = a.significand * b.significand
    large = exact[-1]
    bits = select(large, exact, concat(exact[:-1], Const(0, 1)))
    return float_of(a.sign ^ b.sign, (a.exponent + b.exponent + large - BIAS)[:EXPONENT], bits)


def to_integer(number, mode):
    zero = number.significand == 0
    tiny, huge = (number.exponent < BIAS - 1) & ~zero, (number.exponent > BIAS + 8) & ~zero
    places = (number.exponent - (BIAS - 1))[:4]
    shifted = shift_left_logical(number.significand.zero_extended(SIGNIFICAND + 10), places)
    whole = select(tiny | zero, Const(0, 10), shifted[SIGNIFICAND:])
    rest = select(tiny | zero, Const(0, SIGNIFICAND), shifted[:SIGNIFICAND])
    other = {
        "away": rest[-1],
        "up": rest[-1] & (or_all_bits(rest[:-1]) | ~number.sign),
        "zero": Const(0, 1),
        "down": (or_all_bits(rest) | tiny) & number.sign,
    }[MODE]
    nearest = whole + select(mode, other, to_even(whole, rest))
    magnitude = select(huge | (nearest > LARGEST), Const(LARGEST, 11), nearest[:11])
    return select(number.sign, signed_sub(0, magnitude)[:11], magnitude)
