"""The ports of a block of hardware."""

from __future__ import annotations

from collections.abc import Iterator

from pyrtl import Input, MemBlock, Output, WireVector

from tpucc.rtl.accumulators import Write


def inputs(**bits: int) -> Iterator[Input]:
    """Inputs, by their names and bits."""
    return (Input(width, name) for name, width in bits.items())


def load_ports(*memories: MemBlock) -> None:
    """Ports by which memories are filled: `load_data` goes to the word `load_address` of the memory with the number `load`, from 1 on."""
    widest, longest = max(each.bitwidth for each in memories), max(each.addrwidth for each in memories)
    load, address, data = inputs(load=len(memories).bit_length(), load_address=longest, load_data=widest)
    for number, memory in enumerate(memories, 1):
        memory[address[: memory.addrwidth]] <<= MemBlock.EnabledWrite(data[: memory.bitwidth], load == number)


def outputs(**wires: WireVector) -> None:
    """Makes wires outputs, by their names."""
    for name, wire in wires.items():
        output = Output(len(wire), name)
        output <<= wire


def written(name: str, write: Write) -> dict[str, WireVector]:
    """The wires of a write by the names of their outputs."""
    return {name: write.enable, f"{name}_row": write.row, f"{name}_data": write.data}
