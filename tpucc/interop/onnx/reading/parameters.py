"""Which constants of one value are weights: the others are numbers of the source."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.interop.onnx.reading.model import OnnxGraph

PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def single_weights(graph: OnnxGraph, ours: bool) -> frozenset[str]:
    """Constants [1], [1, 1] and so on that are trained: what is added to a product, as the bias of a layer with one output. In a file of
    `ours` all are, for numbers of a source have no axes."""
    single = {name for name, array in graph.constants.items() if array.size == 1 and array.ndim}
    return frozenset(single if ours else single.intersection(_added(graph)))


def _added(graph: OnnxGraph) -> Iterator[str]:
    """The operands of sums with products."""
    made = {name: node.op for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        if node.op == "Gemm":
            yield from node.inputs[2:]
        elif node.op in ("Add", "Sub") and any(made.get(name) in PRODUCTS for name in node.inputs):
            yield from node.inputs
