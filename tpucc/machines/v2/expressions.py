"""Expressions: what a `vector` instruction computes for each element, `max(a + b, 0.0)`.

An expression reads the lanes of up to three sources, `a`, `b` and `c`, the number of the element's `lane`, and of its `row`. An element
of the result depends on the same element of the sources alone. Values are float32, uint32 (`lane`, `row`, and what is made of them) or
masks, which comparisons give and `select` takes. `1.0` is a float32, `1` a uint32.

The text is an expression of Python, of the operations of `OPERATIONS` and nothing else; `parse` reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from tpucc.diagnostics import did_you_mean, listed
from tpucc.floating import functions
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.floating.counting import counted
from tpucc.floating.random_numbers import uniform_of
from tpucc.numerics import AnyArray
from tpucc.target import Target

SOURCES = ("a", "b", "c")
PLACES = ("lane", "row")
MOST_OPERATIONS, MOST_NUMBERS, MOST_CHARACTERS = 32, 16, 2000
"""What an instruction has room for."""
FLOAT, WHOLE, MASK = "a float32", "a uint32", "a mask"
"""The kinds of values."""
_SAMPLE: Mapping[str, Any] = {FLOAT: np.full(64, 0.5, np.float32), WHOLE: np.ones(64, np.uint32), MASK: np.ones(64, np.bool_)}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its name or sign, the kinds of its operands and of its result, and what it computes of arrays."""

    name: str
    takes: tuple[str, ...]
    gives: str
    compute: Callable[..., AnyArray]

    @property
    def cost(self) -> int:
        """Operations of an ALU for each element: what its computation consists of, counted."""
        samples = [_SAMPLE[kind] for kind in self.takes]
        return max(1, counted(self.compute, *samples) // int(samples[0].size))


def _float(x: AnyArray) -> AnyArray:
    return x.astype(np.float32)


def _bits(x: AnyArray) -> AnyArray:
    return np.ascontiguousarray(x).view(np.uint32)


_ONE, _TWO = (FLOAT,), (FLOAT, FLOAT)
_WHOLES = (WHOLE, WHOLE)
_ROWS = (
    *(Operation(sign, _TWO, FLOAT, of) for sign, of in (("+", np.add), ("-", np.subtract), ("*", np.multiply), ("/", np.divide))),
    *(Operation(name, _TWO, FLOAT, of) for name, of in (("max", np.maximum), ("min", np.minimum))),
    *(Operation(name, _ONE, FLOAT, of) for name, of in (("neg", np.negative), ("abs", np.abs), ("sqrt", np.sqrt), ("sign", np.sign))),
    *(Operation(name, _ONE, FLOAT, getattr(functions, name)) for name in ("exp", "log", "tanh", "erf", "sigmoid")),
    Operation("round_bf16", _ONE, FLOAT, round_to_bfloat16),
    *(
        Operation(sign, kinds, MASK, of)
        for kinds in (_TWO, _WHOLES)
        for sign, of in (
            (">", np.greater), (">=", np.greater_equal), ("<", np.less), ("<=", np.less_equal), ("==", np.equal), ("!=", np.not_equal)
        )
    ),
    Operation("both", (MASK, MASK), MASK, np.logical_and),
    Operation("either", (MASK, MASK), MASK, np.logical_or),
    Operation("select", (MASK, FLOAT, FLOAT), FLOAT, np.where),
    Operation("uniform", (WHOLE,) * 4, FLOAT, uniform_of),
    Operation("+", _WHOLES, WHOLE, np.add),
    Operation("*", _WHOLES, WHOLE, np.multiply),
    Operation("xor", _WHOLES, WHOLE, np.bitwise_xor),
    Operation("left", _WHOLES, WHOLE, np.left_shift),
    Operation("right", _WHOLES, WHOLE, np.right_shift),
    Operation("bits", _ONE, WHOLE, _bits),
    Operation("float", (WHOLE,), FLOAT, _float),
)  # fmt: skip
OPERATIONS: Mapping[tuple[str, tuple[str, ...]], Operation] = MappingProxyType({(row.name, row.takes): row for row in _ROWS})
"""All operations, by their names and the kinds of their operands."""
NAMES = frozenset(row.name for row in _ROWS)
_SIGNS: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==",
    ast.NotEq: "!=",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Expression:
    """An expression: the sources that it reads, whether it reads the places of elements, the operations that it consists of, and `value`,
    which computes it of named arrays."""

    text: str
    sources: tuple[str, ...]
    has_places: bool
    operations: tuple[Operation, ...]
    value: Callable[[Mapping[str, AnyArray]], AnyArray]

    @cached_property
    def cost(self) -> int:
        """Operations of an ALU for each element."""
        return sum(operation.cost for operation in self.operations)

    @property
    def is_rounded(self) -> bool:
        """Whether its result has been rounded to bfloat16."""
        return bool(self.operations) and self.operations[-1].compute is round_to_bfloat16

    def bundles(self, target: Target) -> int:
        """Bundles of the loop's body: each loads one source, and has `vector_alus` operations."""
        return max(1, len(self.sources), -(-self.cost // max(1, target.vector_alus)))

    def __call__(self, sources: Mapping[str, AnyArray], rows: int, lanes: int) -> AnyArray:
        """The elements [rows, lanes] of sources [rows, lanes], or [rows, 1] where one lane stands for all; the result likewise."""
        if self.has_places:
            places = {"lane": np.arange(lanes, dtype=np.uint32)[np.newaxis], "row": np.arange(rows, dtype=np.uint32)[:, np.newaxis]}
            sources = {**sources, **places}
        with np.errstate(all="ignore"):
            return self.value(sources)


@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """The expression that a text is. Raises `ValueError`, in words that follow "the expression", where it is none."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are read")
    try:
        body = ast.parse(text, mode="eval").body
        reader = _Reader()
        kind, value = reader.read(body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("isn't of the form max(a + b, 0.0)") from None
    if kind != FLOAT:
        raise ValueError(f"is {kind}, and a lane holds a float32")
    for what, found, most in (("operations", reader.operations, MOST_OPERATIONS), ("numbers", reader.numbers, MOST_NUMBERS)):
        if len(found) > most:
            raise ValueError(f"has {len(found)} {what}, and an instruction has room for {most}")
    sources = tuple(name for name in SOURCES if name in reader.names)
    return Expression(text, sources, not reader.names.isdisjoint(PLACES), tuple(reader.operations), value)


Read = tuple[str, Callable[[Mapping[str, AnyArray]], AnyArray]]
"""The kind of a part, and what computes it."""


class _Reader:
    """Reads an expression; notes what it consists of."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.numbers: list[float] = []
        self.names: set[str] = set()

    def read(self, node: ast.expr) -> Read:
        match node:
            case ast.Name(id=name) if name in SOURCES or name in PLACES:
                self.names.add(name)
                return FLOAT if name in SOURCES else WHOLE, lambda values: values[name]
            case ast.Constant(value=float() | int() as number) if not isinstance(number, bool):
                return self._number(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float() as number)):
                return self._number(-number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._applied("neg", [operand])
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                return self._applied(_SIGNS[type(sign)], [left, right])
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _SIGNS:
                return self._applied(_SIGNS[type(sign)], [left, right])
            case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]) if name in NAMES:
                return self._applied(name, operands)
            case ast.Name(id=name):
                raise ValueError(f"has {name}, and its sources are {listed([*SOURCES])}; {listed([*PLACES])} say where it stands")
            case ast.Call(func=ast.Name(id=name)):
                near = did_you_mean(name, NAMES) or f"the operations are {listed(sorted(filter(str.isidentifier, NAMES)))}, and signs"
                raise ValueError(f"has {name[:40]}(…), which is no operation of the unit: {near}")
        raise ValueError(f"has {ast.unparse(node)[:40]}, which is no operation of the unit")

    def _number(self, number: float) -> Read:
        self.numbers.append(number)
        if isinstance(number, int):
            if not 0 <= number < 2**32:
                raise ValueError(f"has a whole number of {len(hex(number)) - 2} hexadecimal digits, which is no uint32")
            whole = np.uint32(number)
            return WHOLE, lambda values: whole  # type: ignore[return-value]
        with np.errstate(over="ignore"):
            rounded = np.float32(number)
        return FLOAT, lambda values: rounded  # type: ignore[return-value]

    def _applied(self, name: str, operands: Sequence[ast.expr]) -> Read:
        parts = [self.read(operand) for operand in operands]
        kinds = tuple(kind for kind, _ in parts)
        operation = OPERATIONS.get((name, kinds))
        if operation is None:
            point = "; a float32 number has a decimal point, as 0.0" if {FLOAT, WHOLE} <= {*kinds} else ""
            raise ValueError(f"has {name} of {', '.join(kinds) or 'nothing'}, which is no operation of the unit{point}")
        self.operations.append(operation)
        compute, values_of = operation.compute, [value for _, value in parts]
        match values_of:
            case [one]:
                return operation.gives, lambda values: compute(one(values))
            case [one, two]:
                return operation.gives, lambda values: compute(one(values), two(values))
            case _:
                return operation.gives, lambda values: compute(*(value(values) for value in values_of))


def number_text(value: float) -> str:
    """A float32 as an expression has it: the shortest text that is read as the same number."""
    number = np.float32(value)
    if np.isinf(number):
        return "1e39" if number > 0 else "-1e39"  # more than a float32 holds
    text = str(number)
    return text if np.float32(float(text)) == number and ("." in text or "e" in text) else repr(float(number))
