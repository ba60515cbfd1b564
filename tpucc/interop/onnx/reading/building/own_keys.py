"""Constants that have been computed of a parameter are called after it: the table of places of which as many rows are taken as there are,
and a first state that is expanded to the batch.

PyTorch's export folds what depends on no input, names the constant after the operation, as `expand_1`, and notes of which values it was
computed: the parameter, and what came in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.interop.onnx.reading.building.arrays import is_same, without_ones, without_repetition
from tpucc.interop.onnx.reading.building.values import Static
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.names import ANONYMOUS
from tpucc.numerics import AnyArray

MOVES = frozenset(
    ["Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"]
)
"""Operators whose results have the values of their first operand."""
OPERATION = re.compile(
    r"(_to_copy|_unsafe_view|alias|arange|chunk|clone|contiguous|detach|expand|flatten|getitem|index|permute|repeat|reshape|select|slice|split"
    r"|split_with_sizes|squeeze|t|to|transpose|unbind|unflatten|unsafe_split|unsqueeze|view)(_\d+)?(_split_\d+)?"
)
"""PyTorch's names of such results."""
FILLED = re.compile(r"(empty|full|ones|zeros)_like(_\d+)?|new_(empty|full|ones|zeros)(_\d+)?")
"""PyTorch's names of constants that have only the shape of another value, as of an input."""


@dataclass
class Called:
    """Of which parameters known values are forms, by the names of both.

    `own` are the names of parameters, `whole` those that something reads as they are. `tied` are folded constants of parameters that are in
    the file, too. `computed` are constants that PyTorch has computed of several parameters, or of none. `rows` are those of them that have
    a parameter in each row: of a product of a first state of zeros only the bias is left.
    """

    names: dict[str, str]
    own: frozenset[str]
    whole: frozenset[str]
    tied: Mapping[str, str]
    computed: frozenset[str]
    rows: frozenset[str]

    @classmethod
    def of(cls, graph: OnnxGraph) -> Called:
        """What a file says of its constants."""
        found = {name: "" if FILLED.fullmatch(name) else _parameter(sources) for name, sources in graph.folded.items()}
        computed = frozenset(name for name, own in found.items() if not own)
        rows = dict(_of_each_row(graph, computed))
        tied = {name: own for name, own in found.items() if own in graph.constants}
        names = {name: own for name, own in found.items() if own and name not in tied} | rows
        constants = frozenset(graph.constants) - computed
        whole = constants.intersection(name for node in graph.nodes if node.op not in MOVES for name in node.inputs)
        own = frozenset(name for name in constants if not ANONYMOUS.fullmatch(name)).union(names.values())
        return cls(names, own, whole, tied, computed, frozenset(rows))

    def name(self, known: str) -> str:
        """That of the parameter, or of the value itself."""
        return self.names.get(known, known)

    def is_part(self, known: str) -> bool:
        """Whether a value is a form of a parameter that is read as it is, too."""
        return self.name(known) != known and self.name(known) in self.whole

    def note(self, node: OnnxNode, operands: Sequence[Static], results: Sequence[Static]) -> None:
        """Notes of which parameters the results are forms that are computed of constants."""
        if node.op in MOVES and (own := self.name(operands[0].name)) in self.own:
            self.names |= dict.fromkeys((result.name for result in results), own)
        elif node.op == "Add":
            for result in results:
                row = _row(result.array)
                terms = [term for term in operands if row.size < result.array.size and is_same(row, term.array)]
                if terms and (own := self.name(terms[0].name)) in self.own:
                    self.names[result.name] = own


def _parameter(sources: Sequence[str]) -> str:
    """The one parameter among values; empty where there is none, or are several. That of a module has the module's path before its name."""
    named = [source for source in sources if not ANONYMOUS.fullmatch(source)]
    of_modules = [source for source in named if "." in source]
    others = [source for source in named if not OPERATION.fullmatch(source)]
    found = of_modules or others
    return found[0] if len(found) == 1 else ""


def _of_each_row(graph: OnnxGraph, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        array = graph.constants[name]
        if (row := _row(array)).size < array.size:
            sources = (source for source in graph.folded[name] if source in graph.constants)
            yield from ((name, source) for source in sources if is_same(graph.constants[source], row))


def _row(array: AnyArray) -> AnyArray:
    """One row of real values that are the same in each; other values as they are."""
    return without_ones(without_repetition(array)) if array.dtype == np.float32 and array.ndim > 1 else array
