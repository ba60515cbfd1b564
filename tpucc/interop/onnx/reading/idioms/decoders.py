"""Images that are made of rows: the columns of the product before a reshape go into the order of the pixels, so that nothing is transposed.

ONNX's rows have the channels before the pixels, as of a dense layer whose result becomes [N, C, H, W] or [N, C, L]. The columns of weights,
and values that stand for columns, are put where tpucc's image has them, as the rows of weights behind a flatten are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops import facts_of
from tpucc.ops.facts import Values
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.ops.weight import WeightAttributes

PIXELS_FIRST = (TransposeAttributes((0, 2, 3, 1)), TransposeAttributes((0, 2, 1)))
BY_COLUMNS: Mapping[str, int] = {"batch_norm": 0, "embedding": 1, "matmul": 1}
"""How many operands come before those whose columns are the result's, of operators that aren't functions of elements."""
Arrays = Mapping[str, AnyArray]
"""The arrays of weights by their keys."""


def with_columns_of_pixels(graph: Graph, weights: Arrays) -> tuple[Graph, Arrays]:
    """The graph without transposes of images that are made of rows, where columns of these weights can be in the order of the pixels, and
    the weights that are so."""
    moved: dict[str, AnyArray] = {}
    for name in [node.name for node in graph if node.attributes in PIXELS_FIRST]:
        if name in graph.by_name and (found := _before(graph, graph[name], weights)) is not None:
            graph = _changed(graph, found)
            moved |= found.arrays(weights)
    return graph, moved


@dataclass(frozen=True)
class _Before:
    """What stands before a transpose of images [N, C, H, W] or [N, C, L]: `images` of that shape, and `rows` with all values of one as
    columns, each by their names. `turned` are the transposes of these images."""

    shape: tuple[int, ...]
    images: Mapping[str, Node]
    rows: Mapping[str, Node]
    turned: frozenset[str]

    def arrays(self, weights: Arrays) -> Arrays:
        """The weights among the rows, their columns in the order of the pixels."""
        _, *sizes = self.shape
        order = np.moveaxis(np.arange(math.prod(sizes)).reshape(sizes), 0, -1).reshape(-1)
        return {key: weights[key][..., order] for key in _keys(self.rows.values())}


def _keys(nodes: Iterable[Node]) -> frozenset[str]:
    """The keys of the weights among nodes."""
    return frozenset(node.attributes.key for node in nodes if isinstance(node.attributes, WeightAttributes))


def _before(graph: Graph, turned: Node, weights: Arrays) -> _Before | None:
    """What is before a transpose; None where it can't have another order, or something else reads it."""
    shape = graph[turned.operands[0]].type.shape
    images: dict[str, Node] = {}
    rows: dict[str, Node] = {}
    waiting = [(turned.operands[0], True)]
    while waiting:
        name, is_image = waiting.pop()
        found = images if is_image else rows
        if name in found:
            continue
        found[name] = graph[name]
        more = _of_image(graph, graph[name]) if is_image else _of_rows(graph, graph[name], math.prod(shape[1:]))
        if more is None:
            return None
        waiting += more
    if not _keys(rows.values()) <= weights.keys():
        return None
    return _alone(graph, _Before(shape, images, rows, frozenset()))


def _of_image(graph: Graph, node: Node) -> list[tuple[str, bool]] | None:
    """What an image is made of, and whether that is an image; None where its order is fixed."""
    if not node.operands:
        return None
    operands, facts = graph.operands(node), facts_of(node.op)
    if facts.values is Values.VIEWED:
        count, *sizes = node.type.shape
        return [(operands[0].name, False)] if operands[0].type.shape == (count, math.prod(sizes)) else None
    many = [operand for operand in operands if operand.type.size > 1]
    alike = facts.elementwise and all(operand.type.shape == node.type.shape for operand in many)
    return [(operand.name, True) for operand in many] if alike else None


def _of_rows(graph: Graph, node: Node, columns: int) -> list[tuple[str, bool]] | None:
    """What rows are made of that has their columns; None where these have an order that is fixed."""
    if isinstance(node.attributes, WeightAttributes):
        return []
    facts, operands = facts_of(node.op), graph.operands(node)
    if not facts.elementwise and node.op not in BY_COLUMNS:
        return None
    many: Sequence[Node] = operands[BY_COLUMNS[node.op] :] if node.op in BY_COLUMNS else [o for o in operands if o.type.size > 1]
    fits = bool(many) and all(operand.type.shape[-1:] == (columns,) for operand in many)
    return [(operand.name, False) for operand in many] if fits else None


def _alone(graph: Graph, found: _Before) -> _Before | None:
    """What is before the transposes, if nothing but these reads it."""
    names = found.images.keys() | found.rows.keys()
    fixed = {operand for node in found.rows.values() for operand in node.operands[: BY_COLUMNS.get(node.op, 0)]} | graph.output_nodes
    if len(names) < len(found.images) + len(found.rows) or not names.isdisjoint(fixed):
        return None
    others = {(name, user.name): user for name in names for user in graph.users[name] if user.name not in names}
    if any(name not in found.images or user.attributes not in PIXELS_FIRST for (name, _), user in others.items()):
        return None
    return replace(found, turned=frozenset(user.name for user in others.values()))


def _changed(graph: Graph, found: _Before) -> Graph:
    """The graph whose images have their pixels first."""
    same = {name: graph[name].operands[0] for name in found.turned}
    nodes = (_changed_node(node, found, same) for node in graph if node.name not in found.turned)
    outputs = tuple(replace(output, node=same.get(output.node, output.node)) for output in graph.outputs)
    return _viewed_once(replace(graph, nodes=tuple(nodes), outputs=outputs), found.images)


def _viewed_once(graph: Graph, images: Iterable[str]) -> Graph:
    """The graph in which rows as an image in another shape, as layers along one axis read it, are one reshape."""
    rows = {name: graph[name].operands[0] for name in images if _is_view(graph[name])}
    nodes = [replace(node, operands=tuple(rows.get(name, name) for name in node.operands)) if _is_view(node) else node for node in graph]
    read = {name for node in nodes for name in node.operands} | graph.output_nodes
    return graph.with_nodes(node for node in nodes if node.name not in rows or node.name in read)


def _is_view(node: Node) -> bool:
    return bool(node.operands) and facts_of(node.op).values is Values.VIEWED


def _changed_node(node: Node, found: _Before, same: Mapping[str, str]) -> Node:
    if node.name in found.images:
        count, channels, *pixels = found.shape
        shape = (count, *pixels, channels)
        attributes = ReshapeAttributes(shape) if isinstance(node.attributes, ReshapeAttributes) else node.attributes
        return replace(node, attributes=attributes, type=replace(node.type, shape=shape))
    return replace(node, operands=tuple(same.get(name, name) for name in node.operands))
