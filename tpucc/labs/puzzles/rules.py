"""What differs between the puzzles of two terms, as numbers and as words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.labs.lab import Term
from tpucc.labs.puzzles.setting import clamped
from tpucc.numerics import Int8

TABLES: Mapping[str, tuple[str, Callable[[int], int]]] = {
    "relu": ("negative values become 0", lambda value: max(value, 0)),
    "abs": ("negative values lose their sign", lambda value: min(abs(value), 127)),
    "half": ("each value is halved, towards 0", lambda value: int(value / 2)),
}


@dataclass(frozen=True)
class Rules:
    """What differs between terms: which row is moved, how two rows are combined, which table is applied, in which order tiles and blocks
    lie, how far windows are apart, the zero points and the scale of a requantisation."""

    rows: int
    row: int
    minus: bool
    table: str
    turned: bool
    stride: int
    zero_x: int
    zero_y: int
    shift: int

    @property
    def function(self) -> str:
        """The function of `vector` that combines two rows."""
        return "subtract" if self.minus else "add"

    @property
    def sign(self) -> str:
        return "-" if self.minus else "+"

    def combined(self, a: Int8, b: Int8) -> Int8:
        """a + b or a - b, as int8."""
        return clamped(a.astype(np.int64) + (-1 if self.minus else 1) * b.astype(np.int64))

    @property
    def words(self) -> Mapping[str, Any]:
        """The words of the puzzles' texts and of the handout that depend on the term, and `scaled`."""
        first, second = ("1", "0") if self.turned else ("0", "1")
        rows, columns = "row by row: tiles 0 and 1 are rows 0 to 3", "column by column: tiles 0 and 1 are columns 0 to 3"
        return {
            **vars(self),
            "scaled": "each sum times the block's multiplier, rounded",
            "rows2": 2 * self.rows,
            "sign": self.sign,
            "function": self.function,
            "table_words": TABLES[self.table][0],
            "first": first,
            "second": second,
            "order": columns if self.turned else rows,
            "y_scale": 2 ** (7 - self.shift),
        }

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables in the order of their blocks."""
        return tuple(sorted(TABLES, reverse=self.turned))

    @property
    def weights(self) -> Int8:
        """The weights of the requantisation, which stay the same: a solution's bias depends on them."""
        return np.array([[1, -2, 3, 0], [2, 4, -1, 5], [-3, 1, 2, 2], [4, 0, -2, self.shift]], np.int8)


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("puzzles")
    if draw is None:
        return Rules(rows=3, row=1, minus=False, table="relu", turned=False, stride=2, zero_x=3, zero_y=-5, shift=4)
    return Rules(
        rows=draw.choice((2, 3, 4)),
        row=draw.choice((1, 2)),
        minus=draw.choice((False, True)),
        table=draw.choice(tuple(TABLES)),
        turned=draw.choice((False, True)),
        stride=draw.choice((2, 3)),
        zero_x=draw.choice((-7, -4, 2, 6)),
        zero_y=draw.choice((-9, 4, 8, 11)),
        shift=draw.choice((2, 3, 5)),
    )
