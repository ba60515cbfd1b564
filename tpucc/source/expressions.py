"""The text of one step, from the texts of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum

from tpucc.ir.attributes import identity
from tpucc.language.apply import BINARY, COMPARISONS
from tpucc.language.static import STATIC
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.source import literals
from tpucc.source.static_values import Scope, is_constant
from tpucc.source.steps import Number, Shape, Step

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
    """An expression. A lone number is static, so that some operators need it as a constant."""

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
    text = literals.number(values[0]) if is_constant(values) else scope.text(short, "factor")
    return Text(text, Level.SIGN if text.startswith("-") else Level.POSTFIX, is_number=True)


def applied(step: Step, operands: Sequence[Text], attributes: Sequence[str]) -> Text:
    """An operator applied to its operands."""
    if isinstance(step.attributes[0], SliceAttributes):
        return Text(f"{operands[0].within(Level.POSTFIX)}[{', '.join(attributes)}]")
    if step.op in SYMBOLS and (found := _symbolic(step, operands)) is not None:
        return found
    texts = [operand.text for operand in operands]
    if texts and step.op in STATIC:  # a function of numbers, too
        texts[0] = operands[0].tensor.text
    return Text(f"{step.op}({', '.join([*texts, *attributes])})")


def _symbolic(step: Step, operands: Sequence[Text]) -> Text | None:
    """`a + b`; None for a division by a number, which the front end makes a product."""
    a, b = operands
    symbol = SYMBOLS[step.op]
    right = step.operands[1]
    if symbol == "/" and b.is_number:
        return None
    if symbol == "*" and isinstance(right, Number) and is_constant(right.values):
        factor = right.values[0]
        if factor == -1:
            return Text(f"-{a.tensor.within(Level.SIGN)}", Level.SIGN)
        if (divisor := literals.divisor(factor)) is not None and not a.is_number:
            return Text(f"{a.within(Level.FACTORS)} / {divisor}", Level.FACTORS)
    a = a.tensor if b.is_number else a
    level = LEVELS.get(symbol, Level.COMPARISON)
    left = a.within(Level(level + (level is Level.COMPARISON)))
    return Text(f"{left} {symbol} {b.within(Level(level + 1))}", level)


def attributes_of(step: Step, scope: Scope, shapes: Sequence[Shape]) -> list[str]:
    """The texts of an operator's attributes: those that a call must give by their place, others by keyword, without those that have
    their default. Of a slice of values of these shapes, its indices."""
    if isinstance(step.attributes[0], SliceAttributes):
        return indices([each for each in step.attributes if isinstance(each, SliceAttributes)], scope, shapes)
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


def indices(slices: Sequence[SliceAttributes], scope: Scope, shapes: Sequence[Shape]) -> list[str]:
    """The indices of a slice, without those at the end that take all."""
    texts = [_index(axis, slices, scope, tuple(shape[axis] for shape in shapes)) for axis in range(len(shapes[0]))]
    while len(texts) > 1 and texts[-1] == ":":
        texts.pop()
    return texts


def _index(axis: int, slices: Sequence[SliceAttributes], scope: Scope, sizes: tuple[int, ...]) -> str:
    ranges = [attributes.ranges[axis] for attributes in slices]
    starts, stops, step = tuple(places.start for places in ranges), tuple(places.stop for places in ranges), ranges[0].step
    if axis in slices[0].squeeze:
        return scope.text(starts, "t")
    if step > 0 and starts == (0,) * len(sizes) and stops == sizes:
        return ":" if step == 1 else f"::{step}"
    if step == -1 and starts == tuple(size - 1 for size in sizes) and set(stops) == {-1}:
        return "::-1"
    stop = "" if min(stops) < 0 else scope.text(stops, "stop")
    return f"{scope.text(starts, 'start')}:{stop}" + (f":{step}" if step != 1 else "")
