"""The weights of a network that is being read: by their keys, by their values, and as matrices that others may have transposed.

Constants that have been computed of a parameter are called after it: the table of places of which as many rows are taken as there are, and
a first state that is expanded to the batch. PyTorch's export folds what depends on no input, names the constant after the operation, as
`expand_1`, and notes of which values it was computed: the parameter, and what came in between.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count

import numpy as np

from tpucc.interop.onnx.reading.building.values import Static, is_same, without_ones, without_repetition
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.names import ANONYMOUS
from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops.weight import WeightAttributes

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


MATRIX = 2
"""The axes of matrices."""


class Weights:
    """The nodes of weights, each with its values, float32 of any shape; `arrays` has these by key."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._nodes: dict[str, Node] = {}
        self._keys = defaultdict[tuple[str, bool], dict[bytes, str]](dict)
        """The keys of weights that want the same one, by the contents, and whether a number is due to them."""
        self._matrices: dict[Hashable, list[tuple[Node, AnyArray, str]]] = {}
        """The weights with two axes by their shapes and first columns, and the constants that they are of."""
        self._contents: dict[bytes, Node] = {}

    def key(self, wanted: str, is_part: bool, values: AnyArray) -> str:
        """The first unused key: `w`, `w.1`, …, of a part from `w.1` on; a key in use if its weight has these values."""
        known, content = self._keys[wanted, is_part], _content(values)
        if content not in known:
            keys = (f"{wanted}.{number}" if number else wanted for number in count(max(len(known), is_part)))
            known[content] = next(key for key in keys if key not in self.arrays)
        return known[content]

    def of(self, key: str) -> Node | None:
        """The weight of this key."""
        return self._nodes.get(key)

    def like(self, values: AnyArray) -> Node | None:
        """The weight of a constant without a name that has these values, if they are large enough to tell it by: exporters that unroll a
        loop write its weights for each step. Of vectors, and of one number over and over, equality may be chance."""
        is_chance = values.ndim < MATRIX or (values == values.reshape(-1)[0]).all()
        return None if is_chance else self._contents.get(_content(values))

    def has_others(self, key: str, array: AnyArray) -> bool:
        """Whether a weight of this key has other values."""
        with np.errstate(over="ignore"):
            return key in self._nodes and not is_same(self.arrays[key], array.astype(np.float32))

    def put(self, key: str, node: Node, values: AnyArray, *, own: str | None, is_named: bool) -> Node:
        """Adds a weight. `own` is the constant that it is of, where other constants may be its transpose; `is_named` says that its key is
        a name that the file has."""
        self._nodes[key] = node
        self.arrays[key] = np.ascontiguousarray(values).reshape(values.shape)
        if not is_named:
            self._contents[_content(values)] = node
        if values.ndim == MATRIX and own is not None:
            self._matrices.setdefault(_by_first_column(values), []).append((node, values, own))
        return node

    def tied(self, array: AnyArray, own: str) -> Node | None:
        """The weight that has the values transposed, and is of the same constant `own`; or of any, if these have no name."""
        for node, before, of in self._matrices.get(_by_first_column(array.T), ()) if array.ndim == MATRIX and array.size else ():
            if own in ("", of) and is_same(before.T, array) and (array != array[0, 0]).any():
                return node
        return None


def _by_first_column(matrix: AnyArray) -> Hashable:
    """What equal matrices have in common, whichever zeros they have: the shape and the float32 values of the first column."""
    with np.errstate(over="ignore"):
        return matrix.shape, (matrix[:, 0].astype(np.float32) + np.float32(0)).tobytes()


def _content(values: AnyArray) -> bytes:
    """What tells arrays apart, whichever zeros they have."""
    return sha256(f"{values.shape}".encode() + (values + np.float32(0)).tobytes()).digest()


def read_by(graph: Graph, weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The weights that nodes of the graph are."""
    read = {node.attributes.key for node in graph if isinstance(node.attributes, WeightAttributes)}
    return {key: array for key, array in weights.items() if key in read}
