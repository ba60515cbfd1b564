"""One node of the file with the values of its operands: what the row of its operator is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import Unsupported, require
from tpucc.numerics import AnyArray


@dataclass(frozen=True)
class Call:
    """`inputs` has None for an operand that isn't given; `opset` is the version of the node's operators."""

    net: Network
    node: OnnxNode
    inputs: Sequence[Value | None]
    opset: int
    used: frozenset[str]
    """The names of values that something reads."""

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        """An operand. Raises `Unsupported` when it is missing."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"operand {index + 1} is missing", self.node.checker)
        return value

    def reads(self, output: int) -> bool:
        """Whether something reads a result of the node."""
        return output < len(self.node.outputs) and self.node.outputs[output] in self.used

    def alone(self) -> None:
        """Raises `Unsupported` when a result other than the first is read."""
        for index in range(1, len(self.node.outputs)):
            if self.reads(index):
                raise Unsupported(f"its result {index + 1} is used", "tpucc computes the first one")

    def static(self, array: Any) -> Static:
        """A known result."""
        return Static(np.asarray(array), self.node.outputs[0])


Result = Value | tuple[Value, ...]


def known(value: Value, what: str) -> AnyArray:
    """The array of a value that must be known. Raises `Unsupported`."""
    if isinstance(value, Tensor):
        raise Unsupported(f"the network computes {what}", "a constant of the file is needed: a program's shapes and tables are fixed")
    return value.array


def normal(axis: int, rank: int) -> int:
    """An axis counted from the first. Raises `Misfit` for one that isn't there."""
    require(-rank <= axis < max(rank, 1))
    return axis % max(rank, 1)


def normal_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the first. Raises `Misfit` for one that isn't there, or is there twice."""
    found = [normal(axis, rank) for axis in axes]
    require(len(set(found)) == len(found))
    return found


def as_tensor(value: Result) -> Tensor:
    """A value that the network computes."""
    assert isinstance(value, Tensor)
    return value
