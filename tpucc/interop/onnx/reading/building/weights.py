"""The weights of a network that is being read: by their keys, by their values, and as matrices that others may have transposed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import count

import numpy as np

from tpucc.interop.onnx.reading.building.arrays import is_same
from tpucc.ir import Graph, Node
from tpucc.numerics import AnyArray
from tpucc.ops.weight import WeightAttributes

MATRIX = 2
"""The axes of matrices."""


class Weights:
    """The nodes of weights, each with its values, float32 of any shape; `arrays` has these by key."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self.numbered: dict[str, str] = {}
        """The keys with a number, as others have them without."""
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

    def put(self, key: str, wanted: str, node: Node, values: AnyArray, *, own: str | None, is_named: bool) -> Node:
        """Adds a weight. `own` is the constant that it is of, where other constants may be its transpose; `is_named` says that its key is
        a name that the file has."""
        self._nodes[key] = node
        if key != wanted:
            self.numbered[key] = wanted
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


def numbered_anew(graph: Graph, weights: Mapping[str, AnyArray], numbered: Mapping[str, str]) -> tuple[Graph, dict[str, AnyArray]]:
    """The graph and the weights that its nodes read, with the fewest numbers behind keys: where no node reads `w` any more, the first of
    `w.1`, `w.2` and so on is it. `numbered` are keys with numbers, and what they would be without, in order."""
    read = {node.attributes.key for node in graph if isinstance(node.attributes, WeightAttributes)}
    taken = read - numbered.keys()
    keys = {key: key for key in taken}
    numbers: dict[str, count[int]] = defaultdict(count)
    for key, wanted in numbered.items():
        if key in read:
            keys[key] = next(made for number in numbers[wanted] if (made := f"{wanted}.{number}" if number else wanted) not in taken)
            taken.add(keys[key])
    nodes = (
        replace(node, attributes=replace(node.attributes, key=keys[node.attributes.key]))
        if isinstance(node.attributes, WeightAttributes)
        else node
        for node in graph
    )
    same = all(key == made for key, made in keys.items())
    return graph if same else graph.with_nodes(nodes), {keys[key]: array for key, array in weights.items() if key in read}
