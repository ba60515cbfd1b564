"""Columns of integers as text: small enough for a page with 300,000 instructions, the same bytes on every machine.

A number is zigzag (0, -1, 1, -2, … as 0, 1, 2, 3, …) and then in groups of seven bits, the lowest first, each but the last with the high
bit set; the bytes are in base64. `decode.js` is the reader. No general compressor is used: its output may differ between versions.
"""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt

from tpucc.numerics import Int64

GROUP = 7
"""Bits of a number in one byte."""


def plain(values: npt.ArrayLike) -> str:
    """The values themselves, int64 [count]."""
    return base64.b64encode(_packed(np.asarray(values, np.int64)).tobytes()).decode("ascii")


def deltas(values: npt.ArrayLike) -> str:
    """Each value as its difference from the one before it, the first from zero: for columns that grow or repeat."""
    return plain(np.diff(np.asarray(values, np.int64), prepend=np.int64(0)))


def octets(values: npt.NDArray[np.uint8]) -> str:
    """Bytes as they are."""
    return base64.b64encode(values.tobytes()).decode("ascii")


def _packed(values: Int64) -> npt.NDArray[np.uint8]:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    sizes = np.ones(len(values), np.int64)
    for group in range(1, 10):
        sizes += zigzag >> np.uint64(GROUP * group) > 0
    starts = np.cumsum(sizes) - sizes
    packed = np.zeros(int(sizes.sum()), np.uint8)
    for group in range(int(sizes.max(initial=0))):
        own = np.flatnonzero(sizes > group)
        bits = (zigzag[own] >> np.uint64(GROUP * group)) & np.uint64(127)
        packed[starts[own] + group] = bits.astype(np.uint8) | np.where(sizes[own] > group + 1, 128, 0).astype(np.uint8)
    return packed
