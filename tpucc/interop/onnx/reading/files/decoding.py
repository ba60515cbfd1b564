"""From the bytes of an ONNX file to its value, checked.

Nothing of a file is executed. Names are defined once, and something computes each; what is wrong is an error before any network is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.interop.onnx.reading.files.casts import without_needless_casts
from tpucc.interop.onnx.reading.files.element_types import require_types
from tpucc.interop.onnx.reading.files.labels import with_numbers_of_classes
from tpucc.interop.onnx.reading.files.model import (
    NO_TENSOR,
    OPSETS,
    Dimension,
    OnnxGraph,
    OnnxModel,
    OnnxNode,
    OnnxValue,
    Weight,
    type_name,
)
from tpucc.interop.onnx.reading.files.order import in_order, require_names
from tpucc.interop.onnx.reading.files.problems import CHECKER, changed, malformed, named, no_tensor, refused, shortened
from tpucc.interop.onnx.reading.files.signatures import require_signatures
from tpucc.interop.onnx.reading.files.tensors import MAX_RANK, NAMES, TYPES, Files, integers, tensor
from tpucc.interop.onnx.reading.files.wire import BYTES, Field, Reader, WireError, float32, signed, text, view
from tpucc.ir.types import Range, as_float32
from tpucc.numerics import AnyArray

MAX_NODES = 50_000
MAX_DEPTH = 8
"""Of graphs inside nodes of graphs."""
DOMAINS = {"ai.onnx": ""}
"""Other names of a set of operators."""


SCOPES = b"pkg.torch.onnx.name_scopes"
FOLDED = b"pkg.onnxscript.optimizer.folded_from"
HELD, BEFORE, FUNCTION, RANGE = b"scale_and_zero_point", b"scale_and_zero_point_before", b"function", b"range"
WEIGHT, TURNED, SHAPE, SUBTRACTED = b"weight", b"transposed_weight", b"shape", b"subtracted_weight"
"""The keys of the metadata that are read: PyTorch's, and tpucc's own."""
OF_NODES = frozenset({HELD, BEFORE, FUNCTION, WEIGHT, SUBTRACTED, SHAPE})
OF_CONSTANTS = frozenset({WEIGHT, TURNED, SHAPE})
"""Those of tpucc's that are there once."""
_INTEGER = r"-?[0-9]+"
_NUMBER = rf"{_INTEGER}(\.[0-9]+)?(e[+-]?[0-9]+)?"
LONGEST_ENTRY = 4096
"""Bytes of an entry that is read."""


def decoded(data: bytes, folder: Path | None) -> OnnxModel:
    """The model of a file's bytes; `folder` is where its other files may lie.

    Raises `ProgramError` E1001 to E1004 for a file that is malformed, `CompileError` for one that tpucc can't take.
    """
    files = Files(Reader(), folder)
    try:
        model = _model(memoryview(data), files)
    except WireError as error:
        raise malformed(
            f"not a model in ONNX's format: {error}",
            "is it an .onnx file, and whole? onnx.checker.check_model(FILE) of the package onnx may say more",
        ) from None
    _require_opsets(model)
    _require_imported(model.graph, model.opsets)
    model = replace(model, graph=in_order(model.graph))
    require_names(model.graph)
    require_signatures(model.graph)
    graph = without_needless_casts(model.graph, require_types(model.graph))
    return replace(model, graph=with_numbers_of_classes(graph))


def _model(data: memoryview, files: Files) -> OnnxModel:
    graph, producer, functions = None, "", 0
    opsets: dict[str, int] = {}
    for number, _, value in files.reader.fields(data):
        match number:
            case 2:
                producer = text(value)
            case 7:
                graph = view(value)
            case 8:
                parts = {number: part for number, _, part in files.reader.fields(view(value))}
                domain, version = text(parts[1]) if 1 in parts else "", signed(parts.get(2, 0))
                if (first := opsets.setdefault(DOMAINS.get(domain, domain), version)) != version:
                    of = named(domain) or "ONNX's own domain"
                    raise malformed(f"it has two opsets of {of}, {first:,} and {version:,}: which operators are meant isn't said")
            case 25:
                functions += 1
    if graph is None:
        raise WireError("it has no graph")
    if functions:
        help = "onnx.inliner.inline_local_functions(model) puts them in their places"
        raise refused("E1006", "the model defines functions of its own, which tpucc doesn't read", help)
    return OnnxModel(_graph(graph, files, MAX_DEPTH), opsets, producer)


