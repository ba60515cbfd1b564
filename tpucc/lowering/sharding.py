"""Splitting a program along its batch: which tensors have rows for each item, and the step for some of the items.

The batch is the first leading size of the values. A program can be split along it when every step computes each item from that item's
rows alone, and from values that all items share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

from tpucc.lowering.steps import Step, WrittenProducts
from tpucc.lowering.tensors import Access, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Sharding:
    """A program of `batch` items. `steps` maps each step that works item by item to the same step on accesses whose first size is the
    batch.

    `tensors` are the tensors that have rows for each item. A program that can't be split has one item.
    """

    batch: int
    tensors: frozenset[Tensor]
    steps: dict[Step, Step]

    def has_items(self, tensor: Tensor) -> bool:
        """Whether the tensor has rows for each item."""
        return tensor in self.tensors

    def rows(self, tensor: Tensor, items: int) -> int:
        """The rows of a tensor for `items` of the items; all rows where the items share the tensor."""
        return tensor.rows // self.batch * items if tensor in self.tensors else tensor.rows

    def part(self, step: Step, items: int, first: int = 0, joined: frozenset[Tensor] = frozenset()) -> Step:
        """The step for `items` of the items, from item `first` on; the step itself where it works for all items.

        The buffers of the tensors `joined` have the rows of all items; the buffers of others have the rows of the part only.
        """
        ready = self.steps.get(step)

        def move(access: Access) -> Access:
            start = access.start + first * access.steps[0] * (access.tensor in joined)
            return replace(access, shape=(items, *access.shape[1:]), start=start)

        return step if ready is None else ready.moved(move)


def shard(steps: Sequence[Step]) -> Sharding:
    """How the batch of a program may be split: into any parts, or not at all."""
    batch = gcd(*(step.result.items for step in steps if step.result.items > 1)) if steps else 1
    whole = Sharding(1, frozenset(), {})
    if batch < 2:
        return whole
    tensors = frozenset(_sharded(steps, batch))
    ready: dict[Step, Step] = {}
    for step in steps:
        if step.result in tensors:
            moved = _by_item(step, batch, tensors)
            if moved is None:
                return whole
            ready[step] = moved
        elif any(access.tensor in tensors for access in step.accesses):
            return whole
    return Sharding(batch, tensors, ready)


def _sharded(steps: Sequence[Step], batch: int) -> Iterator[Tensor]:
    """The results and inputs whose first size is a multiple of the batch, and the constants that are read item by item."""
    for step in steps:
        made = step.result.items % batch == 0
        if made:
            yield step.result
        for access in step.accesses:
            tensor = access.tensor
            if tensor.data is None:
                if tensor.items % batch == 0:
                    yield tensor
            elif made and tensor.items == batch and (item := _regrouped(access, batch)) is not None and item.steps[0] > 0:
                yield tensor


def _by_item(step: Step, batch: int, tensors: frozenset[Tensor]) -> Step | None:
    """The step on accesses whose first size is the batch; None where an access has no such form or reads rows of other items, or where the
    step multiplies by several matrices of the host."""
    if isinstance(step.work, WrittenProducts) and len(step.work.parts) > 1:
        return None
    apart = True

    def by_item(access: Access) -> Access:
        nonlocal apart
        form = _regrouped(access, batch)
        apart = apart and form is not None and _is_apart(form, batch, tensors)
        return form or access

    moved = step.moved(by_item)
    return moved if apart else None


def _regrouped(access: Access, batch: int) -> Access | None:
    """The access with the batch as its first size, and the rest of its former first size as its second; None if there is no such access."""
    if not access.shape or access.shape[0] % batch:
        return None
    return access if access.shape[0] == batch else access.reshaped((batch, access.shape[0] // batch, *access.shape[1:]))


def _is_apart(access: Access, batch: int, tensors: frozenset[Tensor]) -> bool:
    """Whether item i of the access has rows of item i of its tensor and of no other item, or all items share the tensor."""
    if access.tensor not in tensors:
        return access.steps[0] == 0
    rows = access.tensor.rows // batch
    reach = access.start + sum((size - 1) * step for size, step in zip(access.shape[1:], access.steps[1:], strict=True))
    return access.steps[0] == rows and reach < rows


@dataclass(frozen=True, slots=True)
class Split:
    """A split of the batch into parts; `sizes` has the items of each part.

    Parts follow each other, unless there is a `lead`: then two halves take turns step by step, and the first half is `lead` steps ahead.
    With `ahead`, the inputs of a part are read before the part before it begins. The first `parted` steps run part by part, the steps after
    them for the whole batch; all steps run part by part where `parted` is None.
    """

    sizes: tuple[int, ...]
    lead: int | None = None
    ahead: bool = False
    parted: int | None = None

    def first(self, part: int) -> int:
        """The first item of a part."""
        return sum(self.sizes[:part])

    def is_parted(self, step: int) -> bool:
        """Whether a step runs part by part."""
        return len(self.sizes) > 1 and (self.parted is None or step < self.parted)


def even(items: int, parts: int) -> tuple[int, ...]:
    """The sizes of parts of `items` items that differ by at most one, the larger first."""
    size, larger = divmod(items, parts)
    return tuple(size + (part < larger) for part in range(parts))
