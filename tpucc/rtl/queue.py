"""A unit's queue of instructions, and what every unit does with it: wait, run, and say that it has finished."""

from __future__ import annotations

from collections.abc import Mapping

from pyrtl import MemBlock, Register, WireVector, rtl_all, select

from tpucc.machines.v1 import UNITS, Engine
from tpucc.rtl.shape import QUEUE_BITS
from tpucc.rtl.wires import Layout

NUMBER_BITS = QUEUE_BITS + 1
WAITS = {f"wait_{unit}": NUMBER_BITS for unit in UNITS}
"""Fields of every word of a queue: how many instructions of each unit must have finished before this one starts."""


Progress = Mapping[Engine, WireVector]
"""How many instructions each unit has finished, as the other units see it: a register of the unit itself."""


class Queue:
    """The instructions of a unit, which the decoder writes and the unit takes in their order.

    `fields` are those of the instruction at the head. It stays there until its last cycle, so that a unit needs no other registers than its
    counters. `ready` says that there is an instruction and that all that it waits for has finished.
    """

    def __init__(self, unit: Engine, fields: Mapping[str, int], progress: Progress, go: WireVector) -> None:
        self.layout = Layout({**fields, **WAITS})
        self.memory = MemBlock(self.layout.width, QUEUE_BITS, f"{unit}_queue", asynchronous=True)
        self.head, self.tail = (Register(NUMBER_BITS, f"{unit}_{end}") for end in ("head", "tail"))
        self.fields = self.layout.unpack(self.memory[self.head[:QUEUE_BITS]])
        self._running, self._finished = Register(1, f"{unit}_running"), progress[unit]
        waited = rtl_all(*(progress[other] >= self.fields[f"wait_{other}"] for other in UNITS))
        self.ready = go & (self.head != self.tail) & waited

    def push(self, enable: WireVector, fields: Mapping[str, WireVector | int]) -> None:
        """In cycles with `enable` the instruction with these fields joins the queue."""
        self.memory[self.tail[:QUEUE_BITS]] <<= MemBlock.EnabledWrite(self.layout.pack(fields), enable)
        self.tail.next <<= self.tail + enable

    def active(self, may_start: WireVector | None = None) -> WireVector:
        """Whether the instruction at the head is executed in this cycle: it starts, or goes on."""
        return self._running | (self.ready if may_start is None else self.ready & may_start)

    def starts(self, active: WireVector) -> WireVector:
        """Whether this is the first cycle of an instruction."""
        return active & ~self._running

    def run(self, active: WireVector, last: WireVector) -> WireVector:
        """Executes the head until the cycle that is its `last`; returns whether this is that cycle."""
        ends = active & last
        self._running.next <<= active & ~last
        self.head.next <<= self.head + ends
        return ends

    def finish(self, ends: WireVector) -> None:
        """Other units see from the next cycle on that one more instruction has finished."""
        self._finished.next <<= self._finished + ends


def counter(bits: int, name: str, active: WireVector, limit: WireVector) -> tuple[Register, WireVector]:
    """A register that counts the active cycles from 0 up to below `limit` and begins anew; and whether this is the last of them."""
    register = Register(bits, name)
    last = register == (limit - 1).truncate(bits)
    register.next <<= select(active, select(last, 0, register + 1), register)
    return register, last
