"""embedding_gradient: how a change of rows goes back to their table. Internal: the gradient of embedding is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.embedding import require_indices, require_rows
from tpucc.ops.facts import whole
from tpucc.ops.opdef import Array, Arrays, Example, OnHost, Operand, RuleError, Types
from tpucc.ops.rules import require_integer
from tpucc.training.operators import added_up, gradient_operator


@dataclass(frozen=True, slots=True)
class EmbeddingGradientAttributes:
    """`rows`: those of the table."""

    rows: int


def infer(attributes: EmbeddingGradientAttributes, types: Types) -> TensorType:
    """`i32[...]` and `f32[..., D]` give `f32[rows, D]`."""
    ids, dy = types
    require_indices(ids)
    if dy.dtype != "f32" or not dy.shape or dy.shape[:-1] != ids.shape:
        raise RuleError("E0302", f"expected a row of f32 values an index, found {dy.brief}", about=(0, 1))
    return f32(require_integer(attributes.rows, "rows", 1), dy.columns)


def reference(attributes: EmbeddingGradientAttributes, operands: Arrays) -> Array:
    """Each row's sum starts at 0 and goes in the order of the indices. Raises `InputError` (E0454) as embedding does."""
    ids, dy = operands
    require_rows(ids, attributes.rows)
    table = np.zeros_like(dy, shape=(attributes.rows, dy.shape[-1]))
    np.add.at(table, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]))
    return table


OP = gradient_operator(
    name="embedding_gradient",
    summary="rows added up into a table, by their numbers",
    documentation=(
        "`ids` is i32 of any shape, and `dy` has a row for each of its numbers, which is added to that row of the result, in the order of "
        "the numbers. Rows that no number names are 0. TensorFlow: math.unsorted_segment_sum. ONNX: ScatterND with reduction=add."
    ),
    operands=(Operand("ids"), Operand("dy")),
    attributes=EmbeddingGradientAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device has no indexed writes"),
    facts=whole(batch=added_up),
    examples=(
        Example("one whole tile", EmbeddingGradientAttributes(256), (TensorType("i32", (8,)), f32(8, 256))),
        Example("ragged", EmbeddingGradientAttributes(11), (TensorType("i32", (3, 5)), f32(3, 5, 7))),
        Example("one index", EmbeddingGradientAttributes(9), (TensorType("i32", ()), f32(7))),
    ),
)
