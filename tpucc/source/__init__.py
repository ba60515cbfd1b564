"""From a graph of operators back to source text that a person reads: a function for each block that repeats, and loops."""

from tpucc.source.names import Unwritable
from tpucc.source.steps import same_model
from tpucc.source.text import Sample, source_of

__all__ = ["Sample", "Unwritable", "same_model", "source_of"]
