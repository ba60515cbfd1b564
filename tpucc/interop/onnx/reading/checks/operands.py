"""The operands of one node for its checks: what is known of them, and how what is wrong is said."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.values import Static, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import Misfit, malformed, shortened
from tpucc.interop.onnx.reading.files.tensors import MAX_SIZE
from tpucc.numerics import AnyArray


class Operands:
    """The operands of a node, for its checks. Those that the network computes, and those that aren't there, are None."""

    def __init__(self, node: OnnxNode, values: Sequence[Value | None], opset: int) -> None:
        self.node, self.values, self.opset = node, values, opset

    def has(self, index: int) -> bool:
        return index < len(self.values) and self.values[index] is not None

    def known(self, index: int) -> AnyArray | None:
        value = self.values[index] if index < len(self.values) else None
        return value.array if isinstance(value, Static) else None

    def shape(self, index: int) -> tuple[int, ...]:
        value = self.values[index] if index < len(self.values) else None
        return () if value is None else value.shape

    def integers(self, index: int, what: str, least: int | None) -> list[int] | None:
        """A known operand that ONNX has as integers, none below the least one."""
        found = self.known(index)
        if found is None:
            return None
        if found.dtype.kind not in "iu":
            self.refuse(f"{what} are {found.dtype.name}, and ONNX has them as int64")
        numbers = [int(number) for number in found.reshape(-1)]
        if least is not None and any(number < least for number in numbers):
            self.refuse(f"{what} are {shortened(numbers)}, and none may be below {least}")
        return numbers

    def number(self, index: int, what: str) -> float | None:
        """A known operand that is one finite number."""
        found = self.known(index)
        if found is None:
            return None
        if found.size != 1 or found.dtype.kind not in "iuf":
            self.refuse(f"{what} is of the type {found.dtype.name} and the shape {list(found.shape)}, and ONNX has one number there")
        number = float(found.reshape(()))
        if not math.isfinite(number):
            self.refuse(f"{what} is {number}")
        return number

    def require_count(self, numbers: Sequence[object], wanted: int, what: str) -> None:
        if len(numbers) != wanted:
            self.refuse(f"it has {counted(len(numbers), what)} for {counted(wanted, 'axis', 'axes')}")

    def require_memory(self, sizes: Sequence[int | float]) -> None:
        """Refuses a result that no memory has."""
        size = math.prod(sizes)
        if size > MAX_SIZE:
            self.refuse(f"its result has {size:,} values; the limit is {MAX_SIZE:,}", "E1003")

    def refuse(self, message: str, code: str = "E1001") -> None:
        raise malformed(f"{self.node.title} ({self.node.operator}): {message}", self.node.checker, code)

    def misfit(self, message: str, sizes: object = None) -> None:
        """Refuses shapes that can't be together, whichever of them is wrong; `sizes` are those that don't fit, or all of the message."""
        raise Misfit(message, sizes)
