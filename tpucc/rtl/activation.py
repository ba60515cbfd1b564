"""The activation unit: its control, and a lane for each column.

A lane makes a byte in one cycle: from an accumulator (`activate`), or from bytes of the unified buffer (`vector`, `pool`). Everything is in
integers; the steps that the simulator computes in float32 are those of `tpucc.rtl.float32`, with the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyrtl import (
    Const,
    MemBlock,
    Register,
    WireVector,
    concat,
    select,
    signed_add,
    signed_gt,
    signed_lt,
    signed_mult,
    signed_sub,
)

from tpucc.machines.v1 import Function
from tpucc.rtl.accumulators import Write
from tpucc.rtl.float32 import Float, from_bits, from_integer, product, to_integer, total
from tpucc.rtl.queue import Queue
from tpucc.rtl.shape import BLOCK_BITS, COUNT_BITS, Shape
from tpucc.rtl.walk import offset, steps
from tpucc.rtl.wires import Layout, chosen, lanes_of, packed

ACTIVATE = len(Function)
CONFIGURE = len(Function) + 1
"""Instructions that aren't `vector` or `pool`, numbered after the functions of these."""
FUNCTION_BITS = CONFIGURE.bit_length()


def fields(shape: Shape) -> dict[str, int]:
    """Of every instruction of the unit. Without windows, a window is one row."""
    row = shape.buffer_bits
    return {
        "function": FUNCTION_BITS,
        **dict.fromkeys(("splat", "splat2"), 1),
        **dict.fromkeys((f"{walk}{step}" for walk in ("ub", "ub2", "window", "dest") for step in ("", "_pitch", "_stride")), row),
        "acc": shape.accumulator_bits,
        "block": BLOCK_BITS,
        **dict.fromkeys(("outer", "inner", "window_outer", "window_inner"), COUNT_BITS),
    }


def block_layout(lanes: int) -> Layout:
    """A parameter block as the unit holds it, without its table."""
    of_lanes = {f"{name}_{lane}": 32 for lane in range(lanes) for name in ("bias", "multiplier")}
    of_all = {**dict.fromkeys(("zero", "low", "high", "zero_a", "zero_b"), 8), "scale_a": 32, "scale_b": 32, "has_table": 1}
    return Layout({**of_all, **of_lanes})


class Parameters:
    """The parameter blocks and their tables: `block` is the one in use. A table is indexed by the bits of a value."""

    def __init__(self, shape: Shape) -> None:
        self.layout = block_layout(shape.lanes)
        self.blocks = MemBlock(self.layout.width, BLOCK_BITS, "blocks", asynchronous=True)
        self.tables = MemBlock(8, BLOCK_BITS + 8, "tables", max_read_ports=None, asynchronous=True)
        self.block = Register(BLOCK_BITS, "block")
        self.fields = self.layout.unpack(self.blocks[self.block])

    def looked_up(self, value: WireVector) -> WireVector:
        return self.tables[concat(self.block, value)]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The rows that the unit reads in a cycle."""

    a: WireVector
    b: WireVector
    acc: WireVector


@dataclass(frozen=True, slots=True)
class Control:
    """What the unit does in a cycle: it reads `addresses`, and at the `end` of a window writes the row `dest`."""

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
    one = Const(1, bits)
    kernel = offset("window_kernel", window, head["window_inner"].truncate(bits), one)
    sums = offset("activation_acc", of, head["inner"].truncate(shape.accumulator_bits), one[: shape.accumulator_bits])
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


def lane(
    number: int, function: WireVector, of: Control, operands: tuple[WireVector, WireVector, WireVector], parameters: Parameters
) -> WireVector:
    """The byte of a lane: from two bytes and an accumulator, its `operands`."""
    a, b, acc = operands
    block = parameters.fields

    def does(*functions: int) -> WireVector:
        return chosen(function, {each: Const(1, 1) for each in functions}, Const(0, 1))

    # the integer that is scaled
    centred_a, centred_b = signed_sub(a, block["zero_a"]), signed_sub(b, block["zero_b"])
    summed, term = _summed(number, of, select(does(Function.WEIGHTED), signed_mult(a, b), centred_a.sign_extended(16)))
    bias = block[f"bias_{number}"]
    cases = {
        ACTIVATE: signed_add(acc, bias),
        Function.WEIGHTED: signed_add(summed, bias),
        Function.AVERAGE: summed,
        Function.MULTIPLY: signed_mult(centred_a, centred_b),
    }
    integer = chosen(function, {f: wire.sign_extended(33)[:32] for f, wire in cases.items()}, centred_a.sign_extended(32))

    # scaled, rounded and clamped
    of_column = does(ACTIVATE, Function.WEIGHTED)
    scaled = product(from_integer(integer), from_bits(select(of_column, block[f"multiplier_{number}"], block["scale_a"])))
    other = product(from_integer(centred_b), from_bits(block["scale_b"]))
    other = Float(other.sign ^ (function == Function.SUBTRACT), other.exponent, other.significand)
    both, pair = total(scaled, other), does(Function.ADD, Function.SUBTRACT)
    real = Float(
        select(pair, both.sign, scaled.sign), select(pair, both.exponent, scaled.exponent), select(pair, both.significand, scaled.significand)
    )
    value = clamped(to_integer(real), block)

    # looked up, or as it is
    straight, looks = does(Function.TABLE), block["has_table"] & ~does(Function.AVERAGE) | does(Function.TABLE)
    result = select(looks, parameters.looked_up(select(straight, a, value)), value)
    return chosen(function, {Function.COPY: a, Function.MAX: _largest(number, of, a)}, result)


def clamped(rounded: WireVector, block: Mapping[str, WireVector]) -> WireVector:
    """A rounded number plus the zero point, clamped: the clamp comes first, moved by the zero point (`tpucc.numerics.saturate`)."""
    low, high = signed_sub(block["low"], block["zero"]), signed_sub(block["high"], block["zero"])
    within = select(signed_lt(rounded, low), low.sign_extended(11), select(signed_gt(rounded, high), high.sign_extended(11), rounded))
    return signed_add(within, block["zero"]).truncate(8)


def _summed(number: int, of: Control, term: WireVector) -> tuple[WireVector, WireVector]:
    """The sum of the terms of a window so far, this one included."""
    register = Register(32, f"lane_{number}_sum")
    total = signed_add(select(of.first, Const(0, 32), register), term).truncate(32)
    register.next <<= select(of.active, total, register)
    return total, term


def _largest(number: int, of: Control, value: WireVector) -> WireVector:
    """The largest value of a window so far, this one included."""
    register = Register(8, f"lane_{number}_largest")
    largest = select(of.first | signed_gt(value, register), value, register)
    register.next <<= select(of.active, largest, register)
    return largest


def activation_unit(
    shape: Shape, queue: Queue, of: Control, parameters: Parameters, rows: tuple[WireVector, WireVector], sums: Sequence[WireVector]
) -> Write:
    """The write of the unit: from the rows of the unified buffer at `a` and `b`, and the accumulators at `acc`."""
    head = queue.fields
    a, b = (
        [select(head[splat], lanes[0], each) for each in lanes]
        for splat, lanes in zip(("splat", "splat2"), map(lanes_of, rows), strict=True)
    )
    operands = zip(a, b, sums, strict=True)
    result = [lane(number, head["function"], of, each, parameters) for number, each in enumerate(operands)]
    return Write(of.writes, of.dest, packed(result))
