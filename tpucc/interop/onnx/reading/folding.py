"""Constants are computed while a model is read: shapes, indices, masks, and what exporters leave to be folded.

What NumPy computes to the same bits on every processor is computed by onnx.reference, with the types of the file. Other operators of real
values are computed by their rows: the graph that a row builds is evaluated by the reference of tpucc's operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.data.weights import bind_arrays
from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, broadcast
from tpucc.interop.onnx.reading.building.weights import Called
from tpucc.interop.onnx.reading.files.checker import accepting_version, onnx_package
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Misfit, TooLarge, Unsupported
from tpucc.interop.onnx.reading.operators.rows import ROWS, Fact, Row
from tpucc.interop.onnx.reading.uses import PRODUCTS
from tpucc.ir import Output
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate

Arrays = Sequence[AnyArray | None]
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What NumPy, and what is built of operands, may raise for operands that don't fit."""


def known_results(call: Call) -> Sequence[AnyArray] | None:
    """The results of a node whose operands are all known; None for any other, and where they stay in the graph. Raises `Unsupported` where
    they take too much room, and `Misfit` for operands that don't fit."""
    row = ROWS.get(call.node.kind)
    if row is None or any(isinstance(value, Tensor) for value in call.inputs):
        return None
    if Fact.EXACT not in row.facts and row.fold is None:
        return _by_row(row, call)
    arrays = [value.array if isinstance(value, Static) else None for value in call.inputs]
    try:
        with np.errstate(all="ignore"):
            if row.build is not None:
                row.require_kinds(call)
            given = [array for array in arrays if array is not None]
            call.net.require_room(_size(row, call.node, given))
            made = row.fold(call.node, given) if row.fold is not None else _reference(call.node, arrays, call.opset)
    except FAULTS:
        raise Misfit from None
    results = [np.asarray(result) for result in (made if isinstance(made, tuple) else (made,))]
    if call.node.op == "Constant":
        call.net.allow(results)
    return [result.astype(np.float32) if result.dtype.name == "bfloat16" else result for result in results]


def _reference(node: OnnxNode, arrays: Arrays, opset: int) -> Any:
    """The results by the package onnx."""
    proto = node.proto or onnx_package("onnx.helper").make_node(node.op, list(node.inputs), list(node.outputs), **node.attributes)
    version = accepting_version(replace(node, proto=proto), opset)
    kind = onnx_package("onnx.reference.ops").load_op(node.domain, node.op, version)
    nothing = {"log": lambda *_: None, "opsets": {node.domain: version}, "verbose": 0, "new_ops": None, "existing_functions": {}}
    given = list(arrays)
    while given and given[-1] is None:
        given.pop()
    return kind(proto, nothing | {"evaluator_cls": None}).run(*given)


def _size(row: Row, node: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    """At least as many values as the results have; 0 of views, which take no memory."""
    if row.size is not None:
        return row.size(node, arrays)
    return math.prod(broadcast([array.shape for array in arrays]) or (max((array.size for array in arrays), default=0),))


def key_of_known(node: OnnxNode, operands: Sequence[Static], made: AnyArray) -> str:
    """The key of a constant that is computed: that of the one that it is made of, where it has the same values in another order."""
    same = [value.name for value in operands if value.array.size == made.size > 1]
    return same[0] if len(same) == 1 else node.outputs[0]


def _by_row(row: Row, call: Call) -> list[AnyArray] | None:
    """The results by the graph of a row; None where they stay in the network's graph, or the row refuses the node.

    Those that stay are quantised values, which have a scale; integers, which float32 may not hold; and products of a first state of zeros,
    whose step is then like the others. Values in between take room, as the results do. Raises `Unsupported` where there is none.
    """
    arrays = [value.array for value in call.inputs if isinstance(value, Static)]
    if row.build is None or not arrays or arrays[0].dtype.kind not in "fb":
        return None
    if call.node.op in PRODUCTS and not arrays[0].any():
        return None
    own = Network("constants", {}, Called.of(OnnxGraph("constants", (), {}, (), ())))
    own.name = call.node.op
    try:
        with np.errstate(all="ignore"):
            made = row.built(replace(call, net=own))
            outputs = made if isinstance(made, tuple) else (made,)
            results = [value for value in outputs if isinstance(value, Tensor)]
            nodes = [own.plain(value).node for value in results]
    except (*FAULTS, Misfit, TooLarge, Unsupported):
        return None
    if len(results) < len(outputs):  # an operand, as it is
        return None
    graph = replace(own.graph(), outputs=tuple(Output(name, name) for name in dict.fromkeys(step.name for step in nodes)))
    call.net.require_room(sum(step.type.size for step in graph if step.operands))
    values = evaluate(bind_arrays(graph, own.weights), {})
    return [_typed(values[step.name], value, arrays[0].dtype) for step, value in zip(nodes, results, strict=True)]


def _typed(array: AnyArray, value: Tensor, dtype: np.dtype[np.generic]) -> AnyArray:
    """A result with its type in the file: that of the first operand, where it is no place and no condition."""
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    return array.astype(np.bool_ if value.kind == "bool" else dtype if dtype.kind == "f" else np.float32)
