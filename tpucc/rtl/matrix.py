"""The matrix unit's control: it reads rows of the unified buffer into the array, one a cycle."""

from __future__ import annotations

from dataclasses import dataclass

from pyrtl import Const, WireVector, as_wires, concat, select

from tpucc.rtl.element import X_BITS
from tpucc.rtl.queue import Queue
from tpucc.rtl.shape import COUNT_BITS, Shape
from tpucc.rtl.walk import offset, steps
from tpucc.rtl.wires import delayed, lanes_of


def fields(shape: Shape) -> dict[str, int]:
    """The fields of a `matrix_multiply` or a `convolve`, and their bits."""
    row = shape.buffer_bits
    return {
        **dict.fromkeys(("switch", "accumulate", "unsigned"), 1),
        **dict.fromkeys(("ub", "ub_pitch", "ub_stride"), row),
        "acc": shape.accumulator_bits,
        **dict.fromkeys(("outer", "inner"), COUNT_BITS),
    }


@dataclass(frozen=True, slots=True)
class Reading:
    """What the unit does in a cycle."""

    active: WireVector
    """It reads the row `row` of the unified buffer, whose sums go to the accumulators `acc`."""
    row: WireVector
    acc: WireVector
    adds: WireVector
    takes: WireVector
    """It takes the tile from the shadow: this row is the first that it multiplies."""
    starts: WireVector
    ends: WireVector


def reading(shape: Shape, queue: Queue, shadow_full: WireVector) -> Reading:
    """Reads the rows of the instruction at the head. One that switches starts when a tile is in the shadow.

    The sums of the last row can be read `drain_cycles` after it went in: so much later it counts as finished.
    """
    head = queue.fields
    active = queue.active(~head["switch"] | shadow_full)
    starts = queue.starts(active)
    of = steps("matrix", active, head["outer"], head["inner"])
    place = offset("matrix_ub", of, head["ub_pitch"], head["ub_stride"])
    dense = as_wires(head["inner"], shape.accumulator_bits), Const(1, shape.accumulator_bits)
    sums = offset("matrix_acc", of, *dense)
    ends = queue.run(active, of.ends)
    queue.finish(delayed(ends, shape.drain_cycles, "matrix_drain"))
    return Reading(
        active,
        (head["ub"] + place).truncate(shape.buffer_bits),
        (head["acc"] + sums).truncate(shape.accumulator_bits),
        head["accumulate"],
        starts & head["switch"],
        starts,
        ends,
    )


def activations(row: WireVector, unsigned: WireVector) -> list[WireVector]:
    """The lanes of a row as integers of 9 bits."""
    return [concat(select(unsigned, Const(0, X_BITS - 8), lane[-1]), lane) for lane in lanes_of(row)]
