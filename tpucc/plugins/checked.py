"""What a pass of the user's gives is checked: a valid graph of tpucc's own classes, and what it was given is as it was."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Error, printable
from tpucc.ir import Constant, Graph
from tpucc.passes.pipeline import verify_stage
from tpucc.plugins.code import short
from tpucc.plugins.failures import Unfit

PLAIN = (str, int, float, bool, NoneType, Constant)
"""The types in a graph's fields, beside tuples and tpucc's own dataclasses."""


def rewritten(rewrite: Callable[[Graph], object], graph: Graph) -> Graph:
    """The graph that a function of the user's makes of another, which isn't verified yet. Raises `Unfit`."""
    before, contents = _parts(graph), _contents(graph)
    result = rewrite(graph)
    if not _same(graph, before) or _contents(graph) != contents:
        help = "a graph is never changed; graph.with_nodes(…) and dataclasses.replace(node, …) make new ones"
        raise Unfit("changed the graph that it was given", help, code="E0524")
    if type(result) is not Graph:
        help = "run(self, graph, context) ends in return graph.with_nodes(…), or in return graph where there is nothing to do"
        raise Unfit(f"returned {short(result)}, expected a Graph", help)
    try:
        old = set(map(id, graph.nodes))
        new = [node for node in result.nodes if id(node) not in old]
        foreign = _foreign((result.name, result.source, result.notes, result.outputs, result.firings, new))
        wrong = [note for note in result.notes if type(note) is not str]
    except Exception as error:
        raise Unfit(f"made a graph that can't be read: {type(error).__name__}: {error}", code="E0525") from error
    if foreign is not None:
        raise Unfit(f"made a graph that can't be read: it holds {foreign}", code="E0525")
    if wrong:
        raise Unfit(f"made a graph with {short(wrong[0])} among its notes, which are sentences", code="E0525")
    return result


def verify_rewritten(graph: Graph, before: Graph) -> None:
    """Verifies a graph that a pass of the user's has made of another: what the rules can't read is an error too. Raises `Unfit`."""
    try:
        verify_stage(graph, before)
    except Error as error:
        raise Unfit("made a graph that is not valid:", code="E0525", found=error.diagnostics) from error
    except Exception as error:
        raise Unfit(f"made a graph that can't be read: {type(error).__name__}: {error}", code="E0525") from error
    if _interface(graph) != _interface(before):
        changed = f"made a model of {_interface(before)} into one of {_interface(graph)}"
        raise Unfit(changed, "inputs and outputs keep their names: who runs the model knows them by these", code="E0525")


def _interface(graph: Graph) -> str:
    """The inputs and outputs, by name."""
    names = sorted(node.name for node in graph.inputs), sorted(output.name for output in graph.outputs)
    return " -> ".join(f"({printable(', '.join(group))})" for group in names)


def _same(graph: Graph, before: list[object]) -> bool:
    try:
        return all(one is other for one, other in zip(before, _parts(graph), strict=True))
    except (TypeError, ValueError, AttributeError):
        return False


def _parts(graph: Graph) -> list[object]:
    """All that a graph consists of, down to the fields of its nodes' types and attributes, and the arrays of its constants."""
    values: list[object] = [getattr(graph, field.name) for field in fields(graph)]
    for node in graph.nodes:
        for part in (node, node.type, node.attributes):
            values += (getattr(part, field.name) for field in fields(part))
        if isinstance(constant := getattr(node.attributes, "value", None), Constant):
            values.append(constant.data)
    return values


def _contents(graph: Graph) -> list[tuple[object, ...]]:
    """Shape, strides, type and a checksum of each constant: an array that is read only can be made writable by its user."""
    constants = (getattr(node.attributes, "value", None) for node in graph.nodes)
    return [_content(constant.data) for constant in constants if isinstance(constant, Constant)]


def _content(array: npt.NDArray[Any]) -> tuple[object, ...]:
    return array.shape, array.strides, array.dtype.str, zlib.crc32(np.ascontiguousarray(array).data)


def _foreign(value: object) -> str | None:
    """The first part of a value that no graph holds, in words: an object of a class that isn't tpucc's may do anything when it is read."""
    if type(value) in PLAIN or (isinstance(value, StrEnum) and type(value).__module__.startswith("tpucc.")):
        return None
    if type(value) in (tuple, list):
        parts: Iterable[object] = cast("tuple[object, ...]", value)
    elif is_dataclass(value) and type(value).__module__.startswith("tpucc."):
        parts = (getattr(value, field.name) for field in fields(value))
    else:
        return f"{short(value)}, of type {type(value).__name__}"
    return next((found for part in parts if (found := _foreign(part)) is not None), None)
