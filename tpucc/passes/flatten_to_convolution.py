"""A dense layer after `flatten` becomes a convolution as large as its map.

`flatten` turns the rows of a feature map into lanes, which the device can't: it moves whole rows. But a product with the flattened map,
`flatten(x) @ w` with x f32[B, H, W, C] and w f32[H * W * C, N], is a convolution of x with the kernel w as f32[H, W, C, N]: one output
pixel, for which each kernel position reads its own pixels. Nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops import facts_of
from tpucc.ops.conv2d import OP as conv2d
from tpucc.ops.matmul import OP as matmul
from tpucc.passes.base import Context, Pass
from tpucc.passes.device_work import device_values
from tpucc.passes.rewriter import Rewriter, as_reshape, constant_of, is_pinned, is_view


@dataclass(frozen=True)
class FlattenToConvolution(Pass):
    """Rewrites `reshape(x) @ w`, where the reshape makes lanes of rows of x, to a reshape of `conv2d(x, w)`.

    Functions of one value between the two are applied to x itself. Only maps that the device computes are worth it: those after a
    product. The host flattens its own values for nothing.
    """

    name = "flatten-to-convolution"
    summary = "rewrites a product after a flatten as a convolution whose kernel is as large as the feature map"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return _Flattener(graph, self.name).rewrite(_Flattener.visit)


def _multiplied(graph: Graph) -> set[str]:
    """The values that a product with constant weights reads, through functions of one value or not."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        if _is_product(graph, node):
            found.add(node.operands[0])
        elif node.name in found and _is_function(node):
            found.update(node.operands)
    return found


def _is_product(graph: Graph, node: Node) -> bool:
    return matmul.made(node) and constant_of(graph[node.operands[1]]) is not None and graph[node.operands[1]].type.rank == 2


def _is_function(node: Node) -> bool:
    """Whether the node is a function of one value of one element, or says how a value is represented."""
    return facts_of(node.op).elementwise and len(node.operands) == 1


class _Flattener(Rewriter):
    """Visits the nodes in order and remembers of each flattened map what it was before."""

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self._multiplied = _multiplied(graph)
        self._on_device = device_values(graph)
        self._maps: dict[str, str] = {}
        """For each flattened value the name of its map."""

    def visit(self, node: Node) -> bool:
        """Puts what is computed of a flattened map as computed of the map itself; says whether it did."""
        map_ = self._maps.get(node.operands[0]) if node.operands else None
        if map_ is not None and _is_product(self.graph, node):
            self._convolve(node, self.nodes[map_])
            return True
        if map_ is not None and node.name in self._multiplied and _is_function(node):
            self._move(node, self.nodes[map_])
            return True
        if node.name in self._multiplied and self._flattens(node):
            self._maps[node.name] = node.operands[0]
        return False

    def _flattens(self, node: Node) -> bool:
        """Whether the node makes lanes of whole rows of a value that the device computes."""
        if not is_view(node) or node.operands[0] not in self._on_device:
            return False
        if node.type.dtype == "f32" and is_pinned(node):
            return False
        (x,) = self.operands(node)
        return node.type.columns > x.type.columns and node.type.columns % x.type.columns == 0

    def _move(self, node: Node, map_: Node) -> None:
        """Puts a function of a flattened map as the flattened function of the map."""
        moved = self.again(node, map_, same_values=True)
        self._maps[node.name] = moved.name
        self.put(as_reshape(node, moved.name))

    def _convolve(self, node: Node, map_: Node) -> None:
        """Puts a product with a flattened map as a convolution; its result, one pixel an image, is reshaped to what the product gave."""
        image = self._image(map_, node.type.rows)
        weights = self.nodes[node.operands[1]]
        kernel = self._kernel(weights, (*image.type.shape[1:], weights.type.columns))
        type_ = replace(node.type, shape=(node.type.rows, 1, 1, node.type.columns))
        made = self.in_place(node, conv2d(image, self.nodes[kernel]))
        made = self.put(replace(made, name=self.fresh(node.name), type=type_))
        self.put(as_reshape(node, made.name))

    def _image(self, map_: Node, count: int) -> Node:
        """The map as `count` images: as it is, or with all rows that make one as a line of pixels."""
        if map_.type.rank == 4 and map_.type.shape[0] == count:
            return map_
        shape = (count, 1, map_.type.rows // count, map_.type.columns)
        return self.once((map_.name, count), lambda: self.reshape(map_, shape))

    def _kernel(self, weights: Node, shape: tuple[int, ...]) -> str:
        """The weights as a kernel, made once for each shape."""
        value = constant_of(weights)
        assert value is not None
        return self.once(
            (weights.name, shape), lambda: self.constant(weights.name, Constant(value.data.reshape(shape)), weights.origin)
        ).name
