"""Of which function a table of integers is: the first whose table, at the same scales and zero points, has the same entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from tpucc.ir.dtypes import IntegerFormat
from tpucc.ir.types import Quantisation
from tpucc.layers.parameters import function_table
from tpucc.numerics import DeviceInts, Float64, Int64
from tpucc.ops import OPS, facts_of
from tpucc.ops.opdef import Clamp, Table
from tpucc.values import dataclass

FUNCTIONS: Mapping[str, str] = {
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Swish": "silu",
    "Gelu": "gelu",
    "GeluTanh": "gelu",
    "HardSwish": "hard_swish",
    "HardSigmoid": "hard_sigmoid",
    "Elu": "elu",
    "Exp": "exp",
    "Abs": "abs",
    "Log": "log",
    "Sign": "sign",
    "Sqrt": "sqrt",
}
"""ONNX's operators whose layers may be tables, and tpucc's; `GeluTanh` is Gelu by its formula with tanh."""
ATTRIBUTES: Mapping[str, Mapping[str, object]] = {"GeluTanh": {"approximate": True}}
"""Those of tpucc's operators that aren't the defaults."""
WRITTEN: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "GeluTanh": ("Gelu", {"approximate": "tanh"}),
    "HardSigmoid": ("HardSigmoid", {"alpha": 1 / 6}),
}
"""ONNX's operators with those of their attributes that aren't the defaults."""
SCALES = 2.0**-40, 2.0**20
"""Between which the scale of a table's input is sought."""
STEPS = 60
"""Halvings of this range: then its ends are neighbours in float32."""
DIGITS = 9
"""Of a number that float32 has."""
SELU_ALPHA, SELU_GAMMA = 1.6732632423543772, float(np.float32(1.0507009873554805))
"""Of Selu, whose layer is that of `elu` and a product."""
FARTHEST = 64.0
"""The largest number that is sought as what a function's operand has been added to."""


@dataclass(frozen=True, slots=True)
class Function:
    """ONNX's operator `op`, of another function where there is one; `number` is its other operand, for LeakyRelu and Elu its alpha, for
    Clip the lower bound."""

    op: str
    number: float | None = None
    high: float | None = None
    inner: Function | None = None

    def of(self, x: Float64) -> Float64:
        """The values of the function as the compiler computes them."""
        x = x if self.inner is None else self.inner.of(x)
        if self.number is not None and self.high is not None:
            return np.clip(x, np.float32(self.number), np.float32(self.high))
        if self.number is not None:
            return NUMBERED[self.op](x, float(np.float32(self.number)))
        if self.op == "Identity":
            return x
        if self.op == "Selu":
            return SELU_GAMMA * np.where(x < 0, SELU_ALPHA * np.expm1(np.minimum(x, 0)), x)
        operator = OPS[FUNCTIONS[self.op]]
        attributes = operator.attributes(**ATTRIBUTES.get(self.op, {}))
        match operator.legalisation:
            case Table(function):
                return function(attributes, x)
            case Clamp(bounds):
                return np.clip(x, *bounds(attributes))
        raise AssertionError(f"{self.op} has no table")


NUMBERED: Mapping[str, Callable[[Float64, float], Float64]] = {
    "Mul": lambda x, number: x * number,
    "Add": lambda x, number: x + number,
    "Sub": lambda x, number: number - x,
    "Elu": lambda x, number: np.where(x < 0, np.expm1(np.minimum(x, 0)) * number, x),
    "LeakyRelu": lambda x, number: np.where(x < 0, x * number, x),
    "Max": np.maximum,
    "Min": np.minimum,
}
"""Functions of a value and a number; Sub takes the value from the number."""
PLAIN = tuple(map(Function, (*FUNCTIONS, "Selu", "Identity")))
MONOTONE = {"Selu", "Identity"} | {name for name, op in FUNCTIONS.items() if facts_of(op).monotone(OPS[op].attributes())}
"""Those that never fall when their operand rises."""


def function_of(table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat, joined: bool = False) -> Function | None:
    """The function that has this table, x and y being how its input and its result are held; None where none has. With `joined` it may be
    one of a sum or a product with a number."""
    found = chain(PLAIN, _of_numbers(table, _real(x, of), y, of), _joint(table, x, y, of) if joined else ())
    return next((function for function in found if _is(function, table, x, y, of)), None)


