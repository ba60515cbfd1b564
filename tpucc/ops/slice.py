"""slice: a rectangular part. Internal: `x[:, 0:4]` and `x[:, t]` make it.

The front end has already clipped the bounds as NumPy does and resolved negative ones; what is left is one range an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from tpucc.ir import TensorType, f32
from tpucc.ops.axis import Ends
from tpucc.ops.batch import Batch, Case, Division, MixedError
from tpucc.ops.facts import Values, moving
from tpucc.ops.gradient import Backward, Gradients, Rule, Value
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, Rearrangement, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes, shape_of
from tpucc.ops.reshape import view
from tpucc.ops.rules import reshaped


@dataclass(frozen=True, slots=True)
class SliceAttributes:
    """`starts[i]:stops[i]:steps[i]` of each axis i as Python's `range` has them; steps are 1 where `steps` is empty.

    Every place lies within the axis, and there is at least one. The stop of a range that runs down to 0 is -1, which doesn't count from the
    end as in an index. The axes of `squeeze`, of each of which one element is taken, are dropped.
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    squeeze: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def ranges(self) -> tuple[range, ...]:
        """The places that are taken of each axis."""
        steps = self.steps or (1,) * len(self.starts)
        return tuple(range(start, stop, step) for start, stop, step in zip(self.starts, self.stops, steps, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the part."""
        dropped = frozenset(self.squeeze)
        return tuple(len(places) for axis, places in enumerate(self.ranges) if axis not in dropped)


def infer(attributes: SliceAttributes, types: Types) -> TensorType:
    x = types[0]
    for ends in (attributes.starts, attributes.stops, attributes.steps or attributes.starts):
        if len(ends) != x.rank:
            raise RuleError("E0303", f"the slice has {len(ends)} axes but {{0}} has {x.rank}", about=(0,))
    if 0 in attributes.steps:
        raise RuleError("E0307", "a step of a slice must not be 0", about=("steps",))
    for axis, (places, size) in enumerate(zip(attributes.ranges, x.shape, strict=True)):
        _require_part(axis, places, size)
    for axis in attributes.squeeze:
        _require_single(attributes, axis, x.rank)
    return reshaped(x, attributes.shape)


def _require_part(axis: int, places: range, size: int) -> None:
    if not places:
        raise RuleError("E0308", f"the slice takes nothing of axis {axis}", about=(0,), help="every size must be at least 1")
    low, high = (0, size) if places.step > 0 else (-1, size - 1)
    if not 0 <= places.start < size or not low <= places.stop <= high:
        step = f":{places.step}" if places.step != 1 else ""
        raise RuleError("E0313", f"{places.start}:{places.stop}{step} is outside axis {axis} of {{0}}, which has {size}", about=(0,))


def _require_single(attributes: SliceAttributes, axis: int, rank: int) -> None:
    if not 0 <= axis < rank or len(attributes.ranges[axis]) != 1:
        raise RuleError("E0304", f"axis {axis} can't be dropped: only an axis of which one element is taken", about=(0,))


def prepared(attributes: SliceAttributes) -> Callable[[Array], Array]:
    """The slice as a function of the array."""
    dropped = frozenset(attributes.squeeze)
    return itemgetter(tuple(places.start if axis in dropped else as_slice(places) for axis, places in enumerate(attributes.ranges)))


def reference(attributes: SliceAttributes, operands: Arrays) -> Array:
    return prepared(attributes)(operands[0])


def as_slice(places: range) -> slice:
    """The places as an index: there, a stop of -1 would count from the end."""
    return slice(places.start, places.stop if places.stop >= 0 else None, places.step)


def _obstacle(attributes: SliceAttributes, shapes: Shapes) -> str:
    """The device walks rows forwards, and picks columns by a product with a matrix of zeros and ones. It turns no rows into columns."""
    last = len(shapes[0]) - 1
    if any(step < 0 for step in attributes.steps[:-1]):
        return "the device walks rows forwards only"
    turned = last in attributes.squeeze and attributes.shape[-1:] not in ((), (1,))
    return "one lane of many rows would have to become one row, and the device moves whole rows" if turned else ""


def _part(attributes: SliceAttributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part:
    """The box of the operand that holds all places of the part, also those between two steps; and the slice of that box.

    Along one axis, the places 3, 5, 7, 9 and the part 1…3 of them read the box 5…8 of the operand, and of that the places 0 and 2.
    """
    kept = iter(bounds)
    found: list[Ends] = []
    taken: list[range] = []
    for axis, places in enumerate(attributes.ranges):
        low, high = (0, 1) if axis in attributes.squeeze else next(kept)
        part = places[low:high]
        found.append((min(part), max(part) + 1))
        taken.append(range(part.start - found[-1][0], part.stop - found[-1][0], part.step))
    if not attributes.steps:
        return view(tuple(found), bounds)
    starts, stops, steps = zip(*((part.start, max(part.stop, -1), part.step) for part in taken), strict=True)
    read = tuple(found)
    return Part((read,), SliceAttributes(starts, tuple(map(min, stops, shape_of(read))), attributes.squeeze, steps))


def _batch(case: Case) -> Division:
    """The axis with the batch has groups of `case.size * batch.inner` elements, each with all items: a slice takes whole groups."""
    batch, attributes = case.only(0), case.attributes
    if attributes.steps and attributes.steps[batch.axis] != 1:
        raise MixedError(f"the slice takes axis {batch.axis} in steps of {attributes.steps[batch.axis]}, and that is the batch")
    bounds, whole = (attributes.starts[batch.axis], attributes.stops[batch.axis]), case.size * batch.inner
    if any(bound % whole for bound in bounds):
        raise MixedError(f"the slice takes {bounds[0]}:{bounds[1]} of axis {batch.axis}, which is a part of the batch")
    starts, stops = (case.part(ends, batch) for ends in (attributes.starts, attributes.stops))
    result = Batch(batch.axis - sum(axis < batch.axis for axis in attributes.squeeze), batch.inner)
    return Division(result, attributes=replace(attributes, starts=starts, stops=stops))


def gradient(g: Backward) -> Gradients:
    """dx = dy at the places that were taken, and zeros elsewhere."""
    ranges, shape = g.attributes.ranges, g.operands[0].shape
    part = _forwards(g.dy.reshape(*map(len, ranges)), ranges)
    for axis, places in enumerate(ranges):
        part = _spaced(part, axis, abs(places.step))
    starts = [min(places) for places in ranges]
    return [part.call("pad", pads=tuple((start, size - start - n) for start, size, n in zip(starts, shape, part.shape, strict=True)))]


def _forwards(part: Value, ranges: Sequence[range]) -> Value:
    """The part in ascending order of the places along all axes."""
    if all(places.step > 0 for places in ranges):
        return part
    turned = [range(n) if places.step > 0 else range(n - 1, -1, -1) for n, places in zip(part.shape, ranges, strict=True)]
    starts, stops, steps = zip(*((places.start, places.stop, places.step) for places in turned), strict=True)
    return part.call("slice", starts=starts, stops=stops, steps=steps)


def _spaced(part: Value, axis: int, step: int) -> Value:
    """`step - 1` zeros between two neighbours along an axis: of [a b] and a step of 2, [a 0 b] by way of [[a 0] [b 0]]."""
    if step == 1:
        return part
    before, size, after = part.shape[:axis], part.shape[axis], part.shape[axis + 1 :]
    pads = ((0, 0),) * (axis + 1) + ((0, step - 1),) + ((0, 0),) * len(after)
    wide = part.reshape(*before, size, 1, *after).call("pad", pads=pads).reshape(*before, size * step, *after)
    stops = (*before, (size - 1) * step + 1, *after)
    return wide.call("slice", starts=(0,) * len(stops), stops=stops)


NO_END = -(2**63)
"""ONNX's stop of a range that runs down to the first place."""


def onnx(g: Call) -> str:
    """Of the axes that aren't taken whole. A slice that drops an axis is never written channels first, so that `squeeze` stays as it is."""
    places = [g.attributes.ranges[axis] for axis in g.by_axis(range(g.types[0].rank))]
    sizes = g.by_axis(g.types[0].shape)
    taken = [axis for axis, (part, size) in enumerate(zip(places, sizes, strict=True)) if part != range(size)]
    if not taken and not g.attributes.squeeze:
        return g.node("Identity", *g.operands)
    starts, stops = ([getattr(places[axis], end) for axis in taken] for end in ("start", "stop"))
    ends = [stop if stop >= 0 else NO_END for stop in stops]
    limits = (g.integers(values, role) for values, role in ((starts, "starts"), (ends, "ends"), (taken, "axes")))
    steps = [places[axis].step for axis in taken]
    made = g.node("Slice", *g.operands, *limits, g.integers(steps, "steps")) if taken else g.operands[0]
    return g.node("Squeeze", made, g.integers(g.attributes.squeeze, "squeezed")) if g.attributes.squeeze else made


OP = OpDef(
    name="slice",
    summary="a rectangular part of a tensor: x[:, 0:4], x[:, t], x[::2]",
    documentation=(
        "Made by `x[...]`, with NumPy's meaning: slices clip, steps may be negative, and an index drops its axis. A slice of a product's "
        "columns becomes a slice of its weights. A slice of rows only changes which rows are read. Both cost nothing. ONNX: Slice, then "
        "Squeeze."
    ),
    operands=(Operand("x"),),
    attributes=SliceAttributes,
    infer=infer,
    reference=reference,
    legalisation=Rearrangement(_obstacle),
    facts=moving(Values.PICKED, part=_part, batch=_batch, keeps_parameters=True),
    gradient=Rule(gradient),
    floats=Ieee(prepared),
    onnx=Form(onnx, Layout.ANY),
    examples=(
        Example("one gate of an LSTM: one whole tile", SliceAttributes((0, 256), (8, 512)), (f32(8, 1024),)),
        Example("ragged", SliceAttributes((1, 3, 0), (2, 8, 257)), (f32(3, 9, 257),)),
        Example("with steps, also backwards", SliceAttributes((1, 8, 2), (3, -1, 14), steps=(1, -3, 5)), (f32(3, 9, 17),)),
        Example("every other row", SliceAttributes((1, 0), (9, 7), steps=(2, 1)), (f32(9, 7),)),
        Example("one step of a sequence", SliceAttributes((0, 2, 0), (4, 3, 32), squeeze=(1,)), (f32(4, 5, 32),)),
    ),
)
