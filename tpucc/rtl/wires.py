"""Small circuits that several units use, and the fields of a word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyrtl import Register, WireVector, as_wires, concat_list, select


def delayed(wire: WireVector, cycles: int, name: str) -> WireVector:
    """The wire as it was some cycles ago."""
    for number in range(cycles):
        register = Register(len(wire), f"{name}_{number}")
        register.next <<= wire
        wire = register
    return wire


def named(wire: WireVector, name: str) -> WireVector:
    """The wire under a name, which the Verilog has too."""
    wire_of_this_name = WireVector(len(wire), name)
    wire_of_this_name <<= wire
    return wire_of_this_name


def lanes_of(row: WireVector) -> list[WireVector]:
    """The lanes of a row, of 8 bits each, lane 0 in the lowest bits."""
    return [row[first : first + 8] for first in range(0, len(row), 8)]


def chosen(which: WireVector, cases: Mapping[int, WireVector], otherwise: WireVector) -> WireVector:
    """The case whose number `which` is: a chain of multiplexers."""
    for number, value in cases.items():
        otherwise = select(which == number, value, otherwise)
    return otherwise


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a word and their bits, the first in the lowest bits."""

    bits: Mapping[str, int]

    @property
    def width(self) -> int:
        """Bits of a word."""
        return sum(self.bits.values())

    def pack(self, fields: Mapping[str, WireVector | int]) -> WireVector:
        """The word of these fields, each cut or extended to its bits. All fields must be there."""
        return concat_list([as_wires(fields[name], bits) for name, bits in self.bits.items()])

    def word(self, fields: Mapping[str, int]) -> int:
        """The word of these fields as a number, each cut to its bits."""
        word = 0
        for name, bits in reversed([*self.bits.items()]):
            word = word << bits | (fields[name] & ((1 << bits) - 1))
        return word

    def unpack(self, word: WireVector) -> dict[str, WireVector]:
        """The fields of a word."""
        fields, first = {}, 0
        for name, bits in self.bits.items():
            fields[name] = word[first : first + bits]
            first += bits
        return fields
