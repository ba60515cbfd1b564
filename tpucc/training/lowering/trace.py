"""What a step's nodes consist of, found by calling their float forms with symbols in the place of arrays.

The float form of an operator (`OpDef.floats`) says what a machine for floats computes, in terms of NumPy and of an `Arithmetic`. Called
with symbols, it writes this down: single operations of elements, sums and largest values along axes, products, and elements in other
places. Elements move as NumPy moves them: the same slices, patches and concatenations, of an array of the places that elements come from.
So nothing here names an operator, and the bits are those of the reference, whose functions these are. A float form that does anything
else is `Untraceable`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tpucc.floating.arithmetic import Arithmetic
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.ir import Node
from tpucc.numerics import AnyArray, Int64
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import Defined, Ieee

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
    MOVED = auto()
    """Elements of its operands, each from the place that `what` says: the number of the operand's value times `PLACES`, plus the element's
    place in it."""


PLACES = 2**32
"""More than a value has elements."""
WALKS = 2
"""Sources of an expression that may repeat rows: the third has no steps."""
MOST_NUMBERS = 64
"""Different numbers in an array of them: each takes a row of vector memory."""


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
class Labels:
    """The rows of an input whose numbers must be classes: below `classes`, for the node's operator."""

    buffer: str
    classes: int
    node: Node


