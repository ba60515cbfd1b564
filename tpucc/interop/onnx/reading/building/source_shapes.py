"""The shapes that weights have in the source of which tpucc's export wrote the file, and the nodes beside which they keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from tpucc.interop.onnx.reading.building.arrays import fits_in, is_same, own_sizes, without_ones
from tpucc.interop.onnx.reading.building.axes import placed
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import Weight
from tpucc.numerics import AnyArray

IMAGE = 4
"""The axes of images."""


@dataclass(frozen=True)
class SourceShapes:
    """`said` are the weights that constants of the file are forms of, by the names of these; none in a file of another tool."""

    said: Mapping[str, Weight]

    def is_said(self, value: Value | None) -> TypeGuard[Static]:
        """Whether a known value is a weight as the source has it, float32."""
        return isinstance(value, Static) and value.name in self.said and value.array.dtype == np.float32

    def moves(self, value: Value, beside: Tensor) -> bool:
        """Whether a weight has the axes of the source, which the file has channels first beside images, and others beside a node."""
        if not self.is_said(value) or not value.array.size > 1 or not value.array.ndim < IMAGE:
            return False
        if value.shape != self.said[value.name].shape:
            return False
        return not fits_in(value.shape, beside.shape) or not is_same(placed(value.array, beside), without_ones(value.array))

    def changes(self, value: Value, beside: Tensor) -> bool:
        """Whether a weight has another shape than in the source beside a node, and its own beside the axes that this has in the file."""
        if not self.is_said(value) or not fits_in(value.shape, beside.shape):
            return False
        shape, rank = self.said[value.name].shape, beside.node.type.rank
        can_keep = len(shape) <= beside.rank and own_sizes(shape) == own_sizes(value.shape)
        return can_keep and self.shaped(placed(value.array, beside), value.name, rank).shape != shape

    def shaped(self, array: AnyArray, name: str, rank: int) -> AnyArray:
        """A weight in the shape that it has in the source, if that has at most `rank` axes and only others of size 1 before its own."""
        shape = self.said[name].shape
        return array.reshape(shape) if len(shape) <= rank and own_sizes(shape) == own_sizes(array.shape) else array
