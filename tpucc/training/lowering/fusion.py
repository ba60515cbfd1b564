"""Which elements are computed together: the operations of one expression.

An operation that one other one needs once, of as many elements, is computed with it, as far as an instruction has room: for three sources,
of which two may repeat, 32 operations and 16 numbers. What the result is used for otherwise, it must be stored for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from tpucc.machines.v2.expressions import MOST_NUMBERS, MOST_OPERATIONS, SOURCES, number_text
from tpucc.training.lowering.trace import WALKS, Draw, Kind, Value

DRAW_OPERATIONS, DRAW_NUMBERS = 9, 4
"""What the text of a `Draw` has."""
INFIX = frozenset({"+", "-", "*", "/", ">", ">=", "<", "<=", "==", "!="})


def _is_column(value: Value) -> bool:
    return value.kind is Kind.COLUMN


@dataclass(frozen=True, slots=True)
class Tree:
    """The operations that are computed together, by the value that they give: `inner` are those that aren't stored."""

    root: Value
    inner: frozenset[int]
    sources: tuple[Value, ...]
    operations: int
    numbers: int

    @property
    def fits(self) -> bool:
        repeating = sum(source.size != self.root.size for source in self.sources)
        whole = len(self.sources) <= len(SOURCES) and repeating <= WALKS
        return whole and self.operations + self.root.mask <= MOST_OPERATIONS and self.numbers + 2 * self.root.mask <= MOST_NUMBERS

    @property
    def by_columns(self) -> bool:
        """Whether it depends on the numbers of columns."""
        return any(isinstance(value.what, Draw) or any(map(_is_column, value.operands)) for value in self._values())

    def _values(self) -> list[Value]:
        found, waiting = [], [self.root]
        while waiting:
            value = waiting.pop()
            found.append(value)
            waiting += [operand for operand in value.operands if operand.number in self.inner]
        return found

    def text(self, letters: Mapping[int, str], first: int) -> str:
        """The expression, its sources by their letters, for the columns from number `first` on."""
        text = self._text(self.root, letters, first)
        return f"select({text}, 1.0, 0.0)" if self.root.mask else text

    def _text(self, value: Value, letters: Mapping[int, str], first: int) -> str:
        words = [self._operand(operand, letters, first) for operand in value.operands]
        if isinstance(value.what, Draw):
            seed, step, item = (f"bits({word})" for word in words[:3])
            counter = f"(({item} * {value.what.items}) + ((row * {value.shape[-1]}) + (lane + {first})))"
            return f"uniform({seed}, {step}, {counter}, {value.what.use})"
        if value.what == "copy":
            return words[0]
        if value.what in INFIX:
            return f"({words[0]} {value.what} {words[1]})"
        return f"{value.what}({', '.join(words)})"

    def _operand(self, value: Value, letters: Mapping[int, str], first: int) -> str:
        if value.number in self.inner:
            return self._text(value, letters, first)
        if value.kind is Kind.NUMBER:
            return number_text(value.what)
        if value.kind is Kind.COLUMN:
            return f"float(lane + {first})" if first else "float(lane)"
        return f"({letters[value.number]} != 0.0)" if value.mask else letters[value.number]


class Fusion:
    """The trees of all elements. `stored` says which of them must be stored whatever else holds."""

    def __init__(self, values: Sequence[Value], stored: Callable[[Value], bool]) -> None:
        self._stored = stored
        self._uses = Counter(operand.number for value in values for operand in value.operands)
        self._of_elements = {operand.number for value in values if value.kind is Kind.ELEMENT for operand in value.operands}
        self._trees: dict[int, Tree] = {}
        for value in values:
            if value.kind is Kind.ELEMENT:
                self._trees[value.number] = self._made(value)
        self.inner = self._found_inner(values)
        """The values that aren't stored: they are computed with others."""

    def tree(self, value: Value) -> Tree:
        return self._trees[value.number]

    def _joins(self, value: Value, reader: Value) -> bool:
        """Whether a value may be computed with its reader."""
        alone = self._uses[value.number] == 1 and value.number in self._of_elements
        return value.kind is Kind.ELEMENT and alone and value.size == reader.size and not self._stored(value)

    def _made(self, value: Value) -> Tree:
        """The tree of a value with as many of its operands' trees as fit."""
        joined = [operand for operand in dict.fromkeys(value.operands) if self._joins(operand, value)]
        while not (tree := self._with(value, joined)).fits and joined:
            joined.remove(max(joined, key=lambda each: (len(self.tree(each).sources), self.tree(each).operations)))
        return tree

    def _with(self, value: Value, joined: Sequence[Value]) -> Tree:
        trees = [self.tree(operand) for operand in joined]
        own = [each for each in value.operands if each not in joined and each.kind not in (Kind.NUMBER, Kind.COLUMN)]
        sources = dict.fromkeys((*own, *(source for tree in trees for source in tree.sources)))
        inner: frozenset[int] = reduce(frozenset.union, ({each.number} | self.tree(each).inner for each in joined), frozenset())
        columns, masks = (sum(test(each) for each in value.operands) for test in (_is_column, lambda each: each.mask and each in own))
        drawn = isinstance(value.what, Draw)
        operations = sum(tree.operations for tree in trees) + (DRAW_OPERATIONS if drawn else 1) + 2 * columns + masks
        numbers = (
            DRAW_NUMBERS * drawn
            + sum(tree.numbers for tree in trees)
            + columns
            + masks
            + sum(each.kind is Kind.NUMBER for each in value.operands)
        )
        return Tree(value, inner, tuple(sources), operations, numbers)

    def _found_inner(self, values: Sequence[Value]) -> frozenset[int]:
        inner = set[int]()
        for value in reversed(values):
            if value.kind is Kind.ELEMENT and value.number not in inner:
                inner |= self.tree(value).inner
        return frozenset(inner)
