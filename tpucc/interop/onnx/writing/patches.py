"""Convolutions of patches as convolutions of the image: rows of pixels are the machine's matter, not the network's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tpucc.interop.onnx.writing.rewriting import array_of
from tpucc.ir import Constant, Graph, Node, TensorType
from tpucc.layers.kinds import Conv
from tpucc.ops.axis import Axis, sides
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.patches import PatchesAttributes, window_axes
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.passes.rewriter import Names


def without_patches(graph: Graph) -> Graph:
    """The graph of layers with convolutions of images where the host packs patches for them (`passes/pack_patches.py`).

    The integers are the same: the pixels of a patch are quantised as those of the image, and its padding, zeros, as the zero point.
    """
    found = {node.name: packed for node in graph if (packed := _packed(graph, node)) is not None}
    if not found:
        return graph
    names, quantised = Names(graph), dict[tuple[str, QuantizeAttributes], Node]()
    return graph.with_nodes(
        made for node in graph for made in (found[node.name].unpacked(node, quantised, names) if node.name in found else [node])
    )


@dataclass(frozen=True, slots=True)
class _Packed:
    """What a convolution of patches is in whole: `held` are its quantised patches, and the axes have the windows of the image."""

    image: Node
    held: Node
    attributes: QuantizeAttributes
    layer: Conv
    kernel: Node
    height: Axis
    width: Axis

    def unpacked(self, node: Node, quantised: dict[tuple[str, QuantizeAttributes], Node], names: Names) -> Iterator[Node]:
        """The nodes in the place of the convolution. `quantised` are the images that have been quantised already."""
        key, windows = (self.image.name, self.attributes), (self.height, self.width)
        if key not in quantised:
            type_ = replace(self.held.type, shape=self.image.type.shape)
            name = names.fresh(f"{self.image.name}.{type_.dtype}")
            quantised[key] = replace(self.held, name=name, operands=(self.image.name,), type=type_, holds=())
            yield quantised[key]
        kernel = self._kernel(names)
        yield kernel
        stride, dilation = (self.height.stride, self.width.stride), (self.height.dilation, self.width.dilation)
        layer = replace(self.layer, stride=stride, sides=sides(*windows), dilation=dilation)
        yield replace(node, operands=(quantised[key].name, kernel.name, *node.operands[2:]), attributes=layer)

    def _kernel(self, names: Names) -> Node:
        """The kernel as that of whole windows."""
        array = array_of(self.kernel)
        assert array is not None
        whole = array.reshape(self.height.window, self.width.window, -1, array.shape[-1])
        type_ = TensorType(self.kernel.type.dtype, whole.shape, quantisation=self.kernel.type.quantisation)
        return replace(self.kernel, name=names.fresh(self.kernel.name), attributes=ConstantAttributes(Constant(whole)), type=type_)


def _packed(graph: Graph, node: Node) -> _Packed | None:
    """None for what is no convolution of patches that the host packs."""
    layer = node.attributes
    if not isinstance(layer, Conv) or any(layer.sides):
        return None
    held, kernel = (graph[name] for name in node.operands[:2])
    quantised, patches = held.attributes, graph[held.operands[0]] if held.operands else held
    if not isinstance(quantised, QuantizeAttributes) or not isinstance(patches.attributes, PatchesAttributes) or array_of(kernel) is None:
        return None
    image = graph[patches.operands[0]]
    own = zip(kernel.type.shape[:2], layer.stride, layer.dilation, strict=True)
    height, width = map(_whole, window_axes(patches.attributes, image.type.shape), own)
    if height is None or width is None or quantised.zero_point != layer.outside:
        return None
    return _Packed(image, held, quantised, layer, kernel, height, width)


def _whole(packed: Axis, own: tuple[int, int, int]) -> Axis | None:
    """The windows along an axis, of which the patches have one side and the convolution, with a window, a stride and a dilation, the
    other."""
    window, stride, dilation = own
    if packed.window == packed.stride == 1:
        return replace(packed, window=window, stride=stride, dilation=dilation)
    return packed if window == stride == 1 else None
