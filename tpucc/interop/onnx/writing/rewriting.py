"""Graphs as ONNX can say them, by operators of ours: what is changed before nodes are written, and after.

Convolutions of patches become those of the image: rows of pixels are the machine's matter, not the network's.

ONNX Runtime's optimizer takes operators that only move values, or choose among them, to the front of DequantizeLinear. In opset 21 the node
that it makes is invalid, and the model is refused (seen with 1.31; the message is "output_dtype INT8 does not match y_zero_point type
UINT8"). So where such an operator follows, DequantizeLinear is written as what it computes: the integer less the zero point, times the
scale, in float32. Likewise before a product of more than two axes to which something is added: the optimizer makes Reshape and Gemm of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tpucc.interop.onnx.writing.file import OnnxNode
from tpucc.ir import Constant, Graph, GraphBuilder, Node, TensorType
from tpucc.layers.kinds import Conv
from tpucc.numerics import AnyArray
from tpucc.ops import OPS, facts_of
from tpucc.ops.axis import Axis, sides
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.facts import Values
from tpucc.ops.fused import fused_form
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.patches import PatchesAttributes, window_axes
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.passes.rewriter import Names

MOVES = frozenset({Values.VIEWED, Values.PICKED})
"""Operators that only move values, or leave some out."""


def with_biases(graph: Graph) -> Graph:
    """The graph with the constants [N] that are added to convolutions in these: ONNX's have a bias."""
    found: dict[str, Node] = {}
    for node in graph:
        product = graph[node.operands[0]] if facts_of(node.op).signs == (1, 1) else node
        free = product.name not in graph.output_nodes and len(graph.users[product.name]) == 1
        if product is not node and free and facts_of(product.op).fuses_into and _is_of_images(product):
            added = graph[node.operands[1]]
            if array_of(added) is not None and added.type.shape == node.type.shape[-1:] and product.type == node.type:
                op, attributes = fused_form(product.op, product.attributes)
                found[node.name] = replace(node, op=op, operands=(*product.operands, added.name), attributes=attributes)
    return graph.with_nodes(found.get(node.name, node) for node in graph) if found else graph


def _is_of_images(node: Node) -> bool:
    form = OPS[node.op].onnx
    return isinstance(form, Form) and form.layout is Layout.IMAGES


def moving_integers(graph: Graph) -> Graph:
    """The graph with integers moved before they are dequantised, not after: the same values, and a fourth of the bytes to move."""
    builder, types = GraphBuilder(graph.name), {node.name: node.type for node in graph}
    builder.nodes.update(graph.by_name)
    real: dict[str, Node] = {}
    nodes: list[Node] = []
    for node in graph:
        source = real.get(node.operands[0]) if node.operands and facts_of(node.op).values in MOVES else None
        if source is None:
            made = node
        else:
            held = replace(types[source.operands[0]], shape=node.type.shape)
            integers = builder.add(replace(node, name=f"{node.name}.{held.dtype}", operands=source.operands, type=held))
            types[integers.name] = held
            nodes.append(integers)
            made = replace(source, name=node.name, operands=(integers.name,), type=node.type, origin=node.origin)
        nodes.append(made)
        if is_dequantised(made):
            real[node.name] = made
    return graph.with_nodes(nodes)


def is_dequantised(node: Node) -> bool:
    return isinstance(node.attributes, DequantizeAttributes)


def array_of(node: Node) -> AnyArray | None:
    """The value of a constant."""
    return node.attributes.value.data if isinstance(node.attributes, ConstantAttributes) else None


def without_patches(graph: Graph) -> Graph:
    """The graph of layers with convolutions of images where the host packs patches for them (`passes/pack_patches.py`).

    The integers are the same: the pixels of a patch are quantised as those of the image, and its padding, zeros, as the zero point.
    """
    names, images = Names(graph), dict[tuple[str, QuantizeAttributes], Node]()
    nodes = [made for node in graph for made in _unpacked(graph, node, images, names)]
    return graph.with_nodes(nodes) if len(nodes) > len(graph.nodes) else graph


