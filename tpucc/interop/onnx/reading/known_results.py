"""What operators make of constants: by their folds, or, of those that have a rule only, by its graph, which is computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.data.weights import bind_arrays
from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.own_keys import Called
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.folding import folded
from tpucc.interop.onnx.reading.parameters import PRODUCTS
from tpucc.interop.onnx.reading.rules import RULES, quantised
from tpucc.ir.node import Output
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate


def known_results(
    network: Network, node: OnnxNode, operands: Sequence[Value | None], opset: int, used: frozenset[str]
) -> Sequence[AnyArray] | None:
    """The results of a node whose operands are all known; None for any other, and where they stay in the graph, as in a file of ours all
    do that have no fold. Raises `Unsupported` where they take too much room."""
    if any(isinstance(value, Tensor) for value in operands):
        return None
    found = folded(network, node, [value.array if isinstance(value, Static) else None for value in operands], opset)
    return found if found is not None or network.ours else _computed(network, node, operands, opset, used)


def key_of_known(node: OnnxNode, operands: Sequence[Static], made: AnyArray) -> str:
    """The key of a constant that is computed: that of the one that it is made of, where it has the same values in another order."""
    same = [value.name for value in operands if value.array.size == made.size > 1]
    return same[0] if len(same) == 1 else node.outputs[0]


def _computed(
    network: Network, node: OnnxNode, operands: Sequence[Value | None], opset: int, used: frozenset[str]
) -> list[AnyArray] | None:
    """The results by the graph of a rule; None where they stay in the network's graph, or the rule refuses the node.

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
            outputs = made if isinstance(made, tuple) else (made,)
            results = [value for value in outputs if isinstance(value, Tensor)]
            nodes = [own.plain(value).node for value in results]
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, Unsupported):
        return None
    if len(results) < len(outputs):  # an operand, as it is
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
