"""What an operator computes on a machine for floats.

A result must not depend on the library, the processor or the number of threads. Single IEEE 754 operations in a defined order don't: `Ieee`
says that the reference consists of nothing else. Products, sums, exponentials and the like do; `Defined` computes them with the machine's
own (`tpucc.floating`), in which rounding and order are laid down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.floating.arithmetic import Arithmetic
from tpucc.numerics import AnyArray


@dataclass(frozen=True, slots=True)
class Ieee:
    """The reference: it moves values, or does single float32 operations (+ - * /, square root, rounding to integers, compare, select).

    `prepared` gives for the attributes a function of the operands, one argument each, with the reference's results. It is called often, so
    that what depends on the attributes alone should be done before. Of scalars it needn't make arrays.
    """

    prepared: Callable[[Any], Callable[..., AnyArray]] | None = None


@dataclass(frozen=True, slots=True)
class Defined:
    """The function of attributes, operands and arithmetic that gives the result; with `NUMPY` it may replace the reference.

    `prepared` gives for the attributes, the operands' shapes and the arithmetic a function of the operands, as that of `Ieee` does.
    """

    function: Callable[[Any, Sequence[AnyArray], Arithmetic], AnyArray]
    prepared: Callable[[Any, Sequence[tuple[int, ...]], Arithmetic], Callable[..., AnyArray]] | None = None


@dataclass(frozen=True, slots=True)
class NoFloats:
    """A machine for floats doesn't have the operator; `why` says the reason."""

    why: str


Floats = Ieee | Defined | NoFloats
