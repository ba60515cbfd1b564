"""A fault of ONNX Runtime's optimizer, and how files don't meet it.

It takes operators that only move values, or choose among them, to the front of DequantizeLinear. In opset 21 the node that it makes is
invalid, and the model is refused (seen with 1.31; the message is "output_dtype INT8 does not match y_zero_point type UINT8"). So where
such an operator follows, DequantizeLinear is written as what it computes: the integer less the zero point, times the scale, in float32.
Likewise before a product of more than two axes to which something is added: the optimizer makes Reshape and Gemm of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tpucc.interop.onnx.writing.model import OnnxNode

MOVES = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
MATRIX = 2
"""Axes of what Gemm multiplies."""


def dequantised_by_hand(nodes: Sequence[OnnxNode], ranks: Mapping[str, int]) -> Iterator[OnnxNode]:
    """The nodes, with others for each DequantizeLinear that such an operator follows. `ranks` are the numbers of axes of results."""
    moved = {name for node in nodes if node.op in MOVES for name in node.inputs}
    added = {name for node in nodes if node.op == "Add" for name in node.inputs}
    moved |= {node.inputs[0] for node in nodes if node.op == "MatMul" and node.result in added and ranks.get(node.inputs[0], 0) > MATRIX}
    for node in nodes:
        if node.op == "DequantizeLinear" and node.result in moved:
            yield from _by_hand(node)
        else:
            yield node


def _by_hand(node: OnnxNode) -> Iterator[OnnxNode]:
    integers, scale, zero = node.inputs
    values, zeros, centred = (f"{node.result}.{part}" for part in ("Cast", "zero", "Sub"))
    for name, taken in ((values, integers), (zeros, zero)):
        yield OnnxNode(name, "Cast", (taken,), name, {"to": "f32"}, node.origin)
    yield OnnxNode(centred, "Sub", (values, zeros), centred, {}, node.origin)
    yield replace(node, op="Mul", inputs=(centred, scale))