@dataclass(frozen=True, slots=True)
class Shift:
    """A product with a number, held as `between`, and then a sum with another one."""

    factor: float
    between: Quantisation
    term: float


def shift_of(table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> Shift | None:
    """The product and the sum of which a table is that moves all integers alike, or all from the other end; None for another table. The
    compiler has such tables of `(1 - mask) * -10000`: it keeps the integers where a range moves. The shortest numbers that do."""
    inputs = of.table_inputs.astype(np.int64)
    for sign in (1, -1) if of.has_exact_tables else ():
        ends = 0 if sign == 1 else of.low + of.high
        between = Quantisation(y.scale, ends + sign * x.zero_point)
        moved = ends + sign * inputs
        inside = (table > of.low) & (table < of.high)
        steps = set((table - moved)[inside].tolist())
        if len(steps) != 1 or not np.array_equal(np.clip(moved + (step := steps.pop()), of.low, of.high), table):
            continue
        unit = float(np.float32(y.scale))
        factor, term = sign * unit / float(np.float32(x.scale)), unit * (step + between.zero_point - y.zero_point)
        factors = _near("Mul", factor, abs(factor)), x, between, moved
        terms = _near("Add", term, unit), between, y, table[moved - of.low]  # the order of the entries is that of `between`
        found = [
            next((each.number for each in some if np.array_equal(_table(each, a, b, of), to)), None) for some, a, b, to in (factors, terms)
        ]
        if found[0] is not None and found[1] is not None:
            return Shift(found[0], between, found[1])
    return None


def _near(op: str, number: float, unit: float) -> Iterator[Function]:
    """A function of a value and a number, this one or one that is shorter and less than half a unit away."""
    return _between(op, number - unit / 2, number + unit / 2)


def input_scales(table: DeviceInts, zero: int, y: Quantisation, of: IntegerFormat) -> Iterator[tuple[float, float]]:
    """The lowest and highest scales of an input of which only the zero point is known, with which functions may have this table."""
    above = (of.table_inputs > zero).astype(np.int64)
    for function in PLAIN:
        for signs in (above, 2 * above - 1):  # of sigmoid and tanh all entries say more; gelu and silu fall below 0 before they rise
            low, high = _scales(function, table, zero, y, signs, of)
            if (function.op == "Relu" and signs is above) or _is(function, table, Quantisation((low + high) / 2, zero), y, of):
                yield low, high  # the lower half of LeakyRelu follows from its number
    yield from _slopes(table, zero, y, of)


def _joint(table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> Iterator[Function]:
    """The functions of a sum, or of a product, that may give the table, each with its numbers."""
    low, high = _bounds(table, y, of)
    values = _real(x, of)
    between = table > table.min(), table < table.max()
    for part in (table > y.zero_point, *between, between[0] & between[1]):  # there many functions are their operand
        for inner in _affine(values[part], low[part], high[part]):
            yield from (replace(function, inner=inner) for function in chain(PLAIN, _bent(table, inner.of(values), y, of)))
    steps = np.diff(table.astype(np.int64))
    for function in PLAIN:
        for way, op in ((1, "Add"), (-1, "Sub")):
            if function.op not in MONOTONE or (way * steps >= 0).all():
                yield from (replace(function, inner=inner) for inner in _factor(function, way, table, x, y, of))
                yield from (replace(function, inner=inner) for inner in _addend(function, op, table, x, y, of))


def _factor(function: Function, way: int, table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> Iterator[Function]:
    """The products with a number, which has the sign of `way`, of which a function may have the table."""
    at_zero, beyond = of.table_inputs == x.zero_point, (way * (of.table_inputs - x.zero_point) > 0).astype(np.int64)
    if not np.array_equal(_table(function, x, y, of)[at_zero], table[at_zero]):
        return
    for signs in (beyond, 2 * beyond - 1):
        ends = _scales(replace(function, inner=Function("Mul", way)), table, x.zero_point, y, signs, of)
        yield from _between("Mul", *sorted(way * end / float(np.float32(x.scale)) for end in ends))


def _addend(function: Function, op: str, table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> Iterator[Function]:
    """The sums with a number, or the numbers less the value, of which a function may have the table."""
    if function.op == "Abs":
        yield from _between("Add", *_centre(table, x, y, of))
    else:
        for least in (of.low,) if function.op in MONOTONE else (of.low, y.zero_point):  # above 0 those rise, too, that fall before
            total = int(np.maximum(table, least).sum(dtype=np.int64))
            yield from _between(op, *(_term(function, op, x, y, total + more, least, of) for more in (0, 1)))


def _centre(table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> tuple[float, float]:
    """Between which numbers the one is whose sum with a value has a magnitude with this table: it falls up to the smallest entry."""
    low, high = _bounds(table, y, of)
    values = _real(x, of)
    smallest = np.flatnonzero(table == table.min())
    falls, rises = slice(smallest[0]), slice(smallest[-1] + 1, None)
    first, last = np.append(low[rises], -high[falls]), np.append(high[rises], -low[falls])
    apart = np.append(values[rises], values[falls])
    return float((first - apart).max(initial=-np.inf)), float((last - apart).min(initial=np.inf))


def _factors(values: Float64, low: Float64, high: Float64) -> tuple[float, float]:
    """Between which numbers the one is whose products with these values are between these."""
    there = (values != 0) & np.isfinite(values)
    ends = np.sort(np.stack([low[there] / values[there], high[there] / values[there]]), axis=0)
    return float(ends[0].max(initial=-np.inf)), float(ends[1].min(initial=np.inf))


def _term(function: Function, op: str, x: Quantisation, y: Quantisation, total: int, least: int, of: IntegerFormat) -> float:
    """The smallest number for which the entries of a function of the sum with it, or of it less the value, add up to this or more, each
    taken as `least` at least: those of most functions rise with it."""
    low, high = -FARTHEST, FARTHEST
    for _ in range(STEPS):
        middle = (low + high) / 2
        entries = _table(replace(function, inner=Function(op, middle)), x, y, of)
        enough = np.maximum(entries, least).sum(dtype=np.int64) >= total
        low, high = (low, middle) if enough else (middle, high)
    return high


def _scales(function: Function, table: DeviceInts, zero: int, y: Quantisation, signs: Int64, of: IntegerFormat) -> tuple[float, float]:
    """The lowest and highest scales of an input with which a function may have the table, by the sums of its entries."""
    ends = (_end(function, zero, y, int(signs @ table) + more, signs, of) for more in (0, 1))
    return _agreeing(function, table, zero, y, (next(ends), next(ends)), of)


def _end(function: Function, zero: int, y: Quantisation, total: int, signs: Int64, of: IntegerFormat) -> float:
    """The smallest scale for which the entries above the zero point, less those below, add up to this or more: they grow with the scale."""
    low, high = SCALES
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        enough = signs @ _table(function, Quantisation(middle, zero), y, of) >= total
        low, high = (low, middle) if enough else (middle, high)
    return high


def _agreeing(
    function: Function, table: DeviceInts, zero: int, y: Quantisation, ends: tuple[float, float], of: IntegerFormat
) -> tuple[float, float]:
    """Between which of these scales all entries are the table's: each rises or falls from one end to the other, those of `gelu` below its
    least value against the others. Both ends as they are where there are no such scales."""
    first, last = (_table(function, Quantisation(scale, zero), y, of) for scale in ends)
    if ((table < np.minimum(first, last)) | (table > np.maximum(first, last))).any():
        return ends
    rises = np.where(last >= first, 1, -1)

    def end(reached: int) -> float:
        low, high = ends
        for _ in range(STEPS):
            middle = (low + high) / 2
            ahead = rises * (_table(function, Quantisation(middle, zero), y, of).astype(np.int64) - table)
            there = bool((ahead >= 0).all()) if reached == 0 else bool((ahead > 0).any())
            low, high = (low, middle) if there else (middle, high)
        return high

    low, high = end(0), end(1)
    return (low, high) if low < high else ends


def _table(function: Function, x: Quantisation, y: Quantisation, of: IntegerFormat) -> DeviceInts:
    return function_table(function.of, x, y, of)


def _is(function: Function, table: DeviceInts, x: Quantisation, y: Quantisation, of: IntegerFormat) -> bool:
    return np.array_equal(_table(function, x, y, of), table)


def _bounds(table: DeviceInts, y: Quantisation, of: IntegerFormat) -> tuple[Float64, Float64]:
    """Between which real values each entry is rounded to what it is; the lowest and the highest integer stand for all beyond, too."""
    centre = table.astype(np.float64) - y.zero_point
    scale = float(np.float32(y.scale))
    return np.where(table == of.low, -np.inf, (centre - 0.5) * scale), np.where(table == of.high, np.inf, (centre + 0.5) * scale)


def _real(x: Quantisation, of: IntegerFormat) -> Float64:
    """The real values that the entries of a table belong to."""
    values: Float64 = (of.table_inputs - x.zero_point) * np.float64(np.float32(x.scale))
    return values


def _of_numbers(table: DeviceInts, values: Float64, y: Quantisation, of: IntegerFormat) -> Iterator[Function]:
    """For each function of a value and a number the one number that may give the table."""
    low, high = _bounds(table, y, of)
    yield from _affine(values, low, high)
    yield from _between("Max", float(low[table.argmin()]), float(high[table.argmin()]))
    yield from _between("Min", float(low[table.argmax()]), float(high[table.argmax()]))
    yield from _bent(table, values, y, of)


def _affine(values: Float64, low: Float64, high: Float64) -> Iterator[Function]:
    """The sums and products of these values with a number that are between these."""
    for op, term in (("Add", -values), ("Sub", values)):
        yield from _between(op, float((low + term).max(initial=-np.inf)), float((high + term).min(initial=np.inf)))
    yield from _between("Mul", *_factors(values, low, high))


def _bent(table: DeviceInts, values: Float64, y: Quantisation, of: IntegerFormat) -> Iterator[Function]:
    """The functions that are their operand in a part, each with the numbers that may give the table. One layer computes them with a sum."""
    low, high = _bounds(table, y, of)
    for op, below in (("LeakyRelu", np.minimum(values, 0)), ("Elu", np.expm1(np.minimum(values, 0)))):
        yield from _between(op, *_factors(below, low, high))
    unit, ends = float(np.float32(y.scale)), (int(end) - y.zero_point for end in (table.min(), table.max()))
    lower, upper = (next(_between("Clip", (end - 0.5) * unit, (end + 0.5) * unit), None) for end in ends)  # all there are rounded alike
    if lower is not None and upper is not None:
        yield replace(lower, high=upper.number)


def _between(op: str, low: float, high: float) -> Iterator[Function]:
    """The function with the shortest number between two bounds."""
    if np.isfinite(low) and np.isfinite(high) and low < high:
        rounded = (float(f"{(low + high) / 2:.{digits}g}") for digits in range(1, DIGITS + 1))
        yield from (Function(op, number) for number in dict.fromkeys(chain([0.0], rounded)) if low < number < high)


def _slopes(table: DeviceInts, zero: int, y: Quantisation, of: IntegerFormat) -> Iterator[tuple[float, float]]:
    """The scales for which the table is that of the value and some number, or of some number less the value: those for which all entries
    leave room for the number. Then those for which what isn't the lowest or the highest entry is the value itself."""
    low, high = _bounds(table, y, of)
    steps = (of.table_inputs - zero).astype(np.float64)
    for sign in (1, -1):

        def room(scale: float, rising: Float64 = sign * steps) -> float:
            return float((high - scale * rising).min() - (low - scale * rising).max())

        left, right = 0.0, float(np.float32(y.scale)) * 4
        for _ in range(2 * STEPS):  # the room is a concave function of the scale
            third = (right - left) / 3
            left, right = (left + third, right) if room(left + third) < room(right - third) else (left, right - third)
        best = (left + right) / 2
        if room(best) > 0:
            yield _edge(room, best, 0.0), _edge(room, best, 8 * best)
    for bound in (table.min(), table.max()):
        there = (table != bound) & (steps != 0)
        ends = np.sort(np.stack([low[there] / steps[there], high[there] / steps[there]]), axis=0)
        first, last = float(ends[0].max(initial=0.0)), float(ends[1].min(initial=np.inf))
        if first < last < np.inf:
            yield first, last


def _edge(room: Callable[[float], float], inside: float, outside: float) -> float:
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if room(middle) > 0 else (inside, middle)
    return inside
