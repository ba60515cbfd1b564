"""Arithmetics: the operations on float32 arrays whose bits depend on the machine that computes them.

+ - × ÷, square roots and comparisons are IEEE float32 in all of them, so NumPy's own do. The others are methods here: products, sums and
functions without a closed form. `NUMPY` is the host as it trains. `PORTABLE` is the host as it compiles and runs, and `Machine(128)` is a
TPU v2 core: both are bit for bit the same on every processor.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tpucc.floating import erf as series
from tpucc.floating import exact, functions
from tpucc.floating.exact import Rounded
from tpucc.floating.reduction import tree_sum
from tpucc.numerics import AnyArray, Float32

T = TypeVar("T")
Operand = Float32 | Rounded
"""What a product multiplies: an array, or what `Arithmetic.operand` made of one."""


class Arithmetic(ABC):
    """A way to compute with float32 arrays. Arguments stay as they are; results are new arrays.

    NumPy's warnings of overflow and the like are the caller's to switch off: that takes as long as a small operation.
    """

    name: str
    """One word, for messages and tables."""

    @abstractmethod
    def operand(self, x: Float32) -> Operand:
        """x [M, N] prepared for products of this arithmetic: worth it for an operand of several products. `.T` is the transposed one."""

    @abstractmethod
    def remembering(self) -> Arithmetic:
        """The same arithmetic, for arrays that nobody changes: what it has made of one, it may keep as long as the array lives."""

    def once(self, function: Callable[..., T], x: AnyArray, *arguments: Hashable) -> T:
        """`function(x, *arguments, self)`, of which a remembering arithmetic keeps the result."""
        return function(x, *arguments, self)

    @abstractmethod
    def product(self, a: Operand, b: Operand) -> Float32:
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
class Numpy(Arithmetic):
    """float32 as NumPy computes it, with the product of its BLAS. The last bits differ between processors and numbers of threads."""

    name = "numpy"

    def remembering(self) -> Arithmetic:
        return _RememberingNumpy()

    def operand(self, x: Float32) -> Float32:
        return x

    def product(self, a: Operand, b: Operand) -> Float32:
        assert not isinstance(a, Rounded), "an operand of another arithmetic"
        assert not isinstance(b, Rounded), "an operand of another arithmetic"
        return np.asarray(a @ b, np.float32)

    def sum(self, x: Float32, axis: tuple[int, ...]) -> Float32:
        return np.asarray(np.add.reduce(x, axis, np.float32))

    def exp(self, x: Float32) -> Float32:
        return np.asarray(np.exp(x))

    def log(self, x: Float32) -> Float32:
        return np.asarray(np.log(x))

    def tanh(self, x: Float32) -> Float32:
        return np.asarray(np.tanh(x))

    def erf(self, x: Float32) -> Float32:
        return series.erf(x)

    def sigmoid(self, x: Float32) -> Float32:
        power = np.exp(-np.abs(x))
        return np.asarray(np.maximum(power, x >= 0) / (1 + power))  # the power is at most 1


@dataclass(frozen=True)
class Portable(Arithmetic):
    """float32 with the same bits on every processor.

    - An element of a product is the exact sum of its products, rounded once to float32 (`tpucc.floating.exact`).
    - A sum is a halving tree (`tree_sum`).
    - Functions are polynomials, wrong by at most 2 ulp, sigmoid by at most 3 (`tpucc.floating.functions`).

    NaN is always `NAN`, the quiet one without a payload. No product and no sum is -0.
    """

    name = "portable"

    def operand(self, x: Float32) -> Operand:
        return x

    def remembering(self) -> Arithmetic:
        return self

    def product(self, a: Operand, b: Operand) -> Float32:
        assert not isinstance(a, Rounded), "an operand of another arithmetic"
        assert not isinstance(b, Rounded), "an operand of another arithmetic"
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


@dataclass(frozen=True)
class Machine(Portable):
    """A machine with a matrix unit for bfloat16 of `rows` rows, and a float32 vector unit. Same bits on every processor.

    A product rounds its operands to bfloat16, as `round_to_bfloat16` does. Its depth is cut into passes of `rows`. A pass is the exact
    sum of its products, rounded once to float32; passes are added in float32, the first first (`tpucc.floating.exact`). Sums and functions
    are as in `Portable`.
    """

    rows: int
    """Rows of the matrix unit: 128 on TPU v2."""
    name = "machine"

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"a matrix unit of {self.rows} rows")

    def operand(self, x: Float32) -> Rounded:
        return exact.rounded(x)

    def remembering(self) -> Arithmetic:
        return _RememberingMachine(self.rows)

    def product(self, a: Operand, b: Operand) -> Float32:
        left = a if isinstance(a, Rounded) else self.operand(a)
        right = b if isinstance(b, Rounded) else self.operand(b)
        return exact.product(left, right, self.rows)

    def products(self, a: Float32, b: Float32) -> Float32:
        return Arithmetic.products(self, a, b)


Layout = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Of a view: the address of its first element, its shape and its strides. Of all elements of their owner in order, the shape alone."""


@dataclass(frozen=True, eq=False)
class _Remembering(Arithmetic):
    """Keeps what is made of an array as long as the array lives."""

    _known: dict[int, tuple[weakref.ref[AnyArray], dict[Hashable, Any]]] = field(default_factory=dict, init=False, repr=False)
    """By the identity of the array, whose end takes its entry away: it calls `pop` with the identity and, as default, the reference."""

    def once(self, function: Callable[..., T], x: AnyArray, *arguments: Hashable) -> T:
        known, key = self._of(x), (function, *arguments)
        if key not in known:
            known[key] = function(x, *arguments, self)
        found: T = known[key]
        return found

    def _of(self, array: AnyArray) -> dict[Hashable, Any]:
        """What is known of an array."""
        entry = self._known.get(id(array))
        if entry is None:
            entry = self._known[id(array)] = weakref.ref(array, partial(self._known.pop, id(array))), {}
        return entry[1]


@dataclass(frozen=True, eq=False)
class _RememberingNumpy(_Remembering, Numpy):
    """The host's."""


@dataclass(frozen=True, eq=False)
class _RememberingMachine(_Remembering, Machine):
    """Rounds each operand once, too: a view of the same elements, or their transpose, has the same rounded values."""

    def operand(self, x: Float32) -> Rounded:
        flags = x.flags
        turned = flags.f_contiguous and (not flags.c_contiguous or x.shape[0] > 1)
        if turned:
            x = x.T
        owner = x if x.base is None else x.base
        if not isinstance(owner, np.ndarray):
            return exact.rounded(x)
        known: dict[Hashable, Rounded] = self._of(owner)
        if (turned or flags.c_contiguous) and x.nbytes == owner.nbytes and owner.flags.forc:
            layout: Layout = 0, x.shape, ()
        else:
            layout = x.__array_interface__["data"][0], x.shape, x.strides
            if (found := known.get((layout[0], x.shape[::-1], x.strides[::-1]))) is not None:
                return found if turned else found.T
        if (found := known.get(layout)) is None:
            found = known[layout] = exact.rounded(x)
        return found.T if turned else found


NUMPY: Arithmetic = Numpy()
"""The host's arithmetic where it trains: as fast as its library."""
PORTABLE: Arithmetic = Portable()
"""The host's arithmetic where it compiles and runs."""
