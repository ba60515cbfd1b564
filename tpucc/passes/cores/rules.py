"""Rules: where the batch lies in the result of each operator and each layer, if it works on every item alone.

A rule gets a `Case` and gives a `Division`, or raises `MixedError` with the reason. One that no rule knows can't be divided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tpucc.layers.kinds import Fc, Move, Vector
from tpucc.ops import OPS
from tpucc.ops.argmax import ArgmaxAttributes
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Pooling, Table
from tpucc.ops.pad import PadAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.softmax import SoftmaxAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.cores.batch import Batch, Case, Division, MixedError

Rule = Callable[[Case], Division]


def rule_of(op: str) -> Rule | None:
    """The rule of an operator or layer; None when there is none. Functions of one and of two values have theirs by their kind."""
    if op in RULES or op not in OPS:
        return RULES.get(op)
    return _BY_KIND.get(type(OPS[op].legalisation))


def _each(case: Case) -> Division:
    """A function of one value, element by element."""
    return Division(case.only(0))


def _elementwise(case: Case) -> Division:
    """NumPy's broadcasting: axes are counted from the end."""
    return _aligned(case, range(len(case.operands)))


def _aligned(case: Case, indices: Sequence[int]) -> Division:
    """Operands that go together element by element: the batch lies at one place in all of them, and constants there go along."""
    rank = case.node.type.rank
    found = {Batch(b.axis + rank - case.operands[i].type.rank, b.inner) for i in indices if (b := case.batches[i]) is not None}
    if len(found) != 1 or any(case.batches[i] is not None for i in range(len(case.operands)) if i not in indices):
        raise MixedError(f"{case.node.op} brings different items of the batch together")
    batch = found.pop()
    constants = {}
    for index in indices:
        type_ = case.operands[index].type
        axis = batch.axis - (rank - type_.rank)
        if case.batches[index] is None and axis >= 0 and type_.shape[axis] != 1:
            constants[index] = Batch(axis, batch.inner)
    return Division(batch, constants)


def _matmul(case: Case) -> Division:
    """Rows of the left side, or columns of the right one; never the axis that the product sums over."""
    if case.batches[0] is None:
        return Division(Batch(case.node.type.rank - 1, _kept(case, 1, 0).inner))
    return Division(_kept(case, 0, case.operands[0].type.rank - 1))


def _fc(case: Case) -> Division:
    """Several sources, whose products add up, go together row by row."""
    assert isinstance(case.node.attributes, Fc)
    division = _aligned(case, range(case.node.attributes.sources))
    if division.result.axis == case.node.type.rank - 1:
        raise MixedError(_SUM)
    return division


def _images(case: Case) -> Division:
    """[N, H, W, C]: images are the items."""
    return Division(_at(case, 0))


def _embedding(case: Case) -> Division:
    return Division(case.only(0))


def _batch_norm(case: Case) -> Division:
    batch = case.only(0)
    if batch.axis == case.node.type.rank - 1:
        raise MixedError("batch_norm has a constant for each channel, and the batch lies along the channels")
    return Division(batch)


def _softmax(case: Case) -> Division:
    assert isinstance(case.node.attributes, SoftmaxAttributes)
    return Division(_beside(case, case.node.attributes.axis))


def _argmax(case: Case) -> Division:
    assert isinstance(case.node.attributes, ArgmaxAttributes)
    batch, rank = _beside(case, case.node.attributes.axis), case.operands[0].type.rank
    return Division(Batch(batch.axis - (case.node.attributes.axis % rank < batch.axis), batch.inner))


