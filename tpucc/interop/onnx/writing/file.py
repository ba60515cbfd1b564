"""The bytes of an ONNX file, by the package onnx, which is imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tpucc
from tpucc.diagnostics import Diagnostic, LimitError, Source, UsageError
from tpucc.interop.onnx.writing.model import IR_VERSION, OPSET, OnnxModel, OnnxNode
from tpucc.ir.types import TensorType

MOST_BYTES = 2**31 - 1
"""Of a file of protocol buffers."""
TYPES: Mapping[str, str] = {
    "f32": "FLOAT",
    "f64": "DOUBLE",
    "i8": "INT8",
    "u8": "UINT8",
    "i16": "INT16",
    "i32": "INT32",
    "i64": "INT64",
    "bool": "BOOL",
}
"""ONNX's names of the types of elements."""


def onnx_bytes(model: OnnxModel, source: Source | None = None) -> bytes:
    """The file: the same bytes for the same model. `source` is the text that it comes from, which the file has as its documentation.

    Raises `UsageError` E1020 without the package onnx, and `LimitError` E1023 for more than 2 GB.
    """
    onnx = _required()
    size = sum(array.nbytes for array in model.initializers.values())
    if size > MOST_BYTES:
        raise LimitError(Diagnostic("E1023", f"the model's constants take {size:,} bytes, and an ONNX file has at most {MOST_BYTES:,}"))
    helper, graph = onnx.helper, _graph(onnx, model)
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tpucc",
        producer_version=tpucc.__version__,
        doc_string=f"{source.name}:\n\n{source.text}" if source else "",
    )
    onnx.checker.check_model(made)
    data: bytes = made.SerializeToString(deterministic=True)
    return data


def _required() -> Any:
    """The package onnx. Raises `UsageError` E1020."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        mend = "python -m pip install 'tpucc[onnx]' installs it"
        raise UsageError(Diagnostic("E1020", f"ONNX files need a package that isn't installed: {error.name}", help=(mend,))) from None
    return onnx


def _graph(onnx: Any, model: OnnxModel) -> Any:
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in model.initializers.items()]
    ports = ([_port(onnx, name, type_) for name, type_ in side.items()] for side in (model.inputs, model.outputs))
    return onnx.helper.make_graph([_node(onnx, node) for node in model.nodes], model.name, *ports, constants)


def _port(onnx: Any, name: str, type_: TensorType) -> Any:
    return onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, TYPES[type_.dtype]), type_.shape)


def _node(onnx: Any, node: OnnxNode) -> Any:
    attributes = {name: _attribute(onnx, name, value) for name, value in sorted(node.attributes.items())}
    return onnx.helper.make_node(node.op, node.inputs, [node.result], name=node.name, doc_string=node.origin, **attributes)


def _attribute(onnx: Any, name: str, value: Any) -> Any:
    if name == "to":
        return getattr(onnx.TensorProto, TYPES[value])
    return onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
