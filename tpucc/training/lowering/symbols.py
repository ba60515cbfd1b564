"""What a step's nodes consist of, found by calling their float forms with symbols in the place of arrays.

The float form of an operator (`OpDef.floats`) says what a machine for floats computes, in terms of NumPy and of an `Arithmetic`. Called
with symbols, it writes this down as values (`trace.py`). Elements move as NumPy moves them: the same slices, patches and concatenations,
of an array of the places that elements come from. So nothing here names an operator, and the bits are those of the reference, whose
functions these are. A float form that does anything else is `Untraceable`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tpucc.floating.arithmetic import Arithmetic
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.ir import Node
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import Defined, Ieee
from tpucc.training.lowering.trace import PLACES, Draw, Kind, Shape, Trace, Untraceable, Value

MOST_NUMBERS = 64
"""Different numbers in an array of them: each takes a row of vector memory."""
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
        trace.labelled(labels.value, classes)
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
            self.trace.labelled(labels.value, len(numbers))
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
