"""Folding: scales, offsets, padding and slices go into weights, into each other, and away when they change nothing.

Sums and products are reassociated in float32: results may differ in the last bits, and in more where terms cancel. Constants that would
overflow, or become 0, aren't folded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tpucc.ir import Constant, Node, TensorType
from tpucc.numerics import Float32
from tpucc.ops import facts_of
from tpucc.ops.conv2d import conv_axes
from tpucc.ops.fused import Fused
from tpucc.ops.names import add, conv2d, mul, pad, reshape, sub, transpose
from tpucc.ops.names import slice as slice_
from tpucc.ops.opdef import Expression
from tpucc.ops.slice import SliceAttributes, as_slice
from tpucc.ops.windows import MAX_STEP
from tpucc.passes.fuse_bias import is_open_product
from tpucc.passes.rewriter import after_products, array_of, as_columns, constant_of, is_pinned
from tpucc.passes.rules import (
    Family,
    Match,
    Rule,
    applied,
    called,
    constant,
    once,
    product,
    rule,
    rules_pass,
    total,
    unpinned,
    value,
    variable,
    view,
)


@rules_pass("fold-scales", "multiplies scales into weights, and joins neighbouring constants, reshapes and transposes", level=2)
def fold_scales() -> Iterator[Rule]:
    """Folds what only scales, shifts, reshapes or transposes.

    | before | after |
    |---|---|
    | `(x @ w) * s`, one s a column or one for all | `x @ (w * s)`; likewise for `conv2d(x, w)` |
    | `(x @ w + b) * s` | `x @ (w * s) + b * s` |
    | `(x + a) - b`, `a - (b - x)`, `(x * a) * b` | `x + (a - b)`, `x + (a - b)`, `x * (a * b)` |
    | `x + 0`, `x - 0`, `x * 1`, a reshape to the same shape | `x` |
    | a reshape of a reshape, a transpose of a transpose | a single one, or none |
    """
    # lab 9 begin: leave out what changes no value, and join constants
    x, computed = value("x"), variable("x", lambda node: constant_of(node) is None)
    first, second = constant("first"), constant("second")
    # of a difference, too, the constant may be on either side
    either = replace(total, in_any_order=True)
    yield rule("zero added", total(computed, second), lambda m: m.x, when=_adds_nothing)
    yield rule("a factor of one", mul(computed, second), lambda m: m.x, when=_scales_nothing)
    yield rule("two constants added", either(once(called("inner", either(computed, first))), second), _joined_terms)
    yield rule("a scaled product", mul(called("product", product()), second), _into_weights, when=_has_open_product)
    yield rule(
        "a scaled product with a bias",
        mul(once(called("total", total(called("product", product()), first))), second),
        _past_bias,
        when=_has_open_product,
    )
    yield rule("two factors", mul(once(mul(computed, first)), second), _joined_factors)
    yield rule("a reshape to the same shape", view(x), lambda m: m.x, when=_stays)
    yield rule("a reshape of a reshape", view(unpinned(view(x))), lambda m: reshape(m.x, shape=m.root.type.shape))
    yield rule("a transpose that moves nothing", transpose(x), lambda m: m.x, when=_turns_nothing)
    yield rule("a transpose of a transpose", transpose(unpinned(called("inner", transpose(x)))), _joined_transposes)
    # lab 9 end


def _joined_terms(m: Match) -> Expression | None:
    """`s2 * (s1 * x + c1) + c2 = (s2 * s1) * x + (s2 * c1 + c2)`, where each sign is that of an operand of a sum or a difference."""
    outer, outer_sign = _signs(m, m.root, m.inner)
    inner, inner_sign = _signs(m, m.inner, m.x)
    first = np.float32(outer * inner_sign) * array_of(m.first)
    total = _joined(m, np.add, first, np.float32(outer_sign) * array_of(m.second))
    if total is None:
        return None
    return add(m.x, total) if outer * inner > 0 else sub(total, m.x)


def _signs(m: Match, total: Node, x: Node) -> tuple[int, int]:
    """The signs with which a sum or a difference adds `x`, and its other operand."""
    left, right = facts_of(total.op).signs
    return (left, right) if m.rewriter.operands(total)[0] is x else (right, left)


def _joined_factors(m: Match) -> Expression | None:
    factor = _joined(m, np.multiply, array_of(m.first), array_of(m.second))
    return None if factor is None else mul(m.x, factor)


def _into_weights(m: Match) -> Expression | None:
    """`(x @ w) * s` as `x @ (w * s)`."""
    scaled = _scaled_weights(m) if m.product.type.shape == m.root.type.shape else None
    return None if scaled is None else applied(m.product, m.rewriter.operands(m.product)[0], *scaled)


def _past_bias(m: Match) -> Expression | None:
    """`(x @ w + b) * s` as the sum of a product with `w * s` and `b * s`; `b - x @ w` stays."""
    if not m.root.type.shape == m.total.type.shape == m.product.type.shape:
        return None
    _, sign = _signs(m, m.total, m.product)
    bias = _joined(m, np.multiply, np.float32(sign) * array_of(m.first), array_of(m.second))
    scaled = None if bias is None else _scaled_weights(m)
    if bias is None or scaled is None:
        return None
    x, *_ = m.rewriter.operands(m.product)
    if (array_of(m.second) == 0).all():
        return applied(m.product, x, *scaled)
    operands, origin = tuple(each.name for each in (x, *scaled)), m.product.origin.merged(m.second.origin)
    product = replace(m.product, name=m.rewriter.fresh(m.product.name), operands=operands, origin=origin)
    return add(m.rewriter.put(product), bias)


def _scaled_weights(m: Match) -> list[Node] | None:
    """A product's weights, and its bias if it has one, with their columns scaled; None where one of them isn't constant, where there isn't
    one scale a column, or where a scaled value overflows."""
    columns = as_columns(Constant(array_of(m.second)), m.product.type)
    if columns is None:
        return None
    scaled = [_scaled_columns(m, each, columns) for each in m.rewriter.operands(m.product)[1:]]
    made = [each for each in scaled if each is not None]
    return made if len(made) == len(scaled) else None


def _scaled_columns(m: Match, node: Node, columns: Constant) -> Node | None:
    """A constant with its columns scaled, made once however many products share it; None for what isn't constant, and where a value
    overflows."""

    def make() -> Node | None:
        value = constant_of(node)
        scaled = None if value is None else _finite(np.multiply, value.data, columns.data)
        return None if scaled is None else m.rewriter.constant(node.name, Constant(scaled), node.origin.merged(m.second.origin))

    return m.rewriter.once((node.name, m.second.name), make)


def _joined_transposes(m: Match) -> Expression:
    inner = _perm(m.inner)
    return transpose(m.x, perm=tuple(inner[axis] for axis in _perm(m.root)))


def _joined(m: Match, function: np.ufunc, first: Float32, second: Float32) -> Node | None:
    """One constant for two, named after the outer; None when it would be larger than both, or not finite."""
    size = np.broadcast(first, second).size
    values = _finite(function, first, second) if size <= max(first.size, second.size) else None
    if values is None:
        return None
    return m.rewriter.constant(m.second.name, Constant(values), m.first.origin.merged(m.second.origin))


def _adds_nothing(m: Match) -> bool:
    return _stays(m) and not array_of(m.second).any()


def _scales_nothing(m: Match) -> bool:
    return _stays(m) and bool((array_of(m.second) == 1).all())


def _turns_nothing(m: Match) -> bool:
    return _stays(m) and _perm(m.root) == tuple(range(m.root.type.rank))


def _stays(m: Match) -> bool:
    """Whether a node that computes nothing can be dropped for its operand."""
    return m.root.type.shape == m.x.type.shape and m.root.type.dtype == m.x.type.dtype and not is_pinned(m.root)


def _has_open_product(m: Match) -> bool:
    return is_open_product(m.rewriter, m.product)


def _perm(node: Node) -> tuple[int, ...]:
    perm = transpose.attributes_of(node).perm
    return tuple(axis % len(perm) for axis in perm)


def _finite(function: np.ufunc, a: Float32, b: Float32) -> Float32 | None:
    """The function's values; None where one isn't finite, or where a product of two numbers that aren't 0 is 0."""
    with np.errstate(all="ignore"):
        result = np.asarray(function(a, b), np.float32)
        vanishes = function is np.multiply and bool(((result == 0) & (a != 0) & (b != 0)).any())
    return result if np.isfinite(result).all() and not vanishes else None


