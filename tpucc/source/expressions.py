"""The text of one step, from the texts of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from tpucc.language.apply import BINARY, COMPARISONS
from tpucc.language.static import STATIC
from tpucc.source import literals
from tpucc.source.scope import is_constant
from tpucc.source.steps import Leaf, Step, is_slice

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


def number(text: str) -> Text:
    """A scalar constant."""
    return Text(text, Level.SIGN if text.startswith("-") else Level.POSTFIX, is_number=True)


def applied(step: Step, operands: Sequence[Text], attributes: Sequence[str]) -> Text:
    """An operator applied to its operands."""
    if is_slice(step):
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
    if symbol == "*" and isinstance(right, Leaf) and right.numbers and is_constant(right.numbers):
        factor = right.numbers[0]
        if factor == -1:
            return Text(f"-{a.tensor.within(Level.SIGN)}", Level.SIGN)
        if (divisor := literals.divisor(factor)) is not None and not a.is_number:
            return Text(f"{a.within(Level.FACTORS)} / {divisor}", Level.FACTORS)
    a = a.tensor if b.is_number else a
    level = LEVELS.get(symbol, Level.COMPARISON)
    left = a.within(Level(level + (level is Level.COMPARISON)))
    return Text(f"{left} {symbol} {b.within(Level(level + 1))}", level)
