"""Numbers behind keys that other values have: where no node reads these any more, the first of a key has no number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from tpucc.ir.graph import Graph
from tpucc.numerics import AnyArray
from tpucc.ops.weight import WeightAttributes


def numbered_anew(graph: Graph, weights: Mapping[str, AnyArray], numbered: Mapping[str, str]) -> tuple[Graph, dict[str, AnyArray]]:
    """The graph and the weights that its nodes read. `numbered` are keys with numbers, and what they would be without, in order."""
    read = {node.attributes.key for node in graph if isinstance(node.attributes, WeightAttributes)}
    taken = read - numbered.keys()
    keys = {key: key for key in taken}
    for key, wanted in numbered.items():
        if key in read:
            keys[key] = next(made for number in count() if (made := f"{wanted}.{number}" if number else wanted) not in taken)
            taken.add(keys[key])
    nodes = (
        replace(node, attributes=replace(node.attributes, key=keys[node.attributes.key]))
        if isinstance(node.attributes, WeightAttributes)
        else node
        for node in graph
    )
    same = all(key == made for key, made in keys.items())
    return graph if same else graph.with_nodes(nodes), {keys[key]: array for key, array in weights.items() if key in read}
