"""Arithmetics: the operations on float32 arrays whose bits depend on the machine that computes them.

+ - × ÷, square roots and comparisons are IEEE float32 in all of them, so NumPy's own do. The others are methods here: products, sums and
functions without a closed form. `PORTABLE` is the host as it compiles and runs: bit for bit the same on every processor. Training has
others (`tpucc.training.arithmetic`, `tpucc.training.matrix_unit`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tpucc.floating import exact, functions
from tpucc.floating.reduction import tree_sum
from tpucc.numerics import AnyArray, Float32

T = TypeVar("T")


class Arithmetic(ABC):
    """A way to compute with float32 arrays. Arguments stay as they are; results are new arrays.

    NumPy's warnings of overflow and the like are the caller's to switch off: that takes as long as a small operation.
    """

    name: str
    """One word, for messages and tables."""

    def once(self, function: Callable[..., T], x: AnyArray, *arguments: Hashable) -> T:
        """`function(x, *arguments, self)`, of which an arithmetic that remembers keeps the result (`tpucc.training.arithmetic`)."""
        return function(x, *arguments, self)

    @abstractmethod
    def product(self, a: Float32, b: Float32) -> Float32:
        """a [M, K] times b [K, N]; float32 [M, N]. Raises ValueError if the inner dimensions differ."""

    def products(self, a: Float32, b: Float32) -> Float32:
        """Each matrix of a [B, M, K] times its one of b [B, K, N]; float32 [B, M, N]."""
        found = [self.product(left, right) for left, right in zip(a, b, strict=True)]
        return np.stack(found) if found else np.zeros((0, a.shape[1], b.shape[2]), np.float32)

    @abstractmethod
    def sum(self, x: Float32, axis: tuple[int, ...]) -> Float32:
        """The sums of x over these axes, which the result hasn't; float32. Without axes, a copy."""

    @abstractmethod
    def exp(self, x: Float32) -> Float32:
        """e to the power of x, element by element; any shape."""

    @abstractmethod
    def log(self, x: Float32) -> Float32:
        """The natural logarithm, element by element; any shape. Of a zero -inf, of a negative number NaN."""

    @abstractmethod
    def tanh(self, x: Float32) -> Float32:
        """The hyperbolic tangent, element by element; any shape."""

    @abstractmethod
    def erf(self, x: Float32) -> Float32:
        """The error function, element by element; any shape."""

    @abstractmethod
    def sigmoid(self, x: Float32) -> Float32:
        """1 / (1 + exp(-x)), element by element; any shape. Never overflows."""


@dataclass(frozen=True)
class Portable(Arithmetic):
    """float32 with the same bits on every processor.

    - An element of a product is the exact sum of its products, rounded once to float32 (`tpucc.floating.exact`).
    - A sum is a halving tree (`tree_sum`).
    - Functions are polynomials, wrong by at most 2 ulp, sigmoid by at most 3 (`tpucc.floating.functions`).

    NaN is always `NAN`, the quiet one without a payload. No product and no sum is -0.
    """

    name = "portable"

    def product(self, a: Float32, b: Float32) -> Float32:
        return exact.float32_product(a, b)

    def products(self, a: Float32, b: Float32) -> Float32:
        return exact.float32_product(a, b)

    def sum(self, x: Float32, axis: tuple[int, ...]) -> Float32:
        return tree_sum(x, axis)

    def exp(self, x: Float32) -> Float32:
        return functions.exp(x)

    def log(self, x: Float32) -> Float32:
        return functions.log(x)

    def tanh(self, x: Float32) -> Float32:
        return functions.tanh(x)

    def erf(self, x: Float32) -> Float32:
        return functions.erf(x)

    def sigmoid(self, x: Float32) -> Float32:
        return functions.sigmoid(x)


PORTABLE: Arithmetic = Portable()
"""The host's arithmetic where it compiles and runs."""
