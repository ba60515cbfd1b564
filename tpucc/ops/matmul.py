"""matmul: the product of matrices; `a @ b`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.ops.facts import product
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule, Value
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Defined, Example, Matrix, OpDef, Operand, RuleError, Types
from tpucc.ops.parts import Shape, Shapes
from tpucc.ops.rules import broadcast, require_f32, swapped


def infer(_: NoAttributes, types: Types) -> TensorType:
    """`[..., M, K] @ [..., K, N]` is `[..., M, N]`; the leading sizes `...` broadcast. A vector [K] on the left gives no axis M."""
    a, b = types
    require_f32(types)
    if a.rank == 0:
        raise RuleError("E0303", "{0} is a scalar, and a product needs rows", about=(0,), help="write `*` to scale by a number")
    if b.rank < 2:
        raise RuleError("E0303", "the right side of a product must have at least two dimensions", about=(1,), help=_rank_help(b))
    if a.shape[-1] != b.shape[-2]:
        raise RuleError("E0301", "inner dimensions differ", about=(0, 1), help=_inner_help(a, b))
    return f32(*_batch(a.shape, b.shape), *a.shape[-2:-1], b.shape[-1])


def _batch(a: Shape, b: Shape) -> Shape:
    """The common batch dimensions: those before the matrices."""
    return broadcast(a[:-2], b[:-2], last=-3)


def _rank_help(b: TensorType) -> str:
    if b.rank == 0:
        return "write `*` to scale by a number"
    return f"reshape({{1}}, ({b.shape[0]}, 1)) is it as a column, and reshape({{1}}, (1, {b.shape[0]})) as a row"


def _inner_help(a: TensorType, b: TensorType) -> str:
    which = "first" if b.rank == 2 else "last but one"
    text = f"the last size of {{0}} must be the {which} of {{1}}, and {a.shape[-1]} is not {b.shape[-2]}"
    if a.rank == b.rank == 2 and b.shape[1] == a.shape[0]:
        return f"{text}; {{1}} @ {{0}} would fit"
    if a.shape[-1] == b.shape[-1]:
        return f"{text}; transpose({{1}}, {swapped(b.rank)}) would fit"
    if a.rank == b.rank and a.shape[-2] == b.shape[-2]:
        return f"{text}; transpose({{0}}, {swapped(a.rank)}) would fit"
    return text


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """One product of all rows where the right side is one matrix, else one of each matrix."""
    a, b = operands
    if b.ndim == 2:
        return arithmetic.product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    batch, rows = _batch(a.shape, b.shape), np.atleast_2d(a)
    lefts = np.broadcast_to(rows, (*batch, *rows.shape[-2:])).reshape(-1, *rows.shape[-2:])
    rights = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    return arithmetic.products(lefts, rights).reshape(*batch, *a.shape[-2:-1], b.shape[-1])


def prepared(attributes: NoAttributes, shapes: Shapes, arithmetic: Arithmetic) -> Callable[[Array, Array], Array]:
    """`defined` for operands of these shapes, which is called often."""
    if len(shapes[0]) == len(shapes[1]) == 2:
        return arithmetic.product
    return lambda a, b: defined(attributes, (a, b), arithmetic)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """da = dy @ transpose(b); db = transpose(a) @ dy, each summed over the batch dimensions along which the operand was repeated.

    Of a single matrix b all leading sizes of a and dy are rows, so that one product gives that sum.
    """
    a, b = g.operands
    if b.type.rank > 2:
        return _batched(g, a, b)
    rows, depth, columns = a.type.size // b.shape[0], *b.shape
    return (
        g.dy @ b.transposed() if g.wanted[0] else None,
        a.reshape(rows, depth).transposed() @ g.dy.reshape(rows, columns) if g.wanted[1] else None,
    )
    # lab 10 end


def _batched(g: Backward, a: Value, b: Value) -> Gradients:
    # lab 10 begin: give the gradients of products of batches
    """A vector on the left is a matrix of one row."""
    lead = a.shape[:-1] or (1,)
    rows = a.reshape(*lead, a.shape[-1])
    dy = g.dy.reshape(*_batch(a.shape, b.shape), lead[-1], b.shape[-1])
    return (
        (dy @ b.transposed(*swapped(b.type.rank))).summed_to(rows.shape).reshape(*a.shape) if g.wanted[0] else None,
        (rows.transposed(*swapped(rows.type.rank)) @ dy).summed_to(b.shape) if g.wanted[1] else None,
    )
    # lab 10 end


def _obstacle(_: NoAttributes, shapes: Shapes) -> str:
    """Why the matrix unit can't compute it, whichever side is constant. One must be; the pass that places operators looks for that."""
    return "the device multiplies rows by one matrix" if len(shapes[1]) > 2 else ""


OP = OpDef(
    name="matmul",
    summary="the product of matrices: a @ b",
    documentation=(
        "`[..., M, K] @ [..., K, N]` is `[..., M, N]`; the batch dimensions before broadcast as NumPy's do. A vector `[K]` on the left "
        "gives no axis M. With a constant on one side it runs on the device, which multiplies all rows by one matrix. TPU v1 reads "
        "weights only from weight memory: of two computed operands, as in attention, the host computes the product in float32, between "
        "two parts of the device's work, or writes the right side to weight memory for the device, where that is much cheaper; a note says "
        "which. Where the constant has batch dimensions, the host computes it, too. ONNX: MatMul. "
        "Keras: Dense without its bias. NumPy: matmul."
    ),
    operands=(Operand("a"), Operand("b")),
    attributes=NoAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=Matrix(_obstacle),
    facts=product(fuses_into="linear"),
    gradient=Rule(gradient),
    floats=Defined(defined, prepared),
    onnx=Form(lambda g: g.node("MatMul", *g.operands)),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 256), f32(256, 256))),
        Example("ragged", NoAttributes(), (f32(3, 257), f32(257, 5))),
        Example("leading sizes are rows", NoAttributes(), (f32(2, 3, 4), f32(4, 5))),
        Example("a vector", NoAttributes(), (f32(4), f32(4, 3))),
        Example("batch dimensions on both sides", NoAttributes(), (f32(2, 1, 3, 4), f32(3, 4, 5))),
        Example("a vector times a batch", NoAttributes(), (f32(4), f32(2, 4, 3))),
    ),
)
