"""Keys of weights as templates: `"{name}.kernel"` for the keys that a function's weights have at its calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from tpucc.interop.decompile.literals import escaped
from tpucc.interop.decompile.statics import Scope, constant

Keys = tuple[str, ...]
"""One weight's key in each environment."""

SEPARATORS = "./:_-"
NUMBER = re.compile(r"_\d+(?![^./:_-])")
"""A number behind a name."""
PARTS = ("bias", "kernel", "weight")
"""Words that name a layer's weights, and no block of layers."""


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
    return first[: next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def core(keys: Keys) -> tuple[str, tuple[int, ...], str] | None:
    """Keys of which one number differs: what stands before it, its values, and what stands behind; None for others."""
    parts = [re.split(r"(\d+)", key) for key in keys]
    if len({tuple(part[::2]) for part in parts}) != 1:
        return None
    columns = list(zip(*parts, strict=True))
    varying = [place for place, column in enumerate(columns) if not constant(column)]
    if len(varying) != 1 or not all(map(is_integer, columns[varying[0]])):
        return None
    first = parts[0]
    return "".join(first[: varying[0]]), tuple(map(int, columns[varying[0]])), "".join(first[varying[0] + 1 :])


def templates(found: Collection[Keys], scope: Scope) -> dict[Keys, str]:
    """An expression for each of some vectors of keys.

    Keys with the same head share a parameter, and so do keys of which only the same number differs.
    """
    heads = {keys: head(keys) for keys in found if not constant(keys)}
    ends: dict[Keys, list[str]] = {}
    for keys, end in heads.values():
        ends.setdefault(keys, []).append(end)
    distinct = {keys: _word(keys, own) for keys, own in ends.items()}
    numbered = {keys: cut for keys in distinct if (cut := core(keys)) is not None}
    shared = Counter(numbers for _, numbers, _ in numbered.values())
    texts: dict[Keys, str] = {}
    for keys, word in distinct.items():
        if keys in numbered and shared[numbered[keys][1]] > 1:
            start, numbers, end = numbered[keys]
            texts[keys] = f"{escaped(start)}{{{scope.text(numbers, 'index')}}}{escaped(end)}"
        else:
            texts[keys] = f"{{{scope.parameter(keys, 'name' if len(distinct) == 1 else word)}}}"
    names = {f"{{{parameter.name}}}" for parameter in scope.parameters if isinstance(parameter.values[0], str)}
    made: dict[Keys, str] = {}
    for vector, (keys, end) in heads.items():
        whole = texts[keys] + escaped(end)
        made[vector] = whole[1:-1] if whole in names else f'"{whole}"'
    return made


def _word(keys: Keys, ends: Collection[str]) -> str:
    """What a parameter is called that is the beginning of keys, which go on with `ends`: `name`, or of whole keys the part of a layer that
    all of them name, as `bias`."""
    words = {re.split(r"[./:]", key.rstrip("0123456789_."))[-1] for key in keys}
    return words.pop() if not any(ends) and len(words) == 1 and words.issubset(PARTS) else "name"


def is_integer(text: str) -> bool:
    """Whether a text is how an integer is written."""
    return text.isascii() and text.isdigit() and str(int(text)) == text


def common_word(names: Sequence[str]) -> str:
    """The word that the last parts of most names have in common, without numbers: `block` of `stage1.block2`; empty if there is none."""
    words: dict[str, int] = {}
    for name in names:
        parts = [part for part in re.split(r"[^A-Za-z]+", name) if len(part) > 2]
        if parts:
            words[parts[-1].lower()] = words.get(parts[-1].lower(), 0) + 1
    best = max(words, key=lambda word: words[word], default="")
    return best if best and 2 * words[best] > len(names) else ""
