"""Which constants of a graph are weights of the model, by the places of the source that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tpucc.diagnostics import Span
from tpucc.interop.onnx.writing.model import Weight
from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.layers.kinds import is_layer
from tpucc.numerics import AnyArray
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.rewriter import base_name


@dataclass(frozen=True)
class Kept:
    """The constants of a graph of operators that were made of weights, by their names: those that have their values, `unchanged`, or
    `turned`, transposed, and others, as reciprocals and what a scale is folded into."""

    unchanged: Mapping[str, Weight] = field(default_factory=dict)
    turned: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    negated: frozenset[str] = frozenset()
    """Those of the changed ones that have the opposite values, as a bias that is subtracted."""
    repeated: Mapping[str, Weight] = field(default_factory=dict)
    """The weights of one value which constants have over and over, or of which they have the opposite, as biases do."""


def weights_of(graph: Graph, model: Iterable[Node], biases: Mapping[str, str], kept: Kept) -> dict[str, Weight]:
    """The weights of the model by the names of the constants that are these, or that were made of one of them: transposed by the source, or
    by passes in another shape, or with a scale folded in, where no other one has the weight's own values.

    A graph of operators has the weights' names. Passes give other names to those of layers: of several weights of one statement and one
    size, as in a loop, the one with the name before it got a number counts: none where names of weights end in numbers themselves. `biases`
    are the constants that those of layers are made of.
    """
    if not any(map(is_layer, graph)):
        return _weights(nodes := list(model)) | _constants(nodes)
    repeated = {name: kept.repeated[bias] for name, bias in biases.items() if bias in kept.repeated}
    found = _made_of(graph, model, biases) | repeated
    changed = {name for name in found if name not in repeated and biases.get(name, name) in kept.changed}
    own = {weight for name, weight in found.items() if name not in changed}
    negated = {name for name in changed if biases.get(name, name) in kept.negated}
    return {
        name: replace(weight, is_turned=name in kept.turned, is_changed=name in negated or (weight in own and name in changed))
        for name, weight in found.items()
    }


def _made_of(graph: Graph, model: Iterable[Node], biases: Mapping[str, str]) -> dict[str, Weight]:
    """`weights_of` for a graph whose constants may have other names than the model's weights."""
    nodes = list(model)
    weights = _weights(nodes)
    weights |= {
        node.name: weights[node.operands[0]]
        for node in nodes
        if isinstance(node.attributes, TransposeAttributes) and node.operands[0] in weights
    }
    by_span: dict[Span, list[Node]] = {}
    for node in nodes:
        if node.name in weights:
            for span in node.origin.spans:
                by_span.setdefault(span, []).append(node)
    found: dict[str, Weight] = {}
    for node in graph:
        if array_of(node) is not None:
            near = (other for span in node.origin.spans for other in by_span.get(span, ()))
            same = {other.name: weights[other.name] for other in near if _is_of(node, other)}
            if (weight := _weight(biases.get(node.name, node.name), same)) is not None:
                found[node.name] = weight
    return found


def kept_weights(graph: Graph, model: Iterable[Node], bound: Graph | None) -> Kept:
    """Which weights a graph has kept; `bound` has their values under the names of the model's nodes."""
    nodes = list(model)
    arrays = {weight: array_of(bound[name]) for name, weight in _weights(nodes).items() if bound is not None and name in bound.by_name}
    found = {name: (array_of(graph[name]), arrays.get(weight), weight) for name, weight in _made_of(graph, nodes, {}).items()}
    turned = {name for name, (one, other, _) in found.items() if _is_transposed(one, other)}
    unchanged = {name: weight for name, (one, other, weight) in found.items() if name not in turned and _is_equal(one, other)}
    changed = frozenset(found.keys() - unchanged.keys() - turned)
    negated = frozenset(name for name in changed if (one := found[name])[1] is not None and _is_equal(one[0], -one[1]))
    return Kept(unchanged, frozenset(turned), changed, negated, _repeated(graph, nodes, arrays))


def _repeated(graph: Graph, model: Iterable[Node], arrays: Mapping[Weight, AnyArray | None]) -> dict[str, Weight]:
    """The weights of one value that vectors of a graph have over and over, or of which they have the opposite, by the names of these."""
    weights = _weights(model)
    single = [node for node in model if node.name in weights and node.type.size == 1]
    found: dict[str, Weight] = {}
    for node in graph if single else ():
        array = array_of(node)
        if array is None or array.ndim != 1 or (array != array[0]).any():
            continue
        near = [other for other in single if not {*other.origin.spans}.isdisjoint(node.origin.spans)]
        values = {other.name: arrays.get(weights[other.name]) for other in near if {*node.origin.calls} >= {*other.origin.calls}}
        for sign in (1, -1):
            same = {name: weights[name] for name, value in values.items() if value is not None and sign * value.reshape(()) == array[0]}
            if node.name not in found and (weight := _weight(node.name, same)) is not None:
                found[node.name] = replace(weight, is_subtracted=sign < 0)
    return found


def _is_equal(one: AnyArray | None, other: AnyArray | None) -> bool:
    """Whether two arrays have the same values in one order, in whatever shape."""
    return one is not None and other is not None and np.array_equal(one.reshape(-1), other.reshape(-1))


def _is_transposed(one: AnyArray | None, other: AnyArray | None) -> bool:
    """Whether an array is a matrix transposed. One of one row or column has its values in the same order, in another shape; a symmetric one
    is the matrix as it is."""
    if one is None or other is None or other.ndim != 2 or one.shape != other.T.shape or not _is_equal(one, other.T):
        return False
    return one.shape != other.shape or not _is_equal(one, other)


def _weights(model: Iterable[Node]) -> dict[str, Weight]:
    """The weights of a model by the names of their nodes."""
    return {node.name: Weight(node.attributes.key, node.type.shape) for node in model if isinstance(node.attributes, WeightAttributes)}


def _constants(model: Iterable[Node]) -> dict[str, Weight]:
    """The source's own constants of several values by the names of their nodes: weights without a key."""
    found = (node for node in model if isinstance(node.attributes, ConstantAttributes) and node.type.dtype == "f32" and node.type.rank)
    return {node.name: Weight("", node.type.shape) for node in found}


def _is_of(node: Node, weight: Node) -> bool:
    """Whether a constant has as many values as a weight, and comes from its place alone, or is a matrix, a kernel or the integers of a
    bias, and comes from there, too: so do multipliers, which are of several weights and have no key."""
    if node.type.size != weight.type.size:
        return False
    if node.type.rank > 1 or (node.type.dtype == "i32" and weight.type.rank == 1):
        return {*node.origin.calls} >= {*weight.origin.calls}
    return (node.origin.spans, node.origin.calls) == (weight.origin.spans, weight.origin.calls)


def _weight(name: str, same: Mapping[str, Weight]) -> Weight | None:
    if len(set(same.values())) == 1:
        return next(iter(same.values()))
    return same.get(base_name(name))
