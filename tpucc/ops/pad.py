"""pad: zeros around a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import padded
from tpucc.ops.facts import Values, moving
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, Rearrangement, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes
from tpucc.ops.rules import require_f32, require_integer, require_sizes


@dataclass(frozen=True, slots=True)
class PadAttributes:
    """`pads[i]` is how many zeros stand before and after axis i."""

    pads: tuple[tuple[int, int], ...]


def infer(attributes: PadAttributes, types: Types) -> TensorType:
    require_f32(types)
    pads = _pairs(attributes)
    if len(pads) != types[0].rank:
        mend = "one pair (before, after) an axis"
        raise RuleError("E0303", f"{{0}} has {types[0].rank} axes, and pads has {len(pads)}", about=("pads", 0), help=mend)
    shape = tuple(before + size + after for size, (before, after) in zip(types[0].shape, pads, strict=True))
    require_sizes(shape, "pads")
    return f32(*shape)


def _pairs(attributes: PadAttributes) -> tuple[tuple[int, int], ...]:
    pads: object = attributes.pads
    if not isinstance(pads, tuple | list):
        raise RuleError("E0306", "pads must be a list of pairs (before, after)", about=("pads",), help="((0, 0), (1, 2)) for two axes")
    return tuple(_pair(pair) for pair in pads)


def _pair(pair: object) -> tuple[int, int]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise RuleError("E0306", "each of pads must be a pair (before, after)", about=("pads",), help="((0, 0), (1, 2)) for two axes")
    return require_integer(pair[0], "pads", 0), require_integer(pair[1], "pads", 0)


def prepared(attributes: PadAttributes) -> Callable[[Array], Array]:
    inside = tuple(slice(before, -after or None) for before, after in attributes.pads)
    zeros = [before + after for before, after in attributes.pads]

    def padded(x: Array) -> Array:
        result = np.zeros_like(x, order="C", shape=tuple(map(add, x.shape, zeros)))
        result[inside] = x
        return result

    return padded


def reference(attributes: PadAttributes, operands: Arrays) -> Array:
    return prepared(attributes)(operands[0])


def _part(attributes: PadAttributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """Any part along axes without zeros; the others are padded whole."""
    (x,) = shapes
    padded = [any(pair) for pair in attributes.pads]
    if any(cut and ends != (0, size) for cut, ends, size in zip(padded, bounds, result, strict=True)):
        return None
    ends = tuple((0, size) if whole else pair for whole, size, pair in zip(padded, x, bounds, strict=True))
    return Part((ends,), attributes)


def gradient(g: Backward) -> Gradients:
    """dx = the part of dy between the zeros."""
    starts = tuple(before for before, _ in g.attributes.pads)
    stops = tuple(start + size for start, size in zip(starts, g.operands[0].shape, strict=True))
    return [g.dy.call("slice", starts=starts, stops=stops)]


def onnx(g: Call) -> str:
    """All numbers before the axes, then all behind them. A scalar has no axes."""
    pads = g.by_axis(_pairs(g.attributes))
    if not pads:
        return g.node("Identity", *g.operands)
    return g.node("Pad", *g.operands, g.integers([pair[end] for end in (0, 1) for pair in pads], "pads"))


OP = OpDef(
    name="pad",
    summary="zeros around a tensor",
    documentation="One pair (before, after) an axis, as NumPy's `pad` takes them: `pad(x, ((0, 0), (1, 2)))`. ONNX: Pad, mode constant.",
    operands=(Operand("x"),),
    attributes=PadAttributes,
    infer=infer,
    reference=reference,
    legalisation=Rearrangement(lambda attributes, shapes: ""),
    facts=moving(Values.PADDED, part=_part, batch=lambda case: padded(case, case.attributes.pads), keeps_parameters=False),
    gradient=Rule(gradient),
    floats=Ieee(prepared),
    onnx=Form(onnx, Layout.ANY),
    examples=(
        Example("one whole tile", PadAttributes(((0, 2), (0, 56))), (f32(6, 200),)),
        Example("ragged", PadAttributes(((0, 0), (1, 2), (3, 0))), (f32(3, 5, 7),)),
        Example("a scalar", PadAttributes(()), (f32(),)),
    ),
)
