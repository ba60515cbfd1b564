"""The values that a step's nodes consist of: operations of elements, sums and largest values along axes, products, and elements in other
places. Equal values are one. What writes them down is `symbols.py`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from tpucc.ir import Node
from tpucc.numerics import AnyArray, Int64

Shape = tuple[int, ...]


class Kind(Enum):
    """What a value is."""

    GIVEN = auto()
    """There when the step begins; `what` is its name."""
    NUMBER = auto()
    """The same number in all places, `what`."""
    COLUMN = auto()
    """The numbers 0, 1, … along an axis."""
    ELEMENT = auto()
    """The operation `what` of elements of its operands, which broadcast."""
    SUM = auto()
    """The sum along the axes `what`, which it hasn't."""
    LARGEST = auto()
    """The largest value along the axes `what`, which it hasn't."""
    PRODUCT = auto()
    """The product of two matrices."""
    VIEW = auto()
    """The elements of its operand in the same order, in another shape."""
    TURNED = auto()
    """The transposed matrix of its operand."""
    GATHERED = auto()
    """Rows of a matrix, by their indices: its operands are the matrix and the indices."""
    SCATTERED = auto()
    """A matrix of `what` in all places, to which rows were added by their indices: its operands are the indices and the rows."""
    MOVED = auto()
    """Elements of its operands, each from the place that `what` says: the number of the operand's value times `PLACES`, plus the element's
    place in it."""