def _view(case: Case) -> Division:
    """reshape, flatten: counted in elements, the items stay where they are; one axis of the result must hold them all."""
    batch, x, y = case.only(0), case.operands[0].type, case.node.type.shape
    stride = batch.inner * math.prod(x.shape[batch.axis + 1 :])
    behind = 1
    for axis in reversed(range(len(y))):
        if stride % behind == 0 and y[axis] * behind % (stride * case.size) == 0:
            return Division(Batch(axis, stride // behind))
        behind *= y[axis]
    raise MixedError(f"{case.node.op} spreads the batch over several axes of {case.node.type.brief}")


def _slice(case: Case) -> Division:
    batch, attributes = case.only(0), case.node.attributes
    assert isinstance(attributes, SliceAttributes)
    bounds, whole = (attributes.starts[batch.axis], attributes.stops[batch.axis]), case.size * batch.inner
    if any(bound % whole for bound in bounds):
        raise MixedError(f"the slice takes {bounds[0]}:{bounds[1]} of axis {batch.axis}, which is a part of the batch")
    return Division(Batch(batch.axis - sum(axis < batch.axis for axis in attributes.squeeze), batch.inner))


def _transpose(case: Case) -> Division:
    batch, attributes = case.only(0), case.node.attributes
    assert isinstance(attributes, TransposeAttributes)
    rank = case.node.type.rank
    return Division(Batch([axis % rank for axis in attributes.perm].index(batch.axis), batch.inner))


def _concat(case: Case) -> Division:
    assert isinstance(case.node.attributes, ConcatAttributes)
    return _joined(case, case.node.attributes.axis % case.node.type.rank)


def _pad(case: Case) -> Division:
    assert isinstance(case.node.attributes, PadAttributes)
    return _padded(case, case.node.attributes.pads)


def _move(case: Case) -> Division:
    layer = case.node.attributes
    assert isinstance(layer, Move)
    return _padded(case, layer.pads) if layer.function == "pad" else _joined(case, layer.axis)


def _vector(case: Case) -> Division:
    """A vector layer: one value or two, then perhaps a table."""
    assert isinstance(case.node.attributes, Vector)
    return _aligned(case, range(1 if case.node.attributes.function == "table" else 2))


def _joined(case: Case, axis: int) -> Division:
    found = {batch for batch in case.batches if batch is not None}
    if len(found) > 1:
        raise MixedError("concat joins values in which the batch lies along different axes")
    batch = found.pop()
    constants = {index: batch for index, where in enumerate(case.batches) if where is None}
    if constants and batch.axis == axis:
        raise MixedError("concat joins the batch with a constant, along the batch")
    return Division(batch, constants)


def _padded(case: Case, pads: Sequence[Sequence[int]]) -> Division:
    batch = case.only(0)
    if any(pads[batch.axis]):
        raise MixedError("pad adds items of zeros to the batch")
    return Division(batch)


def _at(case: Case, axis: int) -> Batch:
    batch = case.only(0)
    if batch.axis != axis:
        raise MixedError(f"the batch lies along axis {batch.axis} of {case.operands[0].name}, where {case.node.op} has no separate items")
    return batch


def _beside(case: Case, axis: int) -> Batch:
    """The batch, when it doesn't lie along `axis`, which the operator works along."""
    batch = case.only(0)
    if batch.axis == axis % case.operands[0].type.rank:
        raise MixedError(f"{case.node.op} works along axis {batch.axis}, and that is the batch")
    return batch


def _kept(case: Case, index: int, summed: int) -> Batch:
    """The batch in operand `index`, whose axis `summed` the product sums over."""
    batch = case.only(index)
    if batch.axis == summed:
        raise MixedError(_SUM)
    return batch


_SUM = "the product adds up over the batch"
_BY_KIND: Mapping[type[Any], Rule] = MappingProxyType(
    {Table: _each, Clamp: _each, Boundary: _each, Arithmetic: _elementwise, Pooling: _images}
)
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "matmul": _matmul,
        "linear": _matmul,
        "conv2d": _images,
        "convolution": _images,
        "patches": _images,
        "embedding": _embedding,
        "batch_norm": _batch_norm,
        "softmax": _softmax,
        "argmax": _argmax,
        "reshape": _view,
        "flatten": _view,
        "slice": _slice,
        "transpose": _transpose,
        "concat": _concat,
        "pad": _pad,
        "fc": _fc,
        "conv": _images,
        "pool": _images,
        "vector": _vector,
        "move": _move,
    }
)