def _graph(data: memoryview, files: Files, depth: int) -> OnnxGraph:
    if depth < 0:
        raise malformed(f"graphs lie inside each other, more than {MAX_DEPTH} deep", code="E1003")
    constants: dict[str, AnyArray] = {}
    name, nodes, results = "", [], 0
    ends: dict[int, list[OnnxValue]] = {11: [], 12: []}
    declared: dict[str, int] = {}
    folded: dict[str, tuple[str, ...]] = {}
    said: dict[str, Weight | None] = {}
    for number, _, value in files.reader.fields(data):
        match number:
            case 1:
                nodes.append(_node(view(value), files, depth))
                results += len(nodes[-1].outputs)
                if max(len(nodes), results) > MAX_NODES:
                    raise malformed(
                        f"it has more than {MAX_NODES:,} {'nodes' if len(nodes) > MAX_NODES else 'results of nodes'}", code="E1003"
                    )
            case 2:
                name = text(value)
            case 5:
                key, array, metadata = tensor(view(value), files, texts=depth == MAX_DEPTH)
                _add_constant(constants, key, array)
                said[key] = _weight(entries := _entries(metadata, files.reader, key)) or _constant(entries)
            case 11 | 12:
                ends[number].append(_value(view(value), files.reader, "an input" if number == 11 else "an output"))
            case 13:
                found, kind, sources = _declared(view(value), files.reader)
                declared[found] = kind
                folded[found] = sources
            case 15:
                raise refused("E1006", "the model has a sparse constant", "tpucc multiplies whole matrices: save it as a dense tensor")
    _require_tensors(ends[11] if depth == MAX_DEPTH else [*ends[11], *ends[12]])
    inputs = tuple(found for found in ends[11] if found.name not in constants)
    declared |= {found.name: found.type for found in ends[11] if found.name in constants}
    weights = {key: weight for key, weight in said.items() if weight is not None}
    folded = {key: sources for key, sources in folded.items() if sources and key in constants}
    return OnnxGraph(name, tuple(nodes), constants, inputs, tuple(ends[12]), declared, weights, folded)


def _require_tensors(values: Iterable[OnnxValue]) -> None:
    for value in values:
        if value.type == NO_TENSOR:
            raise no_tensor(value.name)


def _node(data: memoryview, files: Files, depth: int) -> OnnxNode:
    inputs, outputs, attributes, words, scope = [], [], {}, {3: "", 4: "", 7: ""}, ""
    twice: str | None = None
    said: dict[bytes, str] = {}
    for number, _, value in files.reader.fields(data):
        match number:
            case 1:
                inputs.append(text(value))
            case 2:
                outputs.append(text(value))
            case 3 | 4 | 7:
                words[number] = text(value)
            case 5:
                name, found = _attribute(view(value), files, depth)
                twice = twice if name not in attributes else f"the attribute {named(name)}"
                attributes[name] = found
            case 9:
                key, content = _entry(view(value), files.reader)
                scope = _scope(content) if key == SCOPES else scope
                twice = key.decode() if key in said and key in OF_NODES else twice
                said[key] = content
    held, before = (_held(said.get(key, "")) for key in (HELD, BEFORE))
    domain = DOMAINS.get(words[7], words[7])
    node = OnnxNode(words[4], tuple(inputs), tuple(outputs), attributes, words[3], domain, scope, held, before, *_number(said))
    if twice is not None:
        raise malformed(f"{node.title} ({named(node.op)}): it has {twice} twice", CHECKER)
    for key, found in ((HELD, held), (BEFORE, before)):
        if key in said and found is None:
            raise changed(f"{node.title}: {key.decode()} is {shortened(said[key])}, which is no scale and zero point")
    return node


def _entries(metadata: Iterable[memoryview], reader: Reader, constant: str) -> dict[bytes, str]:
    """The entries of a constant's metadata. Raises `ProgramError` E1001 where one of tpucc's is there twice."""
    said: dict[bytes, str] = {}
    for key, content in (_entry(data, reader) for data in metadata):
        if key in said and key in OF_CONSTANTS:
            raise malformed(f"the constant {named(constant)} has {key.decode()} twice", CHECKER)
        said[key] = content
    return said