PLACES = 2**32
"""More than a value has elements."""
WALKS = 2
"""Sources of an expression that may repeat rows: the third has no steps."""


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A value of the trace. A `mask` holds truth values. It is computed for `node` first, in the group with this number."""

    number: int
    kind: Kind
    what: Any
    operands: tuple[Value, ...]
    shape: Shape
    mask: bool
    node: Node | None
    group: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Draw:
    """The operation that draws random numbers: which use of them in a step, and how many an item takes."""

    use: int
    items: int


class Untraceable(Exception):
    """A float form does something that the machine has no instruction for, as far as it is built; the text says what."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of an input that choose something for the node's operator: `require` raises `InputError` for one that doesn't exist. The
    operator has them from these `places` of the input, int64 of any shape."""

    buffer: str
    places: Int64
    require: Callable[[AnyArray], None]
    node: Node


@dataclass(slots=True)
class Trace:
    """All values so far, in the order in which they were made; equal ones are one. `node` and `group` are those that are traced now."""

    values: list[Value] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    """The inputs whose integers are needed to the last bit."""
    node: Node | None = None
    group: int = 0
    _known: dict[Any, Value] = field(default_factory=dict)

    def given(self, name: str, shape: Shape) -> Value:
        """A value that is there."""
        return self._made(Kind.GIVEN, name, (), shape)

    def number(self, value: float, shape: Shape = ()) -> Value:
        return self._made(Kind.NUMBER, float(np.float32(value)), (), shape)

    def element(self, what: str | Draw, *operands: Value, mask: bool = False) -> Value:
        """The operation `what` of values. Of a mask as numbers, whether these aren't 0 is the mask."""
        if what == "!=" and _is_number(operands[1], 0.0) and (of := _mask_of(operands[0])) is not None:
            return of
        if what == "max" and _is_number(operands[0], -math.inf):
            return self.broadcast(operands[1], np.broadcast_shapes(*(each.shape for each in operands)))
        shape = np.broadcast_shapes(*(each.shape for each in operands))
        wide = [self.broadcast(each, shape) for each in operands]
        repeated = [at for at, each in enumerate(wide) if each.size < math.prod(shape) and each.kind not in (Kind.NUMBER, Kind.COLUMN)]
        for at in repeated[WALKS:]:
            wide[at] = self._made(Kind.ELEMENT, "copy", (wide[at], self.number(0.0, shape)), shape)
        return self._made(Kind.ELEMENT, what, tuple(wide), shape, mask)

    def reduced(self, kind: Kind, x: Value, axes: Sequence[int]) -> Value:
        chosen = tuple(sorted(axis % len(x.shape) for axis in axes))
        return self._made(kind, chosen, (x,), tuple(size for axis, size in enumerate(x.shape) if axis not in chosen))

    def view(self, x: Value, shape: Shape) -> Value:
        """The elements of x in another shape; of a view, those of what it views."""
        x = x.operands[0] if x.kind is Kind.VIEW else x
        if x.kind is Kind.MOVED:
            return self.moved(x.what.reshape(shape))
        return x if shape == x.shape else self._made(Kind.VIEW, None, (x,), shape, x.mask)

    def turned(self, x: Value, order: Shape) -> Value:
        """The axes of x in another order."""
        if x.kind is Kind.TURNED and order == (1, 0):
            return x.operands[0]
        if len(order) != 2:
            return self.moved(self.places(x).transpose(order))
        return self._made(Kind.TURNED, None, (x,), x.shape[::-1])

    def places(self, x: Value) -> Int64:
        """Where the elements of a value are: int64, of its shape. Of a value that only moves elements, where these come from."""
        match x.kind:
            case Kind.MOVED:
                found: Int64 = x.what
            case Kind.VIEW:
                found = self.places(x.operands[0]).reshape(x.shape)
            case Kind.TURNED:
                found = self.places(x.operands[0]).T
            case Kind.NUMBER:
                found = np.full(x.shape, self.number(x.what).number * PLACES, np.int64)
            case _:
                found = np.arange(x.number * PLACES, x.number * PLACES + x.size).reshape(x.shape)
        return found

    def sources(self, places: Int64) -> list[Value]:
        """The values whose elements are at these places, in order."""
        return [self.values[number] for number in np.flatnonzero(np.bincount(places.reshape(-1) // PLACES)).tolist()]

    def moved(self, places: Int64) -> Value:
        """The value of the elements at these places."""
        operands = tuple(self.sources(places))
        first = operands[0] if operands else self.number(0.0)
        if len(operands) < 2 and first.kind is Kind.NUMBER:
            return self.number(first.what, places.shape)
        if len(operands) == 1 and places.size == first.size and np.array_equal(places.ravel(), self.places(first).ravel()):
            return self.view(first, places.shape)
        return self._made(Kind.MOVED, np.ascontiguousarray(places), operands, places.shape, any(each.mask for each in operands))

    def broadcast(self, x: Value, shape: Shape) -> Value:
        """A value that repeats in this shape; as it is where an instruction repeats it: one element, one row, or one column."""
        own = (1,) * (len(shape) - len(x.shape)) + x.shape
        alike = x.size in (1, math.prod(shape)) or math.prod(own[:-1]) == 1 or (own[-1] == 1 and own[:-1] == shape[:-1])
        return x if alike else self.moved(np.broadcast_to(self.places(x), shape))

    def product(self, a: Value, b: Value) -> Value:
        return self._made(Kind.PRODUCT, None, (a, b), (a.shape[0], b.shape[1]))

    def column(self, count: int) -> Value:
        return self._made(Kind.COLUMN, count, (), (count,))

    def gathered(self, matrix: Value, indices: Value) -> Value:
        """The rows of a matrix with these indices."""
        return self._made(Kind.GATHERED, None, (matrix, indices), (*indices.shape, *matrix.shape[1:]))

    def scattered(self, matrix: Value, indices: Value, rows: Value) -> Value:
        """A matrix of one number, to whose rows with these indices other rows are added, in their order."""
        if matrix.kind is not Kind.NUMBER:
            raise Untraceable("adds to rows of a matrix that isn't one number")
        return self._made(Kind.SCATTERED, matrix.what, (indices, rows), matrix.shape)

    def require(self, numbers: Value, require: Callable[[AnyArray], None]) -> None:
        """Notes what numbers of an input must be. Raises `Untraceable` for others."""
        places = self.places(numbers)
        of, *others = self.sources(places)
        if others or of.kind is not Kind.GIVEN:
            raise Untraceable("looks values up by numbers that aren't of one input")
        assert self.node is not None
        self.numbers.append(Numbers(of.what, places % PLACES, require, self.node))

    def _made(self, kind: Kind, what: Any, operands: tuple[Value, ...], shape: Shape, mask: bool = False) -> Value:
        name = str(what) if kind is not Kind.MOVED else (self.group, hashlib.sha256(what).digest())  # each group moves for itself
        key = kind, name, tuple(each.number for each in operands), shape
        if (known := self._known.get(key)) is None:
            known = self._known[key] = Value(len(self.values), kind, what, operands, shape, mask, self.node, self.group)
            self.values.append(known)
        return known


def _is_number(value: Value, number: float) -> bool:
    return value.kind is Kind.NUMBER and value.what == number


def _mask_of(value: Value) -> Value | None:
    """The mask of which a value is 1 and 0; None if it is something else."""
    if value.kind is Kind.ELEMENT and value.what == "select" and _is_number(value.operands[1], 1.0) and _is_number(value.operands[2], 0.0):
        return value.operands[0]
    return None


def reachable(roots: Sequence[Value]) -> Iterator[Value]:
    """The values that roots depend on, and these, each once; operands come first."""
    wanted, waiting = set[int](), list(roots)
    found: dict[int, Value] = {}
    while waiting:
        value = waiting.pop()
        if value.number not in wanted:
            wanted.add(value.number)
            found[value.number] = value
            waiting += value.operands
    return (found[number] for number in sorted(found))
