"""Keys of weights as templates: `"{name}.kernel"` for the keys that a function's weights have at its calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from tpucc.interop.decompile.literals import escaped
from tpucc.interop.decompile.names import RESERVED
from tpucc.interop.decompile.statics import Scope, constant

Keys = tuple[str, ...]
"""One weight's key in each environment."""

SEPARATORS = "./:_-"


def head(keys: Keys) -> tuple[Keys, str]:
    """What differs, with all before it, and the end that the keys have in common: it begins with a separator."""
    end = _common_start([key[::-1] for key in keys])[::-1]
    places = [place for place, character in enumerate(end) if character in SEPARATORS]
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


def templates(found: Mapping[Keys, str], scope: Scope) -> dict[Keys, str]:
    """An expression for each of some vectors of keys, of which each has a word for a parameter of its own.

    Keys with the same head share a parameter, and so do keys of which only the same number differs.
    """
    heads = {keys: head(keys) for keys in found if not constant(keys)}
    distinct = {heads[vector][0]: word for vector, word in found.items() if vector in heads}
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


def is_integer(text: str) -> bool:
    """Whether a text is how an integer is written."""
    return text.isascii() and text.isdigit() and str(int(text)) == text


def last_word(names: Sequence[str]) -> str:
    """The word with which most names end, without numbers: `conv` of `layer1.conv2`; empty if there is none."""
    words = Counter(re.split(r"[./:]", re.sub(r"[.]\d+$", "", name))[-1].rstrip("0123456789_") for name in names)
    word, times = words.most_common(1)[0]
    return word if re.fullmatch(r"[a-z]\w+", word) and word not in RESERVED and 2 * times > len(names) else ""


def common_word(names: Sequence[str]) -> str:
    """The word that the last parts of most names have in common, without numbers: `block` of `stage1.block2`; empty if there is none."""
    words: dict[str, int] = {}
    for name in names:
        parts = [part for part in re.split(r"[^A-Za-z]+", name) if len(part) > 2]
        if parts:
            words[parts[-1].lower()] = words.get(parts[-1].lower(), 0) + 1
    best = max(words, key=lambda word: words[word], default="")
    return best if best and 2 * words[best] > len(names) else ""
