"""The bytes of an ONNX file. It is a message of protocol buffers, whose encoding is simple: fields are a number and a kind, then a value.

The numbers are those of onnx.proto, the schema that ONNX publishes. No package is needed, and the bytes depend on nothing but the model.
https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError, Source
from tpucc.interop.onnx import IR_VERSION, OPSET, PRODUCER
from tpucc.interop.onnx.carried import BYTES, FIXED32, METADATA, NODES, OPSETS, TYPES, VARINT, Carried, metadata_of
from tpucc.interop.onnx.writing.model import OnnxModel, OnnxNode
from tpucc.ir import TensorType
from tpucc.ir.dtypes import FORMATS
from tpucc.numerics import AnyArray
from tpucc.version import VERSION

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
    graph, opset = _graph(model), _message(_text(1, ""), _integer(2, OPSET))
    metadata = metadata_of(carried, model.initializers, (graph, opset)) if carried else {}
    return _message(
        _integer(1, IR_VERSION),
        _text(2, PRODUCER),
        _text(3, VERSION),
        _text(6, f"{source.name}:\n\n{source.text}" if source else ""),
        _bytes(NODES, graph),
        _bytes(OPSETS, opset),
        *(_bytes(METADATA, _message(_text(1, key), _text(2, content))) for key, content in metadata.items()),
    )


def _graph(model: OnnxModel) -> bytes:
    return _message(
        *(_bytes(1, _node(node)) for node in model.nodes),
        _text(2, model.name),
        *(_bytes(5, _tensor(array, name)) for name, array in model.initializers.items()),
        *(_bytes(11, _port(name, type_)) for name, type_ in model.inputs.items()),
        *(_bytes(12, _port(name, type_)) for name, type_ in model.outputs.items()),
    )


def _node(node: OnnxNode) -> bytes:
    return _message(
        *(_text(1, name) for name in node.inputs),
        _text(2, node.result),
        _text(3, node.name),
        _text(4, node.op),
        *(_bytes(5, _attribute(name, value)) for name, value in sorted(node.attributes.items())),
        _text(6, node.origin),
    )


def _attribute(name: str, value: Any) -> bytes:
    """The type of an attribute is that of its value; the type of elements that `to` names is a number."""
    if name == "to":
        kind, fields = INT, [_integer(3, TYPES[value])]
    elif isinstance(value, float):
        kind, fields = FLOAT, [_key(2, FIXED32) + struct.pack("<f", value)]
    elif isinstance(value, int):
        kind, fields = INT, [_integer(3, value)]
    elif isinstance(value, str):
        kind, fields = STRING, [_text(4, value)]
    elif isinstance(value, np.ndarray):
        kind, fields = TENSOR, [_bytes(5, _tensor(value))]
    else:
        kind, fields = INTS, [_integer(8, item) for item in value]
    return _message(_text(1, name), *fields, _integer(20, kind))


def _tensor(array: AnyArray, name: str = "") -> bytes:
    dims = (_integer(1, size) for size in array.shape)
    return _message(*dims, _integer(2, OF_ARRAYS[array.dtype]), _text(8, name), _bytes(9, array.tobytes()))


def _port(name: str, type_: TensorType) -> bytes:
    """An input or an output, with its type."""
    shape = _message(*(_bytes(1, _integer(1, size)) for size in type_.shape))
    tensor = _message(_integer(1, TYPES[type_.dtype]), _bytes(2, shape))
    return _message(_text(1, name), _bytes(2, _bytes(1, tensor)))


def _message(*fields: bytes) -> bytes:
    return b"".join(fields)


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode("utf-8", "replace"))


def _bytes(number: int, content: bytes) -> bytes:
    return _key(number, BYTES) + _varint(len(content)) + content


def _integer(number: int, value: int) -> bytes:
    """An integer of 64 bits; negative ones are two's complements."""
    return _key(number, VARINT) + _varint(value % 2**64)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all bytes but the last have their highest bit set."""
    parts: list[int] = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
