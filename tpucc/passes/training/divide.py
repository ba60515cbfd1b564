"""The batch divided into equal parts: the graph of the loss of the whole batch becomes that of one part."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.passes.base import Context, Pass
from tpucc.passes.divide_batch import divided


@dataclass(frozen=True)
class DivideExamples(Pass):
    """Gives every value one part of the batch. The loss must be a mean over the examples: then the mean of the parts' losses is it."""

    name = "divide-examples"
    summary = "makes the graph of one part of the batch"
    level = 0

    parts: int = 1
    among: str = ""
    """What the parts are, in messages: `4 cores of 2 microbatches`."""

    def run(self, graph: Graph, context: Context) -> Graph:
        """Raises `UsageError` E0508 for a batch that isn't divisible, `CompileError` E0830 and E0831: see `divide_batch.divisions`."""
        return graph if self.parts == 1 else divided(graph, self.parts, self.name, among=self.among, means=True)
