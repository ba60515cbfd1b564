"""Constants that have been computed of a parameter are called after it: the table of places of which as many rows are taken as there are,
and a first state that is expanded to the batch.

PyTorch's export folds what depends on no input, names the constant after the operation, as `expand_1`, and notes of which values it was
computed: the parameter, and what came in between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tpucc.interop.onnx.reading.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.names import ANONYMOUS

MOVES = frozenset(
    ["Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"]
)
"""Operators whose results have the values of their first operand."""
OPERATION = re.compile(
    r"(_to_copy|_unsafe_view|alias|arange|chunk|clone|contiguous|detach|expand|flatten|getitem|index|permute|repeat|reshape|select|slice|split"
    r"|split_with_sizes|squeeze|t|to|transpose|unbind|unflatten|unsafe_split|unsqueeze|view)(_\d+)?(_split_\d+)?"
)
"""PyTorch's names of such results."""


def keys_of_folded(graph: OnnxGraph) -> dict[str, str]:
    """The names of the parameters of which constants of a file are computed, each of one, by the names of the constants."""
    found = {name: _parameter(sources) for name, sources in graph.folded.items()}
    return {name: own for name, own in found.items() if own and own not in graph.constants}


def _parameter(sources: Sequence[str]) -> str:
    """The one parameter among values; empty where there is none, or are several. That of a module has the module's path before its name."""
    of_modules = [source for source in sources if "." in source]
    others = [source for source in sources if not ANONYMOUS.fullmatch(source) and not OPERATION.fullmatch(source)]
    found = of_modules or others
    return found[0] if len(found) == 1 else ""


def key_of_result(node: OnnxNode, of: str, called: Mapping[str, str]) -> str:
    """What the results of a node are called that have been computed of constants: as the first one, `of`, if they are its values; empty
    where that has no name of its own."""
    own = called.get(of, of)
    return own if node.op in MOVES and not ANONYMOUS.fullmatch(own) else ""
