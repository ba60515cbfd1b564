"""The values of the states before the first step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tpucc.data.weights import bind_archive, weights_of
from tpucc.diagnostics import Diagnostic, InputError
from tpucc.ir import Graph, Node
from tpucc.ir.constants import Random, random_array
from tpucc.numerics import AnyArray
from tpucc.ops.constant import ConstantAttributes
from tpucc.training.state import is_state


def given_weights(graph: Graph, archive: Path) -> dict[str, AnyArray]:
    """The weights of a graph by key, from an archive. Raises `InputError` as `bind_archive` does, and E0424 for a state."""
    try:
        bound = bind_archive(graph, archive)
    except InputError as error:
        if archive.suffix == ".npz" and is_state(archive):
            mend = "weights.npz, which is written beside it, has the weights; --resume goes on from a state"
            raise InputError(Diagnostic("E0424", f"{archive} is a state of a training, not weights", help=(mend,))) from error
        raise
    return {key: _value(bound[node.name]) for key, node in weights_of(graph).items()}


def initial_weights(graph: Graph, seed: int) -> dict[str, AnyArray]:
    """New weights for a graph by key.

    Those of two dimensions and more are drawn as `weights random` draws them: He-normal, from the seed and the key. Others are 0, and 1
    where they multiply: the factors and variances of `batch_norm`, and factors of `mul`.
    """
    return {key: _new(graph, node, Random(seed, key)) for key, node in weights_of(graph).items()}


def _value(node: Node) -> AnyArray:
    assert isinstance(node.attributes, ConstantAttributes)
    return node.attributes.value.data


def _new(graph: Graph, node: Node, recipe: Random) -> AnyArray:
    if node.type.rank >= 2:
        return random_array(node.type.shape, recipe).data
    return np.full(node.type.shape, float(_multiplies(graph, node)), np.float32)


_FACTORS: Mapping[str, frozenset[int]] = {"batch_norm": frozenset({1, 4}), "mul": frozenset({0, 1})}
"""For each operator that multiplies by operands, which these are; of batch_norm, the variance too."""


def _multiplies(graph: Graph, node: Node) -> bool:
    uses = [(user.op, place) for user in graph.users[node.name] for place, name in enumerate(user.operands) if name == node.name]
    return bool(uses) and all(place in _FACTORS.get(op, ()) for op, place in uses)
