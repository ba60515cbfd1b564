"""Bias correction: what rounding a layer's weights adds to the mean of each channel is taken off its bias.

Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.2: for weights w that are held
as w̃, the mean of `x @ w̃` is E[x] @ (w̃ - w) too large. Here the mean is that over the calibration inputs, in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tpucc.ir import Graph, Node, Quantisation, TensorType
from tpucc.layers.parameters import fitting_scales
from tpucc.numerics import AnyArray, Float32, Float64, affine_parameters, quantise_weights
from tpucc.ops.evaluate import evaluate
from tpucc.ops.fused import Fused, fused_form, without_activation
from tpucc.passes.base import Context
from tpucc.passes.calibrate import examples, given_examples, saturating
from tpucc.passes.input_arrays import InputArrays
from tpucc.passes.layering.graph import MADE_BY
from tpucc.passes.rewriter import Names, array_of, as_constant, constant_of, is_product

CORRECTION = "\0correction "
"""Begins the names of nodes that measure, as no name in a source can."""
CORRECTION_BITS = 10
"""Significant bits of a correction: the last ones of a float32 sum differ from machine to machine."""


def with_corrected_biases(graph: Graph, context: Context, *, per_channel: bool) -> Graph:
    """The operator graph with a corrected bias in each product of the device, whose ranges are known.

    Weights whose quantisation the source fixes are left: their values are meant.
    """
    products = [node for node in graph if node.on_device and is_product(node)]
    fused = {node.name: _fused(node) for node in products if constant_of(graph[node.operands[1]]) is not None}
    probe = _probe(graph, fused.values(), context, per_channel)
    means = _means(probe, fused, examples(graph, given_examples(graph, context)))
    names, made = Names(graph), list[Node]()
    for node in graph:
        if node.name in fused:
            bias = (_bias(graph, fused[node.name]) - _few_bits(means[node.name])).astype(np.float32)
            name, type_ = names.fresh(f"{node.name}.bias"), TensorType("f32", bias.shape)
            made.append(as_constant(replace(graph[node.operands[1]], name=name, type=type_, origin=node.origin.by(MADE_BY)), bias))
            node = replace(fused[node.name], operands=(*node.operands[:2], name))
        made.append(node)
    return graph.with_nodes(made)


def _fused(node: Node) -> Node:
    """The product as an operator that takes a bias."""
    op, attributes = fused_form(node.op, node.attributes)
    return replace(node, op=op, attributes=attributes)


def _probe(graph: Graph, products: Iterable[Node], context: Context, per_channel: bool) -> Graph:
    """The graph, and for each product one more of the same input with the errors of its weights, w̃ - w, and nothing else."""
    nodes = [*graph]
    for node in products:
        errors = _rounding_errors(graph, node, context, per_channel)
        held = as_constant(replace(graph[node.operands[1]], name=f"{CORRECTION}{node.name} weights"), errors)
        assert isinstance(node.attributes, Fused)
        attributes, operands = without_activation(node.attributes), (node.operands[0], held.name)
        nodes += (held, replace(node, name=f"{CORRECTION}{node.name}", operands=operands, attributes=attributes, type=node.type.plain()))
    return saturating(graph.with_nodes(nodes), context.format)


def _rounding_errors(graph: Graph, node: Node, context: Context, per_channel: bool) -> Float32:
    weights, x = array_of(graph[node.operands[1]]), graph[node.operands[0]].type
    assert x.range is not None
    held = x.quantisation or Quantisation(*affine_parameters(x.range.low, x.range.high, context.format))
    real = weights.reshape(-1, weights.shape[-1])
    scales = fitting_scales(real, _bias(graph, node), held, per_channel, context.format)
    errors: Float32 = quantise_weights(real, scales).astype(np.float32) * scales - real
    return errors.reshape(weights.shape)


def _means(probe: Graph, products: Iterable[str], parts: Iterable[InputArrays]) -> Mapping[str, Float64]:
    """The mean of each channel's error, float64 [N], for each product."""
    sums: dict[str, Float64] = {}
    counts = dict.fromkeys(products, 0)
    wanted = {f"{CORRECTION}{name}": name for name in counts}

    def measure(node: Node, value: AnyArray) -> None:
        if (name := wanted.get(node.name)) is not None:
            rows = value.reshape(-1, value.shape[-1]).astype(np.float64)
            sums[name] = sums.get(name, 0.0) + rows.sum(axis=0)
            counts[name] += len(rows)

    for part in parts:
        evaluate(probe, part, watch=measure)
    return {name: total / counts[name] for name, total in sums.items()}


def _bias(graph: Graph, node: Node) -> AnyArray:
    """The bias of a product, zeros where it has none; float32 [N]."""
    present = [constant_of(graph[name]) for name in node.operands[2:]]
    return present[0].data if present and present[0] is not None else np.zeros(node.type.columns, np.float32)


def _few_bits(errors: Float64) -> Float64:
    """The numbers rounded to `CORRECTION_BITS`."""
    mantissas, exponents = np.frexp(errors)
    rounded: Float64 = np.ldexp(np.rint(np.ldexp(mantissas, CORRECTION_BITS)), exponents - CORRECTION_BITS)
    return rounded
