"""One node of the file with the values of its operands: what a rule is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import Damaged, Unsupported, shortened
from tpucc.numerics import AnyArray


@dataclass(frozen=True)
class Call:
    """`inputs` has None for an operand that isn't given; `opset` is the version of the node's operators."""

    network: Network
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

    def values(self) -> list[Value]:
        return [self.value(index) for index in range(len(self.inputs))]

    def tensor(self, index: int) -> Tensor:
        """An operand as a tensor."""
        return self.network.tensor(self.value(index))

    def array(self, index: int, what: str) -> AnyArray:
        """An operand that must be known. Raises `Unsupported` when it is computed."""
        value = self.value(index)
        if isinstance(value, Tensor):
            raise Unsupported(f"the network computes {what}", "a constant of the file is needed: a program's shapes and tables are fixed")
        return value.array

    def integers(self, index: int, what: str) -> list[int]:
        """A known operand as integers."""
        return [int(number) for number in self.array(index, what).reshape(-1)]

    def number(self, index: int, what: str) -> float:
        """A known operand of one value."""
        array = self.array(index, what)
        if array.size != 1:
            raise Unsupported(f"{what} is no single number", "one number for the whole tensor is read")
        return float(array.reshape(()))

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.node.attributes.get(name, default)

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """The attribute `axis`, counted from the first."""
        return normal(int(self.attribute(name, default)), rank)

    def axes(self, index: int, rank: int) -> list[int] | None:
        """The axes that an attribute names in old versions, an operand in new ones; None when neither does."""
        if self.has(index):
            found = self.integers(index, "the list of axes")
        elif "axes" in self.node.attributes:
            found = [int(axis) for axis in self.attribute("axes")]
        else:
            return None
        axes = [normal(axis, rank) for axis in found]
        if len(set(axes)) < len(axes):
            raise Damaged(f"the list of axes {shortened(found)} has one twice")
        return axes

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
Rule = Callable[[Call], Result]


def normal(axis: int, rank: int) -> int:
    """An axis counted from the first. Raises `Damaged` for one that isn't there."""
    if not -rank <= axis < max(rank, 1):
        raise Damaged(f"axis {axis} of a tensor with {counted(rank, 'axis', 'axes')}")
    return axis % max(rank, 1)
