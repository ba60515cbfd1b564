"""The mean over the parts of a batch: what the parts compute becomes what the whole batch does."""

from __future__ import annotations

from tpucc.ir import Graph, Output
from tpucc.passes.base import Context, graph_pass
from tpucc.training.operators.all_reduce import AllReduceAttributes
from tpucc.training.passes.build import Growing


@graph_pass("all-reduce", "takes the mean of the parts' loss and gradients", level=0)
def all_reduce(graph: Graph, context: Context, *, parts: int = 1) -> Graph:
    """Puts an `all_reduce` before each output: the loss, the gradients and the moved averages. With one part, nothing is to do."""
    if parts == 1:
        return graph
    growing = Growing(graph, "all-reduce")
    outputs = []
    for output in graph.outputs:
        growing.begin(graph[output.node].origin)
        mean = growing.call("all_reduce", (growing.value(output.node),), AllReduceAttributes(parts))
        (name,) = growing.end([(mean, f"mean.{output.node}")], output.node)
        outputs.append(Output(output.name, str(name)))
    return growing.build(outputs)
