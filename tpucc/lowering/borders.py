"""Borders: the rows around feature maps that windows reach over the edge to, and rows of padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from tpucc.ir.graph import Graph
from tpucc.layers.kinds import LAYERS, Conv, Sides
from tpucc.lowering.tensors import NO_SIDES, Access, Tensor, whole


def borders(device: Graph) -> Mapping[str, Sides]:
    """For each layer whose result convolutions read with padding, a border as wide as the widest of them needs.

    The device computes such a result where its border is already around it. What the host gives or gets is stored without: convolutions
    of it, and of other views of a value, read a copy.
    """
    found: dict[str, Sides] = {}
    for node in device:
        if isinstance(node.attributes, Conv) and node.attributes.sides != NO_SIDES:
            source = device[node.operands[0]]
            if source.op in LAYERS and source.name not in device.output_nodes:
                found[source.name] = wider(found.get(source.name, NO_SIDES), node.attributes.sides)
    return found


def wider(first: Sides, second: Sides) -> Sides:
    """The larger of each side."""
    top, bottom, left, right = map(max, first, second)
    return top, bottom, left, right


def widest(sides: Iterable[Sides]) -> Sides:
    """The largest of each side."""
    return reduce(wider, sides, NO_SIDES)


def border_rows(tensor: Tensor) -> Iterator[Access]:
    """The rows of the border."""
    top, bottom, left, right = tensor.sides
    stored = Access(tensor, tensor.grid, whole(tensor).steps)
    return padding_rows(stored, ((0, 0), (top, bottom), (left, right)))


def padding_rows(value: Access, pads: Sequence[tuple[int, int]]) -> Iterator[Access]:
    """Of a value, the rows that are less than `pads[i]` from an end of axis i: slab after slab, each row once."""
    starts, stops = [0] * len(pads), list(value.shape)
    for axis, (before, after) in enumerate(pads):
        size = value.shape[axis]
        for first, last in ((0, before), (size - after, size)):
            if last > first:
                yield value.sliced((*starts[:axis], first, *starts[axis + 1 :]), (*stops[:axis], last, *stops[axis + 1 :]))
        starts[axis], stops[axis] = before, size - after
