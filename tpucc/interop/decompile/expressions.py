"""The text of one step, from the texts of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum

from tpucc.interop.decompile import literals
from tpucc.interop.decompile.bounds import marked
from tpucc.interop.decompile.program import Number, Operand, Shape, Step, Value
from tpucc.interop.decompile.statics import Scope, constant
from tpucc.ir.attributes import identity
from tpucc.language.apply import BINARY, COMPARISONS
from tpucc.language.static import STATIC
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes

SYMBOLS = {op: symbol for symbol, op in (*BINARY.items(), *COMPARISONS.items())}
"""The operators that have a symbol."""


class Level(IntEnum):
    """How tightly an expression holds together."""

    COMPARISON = 1
    TERMS = 2
    FACTORS = 3
    SIGN = 4
    POSTFIX = 5


LEVELS = {**dict.fromkeys(("+", "-"), Level.TERMS), **dict.fromkeys(("*", "/", "@"), Level.FACTORS)}


@dataclass(frozen=True, slots=True)
class Text:
    """An expression; a lone number is static, so that some operators need it as a constant."""

    text: str
    level: Level = Level.POSTFIX
    is_number: bool = False

    def within(self, level: Level) -> str:
        """The expression where one of at least this level must stand."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def tensor(self) -> Text:
        """The expression as a tensor."""
        return Text(f"constant({self.text})") if self.is_number else self


def number(values: tuple[float, ...], scope: Scope) -> Text:
    """A scalar constant."""
    short = tuple(float(literals.number(value)) for value in values)  # the same float32, with the digits that it has
    text = literals.number(values[0]) if constant(values) else scope.text(short, "factor")
    return Text(text, Level.SIGN if text.startswith("-") else Level.POSTFIX, is_number=True)


def applied(step: Step, operands: Sequence[Text], statics: Sequence[str]) -> Text:
    """An operator applied to its operands."""
    if isinstance(step.attributes[0], SliceAttributes):
        return Text(f"{operands[0].within(Level.POSTFIX)}[{', '.join(statics)}]")
    if step.op in SYMBOLS and (found := _symbolic(step, operands)) is not None:
        return found
    operator = OPS[step.op]
    texts = [operand.text for operand in operands]
    if operator.operands and operator.operands[0].many:
        texts = [f"[{', '.join(texts)}]"]
    elif texts and _static_function(step.op):
        texts[0] = operands[0].tensor.text
    return Text(f"{step.op}({', '.join([*texts, *statics])})")


def _static_function(op: str) -> bool:
    """Whether the name of the operator is a function of numbers, too."""
    return op in STATIC


def _symbolic(step: Step, operands: Sequence[Text]) -> Text | None:
    """`a + b`; None for a division by a number, which the front end makes a product."""
    a, b = operands
    symbol = SYMBOLS[step.op]
    right = step.operands[1]
    if symbol == "/" and b.is_number:
        return None
    if symbol == "*" and isinstance(right, Number) and constant(right.values):
        factor = right.values[0]
        if factor == -1:
            return Text(f"-{a.tensor.within(Level.SIGN)}", Level.SIGN)
        if (divisor := literals.divisor(factor)) is not None and not a.is_number:
            return Text(f"{a.within(Level.FACTORS)} / {divisor}", Level.FACTORS)
    a = a.tensor if b.is_number else a
    level = LEVELS.get(symbol, Level.COMPARISON)
    left = a.within(Level(level + (level is Level.COMPARISON)))
    return Text(f"{left} {symbol} {b.within(Level(level + 1))}", level)


def statics(step: Step, scope: Scope, shapes: Sequence[Shape]) -> list[str]:
    """The texts of an operator's attributes: those that a call must give by their place, others by keyword, without those that have
    their default. Of a slice, its indices."""
    if isinstance(step.attributes[0], SliceAttributes):
        return _indices([a for a in step.attributes if isinstance(a, SliceAttributes)], scope, shapes)
    if isinstance(step.attributes[0], ConstantAttributes):
        return [literals.array(step.attributes[0].value.data)]
    texts: list[str] = []
    for field in fields(step.attributes[0]):
        values = tuple(getattr(attributes, field.name) for attributes in step.attributes)
        is_required = field.default is MISSING
        if not is_required and all(identity(value) == identity(field.default) for value in values):
            continue
        text = scope.text(values, field.name)
        if is_required and not step.operands and text.startswith("("):
            text = f"[{text[1:-1].removesuffix(',')}]"
        texts.append(text if is_required else f"{field.name}={text}")
    return texts


def _indices(slices: Sequence[SliceAttributes], scope: Scope, shapes: Sequence[Shape]) -> list[str]:
    """The indices of a slice, without those at the end that take all."""
    texts = [_index(axis, slices, scope, tuple(shape[axis] for shape in shapes)) for axis in range(len(shapes[0]))]
    while len(texts) > 1 and texts[-1] == ":":
        texts.pop()
    return texts


def _index(axis: int, slices: Sequence[SliceAttributes], scope: Scope, sizes: tuple[int, ...]) -> str:
    ranges = [attributes.ranges[axis] for attributes in slices]
    if axis in slices[0].squeeze:
        return scope.text(tuple(places.start for places in ranges), "index")
    step = ranges[0].step
    first, last = ((0,) * len(sizes), sizes) if step > 0 else (tuple(size - 1 for size in sizes), (-1,) * len(sizes))
    starts, stops = tuple(places.start for places in ranges), tuple(places.stop for places in ranges)
    whole = abs(step) == 1 and starts == first and stops == last
    start = _bound(starts, "start", starts == first, whole, scope)
    stop = _bound(stops, "stop", stops == last, whole, scope)
    return f"{start}:{stop}" + (f":{step}" if step != 1 else "")


def _bound(values: tuple[int, ...], word: str, is_end: bool, whole: bool, scope: Scope) -> str:
    """A bound of a slice. That of an end of the axis is marked as one that may be left out; it is left out at once if it has no one number,
    and if the slice is of all that there is."""
    if not is_end:
        return scope.text(values, word)
    return "" if whole or not constant(values) or values[0] < 0 else marked(scope.text(values, word))


def reads(step: Step) -> list[Value]:
    """The tensors that a step reads, each once."""
    return list(dict.fromkeys(operand for operand in step.operands if isinstance(operand, Value)))


def is_slice(part: Step | Operand) -> bool:
    """Whether a part of an expression takes a part of a tensor."""
    return isinstance(part, Step) and bool(part.attributes) and isinstance(part.attributes[0], SliceAttributes)
