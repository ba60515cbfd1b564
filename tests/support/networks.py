"""Random convolutional and recurrent networks as source text, for the whole compiler from the front end to the machine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, islice
from pathlib import Path

import numpy as np

from tests.support.network_draft import BLACKBOARD, MIDDLE, ORDINARY, PICTURES, Bounds, Draft, Shape, sizes
from tests.support.network_moves import fitting
from tpucc.data.sources import bind_weights
from tpucc.diagnostics import Source
from tpucc.ir import Graph
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.language.problem import Limits
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate

__all__ = ["BLACKBOARD", "MIDDLE", "ORDINARY", "PICTURES", "Bounds", "drawn", "elaborated", "network", "results", "seeds_of_reals"]

RANGES = ("", "", " in [0.0, 1.0]", " in [-2.0, 3.0]")
TABLE_ROWS = 9
"""Of the tables of embeddings."""
ENDS = ("{}", "{}", "{}", "softmax({})", "argmax({})", "relu({})")


def network(seed: int, bounds: Bounds = ORDINARY) -> str:
    """The source of a valid network within `bounds`; the seed decides everything. One in four begins with a sequence."""
    draft = Draft(seed, bounds)
    given = _begin_with_sequence(draft) if draft.chance(0.25) else _begin_with_image(draft)
    for _ in range(draft.integer(*bounds.moves)):
        _grow(draft)
    returned, types = zip(*_returned(draft), strict=True)
    return draft.source(f"model net({given}) -> {', '.join(types)}:", f"    return {', '.join(returned)}")


def seeds_of_reals(first: int, many: int) -> list[int]:
    """The next so many seeds whose networks return a float32: what an `argmax` returns is not compared by its error."""
    heads = ((seed, network(seed).rpartition("->")[2].partition("\n")[0]) for seed in count(first))
    return list(islice((seed for seed, types in heads if "f32" in types), many))


def elaborated(text: str) -> Graph:
    """The operator graph of a network, with its weights: all that comes before the passes."""
    source = Source("net.tpu", text)
    return bind_weights(elaborate(parse(source), source, {}, Limits()), Path(), None)


def drawn(graph: Graph, seed: int) -> dict[str, AnyArray]:
    """Inputs for a graph: standard normal, or numbers of rows of a table."""
    generator = np.random.default_rng(seed)
    return {
        node.name: generator.standard_normal(node.type.shape, np.float32)
        if node.type.dtype == "f32"
        else generator.integers(0, TABLE_ROWS, node.type.shape, np.int32)
        for node in graph.inputs
    }


def results(graph: Graph, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The outputs by name, by the operators' float32 references."""
    values = evaluate(graph, inputs)
    return {output.name: values[output.node] for output in graph.outputs}


def _begin_with_image(draft: Draft) -> str:
    """The declaration of an image as the input."""
    height, width = draft.one_of(draft.bounds.sides), draft.one_of(draft.bounds.sides)
    channels = draft.channels(0, draft.batch * height * width)
    draft.keep("x", (draft.batch, height, width, channels))
    return f"x: f32[batch, {sizes(draft.shape[1:])}]{draft.one_of(RANGES)}"


def _begin_with_sequence(draft: Draft) -> str:
    """A sequence of vectors, or of the numbers of a table's rows."""
    steps, features = draft.integer(1, draft.bounds.steps), draft.units(0)
    if draft.chance(0.7):
        draft.keep("x", (draft.batch, steps, features))
        return f"x: f32[batch, {steps}, {features}]{draft.one_of(RANGES)}"
    draft.let(f"embedding(x, {draft.weight(TABLE_ROWS, features)})", (draft.batch, steps, features))
    return f"x: i32[batch, {steps}] in [0, {TABLE_ROWS - 1}]"


def _grow(draft: Draft) -> None:
    """One move more. It goes on from the current value, or at times from an earlier one."""
    if draft.chance(0.1):
        draft.value = draft.one_of(list(draft.shapes))
    moves = fitting(draft)
    shares = [move.share for move in moves]
    moves[int(draft.random.choice(len(moves), p=[share / sum(shares) for share in shares]))].write(draft)


def _returned(draft: Draft) -> list[tuple[str, str]]:
    """What the model returns, one or two values, each with its type."""
    last = draft.one_of(ENDS)
    returned = [(last.format(draft.value), _type(draft.shape, last))]
    others = [name for name in draft.shapes if name not in ("x", draft.value)]
    if others and draft.chance(0.2):
        other = draft.one_of(others)
        returned.append((other, _type(draft.shapes[other])))
    return returned


def _type(shape: Shape, end: str = "{}") -> str:
    return f"i32[{sizes(shape[:-1])}]" if end.startswith("argmax") else f"f32[{sizes(shape)}]"
