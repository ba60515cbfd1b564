"""Floats for measuring: values whose scale and zero point the source fixes, as integers hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpucc.ir import Graph, Node, TensorType
from tpucc.ir.dtypes import I8, IntegerFormat
from tpucc.numerics import dequantise, quantise
from tpucc.ops.clip import ClipAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.names import clip, dequantize, quantize
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.passes.rewriter import Names, as_constant, held_array


def saturating(graph: Graph, of: IntegerFormat) -> Graph:
    """The graph with a `clip` behind each such value of float32, which has its name; `of` is how the device holds values.

    Quantisers rely on it: they leave out a `relu` before a `quantize` whose zero point is the lowest integer. Constants and values of the
    host are rounded, too, as they are before the device gets them.
    """
    names = Names(graph)
    return graph.with_nodes(made for node in graph for made in _saturated(node, names, of))


def _saturated(node: Node, names: Names, of: IntegerFormat) -> Iterator[Node]:
    held = node.type.quantisation if node.type.dtype == "f32" else None
    if held is not None and (array := held_array(node)) is not None:
        rounded = dequantise(quantise(array, held.scale, held.zero_point, I8), held.scale, held.zero_point)
        yield as_constant(replace(node, type=node.type.plain()), rounded)
        return
    if held is None or node.type.range is None or node.is_input:
        yield node
        return
    whole = replace(node, name=names.fresh(node.name), type=node.type.plain())
    yield whole
    if not node.on_device:
        integers = TensorType(of.name, node.type.shape, quantisation=held)
        parameters = QuantizeAttributes(held.scale, held.zero_point, of.bits)
        quantised = quantize.node(names.fresh(node.name), (whole.name,), parameters, integers, node.origin, node.place)
        yield quantised
        yield dequantize.node(node.name, (quantised.name,), DequantizeAttributes(), node.type, node.origin, node.place)
        return
    bounds = ClipAttributes(node.type.range.low, node.type.range.high)
    yield clip.node(node.name, (whole.name,), bounds, node.type, node.origin, node.place)
