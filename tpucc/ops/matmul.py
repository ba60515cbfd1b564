"""matmul: the product of rows with a matrix; `a @ b`."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir.graph import NoAttributes
from tpucc.ir.types import TensorType, f32
from tpucc.ops.facts import product
from tpucc.ops.floats import Defined
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, Example, Matrix, OpDef, Operand, RuleError
from tpucc.ops.rules import require_f32


def infer(_: NoAttributes, types: Sequence[TensorType]) -> TensorType:
    """`[..., K] @ [K, N]` is `[..., N]`."""
    a, b = types
    require_f32(types)
    if a.rank == 0:
        raise RuleError("E0303", "{0} is a scalar, and a product needs rows", about=(0,), help="write `*` to scale by a number")
    if b.rank != 2:
        raise RuleError("E0303", "the right side of a product must have two dimensions", about=(1,), help=_rank_help(b))
    if a.shape[-1] != b.shape[0]:
        raise RuleError("E0301", "inner dimensions differ", about=(0, 1), help=_inner_help(a, b))
    return f32(*a.shape[:-1], b.shape[1])


def _rank_help(b: TensorType) -> str:
    if b.rank == 1:
        return f"reshape({{1}}, ({b.shape[0]}, 1)) is it as a column, and reshape({{1}}, (1, {b.shape[0]})) as a row"
    return "the device multiplies rows by one matrix [inputs, outputs]; only the left side may have more dimensions"


def _inner_help(a: TensorType, b: TensorType) -> str:
    text = f"the last size of {{0}} must be the first of {{1}}, and {a.shape[-1]} is not {b.shape[0]}"
    if a.shape[-1] == b.shape[1]:
        return f"{text}; transpose({{1}}, (1, 0)) would fit"
    if a.rank == 2 and a.shape[0] == b.shape[0]:
        return f"{text}; transpose({{0}}, (1, 0)) would fit"
    return text


def reference(_: NoAttributes, operands: Sequence[Array]) -> Array:
    """One product of all rows: NumPy's own would take the leading dimensions one matrix at a time."""
    a, b = operands
    return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[1])


def defined(_: NoAttributes, operands: Sequence[Array], arithmetic: Arithmetic) -> Array:
    """As the reference, with the machine's product."""
    a, b = operands
    return arithmetic.product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """da = dy @ transpose(b); db = transpose(a) @ dy, where all leading sizes of a and dy are rows."""
    a, b = g.operands
    rows, depth, columns = a.type.size // b.shape[0], *b.shape
    return (
        g.dy @ b.transposed() if g.wanted[0] else None,
        a.reshape(rows, depth).transposed() @ g.dy.reshape(rows, columns) if g.wanted[1] else None,
    )
    # lab 10 end


OP = OpDef(
    name="matmul",
    summary="the product of rows with a matrix: a @ b",
    documentation=(
        "`[..., K] @ [K, N]` is `[..., N]`: the leading sizes of `a` are rows, and `b` has two dimensions. One side, either of them, "
        "must be constant: TPU v1 reads weights only from weight memory. A vector `[K]` on the left gives a vector `[N]`. ONNX: "
        "MatMul. Keras: Dense without its bias."
    ),
    operands=(Operand("a"), Operand("b")),
    attributes=NoAttributes,
    infer=infer,
    reference=reference,
    legalisation=Matrix(),
    facts=product(fuses_into="linear"),
    gradient=Rule(gradient),
    floats=Defined(defined),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 256), f32(256, 256))),
        Example("ragged", NoAttributes(), (f32(3, 257), f32(257, 5))),
        Example("leading sizes are rows", NoAttributes(), (f32(2, 3, 4), f32(4, 5))),
        Example("a vector", NoAttributes(), (f32(4), f32(4, 3))),
    ),
)
