"""embedding: rows of a table, by their numbers."""

from __future__ import annotations

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError
from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.numerics import place_outside
from tpucc.ops.batch import each
from tpucc.ops.facts import table_rows
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_rank


def infer(_: NoAttributes, types: Types) -> TensorType:
    """`i32[...]` and `f32[V, D]` give `f32[..., D]`."""
    ids, table = types
    require_indices(ids)
    if table.dtype != "f32":
        raise RuleError("E0305", f"expected a table of f32 values, found {table.brief}", about=(1,), help="the indices come first")
    require_rank(table, 2, 1, "[rows, columns]")
    return f32(*ids.shape, table.shape[1])


def require_indices(ids: TensorType) -> None:
    """Raises `RuleError` unless operand 0 is i32."""
    if ids.dtype != "i32":
        mend = "declare the input as i32[...]; the table comes second"
        raise RuleError("E0305", f"expected i32 indices, found {ids.brief}", about=(0,), help=mend)


def reference(_: NoAttributes, operands: Arrays) -> Array:
    ids, table = operands
    require_rows(ids, len(table))
    return np.asarray(table[ids])


def require_rows(ids: Array, rows: int) -> None:
    """Raises `InputError` (E0454) for an index that a table of so many rows doesn't have; negative ones don't count from the end."""
    if (first := place_outside(ids, rows)) is not None:
        place = f" at {list(first)}" if first else ""
        message = f"index {ids[first]}{place} is outside the embedding's table, which has {rows:,} rows"
        raise InputError(Diagnostic("E0454", message, help=(f"indices are 0 to {rows - 1:,}; the inputs have others",)))


def gradient(g: Backward) -> Gradients:
    """dtable has in each row the sum of the rows of dy for which it was read; indices have no gradient."""
    ids, table = g.operands
    return None, ids.call("embedding_gradient", g.dy, rows=table.shape[0])


OP = OpDef(
    name="embedding",
    summary="rows of a table, chosen by their numbers",
    documentation=(
        "`ids` is i32 of any shape. Each number is replaced by that row of the table. Rows count from 0. A number outside the table is "
        "an error when the model runs. ONNX: Gather with axis=0. Keras: Embedding."
    ),
    operands=(Operand("ids"), Operand("table")),
    attributes=NoAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device has no indexed reads"),
    facts=table_rows(batch=each),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Gather", g.operands[1], g.operands[0], axis=0)),
    examples=(
        Example("one whole tile", NoAttributes(), (TensorType("i32", (8,)), f32(256, 256))),
        Example("ragged", NoAttributes(), (TensorType("i32", (3, 5)), f32(11, 7))),
    ),
)
