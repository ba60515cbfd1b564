"""Cross-layer equalisation, in the graph as a whole: neighbouring layers share out the ranges of their channels.

Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.1.

For f with f(s·x) = s·f(x) and s > 0, `f(x @ w1 + b) @ w2` is `f(x @ (w1 / s) + b / s) @ (s · w2)`, with one s a channel between the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tpucc.diagnostics import counted
from tpucc.ir import Graph, NoAttributes, Node
from tpucc.numerics import AnyArray, Float64, Int64
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.names import conv2d, leaky_relu, matmul, relu, relu6
from tpucc.ops.opdef import Pooling
from tpucc.passes.base import ASKED, Context, graph_pass
from tpucc.passes.rewriter import array_of, as_constant, columns_of, constant_of, is_view

SWEEPS = 20
"""A layer between two others is equalised with both, again and again: at most so often."""
MOST = 12
"""No scale is above 2¹² or below 2⁻¹²: a channel that is all but zero in one layer would take all of the other's precision."""


@graph_pass("equalise", "scales the channels between two layers, so that no channel's weights are far from the others'", level=ASKED)
def equalise(graph: Graph, context: Context, *, relu6: bool = False) -> Graph:
    """Scales each channel between two products so that its largest weights, before and after, are alike.

    The scale is the power of two nearest to √(r1 / r2), where r1 is the largest magnitude of the channel's weights in the first layer, r2
    that in the second. Then no rounding differs, and the values in float32 are the same to the last bit.

    `relu6` also takes in pairs with relu6 between them, for which the rule doesn't hold: it makes relu of it, which lets values above 6
    pass.
    """
    pairs = list(_pairs(graph))
    chosen = [pair for pair in pairs if relu6 or not pair.bounded]
    arrays: dict[str, AnyArray] = {}
    for pair in chosen:
        arrays |= {name: value for name, value in pair.constants(graph).items() if name not in arrays}
    for _ in range(SWEEPS):
        scaled = [_equalised(pair, graph, arrays) for pair in chosen]
        if not any(scaled):
            break
    bounded = {name for pair in chosen for name in pair.bounded}
    made = graph.with_nodes(_rewritten(node, arrays, bounded) for node in graph) if chosen else graph
    return made.noting(*_notes(pairs, chosen))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two products with constant weights, by name; the constants that are added between them; and the relu6 there."""

    first: str
    second: str
    biases: tuple[str, ...]
    bounded: tuple[str, ...]

    def constants(self, graph: Graph) -> Mapping[str, AnyArray]:
        """The arrays that equalising changes, by their names; a bias as one value a channel."""
        found = {graph[name].operands[1]: array_of(graph[graph[name].operands[1]]) for name in (self.first, self.second)}
        for name in self.biases:
            columns = columns_of(graph[name], graph[self.first].type)
            assert columns is not None
            found[name] = columns.data
        return found


def _pairs(graph: Graph) -> Iterator[_Pair]:
    for node in graph:
        if _is_open(graph, node) and (pair := _pair_from(graph, node)) is not None:
            yield pair


def _pair_from(graph: Graph, first: Node) -> _Pair | None:
    """The pair that begins with `first`, if only such operators follow as scales pass through, up to another product."""
    node, biases, bounded = first, list[str](), list[str]()
    while (reader := _only_reader(graph, node)) is not None:
        if _is_open(graph, reader) and reader.operands[0] == node.name:
            return _Pair(first.name, reader.name, tuple(biases), tuple(bounded))
        if (bias := _bias(graph, reader, node)) is not None:
            biases.append(bias)
        elif relu6.made(reader):
            bounded.append(reader.name)
        elif not _is_homogeneous(reader) and not (is_view(reader) and reader.type.columns == node.type.columns):
            return None
        node = reader
    return None


def _only_reader(graph: Graph, node: Node) -> Node | None:
    """The one node that reads this one; None where there are others, or the source says how the value is held."""
    held = node.type.quantisation is not None or node.type.range is not None
    readers = graph.users[node.name]
    return readers[0] if len(readers) == 1 and not held and node.name not in graph.output_nodes else None


def _is_homogeneous(node: Node) -> bool:
    """Whether the node goes channel by channel, and f(s·x) = s·f(x) where s > 0."""
    return relu.made(node) or leaky_relu.made(node) or isinstance(legalisation_of(node.op), Pooling)


def _is_open(graph: Graph, node: Node) -> bool:
    """Whether the node is a product of rows or of images with constant weights, which no other node reads."""
    if not (matmul.made(node) or conv2d.made(node)):
        return False
    weights = graph[node.operands[1]]
    return weights.name != node.operands[0] and _is_own(graph, weights) and weights.type.rank == (2 if matmul.made(node) else 4)


def _is_own(graph: Graph, constant: Node) -> bool:
    return constant_of(constant) is not None and len(graph.users[constant.name]) == 1 and constant.name not in graph.output_nodes


def _bias(graph: Graph, total: Node, value: Node) -> str | None:
    """The name of the bias constant if `total` is value ± constant, else None. The bias has one value a column, and no other reader."""
    if not facts_of(total.op).signs or total.type.shape != value.type.shape:
        return None
    others = [graph[name] for name in total.operands if name != value.name]
    if len(others) != 1 or not _is_own(graph, others[0]):
        return None
    turned = total.operands[1] == value.name and min(facts_of(total.op).signs) < 0
    return others[0].name if columns_of(others[0], total.type) is not None and not turned else None


def _equalised(pair: _Pair, graph: Graph, arrays: dict[str, AnyArray]) -> bool:
    """Scales the arrays of a pair; says whether any channel had to be."""
    first, second = graph[pair.first].operands[1], graph[pair.second].operands[1]
    rows = _by_inputs(graph[pair.second], arrays[second])
    before = np.abs(arrays[first]).max(axis=tuple(range(arrays[first].ndim - 1)))
    powers = _powers(before.astype(np.float64), np.abs(rows).max(axis=1).astype(np.float64))
    if not powers.any():
        return False
    for name in (first, *pair.biases):
        arrays[name] = np.ldexp(arrays[name], -powers)
    arrays[second] = _from_inputs(graph[pair.second], np.ldexp(rows, powers[:, np.newaxis]), arrays[second])
    return True


def _powers(before: Float64, after: Float64) -> Int64:
    """For each channel the k for which 2ᵏ is nearest to √(before / after), by its logarithm; 0 where there are no weights.

    2ᵏ⁻½ ≤ √ratio < 2ᵏ⁺½ is 4ᵏ ≤ 2 · ratio < 4ᵏ⁺¹, which the exponents decide, without a logarithm.
    """
    there = (before > 0) & (after > 0)
    _, exponents = np.frexp(2 * np.where(there, before, 1.0) / np.where(there, after, 1.0))
    return np.clip((exponents.astype(np.int64) - 1) // 2, -MOST, MOST) * there


def _by_inputs(product: Node, weights: AnyArray) -> AnyArray:
    """The weights with one row for each channel of the input, [C, …]: of a group of filters those that read the channel."""
    if not conv2d.made(product):
        return weights
    groups = conv2d.attributes_of(product).groups
    rows, columns, channels, filters = weights.shape
    apart = weights.reshape(rows, columns, channels, groups, filters // groups)
    return apart.transpose(3, 2, 0, 1, 4).reshape(groups * channels, -1)


def _from_inputs(product: Node, scaled: AnyArray, like: AnyArray) -> AnyArray:
    """`_by_inputs` undone, in the shape of `like`."""
    if not conv2d.made(product):
        return scaled
    groups = conv2d.attributes_of(product).groups
    rows, columns, channels, filters = like.shape
    apart = scaled.reshape(groups, channels, rows, columns, filters // groups)
    return np.ascontiguousarray(apart.transpose(2, 3, 1, 0, 4).reshape(like.shape))


def _rewritten(node: Node, arrays: Mapping[str, AnyArray], bounded: set[str]) -> Node:
    if node.name in bounded:
        return relu.node(node.name, node.operands, NoAttributes(), node.type, node.origin, node.place)
    if node.name not in arrays:
        return node
    made = as_constant(replace(node, type=replace(node.type, shape=arrays[node.name].shape)), arrays[node.name])
    return node if made.attributes == node.attributes else made


def _notes(pairs: list[_Pair], chosen: list[_Pair]) -> Iterator[str]:
    if chosen:
        yield f"{counted(len(chosen), 'pair')} of layers {'is' if len(chosen) == 1 else 'are'} equalised"
    if bounded := len({name for pair in chosen for name in pair.bounded}):
        yield f"{bounded} relu6 {'is' if bounded == 1 else 'are'} relu now, and let values above 6 pass"
    if left := len(pairs) - len(chosen):
        verb = "is" if left == 1 else "are"
        yield f"{counted(left, 'pair')} with relu6 between {verb} left: relu6(s·x) isn't s·relu6(x); --equalise-relu6 true makes relu of it"
