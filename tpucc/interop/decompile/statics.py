"""Static expressions: texts for the values that a body's sizes, attributes and keys have in its environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeGuard

from tpucc.interop.decompile.literals import listed, literal
from tpucc.interop.decompile.program import Unwritable
from tpucc.ir.attributes import identity

Vector = tuple[Any, ...]
"""A static value in each environment."""


SIZES = ("units", "filters", "inputs", "size")
"""Words of parameters from which other sizes may follow."""
LAST = ".shape[-1]"
"""How the text of a tensor's last size ends."""
FOLLOWING = (*SIZES, "shape", "start", "stop", "groups", "padding", "n", "pads")
"""Words of values that may follow from sizes."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A static parameter of a `def`: its values in the environments, and the text of its default, if it has one."""

    name: str
    values: Vector
    default: str = ""

    @property
    def word(self) -> str:
        """The name without a number."""
        return self.name.rstrip("0123456789")


@dataclass
class Scope:
    """What static expressions of a body may name. In an open scope, which is that of a `def`, values that follow from nothing become
    parameters; in a closed one, that of the model, they are an error."""

    params: Mapping[str, tuple[int, ...]]
    sizes: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """Sizes that have a text, as `x.shape[-1]` is one."""
    open: bool = False
    parameters: list[Parameter] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    keys: dict[Vector, str] = field(default_factory=dict)
    """Vectors of strings that have a text."""

    def text(self, values: Vector, word: str) -> str:
        """An expression with these values; `word` names it if it becomes a parameter. Raises `Unwritable`."""
        if constant(values):
            return literal(values[0])
        if values in self.keys:
            return self.keys[values]
        if (structured := self._structured(values, word)) is not None:
            return structured
        return self._varying(values, word)

    def _structured(self, values: Vector, word: str) -> str | None:
        """A tuple, item by item."""
        if not all(isinstance(value, tuple) for value in values) or len({len(value) for value in values}) != 1:
            return None
        return listed([self.text(items, word) for items in zip(*values, strict=True)])

    def _varying(self, values: Vector, word: str) -> str:
        for parameter in self.parameters:
            if parameter.values == values and parameter.word == word:
                return parameter.name
        if are_numbers(values) and word in FOLLOWING and (found := next(self._derived(values, word), None)):
            return found
        return self.parameter(values, word)

    def parameter(self, values: Vector, word: str) -> str:
        """A new parameter with these values. Raises `Unwritable` in a closed scope."""
        if not self.open:
            raise Unwritable(f"{word} is {values[0]} and {values[1]} in two samples, which doesn't follow from their params")
        name = fresh(word, self.taken.__contains__)
        self.taken.add(name)
        self.parameters.append(Parameter(name, values))
        return name

    def _derived(self, values: tuple[int, ...], word: str) -> Iterator[str]:
        """Expressions of known sizes, the simplest first. Filters are as many as channels, but not as an image is high."""
        sizes = [(text, others) for text, others in self.sizes if word != "filters" or text.endswith(LAST)]
        own = [(each.name, each.values) for each in self.parameters if each.word in SIZES and are_numbers(each.values)]
        known = [*self.params.items(), *own, *sizes]
        for text, others in known:
            if others == values:
                yield text
        for text, others in known:
            yield from _scaled(values, text, others)
        for text, others in own:
            if tuple(size // 2 for size in others) == values:
                yield f"{text} // 2"
        for index, (a, first) in enumerate(known):
            for b, second in known[index + 1 :]:
                product = tuple(x * y for x, y in zip(first, second, strict=True))
                yield from [f"{a} * {b}"] if product == values else _scaled(values, f"{a} * {b}", product)
        yield from self._sums(values, own)

    def _sums(self, values: tuple[int, ...], own: Sequence[tuple[str, tuple[int, ...]]]) -> Iterator[str]:
        """The values as a known size, or two params, and a number."""
        for text, others in [*self.params.items(), *own]:
            if constant(differences := tuple(x - y for x, y in zip(values, others, strict=True))):
                yield f"{text}{_more(differences[0])}"
        for (a, first), (b, second) in combinations(self.params.items(), 2):
            if constant(differences := tuple(x - y - z for x, y, z in zip(values, first, second, strict=True))):
                yield f"{a} + {b}{_more(differences[0])}"


def _more(difference: int) -> str:
    """What a sum has behind it, so that it is larger by this number."""
    return f" {'+' if difference > 0 else '-'} {abs(difference)}" if difference else ""


def _scaled(values: tuple[int, ...], text: str, others: tuple[int, ...]) -> Iterator[str]:
    """The values as a multiple of others, or as an integer part of them."""
    if constant(others) or 0 in others or 0 in values:
        return
    factors = {divmod(x, y) for x, y in zip(values, others, strict=True)}
    if len(factors) == 1 and (found := factors.pop())[1] == 0:
        yield f"{found[0]} * {text}"
    parts = {divmod(y, x) for x, y in zip(values, others, strict=True)}
    if len(parts) == 1 and (found := parts.pop())[1] == 0:
        yield f"{text} // {found[0]}"


def are_numbers(values: Vector) -> TypeGuard[tuple[int, ...]]:
    """Whether a static value is an integer in all environments: the size of a window may be a pair, as `(1, 2)`."""
    return all(type(value) is int for value in values)


def constant(values: Sequence[object]) -> bool:
    """Whether a static value is the same in all environments."""
    first = identity(values[0])
    return all(value is values[0] or identity(value) == first for value in values)


def fresh(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """The first unused name: `w`, `w2`, `w3`, …"""
    number, name = 1, wanted
    while is_taken(name):
        number += 1
        name = f"{wanted}{number}"
    return name
