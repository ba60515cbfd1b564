"""A fault of ONNX Runtime's optimizer, and how files don't meet it.

It takes operators that only move values, or choose among them, to the front of DequantizeLinear. In opset 21 the node that it makes is
invalid, and the model is refused (seen with 1.31; the message is "output_dtype INT8 does not match y_zero_point type UINT8"). So where
such an operator follows, DequantizeLinear is written as what it computes: the integer less the zero point, times the scale, in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tpucc.interop.onnx.writing.model import OnnxNode

MOVES = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


def dequantised_by_hand(nodes: Sequence[OnnxNode]) -> Iterator[OnnxNode]:
    """The nodes, with others for each DequantizeLinear that such an operator follows."""
    moved = {name for node in nodes if node.op in MOVES for name in node.inputs}
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
