"""Arithmetics: the operations on float32 arrays whose bits depend on the machine that computes them.

+ - × ÷, square roots and comparisons are IEEE float32 in all of them, so NumPy's own do. The others are methods here: products, sums and
functions without a closed form. `PORTABLE` is the host as it compiles and runs, `PLAIN` what references and tables are computed in.
Training has others (`tpucc.training.arithmetic`, `tpucc.floating.matrix_unit`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tpucc.floating import double, exact, functions
from tpucc.floating import erf as series
from tpucc.floating.random_numbers import uniform
from tpucc.floating.reduction import tree_sum
from tpucc.numerics import AnyArray, Float32, Float64

T = TypeVar("T")


@dataclass(frozen=True)
class Arithmetic:
    """float32 with the same bits on every processor.

    - An element of a product is the exact sum of its products, rounded once to float32 (`tpucc.floating.exact`).
    - A sum is a halving tree (`tree_sum`).
    - Functions are polynomials, wrong by at most 2 ulp, sigmoid by at most 3 (`tpucc.floating.functions`).

    NaN is always `NAN`, the quiet one without a payload. No product and no sum is -0. Arguments stay as they are; results are new arrays.
    NumPy's warnings of overflow and the like are the caller's to switch off: that takes as long as a small operation.

    An arithmetic of another machine is a subclass, which computes some of it otherwise.
    """

    name = "portable"
    """One word, for messages and tables."""

    def once(self, function: Callable[..., T], x: AnyArray, *arguments: Hashable) -> T:
        """`function(x, *arguments, self)`, of which an arithmetic that remembers keeps the result (`tpucc.training.arithmetic`)."""
        return function(x, *arguments, self)

    def product(self, a: Float32, b: Float32) -> Float32:
        """a [M, K] times b [K, N]; float32 [M, N]. Raises ValueError if the inner dimensions differ."""
        return exact.float32_product(a, b)

    def products(self, a: Float32, b: Float32) -> Float32:
        """Each matrix of a [B, M, K] times its one of b [B, K, N]; float32 [B, M, N]."""
        return exact.float32_product(a, b)

    def sum(self, x: Float32, axis: tuple[int, ...]) -> Float32:
        """The sums of x over these axes, which the result hasn't; float32. Without axes, a copy."""
        return tree_sum(x, axis)

    def uniform(self, draw: AnyArray, use: int, shape: tuple[int, ...]) -> Float32:
        """Random numbers of [0, 1), float32 of this shape, whose first size counts items; any array of integers `draw` has the seed, the
        step and the number of the first item.

        Element i of item n has the counter (n · elements an item + i, use), with the key (seed, step).
        """
        seed, step, first = draw.astype(np.uint32).tolist()
        return uniform((seed, step), use, first * math.prod(shape[1:]), math.prod(shape)).reshape(shape)

    def exp(self, x: Float32) -> Float32:
        """e to the power of x, element by element; any shape."""
        return functions.exp(x)

    def expm1(self, x: Float32) -> Float32:
        """e to the power of x, less 1, as tanh(x / 2) * (exp(x) + 1), which loses no digits near 0; any shape."""
        return self.tanh(x * 0.5) * (self.exp(x) + 1.0)

    def log(self, x: Float32) -> Float32:
        """The natural logarithm, element by element; any shape. Of a zero -inf, of a negative number NaN."""
        return functions.log(x)

    def tanh(self, x: Float32) -> Float32:
        """The hyperbolic tangent, element by element; any shape."""
        return functions.tanh(x)

    def erf(self, x: Float32) -> Float32:
        """The error function, element by element; any shape."""
        return functions.erf(x)

    def sigmoid(self, x: Float32) -> Float32:
        """1 / (1 + exp(-x)), element by element; any shape. Never overflows."""
        return functions.sigmoid(x)


PORTABLE = Arithmetic()
"""The host's arithmetic where it compiles and runs."""


@dataclass(frozen=True)
class Plain(Arithmetic):
    """Arrays of any precision: NumPy's products and sums, and the functions of `tpucc.floating.double`, rounded to that precision.

    Its functions have the same bits on every processor, its products and sums don't.
    """

    name = "plain"

    def product(self, a: AnyArray, b: AnyArray) -> AnyArray:
        return np.asarray(a @ b)

    products = product

    def sum(self, x: AnyArray, axis: tuple[int, ...]) -> AnyArray:
        return np.asarray(np.add.reduce(x, axis))

    def exp(self, x: AnyArray) -> AnyArray:
        return _rounded(double.exp, x)

    def expm1(self, x: AnyArray) -> AnyArray:
        return _rounded(double.expm1, x)

    def log(self, x: AnyArray) -> AnyArray:
        return _rounded(double.log, x)

    def tanh(self, x: AnyArray) -> AnyArray:
        return _rounded(double.tanh, x)

    def erf(self, x: AnyArray) -> AnyArray:
        return series.erf(x)

    def sigmoid(self, x: AnyArray) -> AnyArray:
        return _rounded(double.sigmoid, x)


def _rounded(function: Callable[[AnyArray], Float64], x: AnyArray) -> AnyArray:
    return function(x).astype(x.dtype)


PLAIN = Plain()
"""The arithmetic of references, in the precision of the operands, and of tables, in float64."""
