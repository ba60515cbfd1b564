"""From the bytes of an ONNX file to its value: the package onnx decodes them.

Nothing of a file is executed. Nodes stand behind those whose results they read, as not every tool writes them. Names are defined once, and
something computes each; what is wrong is an error before any network is built.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.diagnostics import listed
from tpucc.interop.onnx.reading.files.bounds import require_bounds
from tpucc.interop.onnx.reading.files.checker import onnx_package, require_operators
from tpucc.interop.onnx.reading.files.model import (
    NO_TENSOR,
    OPSETS,
    Dimension,
    OnnxGraph,
    OnnxModel,
    OnnxNode,
    OnnxValue,
    type_name,
)
from tpucc.interop.onnx.reading.files.problems import CHECKER, malformed, named, refused
from tpucc.interop.onnx.reading.files.tensors import MAX_RANK, NAMES, TYPES, Files, tensor
from tpucc.numerics import AnyArray

DOMAINS = {"ai.onnx": ""}
"""Other names of a set of operators."""
SCOPES = "pkg.torch.onnx.name_scopes"
FOLDED = "pkg.onnxscript.optimizer.folded_from"
"""The keys of PyTorch's metadata that are read."""
LONGEST_ENTRY = 4096
"""Bytes of an entry that is read."""


def decoded(data: bytes, folder: Path | None) -> OnnxModel:
    """The model of a file's bytes; `folder` is where its other files may lie.

    Raises `ProgramError` E1001 to E1004 for a file that is malformed, `CompileError` for one that tpucc can't take, `UsageError` E1020
    without the package onnx.
    """
    require_bounds(data)
    onnx, message = onnx_package(), onnx_package("google.protobuf.message")
    try:
        model = _model(onnx.ModelProto.FromString(data), Files(folder))
    except message.DecodeError:
        raise malformed("not a model in ONNX's format: its fields aren't those of a model") from None
    _require_opsets(model)
    model = replace(model, graph=in_order(model.graph))
    require_names(model.graph)
    require_operators(model.graph, model.opsets)
    return model


def _model(proto: Any, files: Files) -> OnnxModel:
    if not proto.HasField("graph"):
        raise malformed("not a model in ONNX's format: it has no graph")
    opsets: dict[str, int] = {}
    for said in proto.opset_import:
        if (first := opsets.setdefault(DOMAINS.get(said.domain, said.domain), said.version)) != said.version:
            of = named(said.domain) or "ONNX's own domain"
            raise malformed(f"it has two opsets of {of}, {first:,} and {said.version:,}: which operators are meant isn't said")
    if proto.functions:
        help = "onnx.inliner.inline_local_functions(model) puts them in their places"
        raise refused("E1006", "the model defines functions of its own, which tpucc doesn't read", help)
    return OnnxModel(_graph(proto.graph, files, is_inner=False), opsets, proto.producer_name)


def _graph(proto: Any, files: Files, is_inner: bool = True) -> OnnxGraph:
    nodes = tuple(_node(node, files) for node in proto.node)
    constants: dict[str, AnyArray] = {}
    for found in proto.initializer:
        if found.name in constants:
            raise malformed(f"the constant {named(found.name)} is there twice", code="E1002")
        constants[found.name] = tensor(found, files, texts=not is_inner)
    if proto.sparse_initializer:
        raise refused("E1006", "the model has a sparse constant", "tpucc multiplies whole matrices: save it as a dense tensor")
    inputs = [_value(value, "an input") for value in proto.input]
    outputs = [_value(value, "an output") for value in proto.output]
    if others := [value for value in [*inputs, *outputs][: None if is_inner else len(inputs)] if value.type == NO_TENSOR]:
        raise refused("E1006", f"{named(others[0].name)} is a sequence, a map or another value that is no tensor")
    folded = {value.name: sources for value in proto.value_info if value.name in constants and (sources := _sources(value))}
    given = tuple(value for value in inputs if value.name not in constants)
    return OnnxGraph(proto.name, nodes, constants, given, tuple(outputs), folded)


def _node(proto: Any, files: Files) -> OnnxNode:
    counts = Counter(attribute.name for attribute in proto.attribute)
    if twice := next((name for name, count in counts.items() if count > 1), None):
        title = named(proto.name or next(filter(None, proto.output), proto.op_type))
        raise malformed(f"{title} ({named(proto.op_type)}): it has the attribute {named(twice)} twice", CHECKER)
    return OnnxNode(
        proto.op_type,
        tuple(proto.input),
        tuple(proto.output),
        {attribute.name: _attribute(attribute, files) for attribute in proto.attribute},
        proto.name,
        DOMAINS.get(proto.domain, proto.domain),
        _scope(_entry(proto, SCOPES)),
        proto,
    )


def _entry(proto: Any, key: str) -> str:
    """The text of an entry of metadata; empty where there is none, or one that is too long."""
    found = next((entry.value for entry in reversed(proto.metadata_props) if entry.key == key), "")
    return found if len(found) <= LONGEST_ENTRY else ""


def _scope(content: str) -> str:
    """The module of a node. PyTorch writes the text of a list, from the whole network to the operation, each name containing the one
    before."""
    names = re.findall(r"'([^']*)'", content)
    return names[-2] if len(names) > 1 else ""


