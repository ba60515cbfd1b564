"""The package onnx, which decodes files, knows ONNX's operators, and checks the operands and attributes of nodes. It is imported when a
file is read, and not before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.interop.onnx.reading.files.model import OPSETS, OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import CHECKER, malformed, named

MAX_CHECKED = 2**22
"""Bytes of a node that the package is given: it takes a copy."""


def onnx_package(module: str = "onnx") -> Any:
    """The package, or one of its modules. Raises `UsageError` E1020 where it isn't installed."""
    try:
        return import_module(module)
    except ImportError:
        text = "reading an ONNX file needs a package that isn't installed: onnx"
        raise UsageError(Diagnostic("E1020", text, help=("python -m pip install 'tpucc[onnx]' installs it",))) from None


@cache
def versions() -> Mapping[tuple[str, str], tuple[int, ...]]:
    """The versions of each operator that are read, the newest first, by its name and its domain."""
    found = defaultdict[tuple[str, str], set[int]](set)
    for schema in onnx_package("onnx.defs").get_all_schemas_with_history():
        if not schema.deprecated:
            found[schema.name, schema.domain].add(schema.since_version)
    oldest = {key: max((each for each in numbers if each <= OPSETS.start), default=0) for key, numbers in found.items() if not key[1]}
    return {key: tuple(sorted((n for n in numbers if n >= oldest.get(key, 0)), reverse=True)) for key, numbers in found.items()}


def accepting_version(node: OnnxNode, version: int) -> int:
    """The version of the domain in which the operands and attributes of a node are those of its operator: that of the file, or the newest
    one. Raises `ProgramError` E1001 where there is none."""
    checker = onnx_package("onnx.checker")
    context = checker.C.CheckerContext()
    context.ir_version, says = onnx_package().IR_VERSION, ""
    for tried in (version, *versions()[node.op, node.domain]):
        context.opset_imports = {node.domain: tried}
        try:
            checker.check_node(node.proto, context)
        except checker.ValidationError as error:
            says = says or str(error).split("\n")[0]
        else:
            return tried
    raise malformed(f"{node.title} ({named(node.op)}): onnx.checker says: {named(says)}", node.checker)


def require_operators(graph: OnnxGraph, opsets: Mapping[str, int]) -> None:
    """Raises `ProgramError` E1001 for a node of the graph, or of graphs inside it, that isn't what its operator is."""
    for node in graph.nodes:
        if not node.op:
            raise malformed(f"{node.title or 'a node'} has no operator", CHECKER)
        if node.domain not in opsets:
            of = named(node.domain) or "ONNX's own domain"
            raise malformed(f"{node.title} ({named(node.op)}): it is of {of}, and the model has no opset of that", CHECKER)
        inner = list(node.graphs)
        if not inner and (node.op, node.domain) in versions() and node.proto.ByteSize() <= MAX_CHECKED:
            accepting_version(node, opsets[node.domain])
        for each in inner:  # the package doesn't know what is outside of them
            require_operators(each, opsets)
