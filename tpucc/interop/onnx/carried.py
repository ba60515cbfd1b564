"""The graph that a file of `tpucc export` carries, from which an import reads it.

The file's metadata have three entries: the text form of the operator graph, the weights' forms, and a digest of both and of the file's
nodes, initializers, inputs and outputs. A weight's values are an initializer's, with its axes in another order, or real values whose int8
weights an initializer has; so they stand in the file once. A file with another digest has been changed: its nodes are read.

The digest finds changes; it is no signature. Whoever writes a file can compute it, so its graph may be another one than its nodes. The
graph is data all the same: the text reader bounds and verifies it, and nothing of it is executed. See docs/onnx-export.md.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from tpucc.diagnostics import Diagnostic, ProgramError
from tpucc.interop.onnx.wire import fields
from tpucc.ir import Graph
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32, quantise_weights, weight_scales
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Matrix
from tpucc.ops.verify import verify_operators
from tpucc.ops.weight import WeightAttributes

GRAPH, WEIGHTS, DIGEST = "tpucc_graph", "tpucc_weights", "tpucc_digest"
"""The keys of the metadata."""
MOST_TEXT, MOST_LINES = 4_000_000, 50_000
"""Characters and lines of the text of a graph; a larger graph isn't carried."""
ORDERS = ((), (3, 2, 0, 1), (1, 0))
"""The orders of axes in which the forms of operators have a weight: as it is, a kernel, a matrix."""
NODES, OPSETS, METADATA = 7, 8, 14
"""The fields of a file that the digest covers, and the one that has the metadata."""
INITIALIZER, INPUT, OUTPUT = 5, 11, 12
"""Fields of a graph."""
TYPES: Mapping[str, int] = {"f32": 1, "u8": 2, "i8": 3, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f64": 11}
"""ONNX's numbers of the types of elements."""
ARRAYS: Mapping[int, type[np.generic]] = {1: np.float32, 2: np.uint8, 3: np.int8}
"""The types of initializers that may be weights, by ONNX's numbers."""


class WeightForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the values of a weight stand.

    `initializer` has them with its axes in `order`. With `largest`, float32 [N], or [1] for all columns, it has the int8 weights of
    columns whose largest values these are. Without an initializer `values` are the weight's. Both are bytes in base64.
    """

    key: str
    initializer: str = ""
    order: tuple[int, ...] = ()
    largest: str = ""
    values: str = ""


@dataclass(frozen=True)
class Carried:
    """An operator graph, and its weights by key."""

    graph: Graph
    weights: Mapping[str, AnyArray]


def metadata_of(carried: Carried, initializers: Mapping[str, AnyArray], fields: Sequence[bytes]) -> dict[str, str]:
    """The metadata of a file with these initializers; `fields` are the contents of its fields that the digest covers, in order. Empty for
    a graph whose text is too long."""
    text = print_graph(carried.graph, origins=False)
    if _is_too_long(text):
        return {}
    places, others = _places(initializers), _no_matrices(carried.graph)
    forms = [_form(key, array, places, is_matrix=key not in others) for key, array in carried.weights.items()]
    found = {GRAPH: text, WEIGHTS: msgspec.json.encode(forms).decode()}
    return {**found, DIGEST: _digest(found, fields)}


def graph_carried(data: bytes, name: str) -> Carried | None:
    """The graph that a file carries; None for one of another program, or that somebody has changed. `name` is the file's, for messages.

    Raises `ProgramError` E1001 for a graph that isn't valid, or that has other inputs and outputs than the file.
    """
    covered, metadata = list[memoryview](), dict[str, str]()
    try:
        for number, value in fields(data):
            if number in (NODES, OPSETS):
                covered.append(value)
            elif number == METADATA:
                key, content = _entry(value)
                metadata[key] = content
        if metadata.keys() < {GRAPH, WEIGHTS, DIGEST} or _digest(metadata, covered) != metadata[DIGEST]:
            return None
        return _read(metadata, covered[0], name)
    except (KeyError, ValueError, IndexError, TypeError, msgspec.MsgspecError) as error:
        if not metadata.keys() >= {GRAPH, WEIGHTS, DIGEST}:
            return None  # what is wrong with a file from elsewhere, its reader says
        raise _invalid(name, str(error)) from None


def is_changed(data: bytes) -> bool:
    """Whether a file that carries no graph any more has a digest of one, which tpucc wrote."""
    return DIGEST.encode() in data


def _read(metadata: Mapping[str, str], graph: memoryview, name: str) -> Carried:
    """The graph of the metadata, verified. Raises `ProgramError`, and errors of Python for what can't be read."""
    if _is_too_long(metadata[GRAPH]):
        raise ValueError(f"its text is longer than {MOST_TEXT:,} characters or {MOST_LINES:,} lines")
    found = parse_graph(metadata[GRAPH], f"the graph that {name} carries", ATTRIBUTES)
    verify_operators(found)
    initializers = dict[str, AnyArray]()
    ends: dict[int, list[tuple[int, tuple[int, ...]]]] = {INPUT: [], OUTPUT: []}
    for number, value in fields(graph):
        if number == INITIALIZER:
            initializers |= _initializer(value)
        elif number in ends:
            ends[number].append(_port(value))
    types = {INPUT: [node.type for node in found.inputs], OUTPUT: [found[output.node].type for output in found.outputs]}
    if ends != {number: [(TYPES[type_.dtype], type_.shape) for type_ in known] for number, known in types.items()}:
        raise ValueError("it has other inputs or outputs than the file")
    forms = {form.key: form for form in msgspec.json.decode(metadata[WEIGHTS], type=list[WeightForm])}
    weights = {node.attributes.key: node.type.shape for node in found if isinstance(node.attributes, WeightAttributes)}
    return Carried(found, {key: _array(forms[key], shape, initializers) for key, shape in weights.items()})


def _is_too_long(text: str) -> bool:
    return len(text) > MOST_TEXT or text.count("\n") > MOST_LINES


def _invalid(name: str, why: str) -> ProgramError:
    text = f"{name} carries a graph that can't be read: {why}"
    return ProgramError(Diagnostic("E1001", text, help=("`tpucc export` writes no such file: export the model again",)))


# the forms of weights


def _places(initializers: Mapping[str, AnyArray]) -> dict[tuple[str, bytes], tuple[str, tuple[int, ...]]]:
    """Where values stand: the initializer and the order of its axes, by the type and the digest of the values."""
    found: dict[tuple[str, bytes], tuple[str, tuple[int, ...]]] = {}
    for name, array in initializers.items():
        for order in ORDERS if array.dtype in ARRAYS.values() and array.ndim else ():
            if len(order) in (0, array.ndim):
                turned = _turned(array, order)
                found.setdefault(_content(turned), (name, order))
    return found


def _turned(array: AnyArray, order: tuple[int, ...]) -> AnyArray:
    """An initializer with its axes in the order of a weight's. Kernels of 16-bit layers are unsigned: int8 and 128."""
    turned = array.transpose(_inverse(order)) if order else array
    return (turned.astype(np.int16) - 128).astype(np.int8) if turned.dtype == np.uint8 else turned


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _content(array: AnyArray) -> tuple[str, bytes]:
    """The type and the digest of an array's values, whatever its shape."""
    return array.dtype.str, hashlib.sha256(np.ascontiguousarray(array).data).digest()


def _no_matrices(graph: Graph) -> set[str]:
    """The keys of weights that are no matrix of some reader's: their own values matter then, and not only their integers."""
    return {
        node.attributes.key
        for node in graph
        if isinstance(node.attributes, WeightAttributes)
        if not all(isinstance(legalisation_of(user.op), Matrix) and user.operands.index(node.name) == 1 for user in graph.users[node.name])
    }


def _form(key: str, array: AnyArray, places: Mapping[tuple[str, bytes], tuple[str, tuple[int, ...]]], *, is_matrix: bool) -> WeightForm:
    """The form of a weight: real values that the file has, int8 weights that it has, or the values themselves."""
    if (place := places.get(_content(array))) is not None:
        return WeightForm(key, *place)
    columns = array.reshape(-1, array.shape[-1]) if is_matrix and array.ndim > 1 and array.size else None
    for per_channel in (True, False) if columns is not None else ():
        assert columns is not None
        integers = quantise_weights(columns, weight_scales(columns, per_channel))
        if (place := places.get(_content(integers))) is not None:
            largest = np.abs(columns).max(axis=0 if per_channel else None, keepdims=True).reshape(-1)
            again = _real(integers, largest)
            if np.array_equal(quantise_weights(again, weight_scales(again, per_channel)), integers):
                return WeightForm(key, *place, largest=b64encode(largest.tobytes()).decode())
    return WeightForm(key, values=b64encode(array.astype(np.float32).tobytes()).decode())


def _real(integers: AnyArray, largest: Float32) -> Float32:
    """Real values [K, N] with these int8 weights. The largest of each column, or of all, are `largest` exactly, so that they have the same
    scales."""
    scales = weight_scales(largest[None], per_channel=True)
    values: Float32 = integers * scales
    return np.where(np.abs(integers) == WEIGHT_MAX, np.sign(integers) * largest, values).astype(np.float32)


def _array(form: WeightForm, shape: tuple[int, ...], initializers: Mapping[str, AnyArray]) -> AnyArray:
    """The values of a weight, float32 of this shape. Raises `ValueError` and `KeyError` for another form than `_form` writes."""
    if not form.initializer:
        return np.frombuffer(b64decode(form.values, validate=True), np.float32).reshape(shape)
    found = _turned(initializers[form.initializer], form.order)
    if not form.largest:
        if found.dtype != np.float32:
            raise ValueError(f"the initializer of the weight {form.key} has no real values")
        return found.reshape(shape)
    largest = np.frombuffer(b64decode(form.largest, validate=True), np.float32)
    if found.dtype != np.int8 or largest.size not in (1, shape[-1]):
        raise ValueError(f"the initializer of the weight {form.key} doesn't fit it")
    return _real(found.reshape(-1, shape[-1]), largest).reshape(shape)


# the fields of a file


def _digest(metadata: Mapping[str, str], covered: Sequence[bytes | memoryview]) -> str:
    """Of the graph's text, the weights' forms, and the fields of the file, each behind its length."""
    found = hashlib.sha256()
    for part in (metadata[GRAPH].encode(), metadata[WEIGHTS].encode(), *covered):
        found.update(b"%d " % len(part))
        found.update(part)
    return found.hexdigest()


def _entry(data: memoryview) -> tuple[str, str]:
    """The key and the content of an entry of metadata."""
    found = {number: str(value, "utf-8") for number, value in fields(data)}
    return found.get(1, ""), found.get(2, "")


def _initializer(data: memoryview) -> dict[str, AnyArray]:
    """An initializer by its name; nothing for one that is no weight's."""
    found, dims = dict[int, Any](), list[Any]()
    for number, value in fields(data):
        if number == 1:
            dims.append(value)
        found[number] = value
    type_ = ARRAYS.get(found[2])
    if type_ is None or 9 not in found:
        return {}
    return {str(found[8], "utf-8"): np.frombuffer(found[9], type_).reshape(dims)}


def _port(data: memoryview) -> tuple[int, tuple[int, ...]]:
    """The type of an input or an output: ONNX's number of its elements, and its shape."""
    tensor = _message(_message(_message(data)[2])[1])
    return tensor[1], tuple(_message(size)[1] for number, size in fields(tensor[2]) if number == 1)


def _message(data: Any) -> dict[int, Any]:
    """The fields of a message, the last of each number."""
    return dict(fields(data))
