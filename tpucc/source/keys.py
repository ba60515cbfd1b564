"""Keys of weights: the scopes that they name, and what the keys of a function's weights have in common, as `"{name}.kernel"` says it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tpucc.source.literals import escaped

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
    as the inside of a string literal. Shorter names of other keys will do if all keys go on alike behind them."""
    heads = {keys: head(keys) for keys in found if len(set(keys)) > 1}
    begun = {names for names, _ in heads.values()}
    made: dict[Keys, tuple[Keys, str]] = {}
    for keys, (names, end) in heads.items():
        for shorter in begun:
            rest = {name.removeprefix(short) for name, short in zip(names, shorter, strict=True) if name.startswith(short)}
            if len(rest) == 1 and all(map(str.startswith, names, shorter)) and len(min(shorter)) < len(min(names)):
                names, end = shorter, rest.pop() + end
        made[keys] = names, escaped(end)
    return made
