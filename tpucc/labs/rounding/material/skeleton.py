"""Lab 12: rounding as hardware. Write these three functions; helpers of your own are welcome in this file."""

from pyrtl import Const, concat, or_all_bits, select, shift_left_logical, signed_sub

from tpucc.rtl.float32 import BIAS, EXPONENT, SIGNIFICAND, Float, normalised


def from_integer(number):
    """The nearest `Float` to a signed integer of 32 bits. This one cuts off the bits that a significand has no room for."""
    sign = number[-1]
    magnitude = select(sign, signed_sub(0, number)[:32], number)
    bits, zeros = normalised(magnitude)
    return Float(sign, (BIAS + 31 - zeros)[:EXPONENT], bits[-SIGNIFICAND:])


def product(a, b):
    """The nearest `Float` to the product of two."""
    raise NotImplementedError


def to_integer(number, mode):
    """A `Float` as an integer of 11 bits, -{{most}} to {{most}}. `mode` is a wire: 0 for ties to even, 1 for the other mode."""
    raise NotImplementedError