# Padding before a convolution becomes the convolution's own.
#
# Both are zeros. A convolution's padding moves nothing, and a `pad` moves the whole image.


@rules_pass("fold-padding", "moves padding into the convolution after it", level=1)
def fold_padding() -> Iterator[Rule]:
    """Rewrites `conv2d(pad(x, …), w)` to a `conv2d` of x with explicit padding, where only height and width are padded.

    A pad of a pad becomes one. Pools stay as they are: a maximum or an average isn't the same with zeros around.
    """
    padded = called("padded", unpinned(pad(value("x"))))
    yield rule("a pad of a pad", pad(padded), _one_pad)
    yield rule("a convolution of a pad", conv2d(padded, value("kernel")), _taken_in)


def _one_pad(m: Match) -> Expression:
    """One pad for two."""
    both = zip(pad.attributes_of(m.padded).pads, pad.attributes_of(m.root).pads, strict=True)
    return pad(m.x, pads=tuple((a + c, b + d) for (a, b), (c, d) in both))


def _taken_in(m: Match) -> Expression | None:
    """The convolution with the padding before it taken in; None when other axes are padded, or its padding would be too large.

    "same" stands for what it means on the padded image.
    """
    attributes = conv2d.attributes_of(m.root)
    batch, (top, bottom), (left, right), channels = pad.attributes_of(m.padded).pads
    height, width = conv_axes(attributes, m.padded.type.shape, m.kernel.type.shape)
    sides = (top + height.before, bottom + height.after, left + width.before, right + width.after)
    if any((*batch, *channels)) or max(sides) > MAX_STEP:
        return None
    return conv2d.with_attributes(replace(attributes, padding=sides), m.x, m.kernel)


