"""depthwise convolutions: by the matrix unit, or by the vector unit, a part of the activation unit.

In a depthwise convolution each filter sees one channel. The matrix unit computes it with tiles of which only the diagonal holds weights:
one tile for each position of the kernel and each column block, and every tile is fetched whole. The vector unit multiplies lane by lane. It
needs one row of weights for each position, which crosses the host link, and takes as many cycles for the rows of the image as the matrix
unit does. It has the result then; sums of the matrix unit must still leave the array and pass the activation unit. So it is the faster one
where a tile is used for fewer rows than could be multiplied while the tile is fetched, and where the weights cross the link in less time
than the last sums take to leave. But one of its instructions works on an image, on the rows of weights and on the result, which must all be
in the unified buffer; the sums of the matrix unit wait in the accumulators.

The estimate is of the layer alone. It leaves out what happens at the same time: fetches and transfers during earlier layers, and the other
half of a batch that is computed in halves.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tpucc.diagnostics import counted
from tpucc.ir import Graph, Node
from tpucc.layers.kinds import Conv, ConvUnit, Pool, fits_vector_unit
from tpucc.layers.parameters import fits_weighted_sums
from tpucc.lowering.cost import costs_on
from tpucc.lowering.tensors import stored, widest
from tpucc.ops.names import constant
from tpucc.passes.base import Context, graph_pass, require_choice

WAYS = ("cheaper", "matrix", "vector")


@graph_pass("depthwise", "gives depthwise convolutions to the activation unit, where an estimate says fewer cycles", level=1)
def depthwise(graph: Graph, context: Context, *, unit: str = "cheaper") -> Graph:
    """Sets the unit of depthwise convolutions: that which takes fewer cycles, by an estimate, or the one that `unit` says. The matrix unit
    takes fewer rows of the unified buffer.
    """
    require_choice("way to compute depthwise convolutions", unit, WAYS)
    nodes, gains = list[Node](), list[tuple[str, int, int]]()
    for node in graph:
        if (layer := _suitable(graph, node)) is not None:
            matrix, vector = _costs(graph, node, context)
            cheaper = unit == "cheaper" and vector < matrix and not context.sparing
            if unit == "vector" or (cheaper and _has_room(graph, node, context)):
                node = replace(node, attributes=replace(layer, unit=ConvUnit.VECTOR))
                gains.append((node.origin.after(node.name), matrix, vector))
        nodes.append(node)
    return graph.with_nodes(nodes).noting(_note(gains, unit)) if gains else graph


def _suitable(graph: Graph, node: Node) -> Conv | None:
    """The layer, if it is a depthwise convolution that the vector unit can do; else None."""
    layer = node.attributes
    if not isinstance(layer, Conv):
        return None
    weights, bias = (graph[name] for name in node.operands[1:3])
    if not fits_vector_unit(layer, weights.type.shape, node.type.dtype):
        return None
    return layer if fits_weighted_sums(prod(weights.type.shape[:2]), constant.attributes_of(bias).value.data) else None


def _costs(graph: Graph, node: Node, context: Context) -> tuple[int, int]:
    """Estimated cycles of the matrix unit and of the vector unit. A tile takes as long as its fetch or its rows, the longer of both; the
    last sums drain, and the activation unit reads them, a half of the accumulators at most. Rows of weights are moved for all cores."""
    target, costs, positions = context.target, costs_on(context.target), prod(graph[node.operands[1]].type.shape[:2])
    blocks, rows = -(-node.type.columns // target.mxu), node.type.rows // context.cores
    moved, leaving = costs.transfer(blocks * positions * context.cores), costs.drain(min(rows, target.accumulator_rows // 2))
    return blocks * positions * costs.tile(rows) + leaving, blocks * positions * rows * costs.vector + moved


def _has_room(graph: Graph, node: Node, context: Context) -> bool:
    """Whether one image with the widest border that a reader wants, its result with the same, and the rows of weights are in the unified
    buffer together. A batch is divided into single images where more don't fit."""
    image, weights = (graph[name] for name in node.operands[:2])
    rows = sum(_rows_of_an_image(graph, value) for value in (image, node)) + prod(weights.type.shape[:2])
    return rows <= context.target.unified_buffer_rows


def _rows_of_an_image(graph: Graph, value: Node) -> int:
    """Rows of one column block, with the border of the reader that wants most of it at each side."""
    readers = [user.attributes for user in graph.users[value.name] if user.operands[0] == value.name]
    sides = widest([reader.sides for reader in readers if isinstance(reader, Conv | Pool)])
    return prod(stored((1, *value.type.shape[1:]), sides))


def _note(gains: list[tuple[str, int, int]], unit: str) -> str:
    """One sentence, with the estimates of the layer that gains most."""
    name, matrix, vector = max(gains, key=lambda each: each[1] - each[2])
    what = f"the activation unit computes {counted(len(gains), 'depthwise convolution')}{', as asked' if unit == 'vector' else ''}"
    return f"{what}: {name} takes about {vector:,} cycles there. The matrix unit would take {matrix:,}."
