"""What a step's nodes consist of, found by calling their float forms with symbols in the place of arrays.

The float form of an operator (`OpDef.floats`) says what a machine for floats computes, in terms of NumPy and of an `Arithmetic`. Called
with symbols, it writes this down: single operations of elements, sums and largest values along axes, products, and views. So nothing here
names an operator, and the bits are those of the reference, whose functions these are. A float form that does anything else is
`Untraceable`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.ir import Node
from tpucc.numerics import AnyArray
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
    """Its operand with the axes in the order `what`."""


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
    node: Node | None = None
    group: int = 0
    _known: dict[Any, Value] = field(default_factory=dict)

    def given(self, name: str, shape: Shape, whole: bool = False) -> Symbol:
        """A value that is there; the elements of a `whole` one are integers."""
        return Symbol(self, self._made(Kind.GIVEN, name, (), shape), whole)

    def number(self, value: float, shape: Shape = ()) -> Value:
        return self._made(Kind.NUMBER, float(np.float32(value)), (), shape)

    def element(self, what: str, *operands: Value, mask: bool = False) -> Value:
        """The operation `what` of values. Of a mask as numbers, whether these aren't 0 is the mask."""
        if what == "!=" and _is_number(operands[1], 0.0) and (of := _mask_of(operands[0])) is not None:
            return of
        return self._made(Kind.ELEMENT, what, operands, np.broadcast_shapes(*(each.shape for each in operands)), mask)

    def reduced(self, kind: Kind, x: Value, axes: Sequence[int]) -> Value:
        chosen = tuple(sorted(axis % len(x.shape) for axis in axes))
        return self._made(kind, chosen, (x,), tuple(size for axis, size in enumerate(x.shape) if axis not in chosen))

    def view(self, x: Value, shape: Shape) -> Value:
        """The elements of x in another shape; of a view, those of what it views."""
        x = x.operands[0] if x.kind is Kind.VIEW else x
        return x if shape == x.shape else self._made(Kind.VIEW, None, (x,), shape, x.mask)

    def turned(self, x: Value, order: Shape) -> Value:
        return self._made(Kind.TURNED, order, (x,), tuple(x.shape[axis] for axis in order))

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
        key = kind, str(what), tuple(each.number for each in operands), shape
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


@dataclass(frozen=True, eq=False, slots=True)
class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A value in the place of an array. The elements of a `whole` one are integers; those of `places` are the places of labels in rows."""

    trace: Trace
    value: Value
    whole: bool = False
    places: bool = False
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
        """With a last axis of size 1: of parts there is nothing yet."""
        if index != (..., np.newaxis):
            raise Untraceable("takes a part of a value")
        return self.reshape(*self.shape, 1)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Symbol:
        operands = [_unwrapped(each) for each in inputs]
        if method == "reduce" and ufunc is np.maximum:
            axis = settings.get("axis", 0)
            found = self.trace.reduced(Kind.LARGEST, self.value, axis if isinstance(axis, tuple) else (axis,))
            kept = tuple(1 if at in found.what else size for at, size in enumerate(self.shape))
            return Symbol(self.trace, self.trace.view(found, kept) if settings.get("keepdims") else found)
        if method != "__call__" or settings.get("out") is not None:
            raise Untraceable(f"calls {ufunc.__name__}.{method}")
        if any(isinstance(each, np.ndarray) and each.dtype.kind == "i" and each.ndim for each in operands):
            return self._of_labels(ufunc, operands)
        return Symbol(self.trace, self._element(ufunc, [self._value(each) for each in operands]))

    def __array_function__(self, function: Any, types: Any, given: tuple[Any, ...], settings: Mapping[str, Any]) -> Symbol:
        operands = [_unwrapped(each) for each in given]
        if function is np.where and len(operands) == 3:
            chosen, one, other = (self._value(each) for each in operands)
            chosen = chosen if chosen.mask else self.trace.element("!=", chosen, self.trace.number(0.0), mask=True)
            return Symbol(self.trace, self.trace.element("select", chosen, _as_float(self.trace, one), _as_float(self.trace, other)))
        if function is np.clip and len(operands) == 3:
            x = self.value
            for sign, bound in zip("<>", map(self._value, operands[1:]), strict=True):
                x = self.trace.element("select", self.trace.element(sign, x, bound, mask=True), bound, x)
            return Symbol(self.trace, x)
        if function is np.expand_dims and operands[1] == -1:
            return self.reshape(*self.shape, 1)
        if function is np.broadcast_to:
            zero = self.trace.number(0.0, tuple(operands[1]))
            return Symbol(self.trace, self.trace.element("copy", self.value, zero))
        raise Untraceable(f"calls {function.__name__}")

    def _with(self, value: Value) -> Symbol:
        return Symbol(self.trace, value, self.whole, self.places)

    def _value(self, given: Any) -> Value:
        """A symbol's value, or a number beside symbols. Raises `Untraceable` for an array of several numbers."""
        if isinstance(given, Symbol):
            return given.value
        array = np.asarray(given)
        if array.dtype.kind not in "biuf" or (array.size and (array != array.flat[0]).any()):
            raise Untraceable("has an array of numbers")
        return self.trace.number(float(array.flat[0]), array.shape)

    def _element(self, ufunc: np.ufunc, values: list[Value]) -> Value:
        if ufunc is np.isnan:
            return self.trace.element("!=", values[0], values[0], mask=True)
        if ufunc is np.square:
            return self.trace.element("*", values[0], values[0])
        if (name := MASKS.get(ufunc)) is not None:
            masks = name in ("both", "either")
            return self.trace.element(name, *(each if masks else _as_float(self.trace, each) for each in values), mask=True)
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


def _unwrapped(given: Any) -> Any:
    """A symbol that NumPy has put into an array without axes."""
    return given.item() if isinstance(given, np.ndarray) and given.dtype == object and given.ndim == 0 else given


def _as_float(trace: Trace, value: Value) -> Value:
    """A mask as 1 and 0."""
    return trace.element("select", value, trace.number(1.0), trace.number(0.0)) if value.mask else value


class _Writing(Arithmetic):
    """The arithmetic that writes down what is asked of it."""

    def product(self, a: Any, b: Any) -> Any:
        left, right = _unwrapped(a), _unwrapped(b)
        return Symbol(left.trace, left.trace.product(left.value, right.value))

    def products(self, a: Any, b: Any) -> Any:
        raise Untraceable("multiplies several matrices")

    def sum(self, x: Any, axis: tuple[int, ...]) -> Any:
        of = _unwrapped(x)
        return Symbol(of.trace, of.trace.reduced(Kind.SUM, _as_float(of.trace, of.value), axis)) if axis else of

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
        raise Untraceable("isn't made of elements, sums and products of whole values") from error
    symbol = _unwrapped(found)
    if not isinstance(symbol, Symbol) or symbol.shape != node.type.shape:
        raise Untraceable("gives no symbol of its shape")
    return Symbol(trace, _as_float(trace, symbol.value))


def _constant(trace: Trace, data: AnyArray) -> Value:
    if data.size and (data != data.flat[0]).any():
        raise Untraceable("is an array of several numbers")
    return trace.number(float(data.flat[0]), data.shape)


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
