"""Expressions for the static values of a body: sizes, attributes and keys, of which each has a value in each environment. Keys of weights
name scopes, and those of a function's weights have something in common, as `"{name}.kernel"` says it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from tpucc.ir.attributes import identity
from tpucc.source.names import as_tuple, escaped, literal, unused

Keys = tuple[str, ...]
"""A weight's key in each environment."""
SEPARATORS = "./:_-"
NUMBER = re.compile(r"_\d+(?![^./:_-])")
"""A number behind a name."""


def scopes(key: str) -> Iterator[str]:
    """The scopes around a weight, the innermost last: the empty one, `layers`, `layers.0` for `layers.0.bias`."""
    yield ""
    yield from (key[: found.start()] for found in re.finditer(r"[./:]", key))


def scope_of(keys: Collection[str]) -> str:
    """The innermost scope that all of the keys are in."""
    return [scope for scope, other in zip(scopes(min(keys)), scopes(max(keys)), strict=False) if scope == other][-1]


def head(keys: Keys) -> tuple[Keys, str]:
    """What differs, with all before it, and the end that the keys have in common: it begins with a separator, and not with the number of a
    name, as in `dense_1.weight`."""
    end = _common_start([key[::-1] for key in keys])[::-1]
    places = [place for place, character in enumerate(end) if character in SEPARATORS and not NUMBER.match(end, place)]
    end = end[places[0] :] if places else ""
    if any(len(key) == len(end) for key in keys):
        end = ""
    return tuple(key.removesuffix(end) for key in keys), end


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    return first[: next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))]


def templates(found: Collection[Keys]) -> Mapping[Keys, tuple[Keys, str]]:
    """For each of some keys that differ from environment to environment, the names with which they begin, and the end that they share,
    as the inside of a string literal."""
    heads = {keys: head(keys) for keys in found if len(set(keys)) > 1}
    return {keys: (names, escaped(end)) for keys, (names, end) in heads.items()}


Vector = tuple[Any, ...]
"""A static value in each environment."""
Sizes = tuple[int, ...]
SIZES = ("units", "filters", "inputs", "size")
"""What the parameters are called that are sizes of weights."""
FOLLOWING = (*SIZES, "shape", "start", "stop", "groups", "padding", "n", "pads")
"""What values are called that may follow from sizes; a stride that is as large as an image is high doesn't."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A static parameter of a function, with its value in each environment, and the text of its default, if it has one."""

    name: str
    word: str
    values: Vector
    default: str = ""


@dataclass
class Scope:
    """What the static expressions of a body may name. In a function, a value that follows from nothing becomes a parameter."""

    params: Mapping[str, int]
    """The primes by which sizes that follow from the model's params are told."""
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    """The last sizes of what a function takes, by their expressions."""
    parameters: list[Parameter] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    keys: Mapping[Keys, tuple[Keys, str]] = field(default_factory=dict)

    def know_keys(self, keys: Collection[Keys]) -> None:
        """Finds what the keys have in common that are going to be asked for."""
        self.keys = templates(keys)

    def text(self, values: Vector, word: str) -> str:
        """An expression with these values; `word` says what they are. Raises `Unwritable`."""
        if is_constant(values) and not isinstance(values[0], tuple):
            is_size = type(values[0]) is int and word in FOLLOWING
            return " * ".join(self._factors(values[0])) if is_size else literal(values[0])
        if values in self.keys:
            names, end = self.keys[values]
            name = self._named(names, "name")
            return f'"{{{name}}}{end}"' if end else name
        if all(isinstance(value, tuple) for value in values) and len({len(value) for value in values}) == 1:
            return as_tuple([self.text(items, word) for items in zip(*values, strict=True)])
        return self._named(values, word)

    def _factors(self, size: int) -> Iterator[str]:
        """A size as a product with params."""
        params = [name for name, prime in self.params.items() if size and size % prime == 0]
        rest = size // math.prod(self.params[name] for name in params)
        yield from ([str(rest)] if rest != 1 or not params else [])
        yield from params

    def _named(self, values: Vector, word: str) -> str:
        """The parameter that has these values, what they follow from, or else a new parameter."""
        for parameter in self.parameters:
            if parameter.values == values and parameter.word == word:
                return parameter.name
        if word in FOLLOWING and are_integers(values) and (found := next(self._derived(values, word), "")):
            return found
        name = unused(word, self.taken.__contains__)
        self.taken.add(name)
        self.parameters.append(Parameter(name, word, values))
        return name

    def _derived(self, values: Sizes, word: str) -> Iterator[str]:
        """Expressions for sizes, the simplest first: known sizes, multiples and parts of them, half of them. A weight may have as many
        filters as there are channels, but not as many as an image is high."""
        own = {each.name: each.values for each in self.parameters if each.word in (*SIZES, "groups") and are_integers(each.values)}
        sizes = {text: others for text, others in self.sizes.items() if word not in SIZES or text.endswith("[-1]")}
        yield from (text for text, others in (own | sizes).items() if others == values)
        yield from (found for text, others in (own | sizes).items() if (found := _scaled(values, text, others)))
        yield from (f"{text} // 2" for text, others in own.items() if tuple(size // 2 for size in others) == values)
        groups = own.get("groups", ())
        yield from (
            f"{text} // groups" for text, others in sizes.items() if groups and values == tuple(map(int.__floordiv__, others, groups))
        )


def _scaled(values: Sizes, text: str, others: Sizes) -> str:
    """The values as a multiple of others, or as an integer part of them; empty if they are neither."""
    if not is_constant(others) and 0 not in (*others, *values):
        for whole, parts, shown in ((values, others, "{0} * {1}"), (others, values, "{1} // {0}")):
            if is_constant(factors := [divmod(x, y) for x, y in zip(whole, parts, strict=True)]) and factors[0][1] == 0:
                return shown.format(factors[0][0], text) if factors[0][0] > 1 else text
    return ""


def are_integers(values: Vector) -> TypeGuard[Sizes]:
    """Whether a static value is an integer in all environments: the size of a window may be a pair, as `(1, 2)`."""
    return all(type(value) is int for value in values)


def is_constant(values: Sequence[object]) -> bool:
    """Whether a static value is the same in all environments."""
    first = identity(values[0])
    return all(value is values[0] or identity(value) == first for value in values)
