"""Values of the batch are kept in memory as bfloat16, which takes half of the bytes.

`--activations bf16` asks for it, as mixed precision in TensorFlow does (`bfloat16_scope`). Weights, their gradients and sums over the batch
stay float32.
"""

from __future__ import annotations

from dataclasses import replace

from tpucc.ir import Graph, Node
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rewriter import Rewriter
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.passes.build import Within
from tpucc.training.passes.optimizer import optimizer_step
from tpucc.training.timing.groups import Grouping


@graph_pass("bfloat16-activations", "rounds the values of the batch that memory holds to bfloat16", level=0)
def bfloat16_activations(graph: Graph, context: Context, *, wanted: bool = False) -> Graph:
    """Puts a `round_to_bfloat16` behind each value that one group of operators stores for another and whose first axis is the batch.

    A value that the optimizer or a reduction over the cores reads is none of them: it is a gradient of a weight.
    """
    if not wanted:
        return graph
    reduced = {node.name for node in graph if isinstance(node.attributes, AllReduceAttributes)}
    late = reduced | {node.name for node in graph if node.origin.made_by == optimizer_step.name}
    stored = Grouping(graph, reduced, frozenset(), lambda node: node.type.size).stored
    batches = {node.type.shape[0] for node in graph.inputs if node.type.rank}

    def kept(node: Node) -> bool:
        has_batch = node.type.rank > 1 and node.type.dtype == "f32" and node.type.shape[0] in batches
        readers = {reader.name for reader in graph.users[node.name]}
        return has_batch and (node.is_input or node.name in stored) and node.name not in late and late.isdisjoint(readers)

    rewriter = Rewriter(graph, "bfloat16-activations")
    rounded: dict[str, str] = {}
    for node in graph:
        put = rewriter.put(replace(node, operands=tuple(rounded.get(name, name) for name in node.operands)))
        if kept(node):
            within = Within(rewriter, put)
            rounded[node.name] = within.call("round_to_bfloat16", (within.value(node.name),), RoundToBfloat16Attributes()).name
    return rewriter.build() if rounded else graph
