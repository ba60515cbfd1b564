"""Sequences of tensors, as exporters collect what the steps of a loop make: they are known lists of values while a file is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tpucc.interop.onnx.reading.building.call import normal
from tpucc.interop.onnx.reading.building.network import NO_VALUES, Network
from tpucc.interop.onnx.reading.building.values import Listed, Static, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import CHECKER, Unsupported
from tpucc.interop.onnx.reading.operators.shapes import joined

Operand = Value | Listed | None
Rule = Callable[[Network, OnnxNode, Sequence[Operand]], Value | Listed]


def _construct(net: Network, node: OnnxNode, operands: Sequence[Operand]) -> Listed:
    return Listed(tuple(_tensor(operands, index) for index in range(len(operands))))


def _insert(net: Network, node: OnnxNode, operands: Sequence[Operand]) -> Listed:
    values = _listed(operands).values
    place = _place(operands, 2, len(values) + 1) if len(operands) > 2 and operands[2] is not None else len(values)
    return Listed((*values[:place], _tensor(operands, 1), *values[place:]))


def _at(net: Network, node: OnnxNode, operands: Sequence[Operand]) -> Value:
    values = _listed(operands).values
    return values[_place(operands, 1, len(values))]


def _length(net: Network, node: OnnxNode, operands: Sequence[Operand]) -> Value:
    return Static(np.array(len(_listed(operands).values)), node.outputs[0])


def _concat(net: Network, node: OnnxNode, operands: Sequence[Operand]) -> Value:
    values = _listed(operands).values
    if not values:
        raise Unsupported("an empty sequence is put together", NO_VALUES)
    is_new = bool(node.attributes.get("new_axis", 0))
    axis = normal(int(node.attributes.get("axis", 0)), len(values[0].shape) + is_new)
    if is_new:
        values = tuple(_with_axis(net, value, axis) for value in values)
    known = [value.array for value in values if isinstance(value, Static)]
    if len(known) < len(values):
        return joined(net, values, axis)
    net.require_room(sum(array.size for array in known))
    return Static(np.concatenate(known, axis), node.outputs[0])


def _with_axis(net: Network, value: Value, axis: int) -> Value:
    """The value with one more axis, of size 1."""
    if isinstance(value, Static):
        return Static(np.expand_dims(value.array, axis), value.name)
    return net.reshaped(value, (*value.shape[:axis], 1, *value.shape[axis:]))


def _listed(operands: Sequence[Operand]) -> Listed:
    first = operands[0] if operands else None
    if not isinstance(first, Listed):
        raise Unsupported("its first operand is no sequence", CHECKER)
    return first


def _tensor(operands: Sequence[Operand], index: int) -> Value:
    value = operands[index] if index < len(operands) else None
    if value is None or isinstance(value, Listed):
        raise Unsupported(f"operand {index + 1} is no tensor", CHECKER)
    return value


def _place(operands: Sequence[Operand], index: int, count: int) -> int:
    """A known place among so many, counted from the first."""
    value = _tensor(operands, index)
    if not isinstance(value, Static) or value.array.size != 1 or value.array.dtype.kind not in "iu":
        raise Unsupported("the network computes a place in a sequence", "write the steps out, as exporters do with Python's loops")
    place = int(value.array.reshape(()))
    if not -count <= place < count:
        raise Unsupported(f"place {place} of a sequence of {count}", CHECKER)
    return place % count


RULES: Mapping[str, Rule] = {
    "ConcatFromSequence": _concat,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": lambda net, node, operands: Listed(()),
    "SequenceInsert": _insert,
    "SequenceLength": _length,
}
