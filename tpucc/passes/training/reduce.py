"""The mean over the parts of a batch: what the parts compute becomes what the whole batch does."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ir.node import Output
from tpucc.ops.all_reduce import AllReduceAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.training.build import Growing


@dataclass(frozen=True)
class AllReduce(Pass):
    """Puts an `all_reduce` before each output: the loss, the gradients and the moved averages. With one part, nothing is to do."""

    name = "all-reduce"
    summary = "takes the mean of the parts' loss and gradients"
    level = 0

    parts: int = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        if self.parts == 1:
            return graph
        growing = Growing(graph, self.name)
        outputs = []
        for output in graph.outputs:
            growing.begin(graph[output.node].origin)
            mean = growing.call("all_reduce", (growing.value(output.node),), AllReduceAttributes(self.parts))
            (name,) = growing.end([(mean, f"mean.{output.node}")], output.node)
            outputs.append(Output(output.name, str(name)))
        return growing.build(outputs)
