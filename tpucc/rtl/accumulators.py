"""The accumulators: a bank of int32 rows for each column of the array, each with its own adder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrtl import MemBlock, WireVector, select

from tpucc.rtl.shape import Shape
from tpucc.rtl.wires import delayed


@dataclass(frozen=True, slots=True)
class Write:
    """A write into a memory: in cycles with `enable`, `data` goes to `row`."""

    enable: WireVector
    row: WireVector
    data: WireVector


def accumulators(
    shape: Shape, sums: Sequence[WireVector], enable: WireVector, row: WireVector, adds: WireVector, read: WireVector
) -> tuple[list[WireVector], list[Write]]:
    """The sums of the row `read`, and what each bank writes.

    In a cycle with `enable` a row enters the array whose sums go to the accumulators `row`: they are added to what is there if it `adds`.
    The sum of column c leaves the array `lanes` + c + 1 cycles later, and is there one cycle after that. So the last column writes
    2 · `lanes` cycles after the row went in, and can be read in the next: this is `Shape.drain_cycles`.
    """
    enable, row, adds = (delayed(wire, shape.lanes, f"sums_{name}") for wire, name in ((enable, "enable"), (row, "row"), (adds, "adds")))
    found, writes = [], []
    for column, total in enumerate(sums):
        enable, row, adds = (delayed(w, 1, f"bank_{column}_{n}") for w, n in ((enable, "enable"), (row, "row"), (adds, "adds")))
        bank = MemBlock(32, shape.accumulator_bits, f"bank_{column}", asynchronous=True)
        value = (total + select(adds, bank[row], 0)).truncate(32)
        bank[row] <<= MemBlock.EnabledWrite(value, enable)
        found.append(bank[read])
        writes.append(Write(enable, row, value))
    return found, writes
