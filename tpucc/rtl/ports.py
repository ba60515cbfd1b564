"""The ports of a block of hardware."""

from __future__ import annotations

from collections.abc import Iterator

from pyrtl import Input, Output, WireVector

from tpucc.rtl.accumulators import Write


def inputs(**bits: int) -> Iterator[Input]:
    """Inputs, by their names and bits."""
    return (Input(width, name) for name, width in bits.items())


def outputs(**wires: WireVector) -> None:
    """Makes wires outputs, by their names."""
    for name, wire in wires.items():
        output = Output(len(wire), name)
        output <<= wire


def written(name: str, write: Write) -> dict[str, WireVector]:
    return {name: write.enable, f"{name}_row": write.row, f"{name}_data": write.data}
