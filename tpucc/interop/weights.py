"""Weights: from the keys of the source to values, read from an archive or drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tpucc.diagnostics import CompileError, Diagnostic, InputError, LimitError, counted, did_you_mean
from tpucc.interop.archive import Archive
from tpucc.ir.constants import Constant, Random, random_array
from tpucc.ir.graph import Graph, Node
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.weight import WeightAttributes

FLOAT32 = np.dtype("<f4")
MAX_DRAWN_BYTES = 4 * 2**30


def weights_of(graph: Graph) -> dict[str, Node]:
    """The weight nodes of a graph by key."""
    return {node.attributes.key: node for node in graph if isinstance(node.attributes, WeightAttributes)}


def bind_drawn(graph: Graph, seed: int) -> Graph:
    """The graph with every weight drawn from `seed` and its own key."""
    weights = weights_of(graph)
    total = sum(4 * node.type.size for node in weights.values())
    if total > MAX_DRAWN_BYTES:
        largest = max(weights.values(), key=lambda node: node.type.size)
        raise LimitError(_about(largest, "E0610", f"the model's weights have {total:,} bytes; at most {MAX_DRAWN_BYTES:,} are drawn"))
    return _bound(graph, {key: random_array(node.type.shape, Random(seed, key)) for key, node in weights.items()})


def bind_archive(graph: Graph, path: Path) -> Graph:
    """The graph with every weight read from the archive at `path`.

    Raises `InputError` that lists everything that doesn't fit: missing and unexpected keys, types, shapes, NaN and infinity.
    """
    weights = weights_of(graph)
    with Archive(path) as archive:
        problems = [*_key_problems(weights, archive), *_type_problems(weights, archive)]
        if problems:
            raise InputError(problems)
        values = {key: archive.read(key) for key in weights}
    if problems := list(_value_problems(weights, values, path)):
        raise InputError(problems)
    return _bound(graph, {key: Constant(value) for key, value in values.items()})


def bind_like(graph: Graph, model: Iterable[Node]) -> Graph:
    """A graph from before its weights were read, with those of its model's nodes of the same names."""
    bound = {node.name: node for node in model}
    unbound = {node.name for node in weights_of(graph).values()} & bound.keys()
    return graph.with_nodes(replace(bound[node.name], origin=node.origin) if node.name in unbound else node for node in graph)


def require_source(graph: Graph) -> None:
    """Raises `CompileError` when the graph has weights; for models that name no place to read them from."""
    for key, node in weights_of(graph).items():
        labels = node.origin.labels()
        mend = ('write weights "FILE.npz" at the top of the source, or weights random(seed=0), or pass --weights FILE.npz',)
        raise CompileError(Diagnostic("E0422", f"the model has weights ({key}), but nothing says where they are", labels, mend))


def _bound(graph: Graph, values: Mapping[str, Constant]) -> Graph:
    def bind(node: Node) -> Node:
        if not isinstance(node.attributes, WeightAttributes):
            return node
        return replace(node, op="constant", attributes=ConstantAttributes(values[node.attributes.key]))

    return graph.with_nodes(bind(node) for node in graph)


def _key_problems(weights: Mapping[str, Node], archive: Archive) -> Iterable[Diagnostic]:
    extra = [key for key in archive.members if key not in weights]
    missing = [key for key in weights if key not in archive.members]
    for key in missing:
        mend = did_you_mean(key, extra)
        yield _about(weights[key], "E0423", f"{archive.path} has no weight {key}", (mend,))
    for key in extra:
        mend = did_you_mean(key, missing)
        yield Diagnostic("E0424", f"{archive.path} has {key}, which the model doesn't declare", help=(mend,))


def _type_problems(weights: Mapping[str, Node], archive: Archive) -> Iterable[Diagnostic]:
    for key, node in weights.items():
        member = archive.members.get(key)
        if member is None:
            continue
        if member.shape != node.type.shape:
            yield _about(node, "E0425", f"{archive.path}: {key} is {member}, but the model declares {node.type.brief}")
        elif member.dtype != FLOAT32:
            order = " in big-endian order" if member.dtype.newbyteorder("<") == FLOAT32 else ""
            mend = ("save it as little-endian float32: array.astype('<f4')",)
            yield _about(node, "E0426", f"{archive.path}: {key} is {member}{order}, expected float32", mend)


def _value_problems(weights: Mapping[str, Node], values: Mapping[str, AnyArray], path: Path) -> Iterable[Diagnostic]:
    for key, value in values.items():
        bad = ~np.isfinite(value)
        if bad.any():
            index = place_of_largest(bad)
            count = int(bad.sum())
            number = "NaN" if math.isnan(float(value[index])) else "infinite"
            more = f", and {counted(count - 1, 'more value')} like it" if count > 1 else ""
            yield _about(weights[key], "E0427", f"{path}: {key}{list(index)} is {number}{more}")


def _about(node: Node, code: str, message: str, mend: tuple[str, ...] = ()) -> Diagnostic:
    return Diagnostic(code, message, node.origin.labels("declared here"), mend)
