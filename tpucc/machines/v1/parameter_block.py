"""The parameter block of v1's activation unit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np

from tpucc.ir.dtypes import I8, I16

DEFAULTS: Mapping[str, float] = MappingProxyType({"multiplier": 1.0, "low": -128, "high": 127, "scale_a": 1.0, "scale_b": 1.0})
"""The numbers of a block that leaves its values as they are, where they aren't 0."""


@cache
def parameter_block_dtype(mxu: int) -> np.dtype[np.void]:
    """A parameter block of the activation unit.

    activate: `clamp(requantise(acc + bias, multiplier) + zero, low, high)`, then `table[value + 128]` if `has_table`; weighted pooling
    likewise, where acc is the sum of a window's rows times their weights.
    vector add, subtract: `round(scale_a * (a - zero_a) ± scale_b * (b - zero_b)) + zero`; multiply: `round(scale_a * ((a - zero_a) *
    (b - zero_b))) + zero`; then clamp and table likewise. Function `table`: `table[a + 128]`. Average pooling:
    `round(scale_a * sum(a - zero_a)) + zero`, clamped. 16-bit values are not looked up in `table` but between the `points` of a function:
    see `tpucc.numerics.interpolate`.
    """
    return np.dtype(
        [
            ("bias", "<i4", (mxu,)),
            ("multiplier", "<f4", (mxu,)),
            *((name, "<i4") for name in ("zero", "low", "high", "zero_a", "zero_b")),
            *((name, "<f4") for name in ("scale_a", "scale_b")),
            ("has_table", "<u4"),
            ("table", I8.numpy, (I8.table_entries,)),
            ("points", I16.numpy, (I16.table_entries,)),
        ]
    )
