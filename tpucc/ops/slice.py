"""slice: a rectangular part. Internal: `x[:, 0:4]` and `x[:, t]` make it.

The front end has already clipped the bounds as NumPy does and resolved negative ones; what is left is one start and one stop an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tpucc.ir.types import TensorType, f32
from tpucc.ops.axis import Ends
from tpucc.ops.batch import Batch, Case, Division, MixedError
from tpucc.ops.facts import Values, moving
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, Example, OpDef, Operand, Rearrangement, RuleError
from tpucc.ops.parts import Bounds, Part, Shape
from tpucc.ops.reshape import view
from tpucc.ops.rules import reshaped


@dataclass(frozen=True, slots=True)
class SliceAttributes:
    """`starts[i]:stops[i]` of each axis i, with 0 <= start < stop <= size; the axes of `squeeze`, each of extent 1, are dropped."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    squeeze: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the part."""
        dropped = frozenset(self.squeeze)
        bounds = enumerate(zip(self.starts, self.stops, strict=True))
        return tuple(stop - start for axis, (start, stop) in bounds if axis not in dropped)


def infer(attributes: SliceAttributes, types: Sequence[TensorType]) -> TensorType:
    x = types[0]
    if len(attributes.starts) != x.rank or len(attributes.stops) != x.rank:
        raise RuleError("E0303", f"the slice has {len(attributes.starts)} axes but {{0}} has {x.rank}", about=(0,))
    for axis, (start, stop, size) in enumerate(zip(attributes.starts, attributes.stops, x.shape, strict=True)):
        _require_part(axis, start, stop, size)
    for axis in attributes.squeeze:
        _require_single(attributes, axis, x.rank)
    return reshaped(x, attributes.shape)


def _require_part(axis: int, start: int, stop: int, size: int) -> None:
    if start == stop:
        raise RuleError("E0308", f"the slice takes nothing of axis {axis}", about=(0,), help="every size must be at least 1")
    if not 0 <= start < stop <= size:
        raise RuleError("E0313", f"{start}:{stop} is outside axis {axis} of {{0}}, which has {size}", about=(0,))


def _require_single(attributes: SliceAttributes, axis: int, rank: int) -> None:
    if not 0 <= axis < rank or attributes.stops[axis] - attributes.starts[axis] != 1:
        raise RuleError("E0304", f"axis {axis} can't be dropped: only an axis of which one element is taken", about=(0,))


def reference(attributes: SliceAttributes, operands: Sequence[Array]) -> Array:
    dropped = frozenset(attributes.squeeze)
    bounds = zip(attributes.starts, attributes.stops, strict=True)
    return operands[0][tuple(start if axis in dropped else slice(start, stop) for axis, (start, stop) in enumerate(bounds))]


def _obstacle(attributes: SliceAttributes, shapes: Sequence[tuple[int, ...]]) -> str:
    """Rows are walked, lanes picked by a product. But when the last axis is dropped, rows would become lanes."""
    last = len(shapes[0]) - 1
    turned = last in attributes.squeeze and attributes.shape[-1:] not in ((), (1,))
    return "one lane of many rows would have to become one row, and the device moves whole rows" if turned else ""


def _part(attributes: SliceAttributes, shapes: Sequence[Shape], result: Shape, bounds: Bounds) -> Part:
    """A part of the operand; an axis that was dropped is read where the slice reads it."""
    kept = iter(bounds)
    found: list[Ends] = []
    for axis, (start, stop) in enumerate(zip(attributes.starts, attributes.stops, strict=True)):
        low, high = (0, stop - start) if axis in attributes.squeeze else next(kept)
        found.append((start + low, start + high))
    return view(tuple(found), bounds)


def _batch(case: Case) -> Division:
    """Along the batch, a slice takes all items."""
    batch, attributes = case.only(0), case.attributes
    bounds, whole = (attributes.starts[batch.axis], attributes.stops[batch.axis]), case.size * batch.inner
    if any(bound % whole for bound in bounds):
        raise MixedError(f"the slice takes {bounds[0]}:{bounds[1]} of axis {batch.axis}, which is a part of the batch")
    starts, stops = (case.part(ends, batch) for ends in (attributes.starts, attributes.stops))
    result = Batch(batch.axis - sum(axis < batch.axis for axis in attributes.squeeze), batch.inner)
    return Division(result, attributes=replace(attributes, starts=starts, stops=stops))


def gradient(g: Backward) -> Gradients:
    """dx = dy where the part was, and zeros around it."""
    bounds = list(zip(g.attributes.starts, g.attributes.stops, g.operands[0].shape, strict=True))
    part = g.dy.reshape(*(stop - start for start, stop, _ in bounds))
    return [part.call("pad", pads=tuple((start, size - stop) for start, stop, size in bounds))]


OP = OpDef(
    name="slice",
    summary="a rectangular part of a tensor: x[:, 0:4], x[:, t]",
    documentation=(
        "Made by `x[...]`, with NumPy's meaning: slices clip, and an index drops its axis. Steps are 1. A slice of a product's columns "
        "becomes a slice of its weights. A slice of rows only changes which rows are read. Both cost nothing. ONNX: Slice, then "
        "Squeeze."
    ),
    operands=(Operand("x"),),
    attributes=SliceAttributes,
    infer=infer,
    reference=reference,
    legalisation=Rearrangement(_obstacle),
    facts=moving(Values.PICKED, part=_part, batch=_batch, keeps_parameters=True),
    gradient=Rule(gradient),
    floats=Ieee(),
    examples=(
        Example("one gate of an LSTM: one whole tile", SliceAttributes((0, 256), (8, 512)), (f32(8, 1024),)),
        Example("ragged", SliceAttributes((1, 3, 0), (2, 8, 257)), (f32(3, 9, 257),)),
        Example("one step of a sequence", SliceAttributes((0, 2, 0), (4, 3, 32), (1,)), (f32(4, 5, 32),)),
    ),
)
