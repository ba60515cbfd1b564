"""The array of elements, with the triangles of registers at its left and upper edge.

The rows of a tile and of an input enter whole. A triangle delays lane i by i cycles more than lane 0, so that an activation meets the sum
of its row. `tpucc.systolic` is the same array in NumPy, and the test compares all registers in all cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrtl import Const, Register, WireVector

from tpucc.rtl.element import Activation, Element, Weight, element
from tpucc.rtl.wires import delayed

Array = Callable[[Sequence[WireVector], WireVector, Sequence[WireVector], WireVector], Sequence[WireVector]]


def setup(lanes: Sequence[WireVector], switch: WireVector) -> list[Activation]:
    """The triangle at the left edge: lane r leaves it r + 1 cycles after it went in."""
    # lab 11 begin: let each lane wait for its row
    return [
        Activation(delayed(x, lane + 1, f"setup_{lane}"), delayed(switch, lane + 1, f"setup_{lane}_switch")) for lane, x in enumerate(lanes)
    ]
    # lab 11 end


def edge(lanes: Sequence[WireVector], row: WireVector) -> list[Weight]:
    """The triangle at the upper edge: the weight of column c leaves it c + 1 cycles after it went in."""
    # lab 11 begin: let each weight wait for its column
    return [Weight(delayed(w, lane + 1, f"edge_{lane}"), delayed(row, lane + 1, f"edge_{lane}_row")) for lane, w in enumerate(lanes)]
    # lab 11 end


def array(x: Sequence[WireVector], switch: WireVector, weights: Sequence[WireVector], row: WireVector) -> list[Register]:
    """The sums that leave the bottom, one register for each column.

    `x` is a row of activations [rows] of 9 bits, `switch` says that it is the first that the next tile multiplies. `weights` is a row of
    weights [columns], and `row` the row of elements that it is for, plus 1; 0 where none enters.
    """
    # lab 11 begin: connect the elements with their neighbours
    left, above = setup(x, switch), edge(weights, row)
    sums: list[WireVector] = [Const(0, 32)] * len(weights)
    grid: list[Element] = []
    for r, entering in enumerate(left):
        grid, activation = [], entering
        for c in range(len(weights)):
            grid.append(element(r, c, activation, above[c], sums[c]))
            activation = grid[-1].right
        above, sums = [each.down for each in grid], [each.sum for each in grid]
    return [each.sum for each in grid]
    # lab 11 end