def _entry(data: memoryview, reader: Reader) -> tuple[bytes, str]:
    """An entry of metadata, without its text if that is too long."""
    words = {number: view(value) for number, kind, value in reader.fields(data) if kind == BYTES}
    content = words.get(2, memoryview(b""))
    return bytes(words.get(1, b"")[:LONGEST_ENTRY]), text(content) if len(content) <= LONGEST_ENTRY else ""


def _scope(content: str) -> str:
    """The module of a node. PyTorch writes the text of a list, from the whole network to the operation, each name containing the one
    before."""
    names = re.findall(r"'([^']*)'", content)
    return names[-2] if len(names) > 1 else ""


def _held(content: str) -> tuple[float, int] | None:
    """A finite float32 number above zero, and an integer; None for another text."""
    if re.fullmatch(rf"{_NUMBER} {_INTEGER}", content) is None:
        return None
    scale, zero = content.split()
    held = as_float32(float(scale)), float(zero)
    return (held[0], int(held[1])) if 0 < held[0] < math.inf and -(2**15) <= held[1] < 2**15 else None


def _weight(said: Mapping[bytes, str]) -> Weight | None:
    """A key and the sizes of a shape; None where they aren't there."""
    entry = next((entry for entry in (WEIGHT, TURNED, SUBTRACTED) if said.get(entry)), None)
    sizes = said.get(SHAPE)
    if entry is None or sizes is None or re.fullmatch(r"([0-9]{1,10}( [0-9]{1,10})*)?", sizes, re.ASCII) is None:
        return None
    shape = tuple(map(int, sizes.split()))
    return Weight(said[entry], shape, entry == TURNED, entry == SUBTRACTED) if len(shape) <= MAX_RANK else None


def _constant(said: Mapping[bytes, str]) -> Weight | None:
    """A constant that the source has as numbers, which has an empty key."""
    return replace(found, key="") if said.get(WEIGHT) == "" and (found := _weight({**said, WEIGHT: "-"})) is not None else None


def _number(said: Mapping[bytes, str]) -> tuple[Weight | None, bool]:
    """The weight of one value that a function's number is, and whether it is the opposite of that."""
    weight = _weight({entry: said[entry] for entry in (WEIGHT, SUBTRACTED, SHAPE) if entry in said})
    return (weight.plain, weight.is_subtracted) if weight is not None and weight.is_single else (None, False)


def _range(content: str) -> Range | None:
    """Two finite numbers as Python writes them, the smaller one first, also as float32; None for another text."""
    if re.fullmatch(rf"{_NUMBER} {_NUMBER}", content) is None:
        return None
    low, high = map(float, content.split())
    return Range(low, high) if -math.inf < as_float32(low) < as_float32(high) < math.inf else None


def _add_constant(constants: dict[str, AnyArray], key: str, array: AnyArray) -> None:
    if key in constants:
        raise malformed(f"the constant {named(key)} is there twice", code="E1002")
    constants[key] = array


def _attribute(data: memoryview, files: Files, depth: int) -> tuple[str, Any]:
    """An attribute's name and value. Old files don't say its type: then it is that of the one field there is."""
    name, kind = "", 0
    single: dict[int, Any] = {}
    many: dict[int, list[Any]] = {}
    for number, wire, value in files.reader.fields(data):
        match number:
            case 1:
                name = text(value)
            case 2 | 3 | 4 | 5 | 6:
                single[number - 1] = _single(number, value, files, depth)
            case 7 | 8 | 9:
                many.setdefault(number - 1, []).extend(_several(number, wire, value))
            case 20:
                kind = signed(value)
            case 21 if len(view(value)):
                raise malformed(f"an attribute is that of a function, {named(text(value))}, and the node is in none", CHECKER)
    if kind in single or (not kind and single):
        return name, single[kind or next(iter(single))]
    if kind in range(1, 6):
        return name, {1: 0.0, 2: 0, 3: ""}.get(kind)
    return name, tuple(many.get(kind) or next(iter(many.values()), ()))


def _single(number: int, value: Field, files: Files, depth: int) -> Any:
    """An attribute's one value: a number, a string, a tensor or a graph."""
    match number:
        case 2:
            return float32(value)
        case 3:
            return signed(value)
        case 4:
            return str(view(value), "utf-8", "replace")
        case 5:
            return tensor(view(value), files)[1]
    return _graph(view(value), files, depth - 1)


