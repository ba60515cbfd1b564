"""Operators on integers, as QLinearConv, are read in the form that quantisers write by default: the operator on real values, with a
DequantizeLinear before each operand and a QuantizeLinear behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tpucc.interop.onnx.reading.files.model import OPTIMISED, OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import named, refused

OF_INTEGERS: Mapping[str, tuple[str, str]] = {
    "QLinearConv": ("Conv", "qqyb"),
    "QLinearMatMul": ("MatMul", "qqy"),
    f"{OPTIMISED}.QGemm": ("Gemm", "qqby"),
    f"{OPTIMISED}.QLinearConcat": ("Concat", "yq"),
    f"{OPTIMISED}.QLinearWhere": ("Where", "vqqy"),
    **{f"{OPTIMISED}.QLinear{op}": (op, "qqy") for op in ("Add", "Mul")},
    **{f"{OPTIMISED}.QLinear{op}": (op, "qy") for op in ("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax")},
}
"""By the operator on integers that on real values, and what the operands are, one letter each: integers `q`, with their scale and zero
point behind them; the scale and the zero point `y` of the result; a bias `b`; another value `v`. QLinearConcat has any number of `q`."""


def in_real_values(graph: OnnxGraph, opset: int) -> OnnxGraph:
    """The graph with operators on real values in the place of those of `OF_INTEGERS`.

    Raises `CompileError` E1007 for a result whose integers have no type.
    """
    nodes = [node.with_graphs(lambda inner: in_real_values(inner, opset)) for node in graph.nodes]
    return replace(graph, nodes=tuple(made for node in nodes for made in _between_scales(node, opset)))


class _Nodes:
    """Nodes in the place of one of the file."""

    def __init__(self, of: OnnxNode) -> None:
        self.of = of
        self.made: list[OnnxNode] = []

    def add(self, op: str, *operands: str, **attributes: Any) -> str:
        """The name of the result of a node; no file has such names."""
        result = f"{self.of.outputs[0]}\0{len(self.made)}"
        self.made.append(replace(self.of.read_as(op, operands, attributes), outputs=(result,)))
        return result

    def ended(self) -> Sequence[OnnxNode]:
        """The nodes, of which the last has the result of the file's."""
        return [*self.made[:-1], replace(self.made[-1], outputs=self.of.outputs)]


def _between_scales(node: OnnxNode, opset: int) -> Sequence[OnnxNode]:
    """The nodes in the place of an operator on integers; another node itself, as one of images whose channels are the last axis, and one
    that means what its operator means in another opset."""
    attributes = node.attributes
    if node.kind not in OF_INTEGERS or attributes.get("channels_last") or attributes.get("opset", opset) != opset:
        return [node]
    (op, kinds), nodes = OF_INTEGERS[node.kind], _Nodes(node)
    kinds = kinds.ljust(1 + len(node.inputs) // 3, "q") if op == "Concat" else kinds
    left = iter([*node.inputs, *[""] * 3 * len(kinds)])
    operands, scales, zeros, result = list[str](), list[str](), list[str](), ("", "")
    for kind in kinds:
        if kind == "q":
            x, scale, zero = islice(left, 3)
            operands.append(nodes.add("DequantizeLinear", x, scale, zero, axis=_axis_of_weights(op, attributes) if scales else 0))
            scales.append(scale)
            zeros.append(zero)
        elif kind == "y":
            result = next(left), next(left)
        elif kind == "b":
            bias = next(left)
            operands.append(bias and nodes.add("DequantizeLinear", bias, _scale_of_bias(nodes, scales), axis=0))
        else:
            operands.append(next(left))
    made = nodes.add(op, *operands, *filter(None, left), **attributes)
    scale, zero = result
    if op == "Gemm" and not scale:
        return nodes.ended()  # its result is real
    if not zero and not zeros[0]:
        raise refused("E1007", f"{node.title} ({named(node.kind)}): no zero point says of which type its result is", "quantisers write one")
    nodes.add("QuantizeLinear", made, scale, zero or nodes.add("Sub", zeros[0], zeros[0]))
    return nodes.ended()


def _axis_of_weights(op: str, attributes: Mapping[str, Any]) -> int:
    """The axis along which the second factor has several scales."""
    return -1 if op == "MatMul" or (op == "Gemm" and not attributes.get("transB")) else 0


def _scale_of_bias(nodes: _Nodes, scales: Sequence[str]) -> str:
    """The product of those of both factors, and of alpha."""
    made = nodes.add("Mul", *scales)
    alpha = nodes.of.attributes.get("alpha", 1.0)
    return made if alpha == 1 else nodes.add("Mul", made, nodes.add("Constant", value_float=alpha))
