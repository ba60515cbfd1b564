"""How values of a graph are written on edges and in small boxes."""

from __future__ import annotations

from dataclasses import fields

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Node
from tpucc.ir.types import TensorType
from tpucc.viz.text import number

CONSTANTS = frozenset({"weight", "constant"})


def edge_label(value: TensorType) -> tuple[str, ...]:
    """`f32[150, 4]`; of a quantised value also `0.0314 · (q + 3)`: how its integers q stand for real numbers."""
    if value.quantisation is None:
        return (value.brief,)
    zero = value.quantisation.zero_point
    shift = f"(q {'-' if zero > 0 else '+'} {abs(zero)})" if zero else "q"
    return value.brief, f"{number(value.quantisation.scale)} · {shift}"


def constant_label(node: Node) -> str:
    """A weight's key, or a constant's name, and its type; a single number stands for itself."""
    value = getattr(node.attributes, "value", None)
    if isinstance(value, Constant) and value.data.size == 1:
        return number(float(value.data.reshape(-1)[0]))
    key = getattr(node.attributes, "key", None)
    return f"{key if isinstance(key, str) else node.name} {node.type.brief}"


def attribute_label(node: Node) -> tuple[str, ...]:
    """The attributes that say something, in a few words: `axis -1`, `[:, 0:100]`; nothing when there are none."""
    if node.op == "slice":
        return (_slice_label(node),)
    words = []
    for field in fields(node.attributes):
        value = getattr(node.attributes, field.name)
        if isinstance(value, bool | int | float | str | tuple) and value != field.default and value not in ("", ()):
            words.append(f"{field.name.replace('_', ' ')} {_written(value)}")
    return (", ".join(words),) if words else ()


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return "×".join(map(_written, value)) if isinstance(value, tuple) else str(value)


def _slice_label(node: Node) -> str:
    starts, stops = getattr(node.attributes, "starts", ()), getattr(node.attributes, "stops", ())
    squeezed = getattr(node.attributes, "squeeze", ())
    parts = [str(a) if axis in squeezed else f"{a}:{b}" for axis, (a, b) in enumerate(zip(starts, stops, strict=False))]
    return f"[{', '.join(parts)}]"