def _unpacked(graph: Graph, node: Node, images: dict[tuple[str, QuantizeAttributes], Node], names: Names) -> Iterator[Node]:
    """The nodes in the place of a convolution of patches that the host packs; another node itself. `images` are those that are quantised
    already. The axes of the patches and those of the convolution together have the windows of the image."""
    layer, operands = node.attributes, graph.operands(node)[:2]
    if not isinstance(layer, Conv) or any(layer.sides) or not operands[0].operands:
        yield node
        return
    (held, kernel), patches = operands, graph[operands[0].operands[0]]
    by, array = held.attributes, array_of(kernel)
    if not isinstance(by, QuantizeAttributes) or not isinstance(patches.attributes, PatchesAttributes) or array is None:
        yield node
        return
    image = graph[patches.operands[0]]
    own = zip(kernel.type.shape[:2], layer.stride, layer.dilation, strict=True)
    height, width = map(_whole, window_axes(patches.attributes, image.type.shape), own)
    if height is None or width is None or by.zero_point != layer.outside:
        yield node
        return
    if (image.name, by) not in images:
        type_ = replace(held.type, shape=image.type.shape)
        made = replace(held, name=names.fresh(f"{image.name}.{type_.dtype}"), operands=(image.name,), type=type_, holds=())
        yield images.setdefault((image.name, by), made)
    whole = array.reshape(height.window, width.window, -1, array.shape[-1])
    type_ = TensorType(kernel.type.dtype, whole.shape, quantisation=kernel.type.quantisation)
    weights = replace(kernel, name=names.fresh(kernel.name), attributes=ConstantAttributes(Constant(whole)), type=type_)
    yield weights
    stride, dilation = (height.stride, width.stride), (height.dilation, width.dilation)
    layer = replace(layer, stride=stride, sides=sides(height, width), dilation=dilation)
    yield replace(node, operands=(images[image.name, by].name, weights.name, *node.operands[2:]), attributes=layer)


def _whole(packed: Axis, own: tuple[int, int, int]) -> Axis | None:
    """The windows along an axis, of which the patches have one side and the convolution, with a window, a stride and a dilation, the
    other."""
    window, stride, dilation = own
    if packed.window == packed.stride == 1:
        return replace(packed, window=window, stride=stride, dilation=dilation)
    return packed if window == stride == 1 else None


TO_THE_FRONT = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
MATRIX = 2
"""Axes of what Gemm multiplies."""


def dequantised_by_hand(nodes: Sequence[OnnxNode], ranks: Mapping[str, int]) -> Iterator[OnnxNode]:
    """The nodes, with others for each DequantizeLinear that such an operator follows. `ranks` are the numbers of axes of results."""
    moved = {name for node in nodes if node.op in TO_THE_FRONT for name in node.inputs}
    added = {name for node in nodes if node.op == "Add" for name in node.inputs}
    moved |= {node.inputs[0] for node in nodes if node.op == "MatMul" and node.result in added and ranks.get(node.inputs[0], 0) > MATRIX}
    for node in nodes:
        if node.op == "DequantizeLinear" and node.result in moved:
            yield from _by_hand(node)
        else:
            yield node


def _by_hand(node: OnnxNode) -> Iterator[OnnxNode]:
    integers, scale, zero = node.inputs
    values, zeros, centred = (f"{node.result}.{part}" for part in ("Cast", "zero", "Sub"))
    for name, taken in ((values, integers), (zeros, zero)):
        yield OnnxNode(name, "Cast", (taken,), name, {"to": "f32"}, node.origin)
    yield OnnxNode(centred, "Sub", (values, zeros), centred, {}, node.origin)
    yield replace(node, op="Mul", inputs=(centred, scale))
