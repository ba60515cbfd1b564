"""A lane of the activation unit: a byte in one cycle, from an accumulator (`activate`) or from bytes of the buffer (`vector`, `pool`).

Everything is in integers; the steps that the simulator computes in float32 are those of `tpucc.rtl.float32`, with the same bits. It is the
longest path of the chip: the clock gives the unit no cycle between the row that it reads and the row that it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyrtl import MemBlock, Register, WireVector, concat, rtl_any, select, signed_add, signed_gt, signed_lt, signed_mult, signed_sub

from tpucc.machines.v1 import Function
from tpucc.rtl.float32 import STEPS, Float, Steps, either, from_bits, total
from tpucc.rtl.shape import BLOCK_BITS, Shape
from tpucc.rtl.wires import Layout, chosen, named

ACTIVATE = len(Function)
CONFIGURE = len(Function) + 1
"""Instructions that aren't `vector` or `pool`, numbered after the functions of these."""
FUNCTION_BITS = CONFIGURE.bit_length()


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
class Operands:
    """What a lane computes with in a cycle: the function, two bytes, an accumulator. `first` is the first row of a window, and in cycles
    that are `active` the row belongs to it."""

    function: WireVector
    a: WireVector
    b: WireVector
    acc: WireVector
    first: WireVector
    active: WireVector

    def does(self, *functions: int) -> WireVector:
        """Whether the function is one of these."""
        return rtl_any(*(self.function == function for function in functions))


def lane(number: int, x: Operands, parameters: Parameters, compute: Steps = STEPS) -> WireVector:
    """The byte of a lane."""
    block, name = parameters.fields, f"lane_{number}"
    centred_a, centred_b = signed_sub(x.a, block["zero_a"]), signed_sub(x.b, block["zero_b"])
    term = select(x.does(Function.WEIGHTED), signed_mult(x.a, x.b), centred_a.sign_extended(16))
    summed = named(
        _over_window(f"{name}_sum", x, term.sign_extended(32), lambda so_far, new: signed_add(so_far, new).truncate(32)), f"{name}_summed"
    )
    largest = _over_window(f"{name}_largest", x, x.a, lambda so_far, new: select(signed_gt(new, so_far), new, so_far))

    cases = {
        ACTIVATE: signed_add(x.acc, block[f"bias_{number}"]),
        Function.WEIGHTED: signed_add(summed, block[f"bias_{number}"]),
        Function.AVERAGE: summed,
        Function.MULTIPLY: signed_mult(centred_a, centred_b),
    }
    integers = {function: wire.sign_extended(33).truncate(32) for function, wire in cases.items()}
    integer = named(chosen(x.function, integers, centred_a.sign_extended(32)), f"{name}_integer")
    of_column = x.does(ACTIVATE, Function.WEIGHTED)
    scaled = compute.product(compute.from_integer(integer), from_bits(select(of_column, block[f"multiplier_{number}"], block["scale_a"])))
    other = compute.product(compute.from_integer(centred_b), from_bits(block["scale_b"]))
    both = total(scaled, Float(other.sign ^ x.does(Function.SUBTRACT), other.exponent, other.significand))
    rounded = named(compute.to_integer(either(x.does(Function.ADD, Function.SUBTRACT), both, scaled)), f"{name}_rounded")

    value = named(clamped(rounded, block), f"{name}_value")
    table = x.does(Function.TABLE)
    looks_up = table | (block["has_table"] & ~x.does(Function.AVERAGE))
    result = select(looks_up, parameters.looked_up(select(table, x.a, value)), value)
    return chosen(x.function, {Function.COPY: x.a, Function.MAX: largest}, result)


def clamped(rounded: WireVector, block: Mapping[str, WireVector]) -> WireVector:
    """A rounded number plus the zero point, clamped. The clamp comes first, moved by the zero point (`tpucc.numerics.saturate`)."""
    low, high = (signed_sub(block[bound], block["zero"]).sign_extended(len(rounded)) for bound in ("low", "high"))
    within = select(signed_lt(rounded, low), low, select(signed_gt(rounded, high), high, rounded))
    return signed_add(within, block["zero"]).truncate(8)


def _over_window(name: str, x: Operands, new: WireVector, combined: Callable[[WireVector, WireVector], WireVector]) -> WireVector:
    """What the rows of a window make together, this one included: a register has what they made so far."""
    register = Register(len(new), name)
    together = select(x.first, new, combined(register, new))
    register.next <<= select(x.active, together, register)
    return together
