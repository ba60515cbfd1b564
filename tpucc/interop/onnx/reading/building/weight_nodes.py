"""The weights of a network that is being read: by their keys, by their values, and as matrices that others may have transposed."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tpucc.interop.onnx.reading.building.arrays import content_of, is_same
from tpucc.interop.onnx.reading.building.numbered_keys import Numbers
from tpucc.ir import Node
from tpucc.numerics import AnyArray

MATRIX = 2
"""The axes of matrices."""


class WeightNodes:
    """The nodes of weights, each with its values, float32 of any shape; `arrays` has these by key."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self.numbered: dict[str, str] = {}
        """The keys with a number, as others have them without."""
        self._nodes: dict[str, Node] = {}
        self._numbers = Numbers(self.arrays)
        self._matrices: dict[Hashable, list[tuple[Node, AnyArray, str]]] = {}
        """The weights with two axes by their shapes and first columns, and the constants that they are of."""
        self._contents: dict[Hashable, Node] = {}

    def key(self, wanted: str, number: int, values: AnyArray) -> str:
        """The first unused key: `w`, `w.1`, …, or from `w.number` on; a key in use if its weight has these values."""
        return self._numbers.key(wanted, number, values)

    def of(self, key: str) -> Node | None:
        """The weight of this key."""
        return self._nodes.get(key)

    def like(self, values: AnyArray) -> Node | None:
        """The weight of a constant without a name that has these values, if they are large enough to tell it by."""
        content = content_of(values)
        return None if content is None else self._contents.get(content)

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
        if not is_named and (content := content_of(values)) is not None:
            self._contents[content] = node
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
