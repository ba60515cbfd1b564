"""Products of matrices. A constant on the right may have its rows in any order, so that values needn't be moved before a product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.floating.exact import matmul
from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value, broadcast, order_of, plain
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import require
from tpucc.interop.onnx.reading.operators.rows import Fact, operator
from tpucc.interop.onnx.reading.operators.shapes import Shape
from tpucc.numerics import AnyArray


def require_inner(a: Shape, b: Shape) -> None:
    """Raises `Misfit` for shapes of which there is no product."""
    require(bool(a) and bool(b) and a[-1] == b[-2:][0] and broadcast([a[:-2], b[:-2]]) is not None)


def product(net: Network, a: Value, b: Value) -> Tensor:
    """a @ b, with NumPy's rules."""
    if isinstance(a, Tensor) and isinstance(b, Static) and b.array.ndim == 2:
        return _by_weight(net, a, b)
    left, right = (net.arranged(value, range(value.rank)) for value in (a, b))
    if len(b.shape) == 1:
        made = plain(net.add("matmul", left, net.add("reshape", right, shape=(*b.shape, 1))))
        return net.reshaped(made, made.shape[:-1])
    return plain(net.add("matmul", left, right))


def _by_weight(net: Network, x: Tensor, w: Static) -> Tensor:
    """x @ w: the axes before the last stay where they are, and the rows of w go where the parts of the last axis are."""
    require(x.rank > 0 and x.shape[-1] == w.shape[0])
    if x.node.op == "reshape" and len(x.order) < x.node.type.rank and all(len(axis) == 1 for axis in x.axes):
        x = net.laid(x, order_of(x))  # axes of size 1 that the file has no more
    rows = w.array
    if len(x.axes[-1]) > 1:
        atoms, parts = x.atoms(x.rank - 1), x.axes[-1]
        order = sorted(range(len(parts)), key=parts.__getitem__)
        rows = rows.reshape(*atoms, -1).transpose(*order, len(atoms)).reshape(rows.shape)
    moved = _last_axis_behind(net, x)
    return Tensor(net.add("matmul", moved.node, net.matrix(rows, w.name)), moved.axes)


def _last_axis_behind(net: Network, x: Tensor) -> Tensor:
    """The tensor on a node whose last axis is the last one of the file, its parts in ascending order."""
    parts, rank = sorted(x.axes[-1]), x.node.type.rank
    if parts == [rank - 1]:
        return x
    sizes = x.node.type.shape
    others = [part for part in range(rank) if part not in parts]
    moving = [part for part in (*others, *parts) if sizes[part] != 1]
    node = x.node if moving == sorted(moving) else net.add("transpose", x.node, perm=(*others, *parts), name=x.node.name)
    places = {part: place for place, part in enumerate(others)}
    shape = (*(sizes[part] for part in others), math.prod(sizes[part] for part in parts))
    if node.op == "reshape" and net.builder.nodes[node.operands[0]].type.shape == shape:
        node = net.builder.nodes[node.operands[0]]
    elif node.type.shape != shape:
        flat = len(others) == 1 and node.type.rank > 2
        node = net.add("flatten", node) if flat else net.add("reshape", node, shape=shape)
    return Tensor(node, (*(tuple(places[part] for part in axis) for axis in x.axes[:-1]), (len(others),)), x.kind)


def _size(_: OnnxNode, arrays: Sequence[AnyArray]) -> int:
    a, b = arrays
    require_inner(a.shape, b.shape)
    return math.prod((*(broadcast([a.shape[:-2], b.shape[:-2]]) or ()), *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())))


@operator("MatMul", Fact.EXACT, fold=lambda _, arrays: matmul(*arrays), size=_size)
def product_of(c: Call, a: Value, b: Value) -> Result:
    require_inner(a.shape, b.shape)
    return product(c.net, a, b)


@operator("Gemm")
def gemm(
    c: Call, a: Value, b: Value, term: Value | None, *, alpha: float = 1.0, beta: float = 1.0, transA: bool = False, transB: bool = False
) -> Result:
    """alpha · A' @ B' + beta · C."""
    net = c.net
    left, right = (value.shape[::-1] if turned else value.shape for value, turned in ((a, transA), (b, transB)))
    require(len(left) == len(right) == 2 and left[1] == right[0])
    require(term is None or broadcast([term.shape, (left[0], right[1])]) == (left[0], right[1]))
    a, b = (value.turned((1, 0)) if turned else value for value, turned in ((a, transA), (b, transB)))
    scaled = _scaled(net, b, alpha) if alpha != 1 else b
    made = product(net, a, b if scaled is None else scaled)
    if scaled is None:
        made = net.affine(made, alpha)
    if term is None or beta == 0:
        return made
    if beta != 1 and isinstance(term, Static) and net.is_number(term):
        term = Static(term.array * np.float32(beta), term.name)
    elif beta != 1:
        term = net.affine(net.tensor(term), beta)
    return net.elementwise("add", made, term)


def _scaled(net: Network, w: Value, alpha: float) -> Static | None:
    """alpha · w of a weight that the file has as integers: alpha is part of their scale, so that the product is one layer. None for others,
    and where a zero point would change its sign."""
    if not isinstance(w, Static) or (grid := net.grids.get(w.name)) is None:
        return None
    if alpha == 0 or (alpha < 0 and grid.zero_point):
        return None
    made = Static(w.array * np.float32(alpha), f"{w.name}.times_{alpha:g}")
    net.grids[made.name] = replace(grid, scale=float(np.float32(grid.scale) * np.float32(abs(alpha))))
    return made
