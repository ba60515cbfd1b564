"""Keys of weights as templates: `"{name}.kernel"` for the keys that a function's weights have at its calls."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from tpucc.interop.decompile.literals import escaped
from tpucc.interop.decompile.statics import Scope, constant

Keys = tuple[str, ...]
"""One weight's key in each environment."""

SEPARATORS = "./:_-"


def head(keys: Keys) -> tuple[Keys, str]:
    """What differs, with all before it, and the end that the keys have in common: it begins with a separator."""
    end = os.path.commonprefix([key[::-1] for key in keys])[::-1]
    places = [place for place, character in enumerate(end) if character in SEPARATORS]
    end = end[places[0] :] if places else ""
    if any(len(key) == len(end) for key in keys):
        end = ""
    return tuple(key.removesuffix(end) for key in keys), end


def core(keys: Keys) -> tuple[str, Keys]:
    """The beginning that heads have in common, digits excluded, and what is left of each."""
    start = os.path.commonprefix(list(keys)).rstrip("0123456789")
    return start, tuple(key[len(start) :] for key in keys)


def templates(found: Mapping[Keys, str], scope: Scope) -> dict[Keys, str]:
    """An expression for each of some vectors of keys, of which each has a word for a parameter of its own.

    Keys with the same head share a parameter, and so do keys of which only the same number differs.
    """
    heads = {keys: head(keys) for keys in found if not constant(keys)}
    distinct = {keys: word for vector, word in found.items() if vector in heads for keys in [heads[vector][0]]}
    cores: dict[Keys, list[Keys]] = {}
    for keys in distinct:
        cores.setdefault(core(keys)[1], []).append(keys)
    texts: dict[Keys, str] = {}
    for left, group in cores.items():
        if len(group) > 1 and all(map(is_integer, left)):
            name = scope.parameter(tuple(map(int, left)), "index")
            texts.update({keys: f"{escaped(core(keys)[0])}{{{name}}}" for keys in group})
        else:
            word = "name" if len(distinct) == 1 else ""
            texts.update({keys: f"{{{scope.parameter(keys, word or distinct[keys])}}}" for keys in group})
    made: dict[Keys, str] = {}
    for vector, (keys, end) in heads.items():
        whole = texts[keys] + escaped(end)
        made[vector] = whole[1:-1] if re.fullmatch(r"\{\w+\}", whole) else f'"{whole}"'
    return made


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
