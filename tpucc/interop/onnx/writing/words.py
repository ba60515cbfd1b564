"""The ONNX form of an operator in words: for its page."""

from __future__ import annotations

from typing import Any, assert_never

from tpucc.diagnostics import Origin
from tpucc.interop.onnx.writing.file import OnnxNode
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.ir import Graph, NoAttributes, Node, Output
from tpucc.ops.onnx_form import Declared, Form, NoForm
from tpucc.ops.opdef import Example, OpDef


def documented(operator: OpDef[Any]) -> str:
    """The operator's documentation, without a last sentence that says what `in_words` says."""
    return operator.documentation.removesuffix(in_words(operator).removeprefix("In ")).rstrip()


def in_words(operator: OpDef[Any]) -> str:
    """`In ONNX: Mul and Sigmoid.`: the ONNX operators of which the form consists in the operator's examples."""
    match operator.onnx:
        case Form():
            names = dict.fromkeys(node.op for example in operator.examples for node in _nodes(operator, example) if not _turns(node))
            return f"In ONNX: {', '.join(names)}."
        case Declared():
            return f"In ONNX: {operator.onnx.what}."
        case NoForm():
            return f"Not exported to ONNX: {operator.onnx.why}."
        case _:
            assert_never(operator.onnx)


def _nodes(operator: OpDef[Any], example: Example[Any]) -> tuple[OnnxNode, ...]:
    names = [f"x{index}" for index in range(len(example.operands))]
    inputs = [Node(name, "input", (), NoAttributes(), type_, Origin()) for name, type_ in zip(names, example.operands, strict=True)]
    type_ = operator.infer(example.attributes, example.operands)
    node = Node("y", operator.name, tuple(names), example.attributes, type_, Origin())
    return onnx_model(Graph(operator.name, (*inputs, node), (Output("y", "y"),))).nodes


def _turns(node: OnnxNode) -> bool:
    """Whether the node only brings a value into another layout."""
    return node.op == "Transpose" and node.name.endswith(".Transpose")
