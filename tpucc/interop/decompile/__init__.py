"""From a graph of operators back to source text."""

from tpucc.interop.decompile.program import Unwritable
from tpucc.interop.decompile.same import same_model
from tpucc.interop.decompile.text import source_of

__all__ = ["Unwritable", "same_model", "source_of"]
