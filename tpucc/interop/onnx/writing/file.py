"""The contents of an ONNX file as values, and its bytes: a message of protocol buffers.

The numbers are those of onnx.proto, the schema that ONNX publishes. No package is needed, and the bytes depend on nothing but the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError, Source
from tpucc.interop.onnx import IR_VERSION, OPSET, PRODUCER
from tpucc.interop.onnx.carried import METADATA, NODES, OPSETS, TYPES, Carried, metadata_of
from tpucc.interop.onnx.wire import bytes_field, float_field, integer_field, message, text_field
from tpucc.ir import TensorType
from tpucc.ir.dtypes import FORMATS
from tpucc.numerics import AnyArray
from tpucc.version import VERSION


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node with one result. `name` is that of the node of our graph that it ends, or else the result's.

    An input that is left out has no name. `origin` are the places in the source.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    result: str
    attributes: Mapping[str, Any]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A graph: nodes in order, constants by name, inputs and outputs with their types."""

    name: str
    nodes: tuple[OnnxNode, ...]
    initializers: Mapping[str, AnyArray]
    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]


MOST_BYTES = 2**31 - 1
"""Of a message."""
FLOAT, INT, STRING, TENSOR, INTS = 1, 2, 3, 4, 7
"""The types of attributes."""
OF_ARRAYS: Mapping[np.dtype[Any], int] = {
    np.dtype(np.uint8): TYPES["u8"],
    np.dtype(np.int64): TYPES["i64"],
    **{format.numpy: TYPES[format.name] for format in FORMATS.values()},
}
"""The same, by the types of arrays."""


def onnx_bytes(model: OnnxModel, source: Source | None = None, carried: Carried | None = None) -> bytes:
    """The file: the same bytes for the same model. `source` is the text that it comes from, which the file has as its documentation, and
    `carried` the graph that an import of the file reads.

    Raises `LimitError` E1023 for more than 2 GB.
    """
    size = sum(array.nbytes for array in model.initializers.values())
    if size > MOST_BYTES:
        raise LimitError(Diagnostic("E1023", f"the model's constants take {size:,} bytes, and an ONNX file has at most {MOST_BYTES:,}"))
    graph, opset = _graph(model), message(text_field(1, ""), integer_field(2, OPSET))
    metadata = metadata_of(carried, model.initializers, (graph, opset)) if carried else {}
    return message(
        integer_field(1, IR_VERSION),
        text_field(2, PRODUCER),
        text_field(3, VERSION),
        text_field(6, f"{source.name}:\n\n{source.text}" if source else ""),
        bytes_field(NODES, graph),
        bytes_field(OPSETS, opset),
        *(bytes_field(METADATA, message(text_field(1, key), text_field(2, content))) for key, content in metadata.items()),
    )


def _graph(model: OnnxModel) -> bytes:
    return message(
        *(bytes_field(1, _node(node)) for node in model.nodes),
        text_field(2, model.name),
        *(bytes_field(5, _tensor(array, name)) for name, array in model.initializers.items()),
        *(bytes_field(11, _port(name, type_)) for name, type_ in model.inputs.items()),
        *(bytes_field(12, _port(name, type_)) for name, type_ in model.outputs.items()),
    )


def _node(node: OnnxNode) -> bytes:
    return message(
        *(text_field(1, name) for name in node.inputs),
        text_field(2, node.result),
        text_field(3, node.name),
        text_field(4, node.op),
        *(bytes_field(5, _attribute(name, value)) for name, value in sorted(node.attributes.items())),
        text_field(6, node.origin),
    )


def _attribute(name: str, value: Any) -> bytes:
    """The type of an attribute is that of its value; the type of elements that `to` names is a number."""
    if name == "to":
        kind, fields = INT, [integer_field(3, TYPES[value])]
    elif isinstance(value, float):
        kind, fields = FLOAT, [float_field(2, value)]
    elif isinstance(value, int):
        kind, fields = INT, [integer_field(3, value)]
    elif isinstance(value, str):
        kind, fields = STRING, [text_field(4, value)]
    elif isinstance(value, np.ndarray):
        kind, fields = TENSOR, [bytes_field(5, _tensor(value))]
    else:
        kind, fields = INTS, [integer_field(8, item) for item in value]
    return message(text_field(1, name), *fields, integer_field(20, kind))


def _tensor(array: AnyArray, name: str = "") -> bytes:
    dims = (integer_field(1, size) for size in array.shape)
    return message(*dims, integer_field(2, OF_ARRAYS[array.dtype]), text_field(8, name), bytes_field(9, array.tobytes()))


def _port(name: str, type_: TensorType) -> bytes:
    """An input or an output, with its type."""
    shape = message(*(bytes_field(1, integer_field(1, size)) for size in type_.shape))
    tensor = message(integer_field(1, TYPES[type_.dtype]), bytes_field(2, shape))
    return message(text_field(1, name), bytes_field(2, bytes_field(1, tensor)))
