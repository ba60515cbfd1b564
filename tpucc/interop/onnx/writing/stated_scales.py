"""A quantised model as operators on real values, with `quantize` and `dequantize` where the device holds integers.

Compiled, the graph has the same layers as the model that it was made from: the source states the scale and zero point of each value on the
device, so that nothing is calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tpucc.ir import Graph, Node, Quantisation, TensorType
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.layers.kinds import Vector, VectorFunction, is_layer
from tpucc.numerics import affine_parameters
from tpucc.ops import facts_of, quantizes
from tpucc.ops.dequantize import OP as dequantize
from tpucc.ops.facts import Values
from tpucc.ops.fused import Fused
from tpucc.ops.quantize import OP as quantize
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.passes.rewriter import Names


def with_stated_scales(operators: Graph, fused: Graph, layers: Graph) -> Graph:
    """The graph `operators` of real values, each value that the device holds rounded to its integers.

    `fused` is the last graph of operators, in which a function that follows a product is part of it, and `layers` the device's graph.
    """
    computed = {name: node.type for node in layers if is_layer(node) for name in (node.of, *(node.holds or (node.name,)))}
    alone = {name for node in layers if _is_table(node) for name in (node.of, *(node.holds or (node.name,)))}
    computed |= _before_functions(operators, fused, {name: type_ for name, type_ in computed.items() if name not in alone})
    entering = {node.operands[0]: node.type for node in reversed(layers.nodes) if quantizes(node.op)}
    names, rounded, known, nodes = Names(operators), dict[str, str](), dict[str, Quantisation | None](), list[Node]()
    for node in operators:
        ours = layers.by_name.get(node.name)
        on_host = ours is not None and ours.type.quantisation is None
        exact = frozenset(ours.operands) if ours is not None and on_host else frozenset()  # as they are before they are rounded
        operands = tuple(name if name in exact else rounded.get(name, name) for name in node.operands)
        nodes.append(node if operands == node.operands else replace(node, operands=operands))
        integers = computed.get(node.name) or entering.get(node.name)
        if integers is None or integers.quantisation is None or _is_stated(node, operators):
            continue
        known[node.name] = integers.quantisation
        if not _keeps(node, known):
            pair = _pair(node, integers, names)
            rounded[node.name] = pair[1].name
            nodes += pair
    named = {name: pair for name, pair in rounded.items() if name in computed}
    outputs = tuple(replace(output, node=named.get(output.node, output.node)) for output in operators.outputs)
    return replace(operators, nodes=tuple(nodes), outputs=outputs)


def _is_table(node: Node) -> bool:
    """Whether a layer looks up a function of integers, and not of sums."""
    return isinstance(node.attributes, Vector) and node.attributes.function == VectorFunction.TABLE


def _is_stated(node: Node, graph: Graph) -> bool:
    """Whether the source says the scale of a value itself."""
    readers = graph.users[node.name]
    return quantizes(node.op) or (bool(readers) and all(quantizes(reader.op) for reader in readers))


def _before_functions(operators: Graph, fused: Graph, computed: Mapping[str, TensorType]) -> dict[str, TensorType]:
    """The types of the sums to which a layer applies a table, by the names of the operators that compute them."""
    found: dict[str, TensorType] = {}
    for node in fused:
        result, operator = computed.get(node.name), operators.by_name.get(node.name)
        if isinstance(node.attributes, Fused) and node.attributes.pre is not None and result is not None and operator is not None:
            scale, zero = affine_parameters(*node.attributes.pre, INTEGER_FORMATS[result.dtype])
            found[operator.operands[0]] = replace(result, quantisation=Quantisation(scale, zero))
    return found


def _keeps(node: Node, known: Mapping[str, Quantisation | None]) -> bool:
    """Whether a value on the device is one that its operands have, with their scale: it is rounded already."""
    facts = facts_of(node.op)
    keeps = facts.keeps_parameters or facts.values in (Values.VIEWED, Values.JOINED)
    return keeps and bool(node.operands) and all(known.get(name) == known[node.name] for name in node.operands)


def _pair(node: Node, integers: TensorType, names: Names) -> tuple[Node, Node]:
    """The integers of a value, and the real values that these stand for."""
    assert integers.quantisation is not None
    of = integers.quantisation
    shortest = float(str(np.float32(of.scale)))
    attributes = QuantizeAttributes(shortest, of.zero_point, INTEGER_FORMATS[integers.dtype].bits)
    integer = TensorType(integers.dtype, node.type.shape, quantisation=of)
    first = quantize.node(names.fresh(f"{node.name}.{integers.dtype}"), (node.name,), attributes, integer, node.origin)
    return first, dequantize.node(names.fresh(node.name), (first.name,), dequantize.attributes(), node.type.plain(), node.origin)
