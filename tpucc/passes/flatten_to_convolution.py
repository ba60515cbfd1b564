"""A dense layer after `flatten` becomes a convolution as large as its map.

`flatten` turns the rows of a feature map into lanes, which the device can't: it moves whole rows. But a product with the flattened map,
`flatten(x) @ w` with x f32[B, H, W, C] and w f32[H * W * C, N], is a convolution of x with the kernel w as f32[H, W, C, N]: one output
pixel, for which each kernel position reads its own pixels. Nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from tpucc.ir import Constant, Graph, Node
from tpucc.ops import facts_of
from tpucc.ops.names import conv2d, matmul
from tpucc.passes.device_work import device_values
from tpucc.passes.rewriter import array_of, as_reshape, constant_of, is_pinned, is_view
from tpucc.passes.rules import Family, Match, Rule, rule, rules_pass, variable


@rules_pass(
    "flatten-to-convolution", "rewrites a product after a flatten as a convolution whose kernel is as large as the feature map", level=1
)
def flatten_to_convolution() -> Iterator[Rule]:
    """Rewrites `reshape(x) @ w`, where the reshape makes lanes of rows of x, to a reshape of `conv2d(x, w)`.

    Functions of one value between the two are applied to x itself. Only maps that the device computes are worth it: those after a
    product. The host flattens its own values for nothing.
    """
    flat = variable("flat", is_view)
    elementwise = Family(lambda op: facts_of(op).elementwise, when=_is_function)
    yield rule("a product with a flattened map", matmul(flat, variable("weights", _is_matrix)), _convolved, when=_is_flattened_map)
    yield rule("a function of a flattened map", elementwise(flat), _moved, when=_leads_to_product)


def _is_matrix(node: Node) -> bool:
    return constant_of(node) is not None and node.type.rank == 2


def _is_function(node: Node) -> bool:
    """Whether the node is a function of one value of one element, or says how a value is represented."""
    return facts_of(node.op).elementwise and len(node.operands) == 1


def _is_flattened_map(m: Match) -> bool:
    """Whether the view makes lanes of whole rows of a value that the device computes: of one of the graph, or of one that the pass moved
    the flatten behind."""
    (map_,) = m.rewriter.operands(m.flat)
    if map_.name not in m.rewriter.graph.by_name:
        return m.flat.type.columns > map_.type.columns
    if map_.name not in m.rewriter.once("device", lambda: device_values(m.rewriter.graph)):
        return False
    is_real_pinned = m.flat.type.dtype == "f32" and is_pinned(m.flat)
    return m.flat.type.columns > map_.type.columns and m.flat.type.columns % map_.type.columns == 0 and not is_real_pinned


def _leads_to_product(m: Match) -> bool:
    """Whether a product with constant weights reads a function of a flattened map, through further functions or not."""
    return m.root.name in m.rewriter.once("multiplied", lambda: _multiplied(m.rewriter.graph)) and _is_flattened_map(m)


def _multiplied(graph: Graph) -> Set[str]:
    """The values that a product with constant weights reads, through functions of one value or not."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        if matmul.made(node) and _is_matrix(graph[node.operands[1]]):
            found.add(node.operands[0])
        elif node.name in found and _is_function(node):
            found.update(node.operands)
    return found


def _moved(m: Match) -> Node:
    """A function of a flattened map as the flattened function of the map."""
    (map_,) = m.rewriter.operands(m.flat)
    return as_reshape(m.root, m.rewriter.again(m.root, map_, same_values=True).name)


def _convolved(m: Match) -> Node:
    """A product with a flattened map as a convolution; its result, one pixel an image, is reshaped to what the product gave."""
    image = _image(m)
    shape = (*image.type.shape[1:], m.weights.type.columns)

    def kernel() -> Node:
        return m.rewriter.constant(m.weights.name, Constant(array_of(m.weights).reshape(shape)), m.weights.origin)

    convolution = conv2d(image, m.rewriter.once((m.weights.name, shape), kernel))
    type_ = replace(m.root.type, shape=(m.root.type.rows, 1, 1, m.root.type.columns))
    made = replace(m.rewriter.in_place(m.root, convolution), name=m.rewriter.fresh(m.root.name), type=type_)
    return as_reshape(m.root, m.rewriter.put(made).name)


def _image(m: Match) -> Node:
    """The map as one image for each row of the product: as it is, or with all rows that make one as a line of pixels."""
    (map_,), count = m.rewriter.operands(m.flat), m.root.type.rows
    if map_.type.rank == 4 and map_.type.shape[0] == count:
        return map_
    shape = (count, 1, map_.type.rows // count, map_.type.columns)
    return m.rewriter.once((map_.name, count), lambda: m.rewriter.reshape(map_, shape))
