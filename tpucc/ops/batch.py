"""Where the batch lies in a value, and the rules of operators for it: whether they work on every item of the batch alone.

A rule gets a `Case` and gives a `Division`, or raises `MixedError` with the reason. Rules that several operators share stand here, the
others in their operators' files; the layers have theirs in `tpucc.passes.divide_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tpucc.ir import Attributes, Node


class MixedError(Exception):
    """The operator can't work on a part of the batch; the message says why, as in "softmax works along the batch"."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch lies along `axis`, whose index counts (outer, item, inner) with `inner` sizes, the fastest.

    `f32[batch, 4]` has it at axis 0 with one inner size; `reshape` to `f32[batch * time, 4]` gives `time` inner sizes.
    """

    axis: int
    inner: int = 1


@dataclass(frozen=True, slots=True)
class Averaged:
    """The value is a mean over the items of the batch: of equal parts of it, the mean of their values is the value of the whole."""


AVERAGED = Averaged()


@dataclass(frozen=True, slots=True)
class Division:
    """Where the batch lies in a node's result, and in those of its operands that are constants which go along with the batch.

    `attributes` are the node's for the batch that is wanted, where they name a size that is divided; None where they stay.
    """

    result: Batch | Averaged
    constants: Mapping[int, Batch] = field(default_factory=dict)
    attributes: Attributes | None = None

    @property
    def batch(self) -> Batch:
        """Where the batch lies in the result, which isn't averaged."""
        assert isinstance(self.result, Batch)
        return self.result


@dataclass(frozen=True, slots=True)
class Case:
    """A node with its operands; `batches` says where the batch lies in each of these, None for a constant. At least one isn't None."""

    node: Node
    operands: Sequence[Node]
    batches: Sequence[Batch | Averaged | None]
    size: int
    """Items of the batch."""
    share: Fraction
    """The batch that is wanted, as a part of this one: 1/4 for one of four cores, 8 for eight batches in one."""

    @property
    def attributes(self) -> Any:
        """The node's: of the class of its operator, or its layer."""
        return self.node.attributes

    def only(self, index: int) -> Batch:
        """Where the batch lies in operand `index`, the only one that may have it. Raises `MixedError`."""
        batch = self.divided[index]
        if batch is None or any(other is not None for place, other in enumerate(self.batches) if place != index):
            raise MixedError(f"{self.node.op} needs a constant where it gets a value that depends on the batch")
        return batch

    @property
    def divided(self) -> Sequence[Batch | None]:
        """Where the batch lies in each operand. Raises `MixedError` for one that is averaged."""
        return [self._divided(operand, batch) for operand, batch in zip(self.operands, self.batches, strict=True)]

    def _divided(self, operand: Node, batch: Batch | Averaged | None) -> Batch | None:
        if isinstance(batch, Averaged):
            raise MixedError(f"{self.node.op} needs {operand.name}, a mean over the whole batch, of which a core has a part")
        return batch

    def common(self, places: Iterable[Batch | None]) -> Batch:
        """The one place where the batch lies, among these places in the result; None for a constant. Raises `MixedError`."""
        found = {place for place in places if place is not None}
        if len(found) != 1:
            raise MixedError(f"{self.node.op} brings different items of the batch together")
        return found.pop()

    def part(self, shape: tuple[int, ...], batch: Batch) -> tuple[int, ...]:
        """The shape of a value in which the batch lies so, for the batch that is wanted."""
        return part_of(shape, batch, self.share)


def part_of(shape: tuple[int, ...], batch: Batch, share: Fraction) -> tuple[int, ...]:
    """A shape with the size along the batch multiplied by `share`."""
    return (*shape[: batch.axis], int(shape[batch.axis] * share), *shape[batch.axis + 1 :])


BatchRule = Callable[[Case], Division]


def each(case: Case) -> Division:
    """A function of the first operand, whose axes stay where they are."""
    return Division(case.only(0))


