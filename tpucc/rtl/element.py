"""The processing element: one multiplier, one adder, and registers for the activation, the sum, the weight in use and its shadow."""

from __future__ import annotations

from dataclasses import dataclass

from pyrtl import Register, WireVector, select, signed_add, signed_mult

from tpucc.rtl.wires import named

X_BITS = 9
"""An activation of -128…127, or of 0…255."""
SUM_BITS = 32


@dataclass(frozen=True, slots=True)
class Activation:
    """What goes right: an activation, and whether the elements take the weight from their shadows first."""

    x: WireVector
    switch: WireVector


@dataclass(frozen=True, slots=True)
class Weight:
    """What goes down while a tile is shifted in: a weight, and as its tag the row of elements that it is for, plus 1; 0 is no weight."""

    weight: WireVector
    tag: WireVector


@dataclass(frozen=True, slots=True)
class Element:
    """The registers of an element, which its neighbours read."""

    right: Activation
    down: Weight
    sum: Register


def element(row: int, column: int, left: Activation, above: Weight, sum_above: WireVector) -> Element:
    """The element of a row and a column: its inputs are the registers of its neighbours.

    An activation with the switch uses the weight of the shadow in this very cycle, and a weight may arrive in the shadow at its end.
    """
    # lab 11 begin: make the registers of an element, and their next values
    name = f"element_{row}_{column}"
    x, switch = Register(X_BITS, f"{name}_x"), Register(1, f"{name}_switch")
    shadow, shadow_row = Register(8, f"{name}_shadow"), Register(len(above.tag), f"{name}_shadow_row")
    weight, total = Register(8, f"{name}_weight"), Register(SUM_BITS, f"{name}_sum")

    used = named(select(left.switch, shadow, weight), f"{name}_used")
    product = named(signed_mult(left.x, used), f"{name}_product")
    total.next <<= signed_add(sum_above, product)
    weight.next <<= used
    x.next <<= left.x
    switch.next <<= left.switch

    takes = named(above.tag > row, f"{name}_takes")  # a weight for this row, or for one further down
    shadow.next <<= select(takes, above.weight, shadow)
    shadow_row.next <<= select(takes, above.tag, shadow_row)
    return Element(Activation(x, switch), Weight(shadow, shadow_row), total)
    # lab 11 end
