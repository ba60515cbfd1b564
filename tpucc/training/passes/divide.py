"""The batch divided into equal parts: the graph of the loss of the whole batch becomes that of one part."""

from __future__ import annotations

from tpucc.ir import Graph
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.divide_batch import divided


@graph_pass("divide-examples", "makes the graph of one part of the batch", level=0)
def divide_examples(graph: Graph, context: Context, *, parts: int = 1, among: str = "") -> Graph:
    """Gives every value one part of the batch. The loss must be a mean over the examples: then the mean of the parts' losses is it.

    Raises `UsageError` E0508 for a batch that isn't divisible, `CompileError` E0830 and E0831: see `divide_batch.divisions`. In
    messages the parts are `among`, as in `4 cores of 2 microbatches`.
    """
    return graph if parts == 1 else divided(graph, parts, "divide-examples", among=among, means=True)
