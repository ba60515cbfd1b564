"""A pass of the user's as the compiler runs it: called with care, and its result verified."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from types import NoneType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Error, PluginError, printable
from tpucc.ir import Constant, Graph
from tpucc.passes.base import Brought, Context, UserCode
from tpucc.passes.running import verify_stage
from tpucc.plugins.guard import short

PLAIN = (str, int, float, bool, NoneType, Constant)
"""The types in a graph's fields, beside tuples and tpucc's own dataclasses."""


@dataclass(frozen=True)
class GuardedPass(Brought):
    """A pass of the user's. Every error names its code. It can read its arguments, but not write them."""

    def run(self, graph: Graph, context: Context) -> Graph:
        return self.code.call(lambda: self._run(graph, context))

    def _run(self, graph: Graph, context: Context) -> Graph:
        code, before = self.code, _parts(graph)
        contents = _contents(graph)
        result = self.step.run(graph, replace(context))
        if not _same(graph, before) or _contents(graph) != contents:
            help = "a graph is never changed; graph.with_nodes(…) and dataclasses.replace(node, …) make new ones"
            raise code.error("E0524", "changed the graph that it was given", help)
        if type(result) is not Graph:
            help = "run(self, graph, context) ends in return graph.with_nodes(…), or in return graph where there is nothing to do"
            raise code.error("E0523", f"returned {short(result)}, expected a Graph", help)
        _verify(result, graph, code)
        return result


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


def _verify(graph: Graph, before: Graph, code: UserCode) -> None:
    """Verifies a graph of the user's, which may contain any Python object: an object that the rules can't read is an error too."""
    try:
        old = set(map(id, before.nodes))
        new = [node for node in graph.nodes if id(node) not in old]
        if (foreign := _foreign((graph.name, graph.source, graph.notes, graph.outputs, graph.firings, new))) is not None:
            raise code.error("E0525", f"made a graph that can't be read: it holds {foreign}")
        if wrong := [note for note in graph.notes if type(note) is not str]:
            raise code.error("E0525", f"made a graph with {short(wrong[0])} among its notes, which are sentences")
        verify_stage(graph, before)
        if _interface(graph) != _interface(before):
            changed = f"made a model of {_interface(before)} into one of {_interface(graph)}"
            raise code.error("E0525", changed, "inputs and outputs keep their names: who runs the model knows them by these")
    except PluginError:
        raise
    except Error as error:
        raise code.error("E0525", "made a graph that is not valid:", more=tuple(error.diagnostics)) from error
    except Exception as error:
        raise code.error("E0525", f"made a graph that can't be read: {type(error).__name__}: {error}") from error


def _interface(graph: Graph) -> str:
    """The inputs and outputs, by name."""
    names = sorted(node.name for node in graph.inputs), sorted(output.name for output in graph.outputs)
    return " -> ".join(f"({printable(', '.join(group))})" for group in names)


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
