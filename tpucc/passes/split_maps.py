"""Feature maps too large for the unified buffer are computed in horizontal bands, one after the other.

The unit of placement is a column block of a whole map, so what one operator reads and writes must fit the unified buffer together.
Where it doesn't, a run of operators computes its results a band of lines at a time. A convolution's line depends on as many lines as its
kernel is high, so neighbouring bands compute the lines at their edge both; the deeper the run, the more. Pools, strides and functions of
elements only pass the question on. Known as fused or depth-first tiling: Alwani et al., "Fused-Layer CNN Accelerators", MICRO 2016.

The pass comes after calibration and fusion: all bands of a value have the scale and zero point of the whole, so the integers are the same
as those of a machine on which it fits.
"""

from __future__ import annotations

from tpucc.ir import Graph
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.place import require_placed


@graph_pass("split-maps", "computes maps that don't fit the unified buffer in bands of lines", level=0)
def split_maps(graph: Graph, context: Context, *, most: int = 1024) -> Graph:
    """Replaces each exit of a run by the concat of bands of it, which copies of the run compute from slices of the entries.

    Runs, and the number of their bands, are chosen by an estimate of rows and cycles. A graph whose operators fit stays as it is, and so
    does an operator of which not even a line fits. `most` is the most bands of a run; 1 leaves all maps whole.
    """
    if all(node.type.rank != 4 for node in graph):
        return graph
    require_placed(graph, "maps are split")
    from tpucc.passes.bands import in_bands  # only graphs with images need it

    return in_bands(graph, context, most, "split-maps")
