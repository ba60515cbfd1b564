"""How instructions and registers say which number format they are about: one row for each format of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.dtypes import DeviceFormat


@dataclass(frozen=True, slots=True)
class Encoding:
    """`flag` stands in instructions that compute in the format, `table` is the field of a parameter block that holds its functions."""

    format: DeviceFormat
    flag: int
    table: str = ""
