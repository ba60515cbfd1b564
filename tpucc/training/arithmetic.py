"""Arithmetics of training: the host's own, and those that remember what they have made of an array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tpucc.floating import erf as series
from tpucc.floating.arithmetic import Arithmetic
from tpucc.floating.matrix_unit import Machine, Rounded, one_by_one, rounded
from tpucc.numerics import AnyArray, Float32

T = TypeVar("T")


@dataclass(frozen=True)
class Numpy(Arithmetic):
    """float32 as NumPy computes it, with the product of its BLAS. The last bits differ between processors and numbers of threads."""

    name = "numpy"

    def product(self, a: Float32, b: Float32) -> Float32:
        return np.asarray(a @ b, np.float32)

    def products(self, a: Float32, b: Float32) -> Float32:
        return one_by_one(self.product, a, b)

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
            return rounded(x)
        known: dict[Hashable, Rounded] = self._of(owner)
        if (turned or flags.c_contiguous) and x.nbytes == owner.nbytes and owner.flags.forc:
            layout: Layout = 0, x.shape, ()
        else:
            layout = x.__array_interface__["data"][0], x.shape, x.strides
            if (found := known.get((layout[0], x.shape[::-1], x.strides[::-1]))) is not None:
                return found if turned else found.T
        if (found := known.get(layout)) is None:
            found = known[layout] = rounded(x)
        return found.T if turned else found


def remembering(arithmetic: Arithmetic) -> Arithmetic:
    """The same arithmetic, for arrays that nobody changes: what it has made of one, it may keep as long as the array lives."""
    match arithmetic:
        case Numpy():
            return _RememberingNumpy()
        case Machine():
            return _RememberingMachine(arithmetic.rows)
        case _:
            return arithmetic


NUMPY: Arithmetic = Numpy()
"""The host's arithmetic where it trains: as fast as its library."""
