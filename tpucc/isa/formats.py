"""How instructions and parameter blocks say which number format they are about: one row for each format of the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tpucc.ir.dtypes import DEVICE_FORMATS, I8, I16, DeviceFormat
from tpucc.isa.record import FORMAT_FLAGS, Flag, Records
from tpucc.numerics import Int64


@dataclass(frozen=True, slots=True)
class Encoding:
    """`flag` stands in instructions that compute in the format, `table` is the field of a parameter block that holds its functions."""

    format: DeviceFormat
    flag: Flag
    table: str


ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {row.format.name: row for row in (Encoding(I8, Flag(0), "table"), Encoding(I16, Flag.WIDE, "points"))}
)
"""By the name of the format."""


def encoding_of(format: DeviceFormat) -> Encoding:
    return ENCODINGS[format.name]


def format_of(flags: int) -> DeviceFormat:
    """The format that an instruction with these flags computes in."""
    return _BY_FLAG[flags & FORMAT_FLAGS]


if ENCODINGS.keys() != DEVICE_FORMATS.keys():
    raise TypeError(f"the formats of the device are {', '.join(DEVICE_FORMATS)}, and instructions know {', '.join(ENCODINGS)}")
_BY_FLAG = {int(row.flag): row.format for row in ENCODINGS.values()}


def largest_input(flags: int) -> int:
    """The largest magnitude of a value that a multiply with these flags reads."""
    values = format_of(flags)
    return values.high - values.low if flags & Flag.UNSIGNED else values.largest


_BYTES, _LARGEST, _LARGEST_INPUT = (
    np.array([number(flags) for flags in range(256)], np.int64)
    for number in (lambda flags: format_of(flags).bytes_per_value, lambda flags: format_of(flags).largest, largest_input)
)
"""By the flags of an instruction."""


def bytes_per_value(records: Records) -> Int64:
    """For each instruction the bytes of one of its values: so many rows of the unified buffer hold a row of them."""
    found: Int64 = _BYTES[records["flags"]]
    return found


def largest_values(records: Records) -> Int64:
    """For each instruction the largest magnitude of a value of its format."""
    found: Int64 = _LARGEST[records["flags"]]
    return found


def largest_inputs(records: Records) -> Int64:
    """For each multiply the largest magnitude of a value that it reads."""
    found: Int64 = _LARGEST_INPUT[records["flags"]]
    return found
