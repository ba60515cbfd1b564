"""Numbers behind keys that other values have: where no node reads these any more, the first of a key has no number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import count

import numpy as np

from tpucc.ir import Graph
from tpucc.numerics import AnyArray
from tpucc.ops.weight import WeightAttributes


def numbered_anew(graph: Graph, weights: Mapping[str, AnyArray], numbered: Mapping[str, str]) -> tuple[Graph, dict[str, AnyArray]]:
    """The graph and the weights that its nodes read. `numbered` are keys with numbers, and what they would be without, in order."""
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


class Numbers:
    """Numbers behind the keys of weights that want the same key. `weights` are the arrays so far, by key, and grows."""

    def __init__(self, weights: Mapping[str, AnyArray]) -> None:
        self._weights = weights
        self._seen: dict[tuple[str, int], tuple[dict[bytes, str], int]] = {}
        """By key and first number: the keys of the contents that have been seen, and the next number."""

    def key(self, wanted: str, number: int, values: AnyArray) -> str:
        """The first unused key: `w`, `w.1`, …, or from `w.number` on; a key in use if its weight has these values."""
        contents, following = self._seen.get((wanted, number), ({}, number))
        while (key := f"{wanted}.{following}" if following else wanted) in self._weights:
            contents.setdefault(_content(self._weights[key]), key)
            following += 1
        self._seen[wanted, number] = contents, following
        return contents.get(_content(values), key) if contents else key


def _content(values: AnyArray) -> bytes:
    """What tells arrays apart, whichever zeros they have."""
    return sha256(f"{values.shape}".encode() + (values + np.float32(0)).tobytes()).digest()
