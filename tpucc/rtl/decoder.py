"""The decoder: takes a record of 64 bytes in a cycle, and writes the instruction into the queue of its unit.

`synchronize` stands in no queue. For each unit the decoder keeps how many instructions of each unit the next one must wait for, and writes
these numbers beside every instruction. So any number of synchronisations takes no cycle of a unit, as the clock has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyrtl import Const, Register, WireVector, rtl_all, rtl_any, select

from tpucc.machine.instruction import RECORD
from tpucc.machines.v1 import SPECS, UNITS, Engine, Flag, Opcode
from tpucc.rtl import activation, host, matrix, weights
from tpucc.rtl.host import Transfer
from tpucc.rtl.lane import ACTIVATE, CONFIGURE
from tpucc.rtl.queue import NUMBER_BITS, Progress, Queue
from tpucc.rtl.shape import STEP_BITS, Shape
from tpucc.rtl.wires import chosen

RECORD_BITS = 8 * RECORD.itemsize


Fields = Mapping[str, WireVector]
"""The fields of a record."""
Word = dict[str, WireVector | int]
"""The fields of a word of a queue."""
IsOne = Callable[..., WireVector]
"""Whether the opcode is one of several."""
HasFlag = Callable[[Flag], WireVector]


def queues_of(shape: Shape, progress: Progress, go: WireVector) -> dict[Engine, Queue]:
    """The queue of each unit."""
    fields = {
        Engine.HOST: host.fields(shape),
        Engine.WEIGHTS: weights.FIELDS,
        Engine.MATRIX: matrix.fields(shape),
        Engine.ACTIVATION: activation.fields(shape),
    }
    return {unit: Queue(unit, fields[unit], progress, go) for unit in UNITS}


def field(record: WireVector, name: str) -> WireVector:
    """A field of a record, by its place in `RECORD`."""
    assert RECORD.fields is not None
    kind, place = RECORD.fields[name][:2]
    return record[8 * place : 8 * (place + kind.itemsize)]


def decoder(record: WireVector, valid: WireVector, steps: WireVector, queues: Mapping[Engine, Queue], progress: Progress) -> WireVector:
    """Decodes `record` in cycles that are `valid`. `steps` is the number of the host's steps: an interrupt with this number or a larger one
    is the last, which says that the program has ended, and waits in no queue. Returns whether all that was decoded has finished."""
    of = {name: field(record, name) for name in RECORD.names or ()}

    def is_one(*opcodes: Opcode) -> WireVector:
        return rtl_any(*(of["opcode"] == opcode.value for opcode in opcodes))

    def flag(which: Flag) -> WireVector:
        return of["flags"][which.bit_length() - 1]

    issued: Progress = {unit: Register(NUMBER_BITS, f"{unit}_issued") for unit in UNITS}
    holds: Mapping[Engine, Progress] = {
        unit: {other: Register(NUMBER_BITS, f"{unit}_waits_for_{other}") for other in UNITS} for unit in UNITS
    }
    words = {Engine.HOST: _host, Engine.WEIGHTS: _weights, Engine.MATRIX: _matrix, Engine.ACTIVATION: _activation}
    last_interrupt = is_one(Opcode.INTERRUPT_HOST) & (of["index"][:STEP_BITS] >= steps)
    for unit, queue in queues.items():
        own = valid & is_one(*(opcode for opcode, spec in SPECS.items() if spec.engine is unit)) & ~last_interrupt
        waits = {f"wait_{other}": hold for other, hold in holds[unit].items()}
        queue.push(own, {**words[unit](of, is_one, flag), **waits})
        issued[unit].next <<= issued[unit] + own

    for unit in UNITS:
        named = valid & is_one(Opcode.SYNCHRONIZE) & (of["index"] == unit.value)
        for other, hold in holds[unit].items():
            waits = named & of["engines"][other.value]
            if other is Engine.HOST and unit is not Engine.HOST:
                waits = waits | (valid & is_one(Opcode.SYNCHRONIZE_HOST))
            hold.next <<= select(waits, issued[other], hold)

    halted = Register(1, "halted")
    halted.next <<= halted | (valid & is_one(Opcode.HALT))
    return halted & rtl_all(*(progress[unit] == issued[unit] for unit in UNITS))


def _host(of: Fields, is_one: IsOne, flag: HasFlag) -> Word:
    kinds = {
        Opcode.READ_HOST_MEMORY: Transfer.READ,
        Opcode.WRITE_HOST_MEMORY: Transfer.WRITE,
        Opcode.WRITE_WEIGHTS: Transfer.WEIGHTS,
    }
    kind = chosen(of["opcode"], {opcode.value: Const(to.value, 2) for opcode, to in kinds.items()}, Const(Transfer.INTERRUPT.value, 2))
    row = select(is_one(Opcode.READ_HOST_MEMORY), of["dest"], of["ub"])
    return {
        "kind": kind,
        "host": of["host"],
        "row": row,
        "index": of["index"],
        "inner": select(is_one(Opcode.INTERRUPT_HOST), 1, of["inner"]),
    }


def _weights(of: Fields, is_one: IsOne, flag: HasFlag) -> Word:
    return {"tile": of["index"]}


def _matrix(of: Fields, is_one: IsOne, flag: HasFlag) -> Word:
    """A `matrix_multiply` is a `convolve` of rows that follow each other."""
    walks = is_one(Opcode.CONVOLVE)
    return {
        "switch": flag(Flag.SWITCH),
        "accumulate": flag(Flag.ACCUMULATE),
        "unsigned": flag(Flag.UNSIGNED),
        "ub_stride": select(walks, of["ub_stride"], 1),
        **{name: of[name] for name in ("ub", "ub_pitch", "acc", "outer", "inner")},
    }


def _activation(of: Fields, is_one: IsOne, flag: HasFlag) -> Word:
    """`pool` has the steps of its windows where `vector` has those of its second source."""
    pools, configures = is_one(Opcode.POOL), is_one(Opcode.SET_CONFIGURATION)
    function = select(configures, CONFIGURE, select(is_one(Opcode.ACTIVATE), ACTIVATE, of["function"]))
    same = ("ub", "ub_pitch", "ub_stride", "ub2", "ub2_pitch", "ub2_stride", "dest", "dest_pitch", "dest_stride", "acc")
    return {
        **{name: of[name] for name in same},
        "function": function,
        "splat": flag(Flag.SPLAT),
        "splat2": flag(Flag.SPLAT2),
        "window": 0,
        "window_pitch": of["ub2_pitch"],
        "window_stride": of["ub2_stride"],
        "block": of["index"],
        **{name: select(configures, 1, of[name]) for name in ("outer", "inner")},
        **{name: select(pools, of[name], 1) for name in ("window_outer", "window_inner")},
    }
