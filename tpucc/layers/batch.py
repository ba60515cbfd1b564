"""Where the batch lies in the result of each layer: the rules of `tpucc.ops.batch`, by kind of layer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tpucc.layers.kinds import Conv, Fc, Layer, Move, Pool, Vector, VectorFunction, is_written
from tpucc.ops.batch import SUMMED, BatchRule, Case, Division, MixedError, aligned, images, joined, padded, product


def _fc(case: Case) -> Division:
    """Several sources, whose products add up, go together row by row; with weights that the host writes, items of both sides."""
    if is_written(case.operands[case.attributes.sources]):
        return product(case)
    division = aligned(case, range(case.attributes.sources))
    if division.batch.axis == case.node.type.rank - 1:
        raise MixedError(SUMMED)
    return division


def _vector(case: Case) -> Division:
    """One value or two, then perhaps a table."""
    return aligned(case, range(1 if case.attributes.function == VectorFunction.TABLE else 2))


def _move(case: Case) -> Division:
    layer = case.attributes
    assert isinstance(layer, Move)
    return padded(case, layer.pads) if layer.pads else joined(case, layer.axis)


BATCHES: Mapping[type[Layer], BatchRule] = MappingProxyType({Fc: _fc, Conv: images, Pool: images, Vector: _vector, Move: _move})
