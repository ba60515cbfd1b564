"""Lab 1, a solution."""

from dataclasses import asdict, dataclass

import numpy as np

from tpucc.ir import f32
from tpucc.ops.opdef import RuleError

AHEAD = "{{ahead}}"
FUNCTION = {{numpy_function}}
REPEATS = {{repeats}}


@dataclass(frozen=True)
class Attributes:
    by: int = {{by}}
    axis: int = {{axis}}


def infer(attributes, types):
    require_kinds(attributes, types)
    rank = max(type_.rank for type_ in types)
    a, b = ((1,) * (rank - type_.rank) + type_.shape for type_ in types)
    for m, n in zip(a, b, strict=True):
        if m != n and 1 not in (m, n):
            raise RuleError("E0302", "{0} and {1} don't broadcast", about=(0, 1), help=f"sizes {m} and {n} differ")
    by, axis = attributes.by, attributes.axis
    if not -rank <= axis < rank:
        raise RuleError("E0304", f"axis {axis} is out of range", about=("axis",), help=f"the common shape has {rank} axes")
    if a[axis] != b[axis] and not REPEATS:
        raise RuleError("E0302", "sizes differ along the axis", about=(0, 1))
    if by < 0:
        raise RuleError("E0307", "by must be at least 0", about=("by",))
    shape = [max(pair) for pair in zip(a, b, strict=True)]
    if by >= shape[axis]:
        raise RuleError("E0308", f"every size must be at least 1; the axis has {shape[axis]}", about=("by",))
    shape[axis] -= by
    return f32(*shape)


def require_kinds(attributes, types):
    for index, type_ in enumerate(types):
        if type_.dtype != "f32":
            raise RuleError("E0305", f"expected f32 values, found {type_.brief}", about=(index,), help="dequantize it first")
    for name in ("by", "axis"):
        if type(getattr(attributes, name)) is not int:
            raise RuleError("E0306", f"{name} must be an integer", about=(name,))


def reference(attributes, operands):
    a, b = np.broadcast_arrays(*operands)
    size = a.shape[attributes.axis] - attributes.by
    late, early = slice(attributes.by, attributes.by + size), slice(0, size)
    a, b = np.moveaxis(a, attributes.axis, 0), np.moveaxis(b, attributes.axis, 0)
    a, b = (a[late], b[early]) if AHEAD == "a" else (a[early], b[late])
    return np.moveaxis(FUNCTION(a, b), 0, attributes.axis)


def defaults():
    return asdict(Attributes())


def rule(attributes, types):
    try:
        return str(infer(Attributes(**attributes), types))
    except RuleError as error:
        return {"code": error.code, "message": error.message, "about": error.about, "help": error.help}


def value(attributes, operands):
    return reference(Attributes(**attributes), operands)
