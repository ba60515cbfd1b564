"""Tensors of a device, and the numbers of their rows as NumPy's arrays."""

from __future__ import annotations

import numpy as np

from tpucc.ir import TensorType
from tpucc.layers.kinds import Sides
from tpucc.lowering.tensors import NO_SIDES, Access, Tensor
from tpucc.numerics import AnyArray


def tensor(*grid: int, sides: Sides = NO_SIDES, columns: int = 3) -> Tensor:
    return Tensor("x", TensorType("i8", (*grid, columns)), sides=sides)


def rows_of(access: Access) -> AnyArray:
    """The row of the tensor at each index."""
    numbers = np.full(access.shape, access.start)
    for axis, step in enumerate(access.steps):
        numbers += step * np.arange(access.shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(access.shape))])
    return numbers


def inner(held: Tensor) -> AnyArray:
    """The numbers of the rows that are no border."""
    numbers = np.arange(held.rows).reshape(held.grid)
    if not any(held.sides):
        return numbers
    top, bottom, left, right = held.sides
    return numbers[:, top : numbers.shape[1] - bottom, left : numbers.shape[2] - right]
