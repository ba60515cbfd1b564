"""The instructions of the control engine that every machine has: the end of a program, and a wait of one engine for others."""

from __future__ import annotations

from enum import IntEnum

from tpucc.diagnostics import listed
from tpucc.machine.instruction import DecodedInstruction, OperandSpec, Spec
from tpucc.machine.parts import no_time


def halt(opcode: IntEnum, control: IntEnum) -> Spec:
    return Spec(opcode, control, "The end of the program.", no_time, lambda _: "ends the program")


def synchronize(opcode: IntEnum, control: IntEnum) -> Spec:
    """The wait of an engine of the enumeration that `control` is of."""
    engines = type(control)

    def sentence(instruction: DecodedInstruction) -> str:
        waits = listed([str(engine) for engine in engines if instruction["engines"] >> engine & 1])
        return (
            f"lets the next instruction of the {engines(instruction['index'])} unit wait until {waits} has done all that stands before this"
        )

    return Spec(
        opcode,
        control,
        "The engine's next instruction waits until the named engines have finished all that stands before this.",
        no_time,
        sentence,
        (
            OperandSpec("index", "engine", "engine", "engine that waits"),
            OperandSpec("engines", "wait", "engines", "engines to wait for: one, or several, as in host|matrix"),
        ),
        waits=lambda index, engines: ((index, engines),),
    )
