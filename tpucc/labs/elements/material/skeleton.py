"""Lab 11: the array as hardware. Write `element` and `array`; helpers of your own are welcome in this file."""

from pyrtl import Const, Register, select, signed_add, signed_mult

from tpucc.rtl.element import Activation, Element, Weight
from tpucc.rtl.wires import delayed


def element(row, column, left, above, sum_above):
    """The element of a row and a column. Its inputs are wires: `left.x` and `left.switch`, `above.weight` and `above.tag`, `sum_above`.

    Returns what its neighbours see one cycle later. This one passes everything on, and multiplies nothing.
    """
    name = f"element_{row}_{column}"
    x, switch = Register(len(left.x), f"{name}_x"), Register(1, f"{name}_switch")
    x.next <<= left.x
    switch.next <<= left.switch
    total = Register(32, f"{name}_sum")
    total.next <<= sum_above
    return Element(right=Activation(x, switch), down=Weight(Const(0, 8), Const(0, len(above.tag))), sum=total)


def array(x, switch, weights, tag):
    """The sums that leave the bottom, one wire of 32 bits for each column.

    `x` is a list of wires, a row of activations; `switch` is one wire. `weights` is a list of wires, a row of a tile; `tag` is one wire.
    """
    raise NotImplementedError
