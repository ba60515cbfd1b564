"""What a network computes of numbers of rows, element by element: one value for each row, which is computed while the file is read.

So exporters write the choice between x and x + n for numbers below 0 that count from the end, as Keras has them: tpucc's tables have the
rows 0 to n - 1, for which it is x. Conditions, as of padding tokens, are the rows of a table of ones and zeros.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import OfRows, Static, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import COMPUTED, Unsupported
from tpucc.interop.onnx.reading.files.tensors import BFLOAT16
from tpucc.interop.onnx.reading.folding import known_results
from tpucc.interop.onnx.reading.operators.rows import Fact, has

ARITHMETIC = frozenset({"Add", "Mul", "Sub", "Where"})
"""Operators with which a choice between two numbers is written, beside Cast and those on conditions."""
MOST_ROWS = 2**16
"""Of a table that isn't known."""


def of_rows(call: Call) -> Tensor | None:
    """The result of a node that computes of numbers of rows and of single constants only; None for any other node. bfloat16 is computed as
    float32 here, which has other numbers."""
    node, tensors = call.node, [value for value in call.inputs if isinstance(value, Tensor)]
    if node.kind not in (*ARITHMETIC, "Cast") and not has(node.kind, Fact.CONDITION):
        return None
    if not all(t.kind == "int" or isinstance(t.kind, OfRows) for t in tensors) or len({(t.node.name, t.axes) for t in tensors}) != 1:
        return None
    rows, limits = tensors[0], tensors[0].node.type.range
    statics = [value for value in call.inputs if isinstance(value, Static)]
    if any(value.array.size != 1 or value.rank > rows.rank for value in statics) or node.attributes.get("to") == BFLOAT16:
        return None
    count = MOST_ROWS if limits is None else int(limits.high) + 1
    call.net.require_room(count)
    types = [value.array.dtype for value in statics] + [t.kind.values.dtype for t in tensors if isinstance(t.kind, OfRows)]
    numbers = np.arange(count, dtype=next((type_ for type_ in types if type_.kind in "iu"), np.int64))
    given = [
        Static(value.kind.values if isinstance(value.kind, OfRows) else numbers, "") if isinstance(value, Tensor) else value
        for value in call.inputs
    ]
    found = known_results(replace(call, inputs=given))
    if found is None:
        return None
    made = found[0].reshape(-1)
    return replace(rows, kind="int" if made.dtype.kind in "iu" and np.array_equal(made, numbers) else OfRows(made))


def looked_up(net: Network, value: Value) -> Value:
    """A value that is computed of numbers of rows as the rows of a table; another value as it is."""
    if not isinstance(value, Tensor) or not isinstance(value.kind, OfRows):
        return value
    values = value.kind.values
    if values.dtype.kind in "iu":
        raise Unsupported("the network computes its numbers of rows or classes", COMPUTED)
    if value.node.type.range is None:
        raise Unsupported("it compares numbers of rows, whose largest isn't known", COMPUTED)
    node = net.add("embedding", value.node, net.weight(values.astype(np.float32)[:, np.newaxis], "", "table"))
    made = Tensor(node, (*value.axes, (node.type.rank - 1,)), "bool" if values.dtype == np.bool_ else "float")
    return net.reshaped(made, value.shape)
