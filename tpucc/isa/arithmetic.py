"""What the units compute, on whole arrays of rows: products, and the meaning of a parameter block.

Every expression is evaluated in float32 step by step, in the order in which `block_dtype` writes it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import I8, DeviceFormat
from tpucc.isa.formats import encoding_of
from tpucc.numerics import DeviceInts, Float32, Int8, Int32, interpolate, requantise, saturate

Values = npt.NDArray[np.int8 | np.uint8 | np.int16 | np.uint16]
"""What a multiply reads."""
Block = np.void
"""One parameter block: a record of `block_dtype`."""


def matrix_product(rows: Values, tile: Int8) -> Int32:
    """`rows` [M, mxu] times `tile` [mxu, mxu]. float64 is exact: no sum of products of a tile comes near 2^53."""
    return (rows.astype(np.float64) @ tile.astype(np.float64)).astype(np.int32)


def unsigned(rows: DeviceInts) -> Values:
    """The same bits as unsigned integers."""
    return rows.view(np.uint16) if rows.dtype == np.int16 else rows.view(np.uint8)


def activate(accumulators: Int32, block: Block, to: DeviceFormat = I8) -> DeviceInts:
    """Accumulators [M, mxu] plus bias, requantised, clamped, through the table if there is one."""
    biased = accumulators + block["bias"]
    values = requantise(biased, block["multiplier"], int(block["zero"]), int(block["low"]), int(block["high"]), to)
    return looked_up(values, block, to)


def centred(a: DeviceInts, zero: np.int32) -> Float32:
    """`a - zero` as float32, which holds it exactly."""
    return a.astype(np.float32) - np.float32(zero)


def rounded(real: Float32, block: Block, to: DeviceFormat) -> DeviceInts:
    """`real` rounded, plus the block's zero point, clamped, through the table if there is one."""
    return looked_up(saturate(np.rint(real), int(block["zero"]), int(block["low"]), int(block["high"]), to), block, to)


def lookup(a: DeviceInts, block: Block, of: DeviceFormat) -> DeviceInts:
    """`table[a + 128]`; for 16-bit values the function that `points` give."""
    table: DeviceInts = block[encoding_of(of).table]
    return np.take(table, a.view(np.uint8) ^ 0x80) if of.has_exact_tables else interpolate(a, table, of)


def looked_up(values: DeviceInts, block: Block, of: DeviceFormat) -> DeviceInts:
    """`values` through the block's table if it has one."""
    return lookup(values, block, of) if block["has_table"] else values


def average(window: DeviceInts, block: Block, to: DeviceFormat) -> DeviceInts:
    """The mean of `window` [M, W, mxu] over its rows; the block's `scale_a` contains 1 / W."""
    total = window.sum(axis=1, dtype=np.int64) - int(block["zero_a"]) * window.shape[1]
    mean = np.rint(block["scale_a"] * total.astype(np.float32))
    return saturate(mean, int(block["zero"]), int(block["low"]), int(block["high"]), to)
