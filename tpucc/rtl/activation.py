"""The activation unit: it walks over rows of the accumulators and of the unified buffer, and its lanes make rows of bytes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrtl import Const, WireVector, as_wires, concat_list, select

from tpucc.machines.v1 import Function
from tpucc.rtl.accumulators import Write
from tpucc.rtl.float32 import Steps
from tpucc.rtl.lane import CONFIGURE, FUNCTION_BITS, Operands, Parameters, lane
from tpucc.rtl.queue import Queue
from tpucc.rtl.shape import BLOCK_BITS, COUNT_BITS, Shape
from tpucc.rtl.walk import offset, steps
from tpucc.rtl.wires import lanes_of


def fields(shape: Shape) -> dict[str, int]:
    """The fields of every instruction of the unit, and their bits. Without windows, a window is one row."""
    row = shape.buffer_bits
    return {
        "function": FUNCTION_BITS,
        **dict.fromkeys(("splat", "splat2"), 1),
        **dict.fromkeys((f"{walk}{step}" for walk in ("ub", "ub2", "window", "dest") for step in ("", "_pitch", "_stride")), row),
        "acc": shape.accumulator_bits,
        "block": BLOCK_BITS,
        **dict.fromkeys(("outer", "inner", "window_outer", "window_inner"), COUNT_BITS),
    }


@dataclass(frozen=True, slots=True)
class Addresses:
    """The rows that the unit reads in a cycle."""

    a: WireVector
    b: WireVector
    acc: WireVector


@dataclass(frozen=True, slots=True)
class Control:
    """What the unit does in a cycle: it reads `addresses`, and at the end of a window writes the row `dest`."""

    addresses: Addresses
    active: WireVector
    first: WireVector
    """The first row of a window."""
    writes: WireVector
    dest: WireVector
    starts: WireVector
    ends: WireVector


def control(shape: Shape, queue: Queue, parameters: Parameters) -> Control:
    """Walks over the rows of the result, and at each of them over the rows of its window."""
    head, bits = queue.fields, shape.buffer_bits
    active = queue.active()
    window = steps("window", active, head["window_outer"], head["window_inner"])
    of = steps("activation", active & window.ends, head["outer"], head["inner"])
    a, b, dest = (offset(f"activation_{walk}", of, head[f"{walk}_pitch"], head[f"{walk}_stride"]) for walk in ("ub", "ub2", "dest"))
    inside = offset("window_ub", window, head["window_pitch"], head["window_stride"])
    kernel = offset("window_kernel", window, as_wires(head["window_inner"], bits), Const(1, bits))
    sums = offset("activation_acc", of, as_wires(head["inner"], shape.accumulator_bits), Const(1, shape.accumulator_bits))
    starts = queue.starts(active)
    ends = queue.run(active, window.ends & of.ends)
    queue.finish(ends)
    configures = head["function"] == CONFIGURE
    parameters.block.next <<= select(active & configures, head["block"], parameters.block)
    weighs = head["function"] == Function.WEIGHTED
    return Control(
        Addresses(
            (head["ub"] + a + inside).truncate(bits),
            (head["ub2"] + select(weighs, kernel, b)).truncate(bits),
            (head["acc"] + sums).truncate(shape.accumulator_bits),
        ),
        active,
        window.first,
        active & window.ends & ~configures,
        (head["dest"] + dest).truncate(bits),
        starts,
        ends,
    )


def activation_unit(
    queue: Queue, of: Control, parameters: Parameters, rows: tuple[WireVector, WireVector], sums: Sequence[WireVector], compute: Steps
) -> Write:
    """The write of the unit: from the rows of the unified buffer at `a` and `b`, and the accumulators at `acc`."""
    head = queue.fields
    a, b = (_lanes(row, head[splat]) for row, splat in zip(rows, ("splat", "splat2"), strict=True))
    operands = (Operands(head["function"], *each, of.first, of.active) for each in zip(a, b, sums, strict=True))
    result = [lane(number, each, parameters, compute) for number, each in enumerate(operands)]
    return Write(of.writes, of.dest, concat_list(result))


def _lanes(row: WireVector, splat: WireVector) -> list[WireVector]:
    """The lanes of a row; lane 0 for all where it stands for them."""
    lanes = lanes_of(row)
    return [select(splat, lanes[0], each) for each in lanes]
