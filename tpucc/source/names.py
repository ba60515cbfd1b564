"""Names and static values as a source has them: of variables, weights and functions; numbers, strings, tuples."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from tpucc.language.frame import STATIC_FUNCTIONS
from tpucc.language.literals import IDENTIFIER, KEYWORDS
from tpucc.numerics import AnyArray
from tpucc.ops import OPS

TOP_LEVEL = ("param", "weights", "calibration", "activations", "examples", "optimizer", "model", "train", "fixed", "None", "scalar")
RESERVED = frozenset((*KEYWORDS, *STATIC_FUNCTIONS, *TOP_LEVEL, *OPS))
"""Words that no variable is named, though the language would allow some."""
DIGITS = "0123456789"
LONGEST = 16
"""Characters of a name that a graph may give to a variable."""


class Unwritable(ValueError):
    """The graph has no text: it has an operator, a value or a name that the language doesn't have."""


def required(name: str, what: str) -> str:
    """A name that has to be in the source as it is. Raises `Unwritable`."""
    if not IDENTIFIER.fullmatch(name) or name in KEYWORDS:
        raise Unwritable(f"{name!r} can't be the name of {what}")
    return name


def variable_in(name: str) -> str:
    """The name of a variable that the name of a node comes from, or empty. The front end names a second and third `h` `h.1` and `h.2`, and
    a node without a variable after its operator."""
    base = re.sub(r"\.\d+$", "", name)
    meant = IDENTIFIER.fullmatch(base) and len(base) <= LONGEST and base not in RESERVED
    return base if meant and not _is_of_an_operator(base) else ""


def _is_of_an_operator(name: str) -> bool:
    """Whether a name is an operator's with a number, or any name with a number behind `_`, as exporters name nodes: `relu1`, `lstm_2`."""
    plain = re.sub(r"_?\d*$", "", name).lower()
    counted = re.search(r"_\d*$|_\d+_", name) is not None
    return counted or (plain != name and (plain in OPS or any(op.replace("_", "").rstrip("0123456789d") == plain for op in OPS)))


def word_of(op: str) -> str:
    """An operator in a word: `conv` for conv2d."""
    return re.sub(r"\d+d$", "", op)


def unused(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """The first unused name: `w`, `w2`, `w3`, …"""
    number, name = 1, wanted
    while is_taken(name):
        number += 1
        name = f"{wanted}{number}"
    return name


def common_word(names: Sequence[str]) -> str:
    """The word that the last parts of most names have in common, without numbers: `block` of `stage1.block2`; empty if there is none."""
    words = [parts[-1].lower() for name in names if (parts := [part for part in re.split(r"[^A-Za-z]+", name) if len(part) > 2])]
    best = max(words, key=words.count, default="")
    return best if 2 * words.count(best) > len(names) else ""


def literal(value: object) -> str:
    """An attribute's value. Raises `Unwritable` for one that the language has no text for."""
    match value:
        case bool() | int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return f'"{escaped(value)}"'
        case tuple():
            return as_tuple([literal(item) for item in value])
    raise Unwritable(f"the language has no text for the value {value!r}")


def as_tuple(items: Sequence[str]) -> str:
    """Texts as a tuple."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def escaped(text: str) -> str:
    """The inside of a string literal."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    if re.search(r"[\x00-\x08\x0b-\x1f]", text):
        raise Unwritable(f"a string of the language can't have the characters of {text!r}")
    return re.sub(r"[{}]", lambda brace: brace[0] * 2, text)


def number_text(value: float) -> str:
    """The shortest text of a float32."""
    short = np.float32(value)
    if not np.isfinite(short):
        raise Unwritable(f"the language has no text for the number {value!r}")
    text = str(short)
    return text if np.float32(float(text)) == short else repr(float(short))


def array_text(value: AnyArray) -> str:
    """An f32 array as nested lists."""
    if value.dtype != np.float32:
        raise Unwritable(f"the language has no constants of the type {value.dtype}")
    if value.ndim == 0:
        return number_text(float(value))
    return f"[{', '.join(map(array_text, value))}]"