def element_by_element(case: Case) -> Division:
    """NumPy's broadcasting: axes are counted from the end. A sum, a difference or a multiple of means is a mean too."""
    if _is_mean(case.node.op, case.batches):
        return Division(AVERAGED)
    return aligned(case, range(len(case.operands)))


def _is_mean(op: str, batches: Sequence[Batch | Averaged | None]) -> bool:
    """Whether the result is a mean over the batch because operands are: it is a linear function of these, and the others don't differ."""
    means = [isinstance(batch, Averaged) for batch in batches]
    if not any(means) or any(isinstance(batch, Batch) for batch in batches):
        return False
    return op in ("add", "sub") or (op == "mul" and means.count(True) == 1) or (op == "div" and means == [True, False])


def aligned(case: Case, indices: Sequence[int]) -> Division:
    """Operands that go together element by element: the batch lies at one place in all of them, and constants there go along."""
    rank, batches = case.node.type.rank, case.divided
    lying = [Batch(b.axis + rank - case.operands[i].type.rank, b.inner) for i in indices if (b := batches[i]) is not None]
    beside = any(batches[i] is not None for i in range(len(case.operands)) if i not in indices)
    batch = case.common(() if beside else lying)
    constants = {}
    for index in indices:
        type_ = case.operands[index].type
        axis = batch.axis - (rank - type_.rank)
        if batches[index] is None and axis >= 0 and type_.shape[axis] != 1:
            constants[index] = Batch(axis, batch.inner)
    return Division(batch, constants)


def product(case: Case) -> Division:
    """Rows of the left side, columns of the right one, or items of both sides; never the axis that the product sums over."""
    left, right = (operand.type.shape for operand in case.operands[:2])
    rank = case.node.type.rank
    shifts = (rank - len(left), rank + (len(left) == 1) - len(right))
    lying = (_kept(case, 0, len(left) - 1, shifts[0]), _kept(case, 1, len(right) - 2, shifts[1]), *case.divided[2:])
    batch = case.common(lying)
    constants = {}
    for index, shape in enumerate((left, right)):
        axis = batch.axis - shifts[index]
        if case.batches[index] is None and 0 <= axis < len(shape) - 2 and shape[axis] != 1:
            constants[index] = Batch(axis, batch.inner)
    return Division(batch, constants)


def _kept(case: Case, index: int, summed: int, shift: int) -> Batch | None:
    """Where the batch in operand `index`, whose axis `summed` the product sums over, lies in the result."""
    batch = case.divided[index]
    if batch is None:
        return None
    if batch.axis == summed:
        raise MixedError(SUMMED)
    columns = index == 1 and batch.axis > summed
    return replace(batch, axis=case.node.type.rank - 1 if columns else batch.axis + shift)


def images(case: Case) -> Division:
    """[N, H, W, C]: images are the items."""
    batch = case.only(0)
    if batch.axis != 0:
        raise MixedError(f"the batch lies along axis {batch.axis} of {case.operands[0].name}, where {case.node.op} has no separate items")
    return Division(batch)


def beside(case: Case, axis: int) -> Batch:
    """The batch, when it doesn't lie along `axis`, which the operator works along."""
    batch = case.only(0)
    if batch.axis == axis % case.operands[0].type.rank:
        raise MixedError(f"{case.node.op} works along axis {batch.axis}, and that is the batch")
    return batch


def joined(case: Case, axis: int) -> Division:
    """Values one after the other along `axis`; constants go along with the batch of the others."""
    found = {batch for batch in case.divided if batch is not None}
    if len(found) > 1:
        raise MixedError("concat joins values in which the batch lies along different axes")
    batch = found.pop()
    constants = {index: batch for index, where in enumerate(case.batches) if where is None}
    if constants and batch.axis == axis:
        raise MixedError("concat joins the batch with a constant, along the batch")
    return Division(batch, constants)


def padded(case: Case, pads: Sequence[Sequence[int]]) -> Division:
    """Zeros around the only operand, but none along the batch."""
    batch = case.only(0)
    if any(pads[batch.axis]):
        raise MixedError("pad adds items of zeros to the batch")
    return Division(batch)


SUMMED = "the product adds up over the batch"
