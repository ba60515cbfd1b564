"""What operators make of constants that have a rule, and no entry among the folds: the graph of the rule is computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.own_keys import Called
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.parameters import PRODUCTS
from tpucc.interop.onnx.reading.rules import RULES, quantised
from tpucc.interop.weights import bind_arrays
from tpucc.ir.graph import Output
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate


def computed(network: Network, node: OnnxNode, operands: Sequence[Value | None], opset: int, used: frozenset[str]) -> list[AnyArray] | None:
    """The results of a node whose operands are all known; None for one whose results stay in the graph, or which its rule refuses.

    Those that stay are quantised values, which have a scale; integers, which float32 may not hold; and products of a first state of zeros,
    whose step is then like the others. Values in between take room, as the results do. Raises `Unsupported` where there is none.
    """
    arrays = [value.array for value in operands if isinstance(value, Static)]
    if node.kind not in RULES or node.kind in quantised.RULES or not arrays or arrays[0].dtype.kind not in "fb":
        return None
    if node.op in PRODUCTS and not arrays[0].any():
        return None
    own = Network("constants", {}, Called.of(OnnxGraph("constants", (), {}, (), ())))
    own.name = node.op
    try:
        with np.errstate(all="ignore"):
            made = RULES[node.kind](Call(own, node, operands, opset, used))
            results = [value for value in (made if isinstance(made, tuple) else (made,)) if isinstance(value, Tensor)]
            nodes = [own.plain(value).node for value in results]
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, Unsupported):
        return None
    if not results:  # an operand, as it is
        return None
    graph = replace(own.graph(), outputs=tuple(Output(name, name) for name in dict.fromkeys(step.name for step in nodes)))
    network.require_room(sum(step.type.size for step in graph if step.operands))
    values = evaluate(bind_arrays(graph, own.weights), {})
    return [_typed(values[step.name], value, arrays[0].dtype) for step, value in zip(nodes, results, strict=True)]


def _typed(array: AnyArray, value: Tensor, dtype: np.dtype[np.generic]) -> AnyArray:
    """A result with its type in the file: that of the first operand, where it is no place and no condition."""
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    return array.astype(np.bool_ if value.kind == "bool" else dtype if dtype.kind == "f" else np.float32)
