"""Where the batch lies in a value, and what a rule sees of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tpucc.ir.graph import Node


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
class Division:
    """Where the batch lies in a node's result, and in those of its operands that are constants which go along with the batch."""

    result: Batch
    constants: Mapping[int, Batch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A node with its operands; `batches` says where the batch lies in each of these, None for a constant. At least one isn't None."""

    node: Node
    operands: Sequence[Node]
    batches: Sequence[Batch | None]
    size: int
    """Items of the batch."""

    def only(self, index: int) -> Batch:
        """Where the batch lies in operand `index`, the only one that may have it. Raises `MixedError`."""
        batch = self.batches[index]
        if batch is None or any(other is not None for place, other in enumerate(self.batches) if place != index):
            raise MixedError(f"{self.node.op} needs a constant where it gets a value that depends on the batch")
        return batch
