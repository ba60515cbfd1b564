"""Bounds on an ONNX file, which hold before protobuf makes objects of it: a small file may say much.

A walk over the wire format counts fields, nodes and the depth of graphs. Bytes of constants are skipped. The package onnx has the schema,
which says what fields are messages, texts and integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from tpucc.interop.onnx.reading.files.checker import onnx_package
from tpucc.interop.onnx.reading.files.problems import malformed
from tpucc.interop.onnx.wire import WireError, fields

MAX_FIELDS = 1_000_000
"""Fields of all messages of a file; the largest networks have some hundred thousands."""
MAX_NODES = 50_000
MAX_DEPTH = 8
"""Of graphs inside nodes of graphs."""
MAX_PACKED = 2**25
"""Bytes of integers that are packed: each may be one of 8 bytes in memory. Larger constants are raw bytes."""
TEXT, INTEGERS = "text", "integers"
"""What fields are that are no messages, as far as it matters."""
OUTPUT = 2
"""The field of a node's results."""


def require_bounds(data: bytes) -> None:
    """Raises `ProgramError` E1003 for a file that says more than a network has, and E1001 for one that isn't made of fields."""
    try:
        _count(memoryview(data))
    except WireError as error:
        raise malformed(
            f"not a model in ONNX's format: {error}",
            "is it an .onnx file, and whole? onnx.checker.check_model(FILE) of the package onnx may say more",
        ) from None


def _count(data: memoryview) -> None:
    count = nodes = results = packed = 0
    waiting: list[tuple[Any, memoryview, int]] = [(onnx_package().ModelProto.DESCRIPTOR, data, 0)]
    while waiting:
        kind, message, depth = waiting.pop()
        is_node, contents = kind.name == "NodeProto", _contents(kind)
        if depth > MAX_DEPTH + 1:
            raise malformed(f"graphs lie inside each other, more than {MAX_DEPTH} deep", code="E1003")
        nodes += is_node
        for number, value in fields(message):
            count += 1
            if count > MAX_FIELDS:
                raise WireError(f"it has more than {MAX_FIELDS:,} fields")
            results += is_node and number == OUTPUT
            inner = contents.get(number) if isinstance(value, memoryview) else None
            if inner == TEXT:
                _require_text(value)
            elif inner == INTEGERS:
                packed += len(value)
            elif inner is not None:
                waiting.append((inner, value, depth + (inner.name == "GraphProto")))
        if packed > MAX_PACKED:
            raise malformed(f"it has more than {MAX_PACKED:,} bytes of packed integers", code="E1003")
        if max(nodes, results) > MAX_NODES:
            raise malformed(f"it has more than {MAX_NODES:,} {'nodes' if nodes > MAX_NODES else 'results of nodes'}", code="E1003")


@cache
def _contents(kind: Any) -> Mapping[int, Any]:
    """The kinds of the messages that a message has, and its fields of names and of integers, by their numbers."""
    found: dict[int, Any] = {each.number: each.message_type for each in kind.fields if each.message_type is not None}
    found |= {each.number: TEXT for each in kind.fields if each.type == each.TYPE_STRING and each.name != "doc_string"}
    integers = {number for each in kind.fields for number in (each.CPPTYPE_INT32, each.CPPTYPE_INT64, each.CPPTYPE_UINT64)}
    return found | {each.number: INTEGERS for each in kind.fields if each.cpp_type in integers}


def _require_text(value: memoryview) -> None:
    try:
        str(value, "utf-8")
    except UnicodeDecodeError:
        raise WireError("a name is not UTF-8") from None