def _attribute(proto: Any, files: Files) -> Any:
    """An attribute's value: a number, a text, an array, a graph, or a tuple; None for other kinds."""
    if proto.ref_attr_name:
        raise malformed(f"an attribute is that of a function, {named(proto.ref_attr_name)}, and the node is in none", CHECKER)
    kinds = type(proto)
    if proto.type == kinds.TENSOR:
        return tensor(proto.t, files)
    if proto.type == kinds.GRAPH:
        return _graph(proto.g, files)
    if proto.type not in (kinds.FLOAT, kinds.INT, kinds.STRING, kinds.FLOATS, kinds.INTS, kinds.STRINGS):
        return None
    value = onnx_package("onnx.helper").get_attribute_value(proto)
    return tuple(map(_plain, value)) if isinstance(value, list) else _plain(value)


def _plain(value: float | bytes) -> Any:
    """A number or a text of an attribute; a float32 as the shortest decimal number that is rounded to it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _value(proto: Any, who: str) -> OnnxValue:
    if not proto.name:
        raise malformed(f"{who} has no name")
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        return OnnxValue(proto.name, 0 if kind is None else NO_TENSOR, None)
    found, who = proto.type.tensor_type, f"{who}, {named(proto.name)},"
    shape = tuple(_dimension(size) for size in found.shape.dim) if found.HasField("shape") else None
    if shape is not None and len(shape) > MAX_RANK:
        raise refused("E1007", f"{who} has {len(shape):,} axes; the limit is {MAX_RANK}")
    if found.elem_type not in TYPES and found.elem_type not in NAMES:
        raise malformed(f"{who} has elements of {type_name(found.elem_type)}", CHECKER)
    return OnnxValue(proto.name, found.elem_type, shape)


def _sources(proto: Any) -> tuple[str, ...]:
    """Of which values an optimiser has computed a constant, where the file says so, in the text of a list."""
    return tuple(re.findall(r"'([^']*)'", _entry(proto, FOLDED)))


def _dimension(proto: Any) -> Dimension:
    """A size; nothing for an open one without a name. Paddle's exporters write one as -1, or call all of them `?`."""
    if proto.WhichOneof("value") == "dim_value":
        return proto.dim_value if proto.dim_value >= 0 else None
    return proto.dim_param if re.search(r"\w", proto.dim_param) else None


def _require_opsets(model: OnnxModel) -> None:
    if not model.opsets:
        raise malformed("it doesn't say which operators it means: it has no opset", "onnx.checker.check_model says so too", "E1001")
    version = model.opsets.get("")
    if version is not None and version not in OPSETS:
        found = f"the model has the operators of opset {version:,}, and tpucc reads {OPSETS.start} to {OPSETS.stop - 1}"
        raise refused("E1005", found, "onnx.version_converter.convert_version(model, 21) makes another version of it")


NAMED = 6
"""Nodes that a message names."""


def in_order(graph: OnnxGraph) -> OnnxGraph:
    """The graph with its nodes in order, and those of the graphs inside them; what is in order stays as it is. Raises `ProgramError` E1002
    for nodes in a circle."""
    nodes = [node.with_graphs(in_order) for node in graph.nodes]
    given = {*graph.constants, *(value.name for value in graph.inputs)}
    makers = {name: index for index, node in reversed([*enumerate(nodes)]) for name in node.outputs if name and name not in given}
    before = {index: [makers[name] for name in node.read_names() if name in makers] for index, node in enumerate(nodes)}
    if all(maker < index for index, found in before.items() for maker in found):
        return replace(graph, nodes=tuple(nodes))
    try:
        return replace(graph, nodes=tuple(nodes[index] for index in TopologicalSorter(before).static_order()))
    except CycleError as error:
        circle = [nodes[index] for index in error.args[1][:0:-1]]
        names = [node.title for node in circle[:NAMED]] + [f"{len(circle) - NAMED} more"] * (len(circle) > NAMED)
        what = "reads its own result" if len(circle) == 1 else "are in a circle: each reads what the next one computes"
        raise malformed(f"{listed(names)} {what}", code="E1002") from None


def require_names(graph: OnnxGraph, outside: frozenset[str] = frozenset()) -> None:
    """Raises `ProgramError` E1002 for a name that is defined twice or never, in a graph that is in order or in those of its nodes."""
    defined = set(outside) | set(graph.constants)
    _define([value.name for value in graph.inputs], defined, "input")
    for node in graph.nodes:
        _require_defined(node.inputs, defined, f"{node.title} ({named(node.op)})")
        _define(filter(None, node.outputs), defined, node.title)
        for inner in node.graphs:
            require_names(inner, frozenset(defined))
    _require_defined([value.name for value in graph.outputs], defined, "the model's result")
    if not graph.outputs:
        raise malformed("the model has no outputs")
    _define([value.name for value in graph.outputs], set(), "the list of results")


def _require_defined(names: Iterable[str], defined: set[str], who: str) -> None:
    if (unknown := next((name for name in names if name and name not in defined), None)) is not None:
        raise malformed(f"{who} reads {named(unknown)}, which nothing computes", code="E1002")


def _define(names: Iterable[str], defined: set[str], who: str) -> None:
    for name in names:
        if name in defined:
            raise malformed(f"{named(name)} is defined twice, the second time by {who}", code="E1002")
        defined.add(name)
