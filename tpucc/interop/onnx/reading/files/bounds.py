"""Bounds on an ONNX file, which hold before protobuf makes objects of it: a small file may say much.

A walk over the wire format counts fields, nodes and the depth of graphs. Bytes of constants are skipped. It needs no package.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.interop.onnx.reading.files.problems import malformed
from tpucc.interop.onnx.wire import WireError, fields

MAX_FIELDS = 1_000_000
"""Fields of all messages of a file; the largest networks have some hundred thousands."""
MAX_NODES = 50_000
MAX_DEPTH = 8
"""Of graphs inside nodes of graphs."""
MAX_PACKED = 2**25
"""Bytes of integers that are packed: each may be one of 8 bytes in memory. Larger constants are raw bytes."""
PACKED: Mapping[str, frozenset[int]] = {"attribute": frozenset({8}), "tensor": frozenset({1, 5, 7, 11})}
"""The fields of such integers, by the kind of their message."""
MESSAGES: Mapping[str, Mapping[int, str]] = {
    "attribute": {
        1: "text",
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        14: "type",
        15: "type",
        21: "text",
        22: "sparse",
        23: "sparse",
    },
    "dimension": {2: "text"},
    "entry": {1: "text", 2: "text"},
    "function": {7: "node", 9: "entry", 11: "attribute", 12: "value", 14: "entry"},
    "graph": {1: "node", 2: "text", 5: "tensor", 11: "value", 12: "value", 13: "value", 14: "quantised", 15: "sparse", 16: "entry"},
    "model": {2: "text", 7: "graph", 8: "entry", 14: "entry", 20: "training", 25: "function"},
    "node": {**dict.fromkeys((1, 2, 3, 4, 7), "text"), 5: "attribute", 9: "entry"},
    "of_type": {1: "type", 2: "type"},
    "quantised": {2: "entry"},
    "shape": {1: "dimension"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {8: "text", 13: "entry", 16: "entry"},
    "tensor_type": {2: "shape"},
    "training": {1: "graph", 2: "graph", 3: "entry", 4: "entry"},
    "type": {1: "tensor_type", 4: "of_type", 5: "of_type", 8: "tensor_type", 9: "of_type"},
    "value": {1: "text", 2: "type", 4: "entry"},
}
"""The kinds of messages, and which fields of each are texts, or messages of which kind, by their numbers in onnx.proto."""
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
    waiting = [("model", data, 0)]
    while waiting:
        kind, message, depth = waiting.pop()
        if depth > MAX_DEPTH + 1:
            raise malformed(f"graphs lie inside each other, more than {MAX_DEPTH} deep", code="E1003")
        nodes += kind == "node"
        for number, value in fields(message):
            count += 1
            if count > MAX_FIELDS:
                raise WireError(f"it has more than {MAX_FIELDS:,} fields")
            inner = MESSAGES[kind].get(number)
            if inner == "text" and isinstance(value, memoryview):
                _require_text(value)
            elif inner is not None and isinstance(value, memoryview):
                waiting.append((inner, value, depth + (inner == "graph")))
            results += kind == "node" and number == OUTPUT
            packed += len(value) if isinstance(value, memoryview) and number in PACKED.get(kind, ()) else 0
        if packed > MAX_PACKED:
            raise malformed(f"it has more than {MAX_PACKED:,} bytes of packed integers", code="E1003")
        if max(nodes, results) > MAX_NODES:
            raise malformed(f"it has more than {MAX_NODES:,} {'nodes' if nodes > MAX_NODES else 'results of nodes'}", code="E1003")


def _require_text(value: memoryview) -> None:
    try:
        str(value, "utf-8")
    except UnicodeDecodeError:
        raise WireError("a name is not UTF-8") from None