@dataclass(slots=True)
class Trace:
    """All values so far, in the order in which they were made; equal ones are one. `node` and `group` are those that are traced now."""

    values: list[Value] = field(default_factory=list)
    labels: list[Labels] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    """The inputs whose integers are needed to the last bit."""
    node: Node | None = None
    group: int = 0
    _known: dict[Any, Value] = field(default_factory=dict)

    def given(self, name: str, shape: Shape, whole: bool = False) -> Symbol:
        """A value that is there; the elements of a `whole` one are integers."""
        return Symbol(self, self._made(Kind.GIVEN, name, (), shape), whole)

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

    def moved(self, places: Int64) -> Value:
        """The value of the elements at these places."""
        numbers = np.unique(places // PLACES).tolist()
        operands = tuple(self.values[number] for number in numbers)
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

    def labelled(self, labels: Symbol, classes: int) -> None:
        """Notes that numbers must be classes."""
        of = labels.value.operands[0] if labels.value.kind is Kind.VIEW else labels.value
        assert self.node is not None
        self.labels.append(Labels(of.what, classes, self.node))

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


OF_NUMPY: Mapping[Any, str] = {
    np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.maximum: "max", np.minimum: "min", np.negative: "neg",
    np.absolute: "abs", np.sqrt: "sqrt", np.sign: "sign",
}  # fmt: skip
"""The operations of floats, by NumPy's functions."""
MASKS: Mapping[Any, str] = {
    np.greater: ">", np.greater_equal: ">=", np.less: "<", np.less_equal: "<=", np.equal: "==", np.not_equal: "!=",
    np.bitwise_and: "both", np.bitwise_or: "either", np.logical_and: "both", np.logical_or: "either",
}  # fmt: skip
"""The operations that give masks."""


@dataclass(eq=False, slots=True)
class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A value in the place of an array. The elements of a `whole` one are integers; those of `places` are the places of labels in rows.

    A `part` is a view of another symbol: what is written to it is written there, at the index.
    """

    trace: Trace
    value: Value
    whole: bool = False
    places: bool = False
    part: tuple[Symbol, Any] | None = None
    dtype = np.dtype(object)
    """NumPy holds symbols as objects."""

    @property
    def shape(self) -> Shape:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.value.size

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Itself, in an array without axes."""
        held = np.empty(1, object)
        held[0] = self
        return held.reshape(())

    @property
    def T(self) -> Symbol:
        return self.transpose()

    def reshape(self, *shape: Any) -> Symbol:
        sizes = tuple(shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)
        known = math.prod(size for size in sizes if size >= 0)
        return self._with(self.trace.view(self.value, tuple(self.size // max(1, known) if size < 0 else size for size in sizes)))

    def transpose(self, *order: Any) -> Symbol:
        axes = order[0] if len(order) == 1 and isinstance(order[0], tuple | list) else order or range(self.ndim)[::-1]
        axes = tuple(axis % self.ndim for axis in axes)
        return self if axes == tuple(range(self.ndim)) else Symbol(self.trace, self.trace.turned(self.value, axes))

    def astype(self, dtype: Any, **_: Any) -> Symbol:
        """A mask as numbers; integers as they are."""
        return Symbol(self.trace, _as_float(self.trace, self.value), self.whole)

    def argmax(self) -> int:
        return 0

    def item(self, place: int) -> int:
        """A number that is a class: which ones are is asked when they are given."""
        return 0

    def take(self, places: Symbol) -> Symbol:
        """The value of each row that its label names: the sum of the one and of zeros."""
        unwrapped = _unwrapped(places)
        if not (isinstance(unwrapped, Symbol) and unwrapped.places):
            raise Untraceable("looks values up")
        trace, labels, classes = self.trace, unwrapped, self.shape[-1]
        trace.labelled(labels, classes)
        chosen = trace.element("==", trace.column(classes), trace.view(labels.value, (*labels.shape, 1)), mask=True)
        masked = trace.element("select", chosen, self.value, trace.number(0.0))
        return Symbol(trace, trace.reduced(Kind.SUM, masked, (-1,)))

    def __getitem__(self, index: Any) -> Symbol:
        if any(isinstance(_unwrapped(each), Symbol) for each in (index if isinstance(index, tuple) else (index,))):
            raise Untraceable("looks values up")
        found = self._with(self.trace.moved(np.asarray(self.trace.places(self.value)[index])))
        found.part = self, index
        return found

    def __setitem__(self, index: Any, given: Any) -> None:
        places = self.trace.places(self.value).copy()
        places[index] = self.trace.places(_as_float(self.trace, self._value(_unwrapped(given))))
        self._write(self.trace.moved(places))

    def _write(self, value: Value) -> Symbol:
        """Writes a value to this place."""
        self.value = value
        if self.part is not None:
            whole, index = self.part
            whole[index] = self
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Symbol:
        operands = [_unwrapped(each) for each in inputs]
        if method == "reduce" and ufunc is np.maximum:
            axis = settings.get("axis", 0)
            found = self.trace.reduced(Kind.LARGEST, self.value, axis if isinstance(axis, tuple) else (axis,))
            kept = tuple(1 if at in found.what else size for at, size in enumerate(self.shape))
            return Symbol(self.trace, self.trace.view(found, kept) if settings.get("keepdims") else found)
        if method != "__call__":
            raise Untraceable(f"calls {ufunc.__name__}.{method}")
        if self.whole and any(isinstance(each, np.ndarray) and each.dtype.kind == "i" and each.ndim for each in operands):
            return self._of_labels(ufunc, operands)
        found = self._element(ufunc, [self._value(each) for each in operands])
        (out,) = settings.get("out") or (None,)
        return Symbol(self.trace, found) if out is None else out._write(found)

    def __array_function__(self, function: Any, types: Any, given: tuple[Any, ...], settings: Mapping[str, Any]) -> Symbol:
        operands = [_unwrapped(each) for each in given]
        if function is np.where and len(operands) == 3:
            chosen, one, other = (self._value(each) for each in operands)
            return Symbol(
                self.trace,
                self.trace.element("select", _as_mask(self.trace, chosen), _as_float(self.trace, one), _as_float(self.trace, other)),
            )
        if function is np.clip and len(operands) == 3:
            x = self.value
            for sign, bound in zip("<>", map(self._value, operands[1:]), strict=True):
                x = self.trace.element("select", self.trace.element(sign, x, bound, mask=True), bound, x)
            return Symbol(self.trace, x)
        if function is np.broadcast_to and tuple(operands[1]) == self.shape:
            return self
        if function is np.broadcast_to:
            zero = self.trace.number(0.0, tuple(operands[1]))
            return Symbol(self.trace, self.trace.element("copy", self.value, zero))
        if function in FILLED:
            number = operands[1] if function is np.full_like else FILLED[function]
            return Symbol(self.trace, self.trace.number(float(number), tuple(settings.get("shape", self.shape))))
        if function in MOVERS:
            return Symbol(self.trace, self.trace.moved(function(*map(self._places_of, operands), **settings)))
        raise Untraceable(f"calls {function.__name__}")

    def _places_of(self, given: Any) -> Any:
        """The places of symbols in an argument."""
        if isinstance(given, Symbol):
            return self.trace.places(_as_float(self.trace, given.value))
        return [self._places_of(_unwrapped(each)) for each in given] if isinstance(given, list | tuple) else given

    def _with(self, value: Value) -> Symbol:
        return Symbol(self.trace, value, self.whole, self.places)

    def _value(self, given: Any) -> Value:
        """A symbol's value, or numbers beside symbols. Raises `Untraceable` for an array of many numbers."""
        return given.value if isinstance(given, Symbol) else _constant(self.trace, np.asarray(given))

    def _element(self, ufunc: np.ufunc, values: list[Value]) -> Value:
        if ufunc is np.isnan:
            return self.trace.element("!=", values[0], values[0], mask=True)
        if ufunc is np.bitwise_xor:
            return self.trace.element("!=", *(_as_float(self.trace, each) for each in values), mask=True)
        if ufunc is np.square:
            return self.trace.element("*", values[0], values[0])
        if (name := MASKS.get(ufunc)) is not None:
            masks = name in ("both", "either")
            return self.trace.element(name, *((_as_mask if masks else _as_float)(self.trace, each) for each in values), mask=True)
        if (name := OF_NUMPY.get(ufunc)) is not None:
            return self.trace.element(name, *(_as_float(self.trace, each) for each in values))
        raise Untraceable(f"calls {ufunc.__name__}")

    def _of_labels(self, ufunc: np.ufunc, operands: list[Any]) -> Symbol:
        """Labels compared with the numbers of classes, or added to the first places of rows."""
        (labels,) = (each for each in operands if isinstance(each, Symbol))
        (numbers,) = (each for each in operands if not isinstance(each, Symbol))
        if labels.whole and ufunc is np.add:
            return Symbol(self.trace, labels.value, whole=True, places=True)
        if labels.whole and ufunc is np.equal and np.array_equal(numbers, np.arange(len(numbers))):
            self.trace.labelled(labels, len(numbers))
            return Symbol(self.trace, self.trace.element("==", self.trace.column(len(numbers)), labels.value, mask=True))
        raise Untraceable("computes with integers")


MOVERS = frozenset({np.atleast_2d, np.concatenate, np.stack, np.expand_dims, np.moveaxis, np.swapaxes, np.flip, sliding_window_view})
"""Functions of NumPy that only move elements."""
FILLED: Mapping[Any, float] = {np.zeros_like: 0.0, np.ones_like: 1.0, np.full_like: math.nan}
"""Those that make an array of one number."""


def _unwrapped(given: Any) -> Any:
    """A symbol that NumPy has put into an array without axes."""
    return given.item() if isinstance(given, np.ndarray) and given.dtype == object and given.ndim == 0 else given


def _as_float(trace: Trace, value: Value) -> Value:
    """A mask as 1 and 0."""
    return trace.element("select", value, trace.number(1.0), trace.number(0.0)) if value.mask else value


def _as_mask(trace: Trace, value: Value) -> Value:
    """Which numbers aren't 0."""
    return value if value.mask else trace.element("!=", value, trace.number(0.0), mask=True)


class _Writing(Arithmetic):
    """The arithmetic that writes down what is asked of it."""

    def product(self, a: Any, b: Any) -> Any:
        left, right = _unwrapped(a), _unwrapped(b)
        return Symbol(left.trace, left.trace.product(left.value, right.value))

    def products(self, a: Any, b: Any) -> Any:
        left, right = _unwrapped(a), _unwrapped(b)
        return np.stack([self.product(left[index], right[index]) for index in range(len(left))])

    def sum(self, x: Any, axis: tuple[int, ...]) -> Any:
        of = _unwrapped(x)
        return Symbol(of.trace, of.trace.reduced(Kind.SUM, _as_float(of.trace, of.value), axis)) if axis else of

    def uniform(self, draw: Any, use: int, shape: Shape) -> Any:
        of = _unwrapped(draw)
        of.trace.words.add(of.value.what)
        place = of.trace.number(0.0, shape)
        return Symbol(of.trace, of.trace.element(Draw(use, math.prod(shape[1:])), *(of[number].value for number in range(3)), place))

    def exp(self, x: Any) -> Any:
        return _function("exp", x)

    def log(self, x: Any) -> Any:
        return _function("log", x)

    def tanh(self, x: Any) -> Any:
        return _function("tanh", x)

    def erf(self, x: Any) -> Any:
        return _function("erf", x)

    def sigmoid(self, x: Any) -> Any:
        return _function("sigmoid", x)


def _function(name: str, x: Any) -> Any:
    of = _unwrapped(x)
    return Symbol(of.trace, of.trace.element(name, of.value))


WRITING = _Writing()


def traced(trace: Trace, node: Node, operands: Sequence[Symbol]) -> Symbol:
    """The value of a node of these operands. Raises `Untraceable`."""
    trace.node = node
    if isinstance(node.attributes, ConstantAttributes):
        return Symbol(trace, _constant(trace, node.attributes.value.data))
    floats = OPS[node.op].floats
    try:
        match floats:
            case Defined(function):
                found = function(node.attributes, operands, WRITING)  # type: ignore[arg-type]
            case Ieee(prepared) if prepared is not None and prepared(node.attributes) is round_to_bfloat16:
                found = Symbol(trace, trace.element("round_bf16", operands[0].value))  # type: ignore[assignment]
            case _:
                found = OPS[node.op].reference(node.attributes, operands)  # type: ignore[arg-type]
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise Untraceable("does more than elements, sums, products and moves to other places") from error
    symbol = _unwrapped(found)
    if not isinstance(symbol, Symbol) or symbol.shape != node.type.shape:
        raise Untraceable("gives no symbol of its shape")
    return Symbol(trace, _as_float(trace, symbol.value))


def _constant(trace: Trace, data: AnyArray) -> Value:
    """An array of numbers. Raises `Untraceable` where too many of them differ."""
    if data.dtype.kind not in "biuf":
        raise Untraceable("has an array of other than numbers")
    bits, which = np.unique(np.asarray(data, np.float32).reshape(-1).view(np.uint32), return_inverse=True)  # -0 isn't 0
    if len(bits) > MOST_NUMBERS:
        raise Untraceable(f"has an array of {len(bits):,} different numbers")
    of = np.array([trace.number(number).number for number in bits.view(np.float32).tolist()], np.int64)
    return trace.moved((of * PLACES)[which].reshape(data.shape))


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
