"""The number formats: one table, and every fact that depends on how a number is stored.

All code takes the width, the limits and the table of a format from its row. Nothing else compares formats, so a new row is all that a new
format needs. Arithmetic on the numbers is in `tpucc.numerics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Format:
    """A type of the elements of tensors. Its little-endian NumPy type is `numpy`."""

    name: str
    numpy: np.dtype[Any]

    @property
    def bytes_per_value(self) -> int:
        """A row of values takes so many rows of the unified buffer, and so many cycles."""
        return self.numpy.itemsize

    @property
    def bits(self) -> int:
        return 8 * self.bytes_per_value


@dataclass(frozen=True, slots=True)
class IntegerFormat(Format):
    """Integers `low`…`high` that stand for real values: `scale · (integer − zero point)`, rounded to the nearest, ties to the even integer.

    A `symmetric` format has the zero point 0. `weights` is the format of the matrices that its values are multiplied by, `accumulator` that
    of the sums. Where the format `makes_room`, a sum that could exceed the accumulator makes the scales of its weights larger: weights of
    fewer bits are better than no product at all.

    A function of one value is a table of its values at `low`, `low + table_step`, …; what lies between two entries is interpolated.
    """

    symmetric: bool
    table_step: int
    makes_room: bool
    weights: str = "i8"
    accumulator: str = "i32"

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def largest(self) -> int:
        """The largest magnitude."""
        return -self.low

    @property
    def zero_points(self) -> range:
        """The integers that may stand for zero, where the source or a listing says which."""
        return range(self.low, self.high + 1)

    @property
    def table_entries(self) -> int:
        """256 of i8; 257 of i16, the last of them one past `high`."""
        return -(-(self.high - self.low) // self.table_step) + 1

    @property
    def table_inputs(self) -> npt.NDArray[np.int64]:
        """The integers that the entries of a table belong to."""
        return self.low + self.table_step * np.arange(self.table_entries, dtype=np.int64)

    @property
    def has_exact_tables(self) -> bool:
        """Whether every value has an entry of its own: then a table adds no error, and tables can be composed."""
        return self.table_step == 1


I8 = IntegerFormat("i8", np.dtype("<i1"), symmetric=False, table_step=1, makes_room=False)
I16 = IntegerFormat("i16", np.dtype("<i2"), symmetric=True, table_step=256, makes_room=True)
I32 = Format("i32", np.dtype("<i4"))
F32 = Format("f32", np.dtype("<f4"))

DeviceFormat = IntegerFormat
"""The format of values on the device. A format of another kind makes this a union; mypy then finds every place that must handle it."""
DEFAULT_FORMAT = I8
"""The device's, where nobody says another."""
FORMATS: Mapping[str, Format] = MappingProxyType({format.name: format for format in (F32, I32, I8, I16)})
"""All formats, by name."""
DEVICE_FORMATS: Mapping[str, DeviceFormat] = MappingProxyType(
    {format.name: format for format in FORMATS.values() if isinstance(format, DeviceFormat)}
)
"""Those in which the device holds values, by name."""
INTEGER_FORMATS: Mapping[str, IntegerFormat] = MappingProxyType(
    {format.name: format for format in DEVICE_FORMATS.values() if isinstance(format, IntegerFormat)}
)
"""Those among them that values are quantised to, by name."""
BY_BITS: Mapping[int, IntegerFormat] = MappingProxyType({format.bits: format for format in INTEGER_FORMATS.values()})
"""The same, by their bits."""
OF_NUMPY: Mapping[np.dtype[Any], Format] = MappingProxyType({format.numpy: format for format in FORMATS.values()})
"""All formats, by the NumPy type of their arrays."""


def _require_complete() -> None:
    """Checks that a row refers only to formats of the table. Raises `TypeError`."""
    missing = {name for format in DEVICE_FORMATS.values() for name in (format.weights, format.accumulator)} - FORMATS.keys()
    if missing:
        raise TypeError(f"no format is named {', '.join(sorted(missing))}")
    if len(OF_NUMPY) < len(FORMATS) or len(BY_BITS) < len(INTEGER_FORMATS):
        raise TypeError("two formats have one NumPy type, or two integer formats as many bits: neither would say which is meant")


_require_complete()
