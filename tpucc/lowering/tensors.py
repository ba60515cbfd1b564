"""Tensors of the device and the steps that compute them, before rows are split and buffers are made."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.diagnostics import Origin
from tpucc.ir.types import TensorType
from tpucc.isa.instructions import Function
from tpucc.numerics import Int8, Int64


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An int8 matrix [rows, columns] that is an input, a constant with its `data`, or the result of a step.

    Every tensor is one value: two are the same when they are the same object.
    """

    name: str
    type: TensorType
    is_input: bool = False
    data: Int8 | None = None

    @property
    def rows(self) -> int:
        return self.type.rows

    @property
    def columns(self) -> int:
        return self.type.columns

    @property
    def comes_from_host(self) -> bool:
        """Whether host memory holds it from the start."""
        return self.is_input or self.data is not None

    def blocks(self, mxu: int) -> int:
        """Column blocks of at most `mxu` lanes."""
        return -(-self.columns // mxu)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A tensor as an element-wise step reads it: its leading sizes (a reshape may have changed them), and whether one column serves all."""

    tensor: Tensor
    leading: tuple[int, ...]
    splat: bool


@dataclass(frozen=True, slots=True, eq=False)
class FcStep:
    """`y = activate(x @ weights)`: the indices of the weight tiles [K blocks, N blocks], and one parameter block for each N block."""

    name: str
    origin: Origin
    x: Tensor
    y: Tensor
    tiles: Int64
    fills: tuple[tuple[int, int, int], ...]
    blocks: tuple[int, ...]
    weights: tuple[int, int]

    @property
    def reads(self) -> tuple[Tensor, ...]:
        return (self.x,)


@dataclass(frozen=True, slots=True, eq=False)
class VectorStep:
    """`y = function(operands)`, element by element with broadcasting, under one parameter block."""

    name: str
    origin: Origin
    operands: tuple[View, ...]
    y: Tensor
    function: Function
    block: int

    @property
    def reads(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(view.tensor for view in self.operands))


@dataclass(frozen=True, slots=True, eq=False)
class MoveStep:
    """A tensor of the host that is an output as it is, and that no other step reads: it passes through the unified buffer."""

    name: str
    origin: Origin
    y: Tensor

    @property
    def reads(self) -> tuple[Tensor, ...]:
        return (self.y,)


Step = FcStep | VectorStep | MoveStep
