"""The encoding of number formats in instructions and registers: one row for each format of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.dtypes import DeviceFormat


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a format: `flag` is set in instructions that compute in it, `table` is the field of a parameter block with its
    functions."""

    format: DeviceFormat
    flag: int
    table: str = ""
