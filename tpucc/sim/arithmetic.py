"""What one instruction computes, on whole arrays of rows: the meaning of a parameter block.

Every expression is evaluated in float32 step by step, in the order in which `block_dtype` writes it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpucc.isa.instructions import Function
from tpucc.numerics import Float32, Int8, Int32, requantise, saturate

Bytes = npt.NDArray[np.int8] | npt.NDArray[np.uint8]
Block = np.void
"""One parameter block: a record of `block_dtype`."""


def matrix_product(rows: Bytes, tile: Int8) -> Int32:
    """`rows` [M, mxu] times `tile` [mxu, mxu]. float64 is exact: no sum of 8-bit products of a tile comes near 2^53."""
    return (rows.astype(np.float64) @ tile.astype(np.float64)).astype(np.int32)


def activate(accumulators: Int32, block: Block) -> Int8:
    """Accumulators [M, mxu] plus bias, requantised, clamped, through the table if there is one."""
    biased = accumulators + block["bias"]
    return looked_up(requantise(biased, block["multiplier"], int(block["zero"]), int(block["low"]), int(block["high"])), block)


def binary(function: Function, a: Int8, b: Int8, block: Block) -> Int8:
    """add, subtract or multiply of rows that broadcast to [M, mxu]."""
    scale_a, scale_b = block["scale_a"], block["scale_b"]
    x, y = _centred(a, block["zero_a"]), _centred(b, block["zero_b"])
    if function == Function.MULTIPLY:
        result = scale_a * (x * y)
    elif function == Function.ADD:
        result = scale_a * x + scale_b * y
    else:
        result = scale_a * x - scale_b * y
    return looked_up(saturate(np.rint(result), int(block["zero"]), int(block["low"]), int(block["high"])), block)


def lookup(a: Int8, block: Block) -> Int8:
    """`table[a + 128]`."""
    table: Int8 = block["table"]
    return np.take(table, a.view(np.uint8) ^ 0x80)


def looked_up(values: Int8, block: Block) -> Int8:
    """`values` through the block's table if it has one."""
    return lookup(values, block) if block["has_table"] else values


def average(window: Int8, block: Block) -> Int8:
    """The mean of `window` [M, W, mxu] over its rows; the block's `scale_a` contains 1 / W."""
    total = window.astype(np.int32).sum(axis=1, dtype=np.int32) - np.int32(block["zero_a"]) * np.int32(window.shape[1])
    rounded = np.rint(block["scale_a"] * total.astype(np.float32))
    return saturate(rounded, int(block["zero"]), int(block["low"]), int(block["high"]))


def _centred(a: Int8, zero: np.int32) -> Float32:
    """`a - zero` as float32, which holds it exactly."""
    return a.astype(np.float32) - np.float32(zero)