# A product of some of a value's lanes becomes a product of all of them, with weights of zero for the others.
#
# The device picks lanes by a product of their own. But the tile that multiplies them has room for the lanes beside them in the same column
# block, and multiplying those by zero costs nothing. So grouped convolutions read their channels where they lie.


@rules_pass("fold-slices", "replaces slices of a product's input columns by weights of zero for the other columns", level=2)
def fold_slices() -> Iterator[Rule]:
    """Rewrites `x[..., a:b] @ w` to `x @ w'`, and convolutions likewise, where w' has the rows of w from row a on and zeros elsewhere;
    `x[..., a:b:s]` too.

    Only values that follow a product are worth it, for the host slices its own for nothing; and only lanes that lie in no more column
    blocks of x than they would fill by themselves.
    """
    unfused = Family(product.holds, when=lambda node: not isinstance(node.attributes, Fused))
    part = variable("part", lambda node: slice_.made(node) and not is_pinned(node))
    yield rule("a product of some lanes", unfused(part, constant("weights")), _without_slice, when=_is_worthwhile)


def _without_slice(m: Match) -> Expression | None:
    """The product of all lanes; None where the slice before it isn't one of lanes that are worth it."""
    (x,), weights = m.rewriter.operands(m.part), array_of(m.weights)
    lanes = _lanes(slice_.attributes_of(m.part), x.type, m.context.target.mxu)
    if lanes is None or weights.shape[-2] != m.part.type.columns:  # a kernel in groups has fewer rows than lanes
        return None

    def widened() -> Node:
        data = np.zeros((*weights.shape[:-2], x.type.columns, weights.shape[-1]), np.float32)
        data[..., lanes, :] = weights
        return m.rewriter.constant(m.weights.name, Constant(data), m.weights.origin)

    return applied(m.root, x, m.rewriter.once((m.part.name, m.weights.name), widened))


def _is_worthwhile(m: Match) -> bool:
    """Whether the slice is one of what follows a product."""
    return m.part.name in m.rewriter.once("after products", lambda: after_products(m.rewriter.graph))


def _lanes(part: SliceAttributes, x: TensorType, mxu: int) -> slice | None:
    """The lanes that a slice takes of all rows of x, when they lie in no more column blocks than they would fill."""
    *rows, lanes = part.ranges or (range(0),)
    if not lanes or rows != [range(size) for size in x.shape[:-1]] or part.squeeze:
        return None
    blocks = max(lanes) // mxu - min(lanes) // mxu + 1
    return as_slice(lanes) if blocks <= -(-len(lanes) // mxu) else None
