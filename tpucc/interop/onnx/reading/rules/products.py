"""Products of matrices. A constant on the right may have its rows in any order, so that values needn't be moved before a product."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tpucc.interop.onnx.reading.call import Call, Result, Rule
from tpucc.interop.onnx.reading.network import Network
from tpucc.interop.onnx.reading.problems import Unsupported
from tpucc.interop.onnx.reading.values import Static, Tensor, Value, plain
from tpucc.ir.graph import Node


def product(net: Network, a: Value, b: Value) -> Tensor:
    """a @ b, with NumPy's rules."""
    if isinstance(a, Tensor) and isinstance(b, Static) and b.array.ndim == 2:
        return _by_weight(net, a, b)
    if not a.shape or not b.shape:
        raise Unsupported("a product with a scalar")
    left, right = _matrix(net, a), _matrix(net, b)
    if len(b.shape) == 1:
        made = plain(net.add("matmul", left, net.add("reshape", right, shape=(*b.shape, 1))))
        return net.reshaped(made, made.shape[:-1])
    return plain(net.add("matmul", left, right))


def _matrix(net: Network, value: Value) -> Node:
    return net.given(value.array, value.name) if isinstance(value, Static) else net.arranged(value, range(value.rank))


def _by_weight(net: Network, x: Tensor, w: Static) -> Tensor:
    """x @ w: the axes before the last stay where they are, and the rows of w go where the parts of the last axis are."""
    if x.rank == 0 or x.shape[-1] != w.shape[0]:
        raise Unsupported(f"a product of {list(x.shape)} and {list(w.shape)}")
    rows = w.array
    if len(x.axes[-1]) > 1:
        atoms, parts = x.atoms(x.rank - 1), x.axes[-1]
        order = sorted(range(len(parts)), key=parts.__getitem__)
        rows = rows.reshape(*atoms, -1).transpose(*order, len(atoms)).reshape(rows.shape)
    moved = _last_axis_behind(net, x)
    grid = net.held.get(x.node.name)
    again = moved.node is not x.node and (w.name in net.grids or moved.node.op == "transpose")
    left = net.on(moved.node, grid) if again and grid is not None else moved.node
    return Tensor(net.add("matmul", left, net.weight(rows, w.name)), moved.axes)


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
    if node.type.shape != shape:
        flat = len(others) == 1 and node.type.rank > 2
        node = net.add("flatten", node) if flat else net.add("reshape", node, shape=shape)
    return Tensor(node, (*(tuple(places[part] for part in axis) for axis in x.axes[:-1]), (len(others),)), x.kind)


def _matmul(c: Call) -> Result:
    return product(c.network, c.value(0), c.value(1))


def _gemm(c: Call) -> Result:
    """alpha · A' @ B' + beta · C. What is constant takes in the factors."""
    net = c.network
    a, b = _turned(c.value(0), c.attribute("transA", 0)), _turned(c.value(1), c.attribute("transB", 0))
    alpha, beta = c.attribute("alpha", 1.0), c.attribute("beta", 1.0)
    if alpha != 1 and isinstance(b, Static):
        b, alpha = Static(b.array * np.float32(alpha), b.name), 1.0
    made = product(net, a, b)
    if alpha != 1:
        made = net.affine(made, alpha)
    if not c.has(2):
        return made
    term = c.value(2)
    if beta != 1:
        term = Static(term.array * np.float32(beta), term.name) if isinstance(term, Static) else net.affine(term, beta)
    return net.elementwise("add", made, term)


def _turned(value: Value, turned: int) -> Value:
    if not turned:
        return value
    return Static(value.array.T, value.name) if isinstance(value, Static) else Tensor(value.node, value.axes[::-1], value.kind)


def _einsum(c: Call) -> Result:
    """One or two operands whose letters are summed, kept, or batch axes: transposes around one product."""
    terms, arrow, result = str(c.attribute("equation", "")).replace(" ", "").partition("->")
    operands = terms.split(",")
    if "." in terms or not arrow or len(operands) != 2 or any(len(set(letters)) < len(letters) for letters in operands):
        raise Unsupported(f"the equation {c.attribute('equation')!r}", "equations of two operands and a result, without dots, are read")
    return contracted(c.network, (c.value(0), c.value(1)), (operands[0], operands[1]), result)


def contracted(net: Network, values: tuple[Value, Value], letters: tuple[str, str], result: str) -> Tensor:
    """The sum of products over the letters of both operands that the result doesn't have."""
    a, b = letters
    sizes = {letter: size for word, value in zip(letters, values, strict=True) for letter, size in zip(word, value.shape, strict=True)}
    batch = [letter for letter in a if letter in b and letter in result]
    summed = [letter for letter in a if letter in b and letter not in result]
    left, right = ([letter for letter in word if letter not in (*batch, *summed)] for word in letters)
    if set(left) | set(right) | set(batch) != set(result):
        raise Unsupported("letters that only one operand has and that are summed", "a ReduceSum before it does that")
    x = _grouped(net, values[0], a, (batch, left, summed), sizes)
    y = _grouped(net, values[1], b, (batch, summed, right), sizes)
    made = net.reshaped(product(net, x, y), [sizes[letter] for letter in (*batch, *left, *right)])
    order = [*batch, *left, *right]
    return Tensor(made.node, tuple(made.axes[order.index(letter)] for letter in result))


def _grouped(net: Network, value: Value, word: str, to: Sequence[Sequence[str]], sizes: Mapping[str, int]) -> Value:
    """An operand with its batch axes as they are, and the other two groups of letters joined to one axis each."""
    order = [word.index(letter) for group in to for letter in group]
    shape = [*(sizes[letter] for letter in to[0]), *(math.prod(sizes[letter] for letter in group) for group in to[1:])]
    if isinstance(value, Static):
        return Static(value.array.transpose(order).reshape(shape), value.name)
    return net.reshaped(Tensor(value.node, tuple(value.axes[axis] for axis in order), value.kind), shape)


RULES: Mapping[str, Rule] = {"Einsum": _einsum, "Gemm": _gemm, "MatMul": _matmul}
