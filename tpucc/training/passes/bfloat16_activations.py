"""Values of the batch are kept in memory as bfloat16, which takes half of the bytes.

`--activations bf16` asks for it, as mixed precision in TensorFlow does (`bfloat16_scope`). Weights, their gradients and sums over the batch
stay float32.
"""

from __future__ import annotations

from dataclasses import replace

from tpucc.ir import Graph
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Rewriter
from tpucc.training.batches import values_with_batch
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.passes.build import Within
from tpucc.training.timing.groups import Grouping


@graph_pass("bfloat16-activations", "rounds the values of the batch that memory holds to bfloat16", level=0)
def bfloat16_activations(graph: Graph, context: Context, *, wanted: bool = False) -> Graph:
    """Puts a `round_to_bfloat16` behind each value with the batch that memory holds: inputs, and what one group of operators stores for
    another. A value of each item, as its loss, stays as it is."""
    if not wanted:
        return graph
    reduced = {node.name for node in graph if isinstance(node.attributes, AllReduceAttributes)}
    groups = Grouping(graph, reduced, frozenset(), lambda node: node.type.size).groups
    held = values_with_batch(graph) & {*(node.name for node in graph.inputs), *(name for group in groups for name in group.written)}
    rewriter = Rewriter(graph, "bfloat16-activations")
    rounded: dict[str, str] = {}
    for node in graph:
        put = rewriter.put(replace(node, operands=tuple(rounded.get(name, name) for name in node.operands)))
        if node.name in held and node.type.rank > 1 and node.type.dtype == "f32":
            within = Within(rewriter, put)
            rounded[node.name] = within.call("round_to_bfloat16", (within.value(node.name),), RoundToBfloat16Attributes()).name
    return rewriter.build() if rounded else graph
