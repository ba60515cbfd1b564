"""From a graph of operators back to source text that a person reads: a function for each block that repeats, and loops."""

from tpucc.source.names import Unwritable
from tpucc.source.steps import same_model
from tpucc.source.text import graph_of, source_of

__all__ = ["Unwritable", "graph_of", "same_model", "source_of"]
