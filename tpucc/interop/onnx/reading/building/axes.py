"""The axes of tensors that lie in another order than the file's."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.interop.onnx.reading.building.arrays import without_ones
from tpucc.interop.onnx.reading.building.values import Axes, Tensor, groups
from tpucc.numerics import AnyArray


def axes_of(order: Sequence[int]) -> Axes:
    """The axes of a tensor whose node's axes are the file's in this order."""
    places = {axis: place for place, axis in enumerate(order)}
    return tuple((places[axis],) for axis in range(len(order)))


def order_of(t: Tensor) -> tuple[int, ...]:
    """The file's axes in the order of the node's; those without a place of their own stay behind the one before them."""
    found: dict[int, tuple[int, int]] = {}
    last = -1
    for axis in range(t.rank):
        last = min(t.axes[axis], default=last)
        found[axis] = (last, axis)
    return tuple(sorted(range(t.rank), key=lambda axis: found[axis]))


def order_of_result(t: Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """The order of the axes of a result that none of its operands has the shape of, `t` being the largest of them. Channels that come to
    pixels, [N, 1, H, W], are the last axis."""
    comes = t.rank == 4 and t.shape[1] == 1 < shape[1] and not t.axes[1] and order_of(t) == (0, 1, 2, 3)
    return (0, 2, 3, 1) if comes else order_of(t)


def is_plain(t: Tensor) -> bool:
    """Whether the axes of the node are those of the file."""
    return t.axes == axes_of(range(t.node.type.rank))


def ranked(t: Tensor, rank: int) -> Tensor:
    """The tensor with axes of size 1 before its own."""
    return t if t.rank == rank else Tensor(t.node, (*(() for _ in range(rank - t.rank)), *t.axes), t.kind)


def split_axes(t: Tensor, shape: Sequence[int]) -> tuple[list[list[tuple[int, int]]] | None, list[list[int]]]:
    """How the axes of a shape are made of pieces of the node's axes: (axis, piece) for each, and the sizes of all pieces.

    None where a size isn't made of whole pieces.
    """
    sizes = t.node.type.shape
    pieces: list[list[int]] = [[] for _ in sizes]
    parts: list[list[tuple[int, int]]] = [[] for _ in shape]
    ones: list[int] = []
    for before, after in groups(t.shape, shape):
        waiting = [(part, sizes[part]) for axis in before for part in t.axes[axis]]
        ones += [part for part, size in waiting if size == 1]
        waiting = [found for found in waiting if found[1] != 1]
        for axis in after:
            if shape[axis] == 1:
                if ones:
                    parts[axis].append((ones.pop(0), 0))
                continue
            if not _fill(shape[axis], waiting, pieces, parts[axis]):
                return None, []
    return parts, [found or [size] for found, size in zip(pieces, sizes, strict=True)]


def _fill(need: int, waiting: list[tuple[int, int]], pieces: list[list[int]], parts: list[tuple[int, int]]) -> bool:
    """Takes pieces of the product `need` from those that wait."""
    while need > 1:
        part, size = waiting.pop(0)
        taken = size if need % size == 0 else need
        if size % taken:
            return False
        if taken < size:
            waiting.insert(0, (part, size // taken))
        parts.append((part, len(pieces[part])))
        pieces[part].append(taken)
        need //= taken
    return True


def refined(size: int, atoms: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of an axis in the parts that an axis of another tensor has."""
    return (1,) * len(atoms) if size == 1 else atoms


def placed(array: AnyArray, main: Tensor) -> AnyArray:
    """A known value with the axes of the node of `main`, from the first that isn't of size 1."""
    array = array.reshape((1,) * (main.rank - array.ndim) + array.shape)
    sizes = [size for axis in range(main.rank) for size in refined(array.shape[axis], main.atoms(axis))]
    missing = [part for part in range(main.node.type.rank) if part not in main.order]
    split = array.reshape(*sizes, *(1 for _ in missing))
    places = {part: index for index, part in enumerate((*main.order, *missing))}
    return without_ones(split.transpose([places[part] for part in range(main.node.type.rank)]))
