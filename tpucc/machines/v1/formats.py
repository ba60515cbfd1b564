"""The encoding of number formats in v1's instructions and parameter blocks: one row for each format of the device."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tpucc.ir.dtypes import DEVICE_FORMATS, I8, I16, DeviceFormat
from tpucc.machine.parts import Encoding
from tpucc.machines.v1.places import FORMAT_FLAGS, Flag

ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {row.format.name: row for row in (Encoding(I8, Flag(0), "table"), Encoding(I16, Flag.WIDE, "points"))}
)
"""The encodings, by the names of their formats."""


def encoding_of(format: DeviceFormat) -> Encoding:
    return ENCODINGS[format.name]


def format_of(flags: int) -> DeviceFormat:
    """The format that an instruction with these flags computes in."""
    return _BY_FLAG[flags & FORMAT_FLAGS]


if ENCODINGS.keys() != DEVICE_FORMATS.keys():
    raise TypeError(f"the formats of the device are {', '.join(DEVICE_FORMATS)}, and instructions know {', '.join(ENCODINGS)}")
_BY_FLAG = {int(row.flag): row.format for row in ENCODINGS.values()}