def _several(number: int, wire: int, value: Field) -> list[Any]:
    """Values of a list: numbers may be packed, strings aren't."""
    if number == 7:
        return _floats(view(value))
    if number == 8:
        found: list[Any] = integers(wire, value).tolist()
        return found
    return [str(view(value), "utf-8", "replace")]


def _floats(data: memoryview) -> list[float]:
    if len(data) % 4:
        raise WireError("it ends inside a number")
    return [float(str(number)) for number in np.frombuffer(data, "<f4")]


def _value(data: memoryview, reader: Reader, who: str) -> OnnxValue:
    name, kind, shape, limits = "", 0, None, None
    for number, _, value in reader.fields(data):
        if number == 1:
            name = text(value)
        elif number == 4:
            key, content = _entry(view(value), reader)
            limits = _range(content) if key == RANGE else limits
        elif number == 2:
            for what, _, inner in reader.fields(view(value)):
                if what != 1 and what != 6:
                    kind, shape = NO_TENSOR, None
                if what == 1:
                    kind, shape = _tensor_type(view(inner), reader, f"{who}, {named(name)}," if name else who)
    if not name:
        raise malformed(f"{who} has no name")
    return OnnxValue(name, kind, shape, limits)


def _declared(data: memoryview, reader: Reader) -> tuple[str, int, tuple[str, ...]]:
    """The name of a value and the type of its elements, 0 of a value that is no tensor; and of which values an optimiser has computed it,
    where the file says so. It is the text of a list."""
    name, kind, is_tensor = "", 0, False
    sources: tuple[str, ...] = ()
    for number, _, value in reader.fields(data):
        if number == 1:
            name = text(value)
        elif number == 4:
            key, content = _entry(view(value), reader)
            sources = tuple(re.findall(r"'([^']*)'", content)) if key == FOLDED else sources
        elif number == 2:
            tensors = [view(part) for what, _, part in reader.fields(view(value)) if what == 1]
            kind = next((signed(part) for tensor in tensors for what, _, part in reader.fields(tensor) if what == 1), 0)
            is_tensor = bool(tensors)
    if is_tensor:
        _require_type(kind, named(name))
    return name, kind, sources


def _tensor_type(data: memoryview, reader: Reader, who: str) -> tuple[int, tuple[Dimension, ...] | None]:
    kind, shape = 0, None
    for number, _, value in reader.fields(data):
        if number == 1:
            kind = signed(value)
        elif number == 2:
            shape = tuple(_dimension(view(part), reader) for number, _, part in reader.fields(view(value)) if number == 1)
            if len(shape) > MAX_RANK:
                raise refused("E1007", f"{who} has {len(shape):,} axes; the limit is {MAX_RANK}")
    _require_type(kind, who)
    return kind, shape


def _require_type(kind: int, who: str) -> None:
    """The elements of a tensor have a type that there is. Raises `ProgramError` E1001."""
    if kind not in TYPES and kind not in NAMES:
        raise malformed(f"{who} has elements of {type_name(kind)}", CHECKER)


def _dimension(data: memoryview, reader: Reader) -> Dimension:
    """A size; nothing for an open one without a name. Paddle's exporters write one as -1, or call all of them `?`."""
    for number, _, value in reader.fields(data):
        if number == 1:
            return size if (size := signed(value)) >= 0 else None
        if number == 2:
            return name if re.search(r"\w", name := text(value)) else None
    return None


def _require_opsets(model: OnnxModel) -> None:
    if not model.opsets:
        raise malformed("it doesn't say which operators it means: it has no opset", "onnx.checker.check_model says so too", "E1001")
    version = model.opsets.get("")
    if version is not None and version not in OPSETS:
        found = f"the model has the operators of opset {version:,}, and tpucc reads {OPSETS.start} to {OPSETS.stop - 1}"
        raise refused("E1005", found, "onnx.version_converter.convert_version(model, 21) makes another version of it")


def _require_imported(graph: OnnxGraph, opsets: Mapping[str, int]) -> None:
    """Each node of the graph, and of graphs inside it, is of a domain of which the model has an opset. Raises `ProgramError` E1001."""
    for node in graph.nodes:
        if node.domain not in opsets:
            of = named(node.domain) or "ONNX's own domain"
            raise malformed(f"{node.title} ({named(node.op)}): it is of {of}, and the model has no opset of that", CHECKER)
        for inner in node.attributes.values():
            if isinstance(inner, OnnxGraph):
                _require_imported(inner, opsets)
